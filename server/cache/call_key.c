/* Owns the form of a call's key and its hash. */
#include "server/cache/call_key.h"

#include <string.h>

enum { ABSENT = 1, PRESENT = 2 }; /* bytes no header can hold */

static bool add(struct call_key *key, const void *bytes, size_t n)
{
    if (n > CALL_KEY_MAX - key->n)
        return false;
    memcpy(key->bytes + key->n, bytes, n);
    key->n += n;
    return true;
}

static bool add_text(struct call_key *key, const char *text)
{
    const char mark = text ? PRESENT : ABSENT;
    return add(key, &mark, 1) && (!text || add(key, text, strlen(text) + 1));
}

/* False: too long. The body comes last, so its length needs no saying. */
bool call_key_make(const struct api_call *call, struct call_key *key)
{
    const char *const texts[] = {
        call->method, call->path,          call->query,          call->content_type,     call->content_encoding,
        call->accept, call->if_match,      call->if_none_match,  call->if_range,         call->range,
        call->origin, call->access_method, call->access_headers, call->inference_header,
    };
    key->n = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!add_text(key, texts[i]))
            return false;
    return call->body_bytes == 0 || add(key, call->body, call->body_bytes);
}

/* Eight bytes at a time; the product carries each of them upwards, the shift brings them down again. */
uint64_t call_key_hash(uint64_t seed, const struct call_key *key)
{
    uint64_t hash = seed ^ key->n;
    for (size_t i = 0; i < key->n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key->bytes + i, key->n - i < 8 ? key->n - i : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}
