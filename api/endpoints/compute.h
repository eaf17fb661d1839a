/* The steps from a request's fields to the stream of its answer, also for endpoints with their own request format.
 */
#ifndef API_COMPUTE_H
#define API_COMPUTE_H

#include "api/replies/caching.h"
#include "api/replies/reply.h"

struct api_computation {
    const struct api_host *host;
    const struct api_call *call;
    struct api_request *request; /* without the fields of the form */
    struct api_form form;
    const struct api_format *format;
    void *about;         /* further data for a format: api_opening.about */
    size_t stored_bytes; /* bytes of the stored tensors that it uses */
    bool is_kept;        /* the method allows caching of the answer, so the answer has a validator */
    bool is_unchanged;   /* and the client's cached answer is still valid */
    const char *key;     /* a key of a store, with its own tag and without Accept; NULL: none */
    char etag[API_ETAG_MAX];
    struct api_problem *problem;
};

/* The steps that other endpoints share; each fails with the reason in *c->problem. */
bool api_may_be_kept(const struct api_call *call);  /* by its method; sets c->is_kept */
bool api_compute_read(struct api_computation *c);   /* body and query as fields of request */
bool api_compute_format(struct api_computation *c); /* c->format, by the form or by Accept */
bool api_compute_size(const struct api_computation *c, const struct api_source *source); /* --max-answer */
/* If the answer may be kept, sets its tag, and whether the client already has it; then it need not be computed. */
void api_compute_name(struct api_computation *c, const struct api_named *named);
/* Plans, without checking the size of the answer; *later as in api_compute. */
bool api_compute_plan(struct api_computation *c, bool *later);
/* The reply of a text in JSON about the plan, or the 304, with the headers of an answer that may be kept; takes request
 * and text. */
struct api_reply *api_compute_text(struct api_computation *c, struct api_text *text);
/* The reply of opening->stream, or the 304; takes the request. */
struct api_reply *api_compute_reply(struct api_computation *c, const struct api_opening *opening);

/* Plans, checks the limits, and opens opening->stream in c->format. False with *later: the call has must_not_block and
 * should be repeated without it; false without *later: *problem has the reason. */
bool api_compute(struct api_computation *c, struct api_opening *opening, bool *later);

#endif
