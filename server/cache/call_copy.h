/* A call with all that it borrows, in one block counted by its holders.
 *
 * A reply borrows from its call until it is freed. If several requests share one reply, its call belongs to none of
 * them, so each holder of the reply also holds the copy of the call. */
#ifndef SERVER_KEPT_CALL_COPY_H
#define SERVER_KEPT_CALL_COPY_H

#include "api/api.h"

struct call_copy;

struct call_copy *call_copy_new(const struct api_call *call); /* one holder; NULL: no memory */
const struct api_call *call_copy_call(const struct call_copy *copy);
struct call_copy *call_copy_hold(struct call_copy *copy); /* one holder more; NULL is accepted */
void call_copy_drop(struct call_copy *copy);              /* one less; any thread; NULL is accepted */

#endif
