/* Owns copies of calls. */
#include "server/exchange/call_copy.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct call_copy {
    atomic_size_t n_holders;
    struct api_call call;
    _Alignas(max_align_t) char body[]; /* [body_bytes], then the texts */
};

struct call_copy *call_copy_new(const struct api_call *call)
{
    struct api_call own = *call;
    size_t n_texts = 0;
    for (size_t i = 0; i < API_N_TEXTS; i++)
        n_texts += own.texts[i] ? strlen(own.texts[i]) + 1 : 0;
    struct call_copy *copy = malloc(sizeof *copy + own.body_bytes + n_texts);
    if (!copy)
        return NULL;
    atomic_init(&copy->n_holders, 1);
    if (own.body)
        own.body = memcpy(copy->body, own.body, own.body_bytes);
    char *at = copy->body + own.body_bytes;
    for (size_t i = 0; i < API_N_TEXTS; i++) {
        const char **text = &own.texts[i];
        size_t n = *text ? strlen(*text) + 1 : 0;
        *text = n ? memcpy(at, *text, n) : NULL;
        at += n;
    }
    copy->call = own;
    return copy;
}

const struct api_call *call_copy_call(const struct call_copy *copy) { return &copy->call; }

struct call_copy *call_copy_hold(struct call_copy *copy)
{
    if (copy)
        atomic_fetch_add(&copy->n_holders, 1);
    return copy;
}

void call_copy_drop(struct call_copy *copy)
{
    if (copy && atomic_fetch_sub(&copy->n_holders, 1) == 1)
        free(copy);
}
