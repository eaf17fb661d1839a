/* Replies: status, headers, body; their tags, ranges, languages and permissions for pages of other origins. */
#ifndef API_REPLIES_H
#define API_REPLIES_H

#include "api/api.h"
#include "api/formats/format.h"
#include "api/inputs/inputs.h"
#include "api/problem.h"
#include "api/requests/requests.h"

/* ---- reply.c ----------------------------------------------------------------------------------------------------- */

/* Replies: api.h's struct api_reply with the data that it owns. */

/* A handler answers a request: `struct api_reply *api_name(struct api_request *request)`. NULL: it is refused by
 * request->problem, or left to a worker. */

/* Leaves the request to a worker, which may wait for a disk or a network and take its time, if this thread must not
 * block. Then the handler returns NULL. */
static inline bool api_is_late(struct api_request *request) { return request->is_late = request->must_not_block; }

/* A reply whose body is text, in one piece, which may be empty; takes text. If text has failed or memory runs out,
 * returns the reply for that error. */
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
    struct api_lasting *_Atomic gzip;    /* the same, compressed for the first client that decompresses */
};
/* about: passed to print. The reply is gzipped where the call's Accept-Encoding prefers that, and has a tag: 304 if the
 * call's If-None-Match names it. call may be NULL: then only the text is wanted. */
struct api_reply *api_reply_document(struct api_document *document, const void *about, const struct api_call *call,
                                     const char *cache_control);
/* A reply whose body, in JSON, is printed for this call, and which is gzipped in the same way if it is short; takes
 * body (NULL: a failed allocation). */
struct api_reply *api_reply_packed(struct api_body *body, const struct api_call *call);
struct api_reply *api_reply_problem(const struct api_problem *problem);

/* A reply with this body, which it takes (NULL: a failed allocation), and which holds so many bytes of reserved
 * memory. */
struct api_reply *api_reply_of(int status, const char *content_type, struct api_body *body, uint64_t memory);
/* A 200 reply with a body of tensors, that of request->opening, and its header. */
struct api_reply *api_reply_stream(struct api_request *request);

/* An answer without a body. */
struct api_reply *api_reply_empty(int status);

/* Frees a reply to which a header could not be added, and returns the reply for that error. */
struct api_reply *api_reply_without_memory(struct api_reply *reply);

/* Adds a header, whose value is copied. Returns reply or, here and below, the reply for a lack of memory in its place.
 */
struct api_reply *api_reply_header(struct api_reply *reply, const char *name, const char *value);
struct api_reply *api_reply_uncached(struct api_reply *reply);   /* no cache may store it */
struct api_reply *api_reply_unbuffered(struct api_reply *reply); /* nor wait for a full buffer, as nginx does */
/* One whose coding is chosen by Accept-Encoding. */
struct api_reply *api_reply_tagged(struct api_reply *reply, const char *etag, const char *cache_control);

/* Each sets the route, the format or the scheme for log and metrics, a constant string; they return reply. */
struct api_reply *api_reply_set_route(struct api_reply *reply, const char *route);
struct api_reply *api_reply_set_format(struct api_reply *reply, const char *format);
struct api_reply *api_reply_set_scheme(struct api_reply *reply, const char *scheme);

struct api_reply *api_reply_set_method(struct api_reply *reply, const char *method, const char *tool); /* of /mcp */

extern const char api_json_type[]; /* "application/json" */

/* Adds the name of a request header to the reply's Vary, which may have names already. */
struct api_reply *api_reply_vary(struct api_reply *reply, const char *name);

/* States the language of the reply's texts: Content-Language, and Accept-Language in Vary. A refusal stays as it is:
 * api_reply_problem states its language. */
struct api_reply *api_reply_set_language(struct api_reply *reply, enum pe_lang lang);

/* ---- headers.c: other origins ------------------------------------------------------------------------------------ */

/* Cross-origin requests: which pages of other origins a browser lets read our answers (Fetch standard, CORS protocol).
 */

/* Whether the host lets pages of the call's origin read answers. */
bool api_cors_allows(const struct api_host *host, const struct api_call *call);

/* Adds the headers that let the requesting page read the reply, if the host allows the page's origin, and those that
 * let caches know. Every reply passes through it once. */
struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call);

/* The answer to OPTIONS: the methods of the path and, for a browser's preflight request, the permission to use them. */
struct api_reply *api_options(const struct api_call *call, const char *allowed);

/* ---- headers.c --------------------------------------------------------------------------------------------------- */

/* Caching and ranges: ETag, If-None-Match, Range (RFC 9110 §8.8, §13, §14). */

/* An entity tag is a strong validator: a name for the bytes of an answer, known before any byte is computed. Sets
 * request->etag, "\"…\"", from all that determines them: the planned request without the fields of the form, its form
 * and format, and config, of n bytes: what was resolved, as JSON text. */
void api_etag_print(struct api_request *request, const char *config, size_t n);
/* The same of bytes that exist already. */
void api_etag_of_bytes(const char *bytes, size_t n, char *etag);

/* Whether a list of entity tags, e.g. the value of If-None-Match, contains this one. Weak tags are compared by their
 * text; * matches any tag. */
bool api_etag_is_among(const char *list, const char *etag);

/* Whether a shared cache may store the answer: not if the request contains a client's words or weights. */
const char *api_cache_control(const struct api_request *request, enum api_access access);

/* Bytes first … last of a body, both included. */
struct api_range {
    uint64_t first, last;
};

enum api_range_kind { API_RANGE_NONE, API_RANGE_PART, API_RANGE_UNSATISFIABLE };

/* The part of a body of `length` bytes that a call requests: none unless the call is a GET whose If-Range, if present,
 * names this tag. Several ranges, other units and bad syntax count as no range: then the whole body is sent, as the
 * standard allows. */
enum api_range_kind api_range_asked(const struct api_call *call, const char *etag, uint64_t length,
                                    struct api_range *range);

/* Turns the reply of a part into a 206, and adds Accept-Ranges. */
struct api_reply *api_range_add(struct api_reply *reply, enum api_range_kind kind, const struct api_range *range,
                                uint64_t length);

struct api_reply *api_range_refusal(uint64_t length); /* 416 */

#endif
