/* The operations of the core as api/ describes them: one row each, in the order of enum pe_operation_id. The table of
 * endpoints (routes.c), the catalogue, the description, the bodies of one tensor and the Open Inference Protocol read
 * the row. */
#ifndef API_OPERATIONS_H
#define API_OPERATIONS_H

#include "core/posenc.h"

struct api_asked;

enum api_method { API_BY_GET = 1, API_BY_POST = 2, API_BY_QUERY = 4, API_BY_PUT = 8, API_BY_DELETE = 16 };

struct api_route {
    const char *pattern; /* {name}, {version} and {build} each stand for one segment of the path, {file} for the rest */
    unsigned methods;    /* enum api_method, joined */
    struct api_reply *(*handle)(
        const struct api_asked *asked); /* NULL: it computes `operation` (endpoints/compute.c) */
    const char *group;
    const char *summary;
    const char *name;     /* an example of {name}, where there is one */
    const char *new_name; /* … in PUT and DELETE, where that one is taken; NULL: the same */
    const char
        *example; /* a request body that is answered with 200: the OpenAPI document shows it, the tests send it */
    const char *media_type;   /* NULL: JSON, or the media types of the formats if it computes */
    const char *component;    /* of an endpoint that is no operation but computes: its own fields in /openapi.json */
    const char *answer;       /* and its answer there */
    const char *instead;      /* and the field that may stand instead of a scheme; "": it needs no scheme */
    const char *entry;        /* its answer has texts in the language that lang chooses, in entries of this schema of
                                 the OpenAPI document; NULL: it has none */
    const char *const *lists; /* lists of such entries beside the one under the path's name, NULL-terminated */
    bool may_change;          /* its answer may be another one later, though its group's are constant */
    bool is_open;             /* open to everybody, even if the server requires tokens */
    bool is_page;             /* its answer is a file of the web page */
    bool is_live;             /* its answer is computed while it is sent, as lines or as server-sent events */
    /* It holds one of few places for minutes, so a browser must not begin it unasked (api_call.is_unasked), nor a
     * page of another origin (is_foreign): browsers tell the former only to hosts that they trust, by TLS or as
     * loopback. The other
     * endpoints may be linked to and shown as pictures: their work ends when the reader leaves, and clients take turns.
     */
    bool is_costly;
    enum pe_operation_id operation;
};

/* An output that has another name in /v2, because an input already has its name. */
struct api_renamed {
    const char *name, *output; /* "q_out" is the output "q", which needs the input "q" */
    const char *shape;
};
enum { API_RENAMED_MAX = 2 };

struct api_operation {
    struct api_route route;
    const char *tensor;    /* the field that a body of one .npy file fills */
    const char *component; /* its own fields in /openapi.json; NULL: it has none */
    bool takes_tokens;

    /* In the Open Inference Protocol. */
    const char *prefix; /* prefix of the names of models that only compute this operation */
    const char *text;   /* the input that an output is computed from */
    unsigned n_choose;  /* this many of the inputs q and k select it if no output is named; 0: they do not */
    struct api_renamed renamed[API_RENAMED_MAX + 1];
};

extern const struct api_operation api_operations[PE_N_OPERATIONS];

#endif
