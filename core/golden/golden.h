/* Golden vectors: a few numbers of a configuration that are exact, for the tests of somebody's port.
 *
 * A model may have several kinds of layers, and a scaling may have two ladders, for short and for long sequences: each
 * is a kind here, a request of its own. Kinds share positions, queries and keys. */
#ifndef PE_GOLDEN_H
#define PE_GOLDEN_H

#include "core/models/models.h"
#include "core/params.h"
#include "core/rotate/rotate_rows.h"
#include "core/scheme.h"
#include "core/sequence/sequence.h"
#include "core/values.h"

enum { PE_GOLDEN_KINDS_MAX = 16, PE_GOLDEN_PLACES_MAX = 64, PE_GOLDEN_HEADS = 2 };
enum { PE_GOLDEN_LENGTH = 131072 }; /* where no scaling states one */

/* The request's own fields. */
struct pe_golden_fields {
    int64_t seed;
    struct pe_reals positions;
    struct pe_query_scale query_scale; /* of q_out */
};

/* ---- places.c: where the encodings are looked at ---- */

/* Positions on each axis, [n_axes, n]. */
struct pe_golden_places {
    unsigned n_axes;
    size_t n;
    double at[PE_AXES_MAX * PE_GOLDEN_PLACES_MAX];
    int worth[PE_GOLDEN_PLACES_MAX]; /* the least is left out first; PE_GOLDEN_KEPT: never */
};
enum { PE_GOLDEN_KEPT = 100, PE_GOLDEN_PLACES_LEAST = 2 };

/* What the usual places depend on: the original length of the scaling and the longest sequence; rows: of a table, at
 * whose end positions end; 0: there is none. */
struct pe_golden_reach {
    double original, longest;
    int64_t rows;
};

/* Those that the request lists; n = 0: it lists none. */
enum pe_status pe_golden_places_read(const struct pe_golden_fields *fields, struct pe_golden_places *places,
                                     struct pe_failure *err);
/* The usual ones on so many axes. */
void pe_golden_places_usual(unsigned n_axes, const struct pe_golden_reach *reach, struct pe_golden_places *places);
/* Those of queries, or of keys, of a bias. */
void pe_golden_places_of_bias(bool of_keys, struct pe_golden_places *places);
bool pe_golden_places_drop(struct pe_golden_places *places); /* one of them; false: no more can be left out */
struct pe_value pe_golden_places_value(const struct pe_golden_places *places); /* borrowed */

/* ---- kinds.c: the requests of a model ---- */

struct pe_golden_kind {
    char name[64];           /* "sliding_attention.long"; "": the only one */
    char layer_type[48];     /* "": all layers */
    const char *length;      /* "short", "long"; NULL: the scaling does not read the length */
    struct pe_field *fields; /* of its request, without positions; owned */
    size_t n_fields;
    struct pe_field *scaling; /* one of them, with seq_len; owned; NULL: as in the request */
    struct pe_plan *plan;     /* of one position: its resolved configuration and widths */
};

/* What is planned of a kind. */
struct pe_golden_ask {
    enum pe_operation_id operation;
    enum pe_dtype dtype;
    const char *const *outputs;
    size_t n_outputs;
    struct pe_field extra[4]; /* positions and tensors */
    size_t n_extra;
};

enum pe_golden_family { PE_GOLDEN_ROTARY, PE_GOLDEN_ABSOLUTE, PE_GOLDEN_BIAS };

struct pe_golden {
    const struct pe_golden_request *request;
    struct pe_golden_fields fields;
    bool taken[PE_FIELDS_MAX]; /* of the request's fields: read here, no kind has them */
    enum pe_golden_family family;
    enum pe_dtype dtype;
    struct pe_golden_kind kinds[PE_GOLDEN_KINDS_MAX];
    size_t n_kinds;
    struct pe_plan *origins[PE_GOLDEN_KINDS_MAX]; /* from whose requests kinds borrow their scaling */
    size_t n_origins;
    char layer_types[PE_GOLDEN_KINDS_MAX][48]; /* of the model, … */
    size_t kind_of[PE_GOLDEN_KINDS_MAX];       /* … and the first kind of each */
    size_t n_layer_types;
    struct pe_inheritance *inheritance; /* while the kinds are found */
    bool has_window;                    /* a bias of all tokens of a window, whose grid is its sequence */
    bool has_widths;                    /* heads of several widths: each kind has its own queries and keys */
    double bytes, asked;                /* that plans keep, as they were admitted; and the plan that is being made */
    struct pe_golden_places q, keys;    /* keys: of a bias */
    unsigned n_heads;
    struct pe_golden_tensor *tensors;
    size_t n_tensors;
    char *room; /* the tensors' numbers; NULL: not computed yet */
    struct pe_values *about;
};

enum pe_status pe_golden_plan(struct pe_golden *golden, const struct pe_golden_kind *kind,
                              const struct pe_golden_ask *ask, struct pe_plan **plan, struct pe_failure *err);
/* Finds the kinds and plans each at one position. */
enum pe_status pe_golden_kinds(struct pe_golden *golden, struct pe_failure *err);
void pe_golden_kinds_drop(struct pe_golden *golden);
/* The tables of a kind at these places; k: of a bias. */
void pe_golden_ask_tables(const struct pe_golden *golden, const struct pe_golden_places *q,
                          const struct pe_golden_places *k, struct pe_golden_ask *ask);
/* The original length of its scaling, and the length that it stretches it to. */
double pe_golden_original(const struct pe_plan *plan, double otherwise);
double pe_golden_longest(const struct pe_plan *plan, double otherwise);
const struct pe_value *pe_golden_config_find(const struct pe_golden_kind *kind, const char *name); /* resolved; NULL */

/* ---- tensors.c ---- */

enum pe_golden_role {
    PE_GOLDEN_POSITIONS,
    PE_GOLDEN_KEY_POSITIONS,
    PE_GOLDEN_DRAWN,
    PE_GOLDEN_ROTATED,
    PE_GOLDEN_TABLE
};

struct pe_golden_tensor {
    char name[128];
    enum pe_golden_role role;
    char side;     /* 'q' or 'k' of those drawn and rotated */
    size_t kind;   /* of the first that has it */
    size_t output; /* a table: of the plan */
    struct pe_named_tensor named;
    double largest; /* magnitude, once computed */
};

/* Names and shapes of all tensors, for the present places and heads. */
enum pe_status pe_golden_lay_out(struct pe_golden *golden, struct pe_failure *err);
size_t pe_golden_bytes(const struct pe_golden_tensor *tensor);
/* Computes the numbers of all. */
enum pe_status pe_golden_fill(struct pe_golden *golden, struct pe_failure *err);
/* The largest difference that /diagnose calls exact. */
double pe_golden_tolerance(const struct pe_golden_tensor *tensor);

#endif
