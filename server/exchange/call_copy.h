/* A call with all that it borrows, in one block with a reference count.
 *
 * A reply borrows from its call until it is freed. If several requests share one reply, its call belongs to none of
 * them, so each holder of the reply also holds a reference to the copy of the call. */
#ifndef SERVER_EXCHANGE_CALL_COPY_H
#define SERVER_EXCHANGE_CALL_COPY_H

#include "api/api.h"

struct call_copy;

struct call_copy *call_copy_new(const struct api_call *call); /* one reference; NULL: no memory */
const struct api_call *call_copy_call(const struct call_copy *copy);
struct call_copy *call_copy_hold(struct call_copy *copy); /* adds a reference; NULL is accepted */
void call_copy_drop(struct call_copy *copy);              /* drops a reference; any thread; NULL is accepted */

#endif
