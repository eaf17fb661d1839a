/* A request without its wire form: named values, whatever body and query they came from. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "api/arena.h"
#include "api/limits.h"
#include "api/problem.h"

#include <string.h>

struct api_host;
struct api_weights;
struct api_store;

/* What an endpoint takes, where that is not what the row of its operation says. */
struct api_taking {
    const char *(*tensor)(const struct pe_tensor *tensor); /* the field that a body of one .npy file fills */
    /* Its own fields; in a query, one of any type (PE_T_VALUE) is a list of words. NULL: none. */
    const struct pe_param *(*params)(void);
    bool may_answer_nothing; /* `outputs` may be an empty list */
    size_t entries_max;      /* configurations in `configs`; 0: PE_ENTRIES_MAX */
    const char *variants;    /* the field of a configuration that lists variants of it, objects; NULL: none */
};

/* Numbers drawn from seeds while the request is read. */
struct api_drawing {
    uint64_t n, max;      /* so far, and at most */
    uint64_t max_at_once; /* more than so many are left to a worker: is_late is set, and reading fails */
    bool is_late;
};

/* One owner: api_request_drop frees the plan and everything that the fields point to, except slices of the received
 * body, which are borrowed from the caller until then, and gives back what is reserved. */
struct api_request {
    enum pe_operation_id operation;
    const struct api_taking *taking; /* NULL: what the operation takes */
    bool body_is_ours;               /* tensors may be moved inside the body: api_call.body_is_ours */
    uint64_t max_json;               /* bytes of its JSON: api_host.max_json; 0: any number */
    bool must_not_block, is_late;    /* api_call.must_not_block; is_late: it was refused only because of that */
    struct api_drawing drawing;      /* without a host, API_DRAWN_MAX numbers */
    struct api_arena arena;
    struct pe_field fields[API_FIELDS_MAX];
    size_t n_fields;
    const struct api_weights *stored; /* the file that its field `weights` named, held by the arena; NULL: none */
    const struct api_store *presets;  /* api_host.presets */
    bool has_kept_preset;             /* it names a stored preset: api_preset_take */
    struct pe_plan *plan;             /* of the fields, from which it borrows; owned; NULL: none yet */
    /* What it has reserved of the memory for all requests: requests/memory.h. */
    const struct api_host *host; /* has lent n_taken bytes */
    uint64_t n_taken;
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
/* The same for a request of its own: what is answered while it is sent owns it. */
struct api_request *api_request_new(enum pe_operation_id operation); /* NULL: no memory */
void api_request_free(struct api_request *request);                  /* NULL is accepted */

/* Adds a field; name and what value points to are borrowed until api_request_drop. A name that is already present is
 * 400. */
bool api_request_add(struct api_request *request, const char *name, const struct pe_value *value,
                     struct api_problem *problem);

/* Adds a tensor of the received bytes: data is borrowed, or copied if its address does not suit its elements. n_spare:
 * bytes before the data that are no longer needed; if they suffice for alignment and the body is writable, the data is
 * moved instead. */
bool api_request_add_tensor(struct api_request *request, const char *name, const struct pe_tensor *tensor,
                            size_t n_spare, struct api_problem *problem);

/* Complex numbers are pairs of reals: adds a last axis of 2 to a shape. Only for the field freqs_cis; else 422. */
bool api_complex_shape(const char *pointer, uint64_t *shape, unsigned *rank, struct api_problem *problem);

/* Whether two names are equal. A request compares dozens of names, most of which differ in their first letter. */
static inline bool api_is(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

const struct pe_value *api_request_find(const struct api_request *request,
                                        const char *name); /* NULL if there is none */

#endif
