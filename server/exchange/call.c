/* Owns calls, and fills them from a request's head: copies of the headers that api/ reads. The daemon's own strings are
 * freed with its connection, when a worker may still use the call. */
#define _GNU_SOURCE /* stpcpy */
#include "server/exchange/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SPARE_CALLS_MAX = 256 }; /* a quarter of a megabyte in all */

/* ---- Lifetime -------------------------------------------------------------------------------------------------- */

struct call *call_new(struct calls *spare)
{
    struct call *call = spare->first;
    if (!call) {
        call = malloc(sizeof *call);
    } else {
        spare->first = call->next_spare;
        spare->n--;
    }
    if (!call)
        return NULL;
    memset(call, 0, offsetof(struct call, room));
    atomic_init(&call->n_holders, 1);
    return call;
}

char *call_room(struct call *call, size_t n)
{
    if (n > sizeof call->room - call->n_room)
        return malloc(n);
    char *place = call->room + call->n_room;
    call->n_room += n;
    return place;
}

static void free_room(const struct call *call, char *place)
{
    if (place < call->room || place >= call->room + sizeof call->room)
        free(place);
}

struct call *call_hold(struct call *call)
{
    atomic_fetch_add_explicit(&call->n_holders, 1, memory_order_relaxed);
    return call;
}

void call_drop(struct call *call, struct calls *spare)
{
    if (!call || atomic_fetch_sub_explicit(&call->n_holders, 1, memory_order_acq_rel) > 1)
        return;
    body_drop(&call->body);
    free_room(call, call->strings);
    free_room(call, call->target);
    if (!spare || spare->n == SPARE_CALLS_MAX) {
        free(call);
        return;
    }
    call->next_spare = spare->first;
    spare->first = call;
    spare->n++;
}

void calls_free(struct calls *spare)
{
    for (struct call *call = spare->first, *next; call; call = next) {
        next = call->next_spare;
        free(call);
    }
    *spare = (struct calls){0};
}

/* ---- Its headers ----------------------------------------------------------------------------------------------- */

/* A header and its place in the call. Several lines of a list header are one list, in order (RFC 9110, 5.3). Of any
 * other header that http_head_check lets appear several times, the first line counts. */
static const struct kept {
    enum api_text_id id;
    enum http_header header;
    const char *list_name; /* NULL: not a list */
} kept[] = {
    {API_CONTENT_TYPE, HTTP_CONTENT_TYPE, NULL},
    {API_CONTENT_ENCODING, HTTP_CONTENT_ENCODING, NULL},
    {API_ACCEPT, HTTP_ACCEPT, "Accept"},
    {API_ACCEPT_LANGUAGE, HTTP_ACCEPT_LANGUAGE, "Accept-Language"},
    {API_ACCEPT_ENCODING, HTTP_ACCEPT_ENCODING, "Accept-Encoding"},
    {API_LAST_EVENT_ID, HTTP_LAST_EVENT_ID, "Last-Event-ID"},
    {API_IF_MATCH, HTTP_IF_MATCH, "If-Match"},
    {API_IF_NONE_MATCH, HTTP_IF_NONE_MATCH, "If-None-Match"},
    {API_IF_RANGE, HTTP_IF_RANGE, NULL},
    {API_RANGE, HTTP_RANGE, NULL},
    {API_INFERENCE_HEADER, HTTP_INFERENCE_HEADER, NULL},
    {API_ORIGIN, HTTP_ORIGIN, NULL},
    {API_ACCESS_METHOD, HTTP_ACCESS_METHOD, NULL},
    {API_ACCESS_HEADERS, HTTP_ACCESS_HEADERS, "Access-Control-Request-Headers"},
};

enum { N_KEPT = sizeof kept / sizeof *kept };
_Static_assert((int)N_KEPT == (int)API_N_TEXTS - (int)API_CONTENT_TYPE, "a text of api_call that no header fills");

/* The lines of one list, joined at `at`; while that is NULL, their length is only computed. */
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

/* Size of the copy, including the NUL, of a header that is present; it is written at `at` unless that is NULL. */
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
    const struct kept *found[N_KEPT]; /* for headers not found, the call has NULL */
    size_t n_found = 0;
    for (size_t i = 0; i < N_KEPT; i++)
        if (x->receiving.head.first[kept[i].header])
            found[n_found++] = &kept[i];
    for (size_t i = 0; i < n_found; i++)
        n += copy(x, found[i], x->receiving.head.first[found[i]->header], NULL);
    char *at = x->call->strings = call_room(x->call, n);
    if (!at)
        return false;
    x->call->api.method = at;
    at = stpcpy(at, method) + 1;
    for (size_t i = 0; i < n_found; i++) {
        x->call->api.texts[found[i]->id] = at;
        at += copy(x, found[i], x->receiving.head.first[found[i]->header], at);
    }
    return true;
}
