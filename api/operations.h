/* The operations of the core as api/ describes them: one row each, in the order of enum pe_operation_id. The table of
 * endpoints (routes.c), the catalogue, the description, the bodies of one tensor and the Open Inference Protocol read
 * the row. */
#ifndef API_OPERATIONS_H
#define API_OPERATIONS_H

#include "core/inside.h"

struct api_request;

enum api_method { API_BY_GET = 1, API_BY_POST = 2, API_BY_QUERY = 4, API_BY_PUT = 8, API_BY_DELETE = 16 };

/* The methods by name; HEAD is allowed where GET is. The end has no name. */
extern const struct api_method_row {
    const char *name;
    unsigned method;
} api_methods[];

/* What an endpoint is for. The kind decides its section of the OpenAPI document, and which statuses and headers its
 * answers have. */
enum api_kind {
    API_COMPUTES, /* a posenc request, answered with numbers */
    API_LIVE,  /* the same, computed while it is sent, as lines or as server-sent events. It holds one of few places for
                  minutes, so a browser must not begin it unasked (api_call.is_unasked), nor a page of another origin
                  (is_foreign): browsers tell the former only to hosts that they trust, by TLS or as loopback. Other
                  endpoints may be linked to and shown as pictures: their work ends when the reader leaves, and
                  clients take turns. */
    API_STORE, /* the request is in its path, and its answers may be kept */
    API_CATALOGUE, /* constant as long as the process runs */
    API_ENTRIES,   /* of the catalogue: entries that clients may store */
    API_FILES,     /* stored files of tensors */
    API_STATE,     /* of the server */
    API_PAGE,      /* a file of the web page */
    API_PROTOCOL,  /* the Open Inference Protocol */
    API_MESSAGES,  /* the Model Context Protocol */
};

enum { API_READING_MAX = 7 };

/* How an endpoint answers: each step takes the request, and may refuse it by returning false, or NULL, with the reason
 * in request->problem. */
struct api_steps {
    /* Body, query and form, one after the other. A step that would have to wait where request->must_not_block sets
     * request->is_late and returns false, and has changed nothing else: a worker takes it then. */
    bool (*read[API_READING_MAX + 1])(struct api_request *request);
    bool (*check)(struct api_request *request); /* rules and limits; may set request->is_long. NULL: there are none */
    struct api_reply *(*build)(struct api_request *request);
    size_t own_bytes; /* of request->own, in which the first steps leave things for the last; not cleared */
};

struct api_route {
    const char
        *pattern; /* {name}, {preset}, {version} and {build} each match one segment of the path, {file} for the rest */
    unsigned methods;                                         /* enum api_method, joined */
    struct api_reply *(*handle)(struct api_request *request); /* of an endpoint in one step; NULL: it reads a request */
    enum api_kind kind;
    const char *summary;
    const char *name;       /* an example of {name} or {preset}, where there is one */
    const char *new_name;   /* … in PUT and DELETE, where that one is taken; NULL: the same */
    const char *example;    /* a request that is answered with 200: the OpenAPI document shows it, the tests send it */
    const char *media_type; /* of the answer; NULL: JSON, or those of the formats if it computes */
    const char *component;  /* the schema of its own fields in /openapi.json; NULL: none */
    const char *answer;     /* and of its answer there; NULL: "Answer" */
    const char *instead;    /* the field that may be there instead of a scheme; NULL: none, "": it needs no scheme */
    const char *entry;      /* the schema of the entries in its answer; NULL: it has none */
    const char *lang;       /* what the parameter lang chooses; NULL: the answer's texts have one language */
    const char *const *lists; /* lists of such entries beside the one under the path's name, NULL-terminated */
    const char *tool, *title,
        *description;              /* as a tool of /mcp: what it answers and when to use it; NULL: it is none */
    const struct api_steps *steps; /* of one that reads a request; NULL: those of any operation (compute.c) */
    bool is_slow;                  /* each of its steps may wait for a disk or take long, so a worker takes them all */
    bool takes_text;               /* a body of plain text is a text in the field said (inputs/pasted) */
    bool takes_prints;             /* tensors may be texts, as programs print them (inputs/pasted/numbers.c) */
    bool is_open;                  /* open to everybody, even if the server requires tokens */
    bool needs_server;             /* the machine answers it, or a clock or the page, which a call in process has not */
    enum pe_operation_id operation;
};

static inline bool api_route_computes(const struct api_route *route) { return route->kind <= API_LIVE; }

/* Whether its PUT stores what its GET returns. */
static inline bool api_route_keeps(const struct api_route *route, enum api_kind kind)
{
    return route->kind == kind && (route->methods & API_BY_PUT);
}

/* An output that has another name in /v2, because an input already has its name. */
struct api_renamed {
    const char *name, *output; /* "q_out" is the output "q", which needs the input "q" */
    const char *shape;
};
enum { API_RENAMED_MAX = 2 };

struct api_operation {
    struct api_route route;
    const char *tensor; /* the field that a body of one .npy file fills */
    bool takes_tokens;

    /* In the Open Inference Protocol. */
    const char *prefix; /* prefix of the names of models that only compute this operation */
    const char *text;   /* the input that an output is computed from */
    unsigned n_choose;  /* this many of the inputs q and k select it if no output is named; 0: they do not */
    struct api_renamed renamed[API_RENAMED_MAX + 1];
};

extern const struct api_operation api_operations[PE_N_OPERATIONS];

#endif
