/* The memory of one request, reserved from the memory that all requests share (api_host.take_memory) before it is used.
 */
#ifndef API_MEMORY_H
#define API_MEMORY_H

#include "api/replies/reply.h"

/* Reading the body of a call, at most: before it is read. */
bool api_memory_for_reading(struct api_work *work, const struct api_host *host, const struct api_call *call,
                            struct api_problem *problem);
/* The same of a body of which so many bytes are JSON, and the others tensors that stay where they are. Either call
 * first: from then on what the request's arena takes beyond that is taken of the host's too. */
bool api_memory_for_json(struct api_work *work, const struct api_host *host, const struct api_call *call, size_t n,
                         struct api_problem *problem);
/* Takes what the tree of a safetensors file's head takes at most: the caller gives it back. 0: there is not so much. */
uint64_t api_memory_for_head(const struct api_host *host, const struct api_call *call, struct api_problem *problem);
/* Where the arena was refused memory, *problem becomes the reason. NULL is accepted. */
void api_memory_refusal(const struct api_work *work, struct api_problem *problem);
/* Gives back all but what reading has left behind, the fields. */
void api_memory_settle(struct api_work *work);
/* Planning it, `bytes` in all; called again with more as planning goes on. */
bool api_memory_for_planning(struct api_work *work, const struct api_host *host, double bytes,
                             struct api_problem *problem);
/* Filling from its plan, and drawing all of it if it is a picture. */
bool api_memory_for_answering(struct api_work *work, const struct api_host *host, const struct api_format *format,
                              struct api_problem *problem);

#endif
