/* The key of a call: everything that api/ reads of it, byte for byte. */
#ifndef SERVER_CACHE_CALL_KEY_H
#define SERVER_CACHE_CALL_KEY_H

#include "api/api.h"

/* A longer request has no key: comparing it would cost as much as planning it. */
enum { CALL_KEY_MAX = 4096 };

/* Every text with its end, absent ones as a byte of their own, then the body. */
struct call_key {
    size_t n;
    char bytes[CALL_KEY_MAX];
};

bool call_key_make(const struct api_call *call, struct call_key *key); /* false: too long */

/* Under this process's secret key, so that a client cannot choose requests that collide. */
uint64_t call_key_hash(const struct call_key *key);

#endif
