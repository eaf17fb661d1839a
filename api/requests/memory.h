/* What one request takes of the memory that all requests share (api_host.take_memory), asked for before it is used. */
#ifndef API_MEMORY_H
#define API_MEMORY_H

#include "api/replies/reply.h"

/* Reading the body of a call, at most: before it is read. */
bool api_memory_for_reading(struct api_work *work, const struct api_host *host, const struct api_call *call,
                            struct api_problem *problem);
/* Planning it: once its fields are there, which is all that reading has left behind. */
bool api_memory_for_planning(struct api_work *work, const struct api_host *host, const struct pe_request *core,
                             struct api_problem *problem);
/* Filling from its plan, and drawing all of it if it is a picture. */
bool api_memory_for_answering(struct api_work *work, const struct api_host *host, const struct api_format *format,
                              struct api_problem *problem);

#endif
