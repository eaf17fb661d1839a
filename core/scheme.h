/* A scheme is one descriptor, the last thing in its file. A scheme includes this header and its family's, but no other
 * scheme.
 *
 * Order of calls: rows are read into the config → cost() estimates the cost of plan(). Here pe_plan_check ends, and
 * pe_plan_build begins, maybe on another thread → plan() checks rules of two or more parameters, derives parameters
 * that were not given and computes tables → outputs are chosen and get their shapes → columns() or fill() writes any
 * part of them, from any thread. */
#ifndef PE_SCHEME_H
#define PE_SCHEME_H

#include "core/request/request.h"
#include "core/numeric/numeric.h"
#include "core/waves/waves.h"
#include "core/models/models.h"
#include "core/limits.h"
#include "core/params.h"
#include "core/sequence/sequence.h"

/* A rectangle of an output: n_rows rows from row0, n_cols columns from col0; the destination is dense, [n_rows,
 * n_cols]. */
struct pe_block {
    uint64_t row0, n_rows, col0, n_cols;
};

/* An element of an output: its index on each axis, and its place in its row. */
struct pe_address {
    uint64_t index[PE_RANK_MAX], row, col;
};

/* Consecutive pairs with one pattern in a head: pair pair0 + i consists of channels first + i·step and
 * first + i·step + partner, counted from the first rotated channel. */
struct pe_rotation_block {
    size_t pair0, n_pairs, first;
    size_t step;    /* 1 (half), 2 (interleaved) */
    size_t partner; /* n_pairs (half), 1 (interleaved) */
};

/* How a rotary scheme pairs and rotates the channels of a head. */
struct pe_rotation {
    size_t head_dim, n_pairs;
    size_t offset; /* first rotated channel */
    size_t n_blocks;
    struct pe_rotation_block blocks[PE_AXES_MAX];
    bool to_half;  /* a pair is read from neighbouring channels and written to channels c and c + n_pairs */
    bool is_tiled; /* V-JEPA 2: channel i of a block uses the cosine and sine of pair i mod n_pairs */
};

#define PE_P_ARITH(S)                                                                                                  \
    PE_P_WORD(S, arith, pe_arith_words, "arithmetic",                                                                  \
              "exact: angles in double or better, rounded once; float32: every step rounded to f32, as "               \
              "frameworks compute it",                                                                                 \
              .group = PE_G_NUMBERS)

/* The source of the values of one output of a plan. */
struct pe_source {
    size_t id;              /* row of the scheme's outputs (of its inputs, when rotating); PE_COMBINED */
    bool transposed;        /* channels first: the output is [dim, n], the scheme's table [n, dim] */
    bool is_by_batch;       /* its first axis is the batch, whose rows have positions of their own */
    uint64_t n_zeros;       /* rows of zeros before those of positions; of tables of waves only */
    struct pe_waves *waves; /* its columns, if it is a table of waves … */
    struct pe_wave *recipe; /* … or these under arith float32; both NULL: the scheme's fill() writes it */
};

#define PE_COMBINED SIZE_MAX /* the id of the output `combined`, which is no row of the scheme */

struct pe_operation;

struct pe_plan {
    const struct pe_scheme *scheme;
    const struct pe_operation *operation; /* core/operation.h */
    const struct pe_request *request;     /* = &merged while planning; NULL once the plan is built */
    struct pe_request asked, merged;      /* as the caller gave it; with the fields of the model it names */
    struct pe_inheritance *inheritance;
    void *config; /* the scheme's config struct */
    void *tables; /* what plan() precomputed, freed by drop() */
    struct pe_sequence seq;
    struct pe_sequence_fields sequence; /* its fields; the resolved config has the rules in use */
    bool operation_uses_seed;           /* for the operation's own tensors */
    const struct pe_mask *mask;         /* PE_ATTEND: which keys a query sees, known before plan(); else NULL */
    struct pe_weights *weights;         /* [inputs of the scheme] */
    struct pe_absolute *absolute;       /* additive schemes: how the encoding is combined with x */
    const char *fixed[8];               /* parameters (sizes) whose values come from tensors */
    size_t n_fixed;
    enum pe_dtype dtype; /* of real outputs */
    enum pe_arith arith; /* the scheme's parameter of that name, if it has plan() */
    enum pe_pace pace;   /* plan() may set it; quick by default */
    double work;         /* multiply-adds that do not grow with the elements asked for */
    double element_work; /* multiply-adds of one element; 0: the usual number at this pace */
    /* Multiply-adds of a bias at one distance, where the elements of a map share it; 0: those of one element. */
    double distance_work;
    struct pe_output *outputs;
    struct pe_part *parts;     /* [n_outputs]; NULL: all outputs are whole (core/slice.h) */
    struct pe_output *answers; /* [n_outputs]: after slicing */
    enum pe_reduce reduce;
    struct pe_tallies *tallies;  /* memory for long reduced rows; NULL: the stack is enough (core/reduce.c) */
    struct pe_cost cost;         /* of planning: time as estimated by pe_plan_check, bytes up to the current step */
    struct pe_source *sources;   /* of the outputs, in the same order */
    size_t n_outputs, n_sources; /* sources after the first n_outputs are used internally, not answered */
    struct pe_value resolved;    /* the config as an object */
    struct pe_field *resolved_fields;
    void *state;                    /* the operation's own; its drop() frees it */
    struct pe_attention *attention; /* the state of PE_ATTEND (core/attention/): schemes ask whether there is one */
    const struct pe_projections *brought; /* PE_ATTEND: tensors that are not the scheme's (core/attend.h) */
    void *asked_block;                    /* owned: the fields of pe_ask_plan (core/ask.c); NULL: the caller's own */
};

