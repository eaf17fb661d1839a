/* The memory of one request, reserved from the memory that all requests share (api_host.take_memory) before it is used.
 */
#ifndef API_MEMORY_H
#define API_MEMORY_H

#include "api/replies/reply.h"

/* Reserves the most that reading the body of a call may take; called before the body is read. */
bool api_memory_for_reading(struct api_request *request, const struct api_host *host, const struct api_call *call,
                            struct api_problem *problem);
/* The same for a body of which n bytes are JSON and the rest are tensors that stay in place. Call one of the two first:
 * from then on, memory that the request's arena takes beyond that is reserved from the host too. */
bool api_memory_for_json(struct api_request *request, const struct api_host *host, const struct api_call *call,
                         size_t n, struct api_problem *problem);
/* Reserves the most that the tree of a safetensors file's header may take; the caller returns it. 0: so much is not
 * available. */
uint64_t api_memory_for_head(const struct api_host *host, const struct api_call *call, struct api_problem *problem);
/* If the arena was refused memory, *problem becomes the reason. NULL is accepted. */
void api_memory_refusal(const struct api_request *request, struct api_problem *problem);
/* Returns everything except the memory of the request's fields. */
void api_memory_settle(struct api_request *request);
/* Reserves `bytes` in all for planning; called again with more as planning goes on. */
bool api_memory_for_planning(struct api_request *request, const struct api_host *host, double bytes,
                             struct api_problem *problem);
/* Reserves the memory for filling from the source and, for a picture, for drawing it. */
bool api_memory_for_answering(struct api_request *request, const struct api_host *host, const struct api_source *source,
                              const struct api_format *format, struct api_problem *problem);

#endif
