/* A cache of finished small answers, keyed by the exact request, so that an equal request needs no computing. The least
 * recently used answer is evicted first.
 *
 * All loops share one cache behind a lock that is held briefly, so every connection can get an answer that another one
 * has requested. With one cache for each of n loops, each answer would be computed and stored n times. */
#ifndef SERVER_EXCHANGE_ANSWERS_H
#define SERVER_EXCHANGE_ANSWERS_H

#include "api/api.h"

struct answers;

/* bytes_max limits requests, answers and bookkeeping together; 0: nothing is cached. NULL: no memory. */
struct answers *answers_new(size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is accepted */

/* The answer of an equal call, with one more reference (api_reply_free), or NULL. All parts of the call that api/ reads
 * are compared, byte for byte. */
struct api_reply *answers_find(struct answers *answers, const struct api_call *call);

/* Stores a reply that is repeatable and has its body, with a reference of its own. Does nothing for any other reply, or
 * if memory runs out. */
void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply);

#endif
