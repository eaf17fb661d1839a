/* What one request takes of the memory that all requests share (api_host.take_memory), asked for before it is used. */
#ifndef API_MEMORY_H
#define API_MEMORY_H

#include "api/reply.h"

/* Reading the body of a call, at most: before it is read. */
bool api_memory_for_reading(struct api_work *work, const struct api_host *host, const struct api_call *call,
                            struct api_problem *problem);
/* Gives back all but what reading has left behind, the fields. */
void api_memory_settle(struct api_work *work);
/* Planning it, `bytes` in all; called again with more as planning goes on. */
bool api_memory_for_planning(struct api_work *work, const struct api_host *host, double bytes,
                             struct api_problem *problem);
/* Filling from its plan, and drawing all of it if it is a picture. */
bool api_memory_for_answering(struct api_work *work, const struct api_host *host, const struct api_format *format,
                              struct api_problem *problem);

#endif
