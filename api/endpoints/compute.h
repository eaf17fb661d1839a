/* The steps from a request's fields to the stream of its answer, also for endpoints with their own request format.
 */
#ifndef API_COMPUTE_H
#define API_COMPUTE_H

#include "api/replies/caching.h"
#include "api/replies/reply.h"

/* The steps that other endpoints share; each fails with the reason in *&request->problem. */
bool api_may_be_kept(const struct api_call *call);    /* by its method; sets request->is_kept */
bool api_compute_read(struct api_request *request);   /* body and query as fields of request */
bool api_compute_format(struct api_request *request); /* request->format, by the form or by Accept */
bool api_compute_size(struct api_request *request, const struct api_source *source); /* --max-answer */
/* If the answer may be kept, sets its tag, and whether the client already has it; then it need not be computed. */
void api_compute_name(struct api_request *request, const struct api_named *named);
/* request->plan in two steps: it is refused if it breaks a rule, and request->is_long states whether a worker should
 * take the next step; then its tables are computed and its numbers drawn. The size of the answer is not checked. */
bool api_compute_check(struct api_request *request);
bool api_compute_build(struct api_request *request);
/* The reply of a text in JSON about the plan, or the 304, with the headers of an answer that may be kept; takes the
 * text. */
struct api_reply *api_compute_text(struct api_request *request, struct api_text *text);
/* The reply of opening->stream, or the 304. */
struct api_reply *api_compute_reply(struct api_request *request, const struct api_opening *opening);

/* Builds the checked plan, checks the limits, and opens opening->stream in the request's format. */
bool api_compute(struct api_request *request, struct api_opening *opening);

#endif
