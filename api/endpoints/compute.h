/* The steps from a request's fields to the stream of its answer, also for endpoints with their own request format.
 */
#ifndef API_COMPUTE_H
#define API_COMPUTE_H

#include "api/replies/caching.h"
#include "api/replies/reply.h"

struct api_computation {
    const struct api_host *host;
    const struct api_call *call;
    struct api_work *work; /* its request's fields, without those of the form */
    struct api_form form;
    const struct api_format *format;
    void *about;         /* further data for a format: api_opening.about */
    size_t stored_bytes; /* bytes of the stored tensors that it uses */
    bool is_kept;        /* the method allows caching of the answer, so the answer has a validator */
    bool is_unchanged;   /* and the client's cached answer is still valid */
    char etag[API_ETAG_MAX];
    struct api_problem *problem;
};

/* Plans, checks the limits, and opens work->stream in c->format. False with *later: the call has must_not_block and
 * should be repeated without it; false without *later: *problem has the reason. */
bool api_compute(struct api_computation *c, struct api_opening *opening, bool *later);

#endif
