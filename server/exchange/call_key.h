/* The key of a call: every part of it that api/ reads, byte for byte. */
#ifndef SERVER_EXCHANGE_CALL_KEY_H
#define SERVER_EXCHANGE_CALL_KEY_H

#include "api/api.h"

/* A longer request has no key: comparing it would cost as much as planning it. */
enum { CALL_KEY_MAX = 4096 };

/* Every text with its terminator, absent ones as a distinct byte, then the body. */
struct call_key {
    size_t n;
    char bytes[CALL_KEY_MAX];
};

bool call_key_make(const struct api_call *call, struct call_key *key); /* false: too long */

/* Uses this process's secret key, so that a client cannot choose requests that collide. */
uint64_t call_key_hash(const struct call_key *key);

#endif
