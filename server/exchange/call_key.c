/* Owns the layout of a call's key, and its hash. */
#include "server/exchange/call_key.h"

#include "server/process/siphash.h"

#include <string.h>

enum { ABSENT = 1, PRESENT = 2 }; /* bytes that no header can contain */

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

/* False: too long. The body comes last, so its length need not be stored. */
bool call_key_make(const struct api_call *call, struct call_key *key)
{
    key->n = 0;
    for (size_t i = 0; i < API_N_TEXTS; i++)
        if (!add_text(key, call->texts[i]))
            return false;
    return call->body_bytes == 0 || add(key, call->body, call->body_bytes);
}

uint64_t call_key_hash(const struct call_key *key) { return siphash_secret(key->bytes, key->n); }
