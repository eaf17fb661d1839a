/* Owns what is kept of a request's head: copies of the headers the language wants. The daemon's own strings die with
 * its connection; a worker may still hold the call then. */
#define _GNU_SOURCE /* stpcpy */
#include "server/http/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A header and its place in the call. Several lines of a list are one list, in their order (RFC 9110, 5.3); of any
 * other header the first line counts, where http_head_check has let several pass. */
static const struct kept {
    enum http_header header;
    size_t place;
    const char *list_name; /* NULL: no list */
} kept[] = {
    {HTTP_CONTENT_TYPE, offsetof(struct api_call, content_type), NULL},
    {HTTP_CONTENT_ENCODING, offsetof(struct api_call, content_encoding), NULL},
    {HTTP_ACCEPT, offsetof(struct api_call, accept), "Accept"},
    {HTTP_IF_MATCH, offsetof(struct api_call, if_match), "If-Match"},
    {HTTP_IF_NONE_MATCH, offsetof(struct api_call, if_none_match), "If-None-Match"},
    {HTTP_IF_RANGE, offsetof(struct api_call, if_range), NULL},
    {HTTP_RANGE, offsetof(struct api_call, range), NULL},
    {HTTP_INFERENCE_HEADER, offsetof(struct api_call, inference_header), NULL},
    {HTTP_ORIGIN, offsetof(struct api_call, origin), NULL},
    {HTTP_ACCESS_METHOD, offsetof(struct api_call, access_method), NULL},
    {HTTP_ACCESS_HEADERS, offsetof(struct api_call, access_headers), "Access-Control-Request-Headers"},
};

enum { N_KEPT = sizeof kept / sizeof *kept };

/* The lines of one list, joined at `at`; only counted while that is NULL. */
struct list {
    const char *name;
    char *at;
    size_t n;
};

static void append(struct list *list, const char *text)
{
    size_t n = strlen(text);
    if (list->at)
        memcpy(list->at + list->n, text, n);
    list->n += n;
}

static void take_line(void *self, const char *name, const char *value)
{
    struct list *list = self;
    if (strcasecmp(name, list->name) != 0)
        return;
    if (list->n)
        append(list, ", ");
    append(list, value ? value : "");
}

/* Bytes of the copy, with its end, of a header that is there; made at `at` unless that is NULL. */
static size_t copy(struct exchange *x, const struct kept *k, const char *first, char *at)
{
    struct list list = {k->list_name, at, 0};
    if (k->list_name && x->receiving.head.n[k->header] > 1)
        daemon_headers(x->mhd, take_line, &list);
    else
        append(&list, first);
    if (at)
        at[list.n] = '\0';
    return list.n + 1;
}

bool exchange_keep_call(struct exchange *x, const char *method)
{
    size_t n = strlen(method) + 1;
    const struct kept *found[N_KEPT]; /* x->call has NULL for the others */
    size_t n_found = 0;
    for (size_t i = 0; i < N_KEPT; i++)
        if (x->receiving.head.first[kept[i].header])
            found[n_found++] = &kept[i];
    for (size_t i = 0; i < n_found; i++)
        n += copy(x, found[i], x->receiving.head.first[found[i]->header], NULL);
    char *at = x->receiving.strings = exchange_room(x, n);
    if (!at)
        return false;
    x->call.method = at;
    at = stpcpy(at, method) + 1;
    for (size_t i = 0; i < n_found; i++) {
        *(const char **)((char *)&x->call + found[i]->place) = at;
        at += copy(x, found[i], x->receiving.head.first[found[i]->header], at);
    }
    return true;
}
