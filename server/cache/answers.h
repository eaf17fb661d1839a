/* A cache of finished small answers, found by their exact request, so that an equal request needs no computing. The
 * answer that was used longest ago is dropped first.
 *
 * All loops share one cache, behind a short lock, so any connection gets an answer that another has asked for. A cache
 * for each loop would compute each answer n times and store it n times. */
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

/* Stores a reply that is repeatable and has its body, as a further owner; ignores any other, or if memory runs out. */
void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply);

#endif
