/* A call in one counted block: the request as api/ reads it, with all that it points to.
 *
 * A reply borrows from its call until it is freed. So each request that shares a reply holds the call of the one that
 * was answered, and nothing is copied. A block that the last holder drops on a loop's thread goes to that loop's list
 * of spare ones: it is larger than the blocks that malloc caches for each thread. */
#ifndef SERVER_EXCHANGE_CALL_H
#define SERVER_EXCHANGE_CALL_H

#include "api/api.h"
#include "server/memory/body.h"

#include <stdatomic.h>

struct call {
    struct api_call api;
    char *target;     /* as received, then split into path and query; in room, as is the next */
    char *strings;    /* copies of the headers that api borrows, which must outlive the connection */
    struct body body; /* as it arrives; whole, it is api.body */
    atomic_size_t n_holders;
    struct call *next_spare; /* while it is not in use */
    size_t n_room;           /* bytes used */
    char room[512];          /* longer texts are on the heap; last, because it is not cleared */
};

/* The spare blocks of one loop. */
struct calls {
    struct call *first;
    size_t n;
};

struct call *call_new(struct calls *spare);             /* one holder; NULL: no memory */
char *call_room(struct call *call, size_t n);           /* n bytes that live as long as the call; NULL: no memory */
struct call *call_hold(struct call *call);              /* any thread that holds it */
void call_drop(struct call *call, struct calls *spare); /* NULL: it is not kept for reuse (any thread) */
void calls_free(struct calls *spare);

/* ---- Its key: every part of it that api/ reads, byte for byte ---------------------------------------------------- */

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