/* Multiply-adds of one element, as pe_plan_work counts them: those of the plan, or of its pace. */
double pe_plan_each(const struct pe_plan *plan);

struct pe_attend;

struct pe_scheme {
    struct pe_scheme_info info;
    size_t config_bytes;
    size_t tables_bytes; /* zeroed in plan->tables before plan(); 0: plan() allocates what it needs */
    bool is_pairwise;    /* compares queries with keys; else it encodes one sequence */
    bool has_axes;       /* takes sequences of several axes */
    bool is_neutral;     /* an encoding that changes nothing, so attention accepts queries and keys as they are */
    bool is_counted;     /* positions are sums over keys, and a table is read between its rows there */
    bool is_slow; /* an additive encoding whose elements may take microseconds each: a worker adds it to embeddings */
    uint64_t n_class; /* number of class tokens before the sequence's tokens in tensors */

    enum pe_status (*plan)(struct pe_plan *plan, struct pe_failure *err); /* may be NULL */
    /* Adds the cost of plan() and of the scheme's own part of attention (attend->open, largest). It computes with the
     * config, which may lack values that plan() derives, the sequence, and the shapes of the tensors sent. Positions of
     * packed sequences and of segments are not computed yet: the sequence has their number (seq.is_counted). Every
     * scheme with plan() has it. A size above a limit of plan() counts as the limit, so that plan() can refuse it and
     * name the limit. */
    void (*cost)(const struct pe_plan *plan, struct pe_cost *cost);
    void (*drop)(struct pe_plan *plan); /* frees what plan->tables own, which is then freed; may be NULL */

    /* The value of "width" in shapes, for schemes without a parameter for the number of channels; else NULL. After
     * plan(); where there are columns() also before it. */
    uint64_t (*width)(const struct pe_plan *plan);

    /* Writes the row_len columns of output id if it is a table of waves; else returns false. May be NULL. With
     * `arith: float32`, F is the framework's frequency in radians, a float (core/waves/waves.h). */
    bool (*columns)(const struct pe_plan *plan, size_t id, struct pe_wave *columns);

    /* Writes a block of output id in the dtype of the output, for outputs that are not a table of waves. */
    void (*fill)(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                 void *dst);

    /* Like pe_fill_line if output id is Toeplitz; else returns false. May be NULL. */
    bool (*line)(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t matrix, uint64_t first,
                 size_t n, void *dst);

    /* The row of its table for a relative position, k_pos - q_pos, of schemes whose table has a row for each
     * (core/schemes/relative/relative.h); else NULL. */
    int32_t (*table_row)(const struct pe_plan *plan, int64_t rel);

    /* What a unit of the plan's positions is in coordinates, where the last step of coordinates leaves no double. NULL:
     * the positions themselves are meant. */
    const struct pe_coords *(*coords)(const struct pe_plan *plan);

    /* Writes what code in float32 may lose of n elements of a row of output 0 by the coordinates at which it reads a
     * table: the largest error of each. NULL: it reads no table in between rows. */
    void (*coordinate_loss)(const struct pe_plan *plan, uint64_t row, uint64_t col0, size_t n, double *loss);

    /* The dtype of output id if it depends on the request (positions: i64, or f64 if fractional); may be NULL. */
    enum pe_dtype (*dtype)(const struct pe_plan *plan, size_t id, enum pe_dtype usual);

    /* Describes the rotation and, if columns is not NULL, writes 2 · n_pairs waves: the cosines of all pairs, then the
     * sines of all pairs. Only schemes that can rotate have it. */
    void (*rotate)(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns);

    /* Factors on cos and sin that depend on the position and on which input (id) is rotated: rows row0 … of
     * [n_rows, n_pairs]. NULL: no factors. */
    void (*magnitude)(const struct pe_plan *plan, size_t id, const struct pe_positions *positions, uint64_t row0,
                      size_t n_rows, double *factors);

    /* Further terms in attention (core/attend.h); may be NULL. */
    const struct pe_attend *attend;

    /* The steps of one element of output id, stated to d, the last of them its value. Runs exactly or by the recipe of
     * d (core/waves/waves.h), which it may refuse at /recipe. NULL: it has no outputs. */
    enum pe_status (*derive)(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err);

    const void *style; /* in what it differs from others of its family, as that family's header states; may be NULL */
};

/* By name in any case, or by a word of others (core/schemes/words.c); NULL if none. */
const struct pe_scheme *pe_scheme_get(const char *name);

/* Words of others: "rotary" means "rope", "theta" means "base". NULL: the word is not known. */
struct pe_other_word {
    const char *word, *means;
};
const char *pe_scheme_meant(const char *word);
const char *pe_field_meant(const char *word);

/* Does the request give this parameter, under any of its names? Only while planning. */
bool pe_plan_gave(const struct pe_plan *plan, const char *name);        /* or the model it names */
bool pe_plan_gave_itself(const struct pe_plan *plan, const char *name); /* in its own fields */
/* Refuses the request's sequence, where a model has so many axes and the sequence has others. */
enum pe_status pe_plan_wrong_axes(const struct pe_plan *plan, unsigned n_axes, struct pe_failure *err);

/* The coordinate of position i of the keys on an axis, and what a unit of the plan's positions is in coordinates. */
double pe_coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i);
double pe_coordinate_unit(const struct pe_plan *plan, unsigned axis);

/* Does the request have a field of this name? */
bool pe_request_has(const struct pe_request *request, const char *name);

#endif
