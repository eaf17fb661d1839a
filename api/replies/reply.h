/* Replies: api.h's struct api_reply with the data that it owns. */
#ifndef API_REPLY_H
#define API_REPLY_H

#include "api/api.h"
#include "api/formats/format.h"
#include "api/problem.h"
#include "api/inputs/request.h"

/* A handler answers a request: `struct api_reply *api_name(struct api_request *request)`. NULL: it is refused by
 * request->problem, or left to a worker. */

/* Leaves the request to a worker, which may wait for a disk or a network and take its time, if this thread must not
 * block. Then the handler returns NULL. */
static inline bool api_is_late(struct api_request *request) { return request->is_late = request->must_not_block; }

/* A reply whose body is text, in one piece; takes text. If text has failed or memory runs out, returns the reply for
 * that error. */
struct api_reply *api_reply_text(int status, const char *content_type, struct api_text *text);
/* The same for bytes that are freed with free(); NULL counts as a failed allocation. */
struct api_reply *api_reply_bytes(int status, const char *content_type, char *bytes, size_t n);
/* The same for bytes that live as long as this process. */
struct api_reply *api_reply_lasting(int status, const char *content_type, const char *bytes, size_t n);
/* A JSON document that never changes: print writes it at the first request and the text is stored, so that all readers
 * share one copy. Any thread. */
struct api_document {
    void (*print)(struct api_text *text, const void *about);
    struct api_lasting *_Atomic lasting; /* NULL at first; reply.c */
};
struct api_reply *api_reply_document(struct api_document *document, const void *about); /* passed to print */
struct api_reply *api_reply_problem(const struct api_problem *problem);

/* A reply with this body, which it takes (NULL: a failed allocation), and which holds so many bytes of reserved
 * memory. */
struct api_reply *api_reply_of(int status, const char *content_type, struct api_body *body, uint64_t memory);
/* A 200 reply with a body of tensors. */
struct api_reply *api_reply_stream(struct api_plan_body *stream, const char *header, const char *header_value);

/* An answer without a body. */
struct api_reply *api_reply_empty(int status);

/* Frees a reply to which a header could not be added, and returns the reply for that error. */
struct api_reply *api_reply_without_memory(struct api_reply *reply);

/* Adds a header. If memory runs out, returns false and changes nothing. value is copied. */
bool api_reply_header(struct api_reply *reply, const char *name, const char *value);

/* Each sets the route, the format or the scheme for log and metrics, a constant string; they return reply. */
struct api_reply *api_reply_set_route(struct api_reply *reply, const char *route);
struct api_reply *api_reply_set_format(struct api_reply *reply, const char *format);
struct api_reply *api_reply_set_scheme(struct api_reply *reply, const char *scheme);

extern const char api_json_type[]; /* "application/json" */

#endif
