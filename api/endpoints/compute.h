/* The steps from a request's fields to the stream of its answer, also for endpoints with their own request format.
 */
#ifndef API_COMPUTE_H
#define API_COMPUTE_H

#include "api/replies/caching.h"
#include "api/replies/reply.h"

struct api_computation {
    const struct api_host *host;
    const struct api_call *call;
    struct api_work *work; /* its request has fields, without those of the form */
    struct api_form form;
    const struct api_format *format;
    void *about;         /* further data for a format: api_opening.about */
    size_t stored_bytes; /* of stored tensors it uses */
    bool is_kept;        /* asked with a method whose answers may be kept: it has a validator */
    bool is_unchanged;   /* and its client has it still */
    char etag[API_ETAG_MAX];
    struct api_problem *problem;
};

/* Makes the plan, holds the ceilings, opens work->stream in c->format. False with *later: whoever calls is hurried and
 * should ask again unhurried; without: *problem says why. */
bool api_compute(struct api_computation *c, struct api_opening *opening, bool *later);

#endif
