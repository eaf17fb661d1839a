/* A request: the call, what is read of it (named values, whatever body and query they came from), and what is found
 * out about its answer. Every step takes it and adds to it, until a reply is there. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "api/arena.h"
#include "api/limits.h"
#include "api/problem.h"

#include <string.h>

struct api_call;
struct api_format;
struct api_host;
struct api_route;
struct api_weights;
struct api_store;

/* What an endpoint takes, where that is not what the row of its operation states. */
struct api_taking {
    const char *(*tensor)(const struct pe_tensor *tensor); /* the field that a body of one .npy file fills */
    /* Its own fields; in a query, one of any type (PE_T_VALUE) is a list of words. NULL: none. */
    const struct pe_param *(*params)(void);
    bool may_answer_nothing; /* `outputs` may be an empty list */
    size_t entries_max;      /* configurations in `configs`; 0: PE_ENTRIES_MAX */
    const char *variants;    /* the field of a configuration that lists variants of it, objects; NULL: none */
};

/* The form of an answer: dtype, format, digits, outputs, slice, reduce, data, and the look of pictures. An absent word
 * is -1, an absent integer PE_UNSET_INT, an absent real NaN. */
#define API_FORM_WORD int
#define API_FORM_INT int64_t
#define API_FORM_REAL double
#define API_FORM_BOOL bool

struct api_form {
#define FORM(TYPE, name, ...) API_FORM_##TYPE name;
#include "api/requests/form_list.h"
#undef FORM
    const char *outputs[API_OUTPUTS_MAX];
    size_t n_outputs;        /* 0: those of the answer by default */
    bool has_no_outputs;     /* the request names an empty list */
    struct pe_slice *slices; /* in the request's arena */
    size_t n_slices;
};

/* The parts of a path that are given by name in the route's pattern. All valid names fit; a longer one is cut, and its
 * beginning is quoted in the message that there is no such name. */
struct api_path {
    char name[256], version[32], build[32], file[256];
    char query[2], key[2]; /* of any length: zarr.c reads them from the path */
};

enum { API_ETAG_MAX = 40 };

/* Numbers drawn from seeds. */
struct api_drawing {
    uint64_t n, max;      /* so far, and at most */
    uint64_t max_at_once; /* more than so many, drawn while the request is read, are left to a worker */
    uint64_t n_waiting;   /* of n: not drawn yet */
};

/* A tensor whose memory is allocated and not set: n bytes are copied from `from`, or, if that is NULL, n numbers drawn
 * from a seed. */
struct api_waiting {
    struct api_waiting *next;
    void *to;
    const void *from;
    size_t n;
    const char *name;
    int64_t seed;
    double std;
};

/* One owner: api_request_drop frees the plan and everything that the fields point to, except slices of the received
 * body, which are borrowed from the caller until then, and gives back what is reserved. */
struct api_request {
    unsigned n_owners; /* of one from api_request_new: the thread that answers it, and a body that borrows from it */
    const struct api_host *host;
    const struct api_call *call;
    const struct api_route *route;
    const struct api_route *(*route_at)(size_t i); /* all rows, for their description; NULL: the end */
    struct api_path path;
    struct api_problem problem; /* why it is refused, if it is */
    bool is_late;               /* refused only because must_not_block: it should be answered by a worker */
    bool is_long;               /* building its answer takes long, or may wait: a worker does it */
    void *own;                  /* the endpoint's own state: api_steps.own_bytes */
    bool is_refused;            /* by the host, while the core has called admit(): the problem is set */

    /* ---- What it asks for ---- */
    enum pe_operation_id operation;
    const struct api_taking *taking; /* NULL: what the operation takes */
    bool body_is_ours;               /* tensors may be moved inside the body: api_call.body_is_ours */
    uint64_t max_json;               /* bytes of its JSON: api_host.max_json; 0: any number */
    bool must_not_block;             /* api_call.must_not_block */
    bool fills_later;                /* tensors that no check reads are set by api_request_fill, not while read */
    struct api_waiting *waiting;     /* those, in the arena; NULL: none */
    struct api_drawing drawing;      /* without a host, API_DRAWN_MAX numbers */
    struct api_arena arena;
    struct pe_field fields[API_FIELDS_MAX];
    size_t n_fields;
    const struct api_weights *stored; /* the file that its field `weights` named, held by the arena; NULL: none */
    const struct api_store *presets;  /* api_host.presets */
    bool has_kept_preset;             /* it names a stored preset: api_preset_take */
    size_t stored_bytes;              /* of the stored tensors that it uses */
    enum pe_lang lang;                /* of the answer's texts */
    struct api_form form;
    const struct api_format *format;
    void *about;          /* further data for a format: api_opening.about */
    struct pe_plan *plan; /* of the fields, from which it borrows; owned; NULL: none yet */

    /* ---- Whether the answer may be kept ---- */
    bool is_kept;      /* the method allows caching of the answer, so the answer has a validator */
    bool is_unchanged; /* and the client's cached answer is still valid */
    const char *key;   /* a key of a store, with its own tag and without Accept; NULL: none */
    char etag[API_ETAG_MAX];

    /* What it has reserved of the memory for all requests: requests/memory.h. */
    uint64_t n_taken;           /* by the host */
    uint64_t n_read;            /* of n_taken, for the fields */
    uint64_t body_bytes;        /* that server/ has reserved itself */
    struct api_problem refusal; /* from a failed reservation; status 0: none */
};

/* Whether the same request means the same as long as this process runs: it names nothing that a client may change. */
static inline bool api_request_is_lasting(const struct api_request *request)
{
    return !request->stored && !request->has_kept_preset;
}

void api_request_init(struct api_request *request, enum pe_operation_id operation);
void api_request_drop(struct api_request *request);
/* The same for a request of its own, with one owner, and own_bytes for its endpoint. NULL: no memory. */
struct api_request *api_request_new(enum pe_operation_id operation, size_t own_bytes);
/* One more owner; api_request_free removes one. Owners are threads that follow one another. */
struct api_request *api_request_hold(struct api_request *request);
void api_request_free(struct api_request *request);

/* Adds a field; name and what value points to are borrowed until api_request_drop. A name that is already present is
 * 400. */
bool api_request_add(struct api_request *request, const char *name, const struct pe_value *value,
                     struct api_problem *problem);

/* Adds a tensor of the received bytes: data is borrowed, or copied if its address does not suit its elements. n_spare:
 * bytes before the data that are no longer needed; if they suffice for alignment and the body is writable, the data is
 * moved instead. */
bool api_request_add_tensor(struct api_request *request, const char *name, const struct pe_tensor *tensor,
                            size_t n_spare, struct api_problem *problem);

/* If the request fills_later: is a field of this name a tensor of an input row (q, table), and no parameter, which is
 * checked before? Then it may wait (*waiting is copied into the arena; false: no memory) for api_request_fill. */
bool api_field_may_wait(const char *name);
bool api_request_wait(struct api_request *request, const struct api_waiting *waiting);
void api_request_fill(struct api_request *request);

/* Complex numbers are pairs of reals: adds a last axis of 2 to a shape. Only for the field freqs_cis; else 422. */
bool api_complex_shape(const char *pointer, uint64_t *shape, unsigned *rank, struct api_problem *problem);

/* Whether two names are equal. A request compares dozens of names, most of which differ in their first letter. */
static inline bool api_is(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

const struct pe_value *api_request_find(const struct api_request *request,
                                        const char *name); /* NULL if there is none */

#endif
