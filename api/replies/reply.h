/* Replies: api.h's struct api_reply with the data that it owns. */
#ifndef API_REPLY_H
#define API_REPLY_H

#include "api/api.h"
#include "api/formats/format.h"
#include "api/problem.h"
#include "api/inputs/request.h"

struct api_routes; /* the table of endpoints, for its description: api/routes.h */

/* What a handler is asked. */
struct api_asked {
    const struct api_host *host;
    const struct api_call *call;
    const char *name;    /* the value of {name} in the route's pattern, "" if it has none */
    const char *version; /* likewise for {version} */
    const struct api_routes *routes;
};

/* A reply of a text, in one piece; takes text. If text has failed or memory runs out, it is the reply of that error. */
struct api_reply *api_reply_text(int status, const char *content_type, struct api_text *text);
/* The same for bytes that free() frees; NULL is a failed allocation. */
struct api_reply *api_reply_bytes(int status, const char *content_type, char *bytes, size_t n);
/* The same for bytes that stay as long as this process runs. */
struct api_reply *api_reply_lasting(int status, const char *content_type, const char *bytes, size_t n);
/* A JSON document that never changes: print writes it at the first request and it is stored, so that a thousand readers
 * share one copy. Any thread. */
struct api_document {
    void (*print)(struct api_text *text, const void *about);
    struct api_lasting *_Atomic lasting; /* NULL at first; reply.c */
};
struct api_reply *api_reply_document(struct api_document *document, const void *about); /* handed to print */
struct api_reply *api_reply_problem(const struct api_problem *problem);

/* A 200 reply that is the stored file itself, n of its bytes from `first` on; takes the hold on weights. */
struct api_reply *api_reply_weights(const struct api_store *store, const struct api_weights *weights, size_t first,
                                    size_t n);

/* A reply that is a list of stored files; takes listing, NULL: it had no memory. */
struct api_listing;
struct api_reply *api_reply_listing(int status, struct api_listing *listing);

/* A request while it is answered; its reply will own it. */
struct api_work {
    struct api_request request;
    struct pe_plan *plan;
    struct api_body stream;
    const struct api_host *host; /* has lent n_taken bytes; memory.h */
    uint64_t n_taken;
    uint64_t body_bytes;        /* which the machine has taken itself */
    uint64_t n_read;            /* of n_taken, for what the request holds: its fields */
    struct api_problem refusal; /* of more; status 0: none */
};
struct api_work *api_work_new(enum pe_operation_id operation); /* NULL without memory */
void api_work_free(struct api_work *work);                     /* NULL is accepted */
/* A 200 reply streaming what work holds; takes work. */
struct api_reply *api_reply_stream(struct api_work *work, const char *header, const char *header_value);

/* An answer without a body. */
struct api_reply *api_reply_empty(int status);

/* Frees a reply to which something could not be added, and returns the reply for that error. */
struct api_reply *api_reply_without_memory(struct api_reply *reply);

/* Adds a header; false, and no change, without memory. value is copied. */
bool api_reply_header(struct api_reply *reply, const char *name, const char *value);

/* Names the route, the format, the scheme for log and metrics, by constant strings; return reply. */
struct api_reply *api_reply_set_route(struct api_reply *reply, const char *route);
struct api_reply *api_reply_set_format(struct api_reply *reply, const char *format);
struct api_reply *api_reply_set_scheme(struct api_reply *reply, const char *scheme);

extern const char api_json_type[]; /* "application/json" */

#endif
