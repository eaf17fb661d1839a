/* Finished small answers by the very request that they answer, so that asking again costs no computing. The one that
 * was used longest ago leaves first.
 *
 * One for all loops, behind a short lock: what one connection has asked is answered to any other, within one limit. A
 * part for each loop would be asked n times before it has an answer, and keep it n times. */
#ifndef SERVER_KEPT_ANSWERS_H
#define SERVER_KEPT_ANSWERS_H

#include "api/api.h"

struct answers;

/* At most bytes_max for requests, answers and their bookkeeping together; 0: none are kept. NULL: no memory. */
struct answers *answers_new(size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is accepted */

/* The answer of an equal call, one owner more (api_reply_free), or NULL. Everything that the language looks at is
 * compared, byte for byte. */
struct api_reply *answers_find(struct answers *answers, const struct api_call *call);

/* Keeps a reply that is repeatable and has its body, with an owner of its own; else, and without memory, nothing. */
void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply);

#endif
