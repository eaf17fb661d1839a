/* What a scheme is: one descriptor, the last thing in its file. A scheme sees this header and its family's, no other
 * scheme.
 *
 * Order of life: rows are read into the config → cost() says what plan() will take → plan() judges rules of two or more
 * parameters, derives what was not given and makes tables → outputs are chosen and shaped → columns() or fill() writes
 * any part of them, from any thread. */
#ifndef PE_SCHEME_H
#define PE_SCHEME_H

#include "core/request/absolute.h"
#include "core/request/cost.h"
#include "core/numeric/dd.h"
#include "core/numeric/dtype.h"
#include "core/waves/freq.h"
#include "core/models/inherit.h"
#include "core/limits.h"
#include "core/params.h"
#include "core/numeric/resample.h"
#include "core/waves/phases.h"
#include "core/sequence/sequence.h"
#include "core/sequence/mask.h"
#include "core/numeric/toeplitz.h"
#include "core/waves/float32.h"
#include "core/waves/waves.h"
#include "core/request/weights.h"

/* A rectangle of an output: rows row0 … , columns col0 … of each; the destination is dense, [n_rows, n_cols]. */
struct pe_block {
    uint64_t row0, n_rows, col0, n_cols;
};

/* Consecutive pairs that stand together in a head: pair pair0 + i is at channels first + i·step and that + partner,
 * counted from the first rotated channel. */
struct pe_rotation_block {
    size_t pair0, n_pairs, first;
    size_t step;    /* 1 (half), 2 (interleaved) */
    size_t partner; /* n_pairs (half), 1 (interleaved) */
};

/* How a rotary scheme pairs and turns the channels of a head. */
struct pe_rotation {
    size_t head_dim, n_pairs;
    size_t offset; /* first rotated channel */
    size_t n_blocks;
    struct pe_rotation_block blocks[PE_AXES_MAX];
    bool to_half;  /* neighbours are read, the pair is written to c and c + n_pairs */
    bool is_tiled; /* V-JEPA 2: channel i of a block takes the cosine and sine of pair i mod n_pairs */
};

#define PE_P_ARITH(S)                                                                                                  \
    PE_P_WORD(S, arith, pe_arith_words,                                                                                \
              "exact: angles in double or better, rounded once; float32: each step of the frameworks' recipe rounded " \
              "to f32")

/* Where the values of one output of a plan come from. */
struct pe_source {
    size_t id;              /* row of the scheme's outputs (of its inputs, when rotating); PE_COMBINED */
    bool transposed;        /* channels first: the output is [dim, n], the scheme's table [n, dim] */
    struct pe_waves *waves; /* its columns, where it is a table of waves … */
    struct pe_wave *recipe; /* … or these under arith float32; both NULL: the scheme's fill() writes it */
};

#define PE_COMBINED SIZE_MAX /* the id of the output `combined`, which is no row of the scheme */

struct pe_operation;

struct pe_plan {
    const struct pe_scheme *scheme;
    const struct pe_operation *operation; /* core/operation.h */
    const struct pe_request *request;     /* merged with what the model it names says; only while planning */
    struct pe_inheritance *inheritance;
    void *config; /* the scheme's config struct */
    void *tables; /* what plan() precomputed, freed by drop() */
    struct pe_sequence seq;
    struct pe_sequence_fields sequence; /* its fields; the rules in use stand in the resolved config */
    bool operation_uses_seed;           /* for tensors of its own */
    const struct pe_sight *sight;       /* PE_ATTEND: who sees whom, known when plan() is called; else NULL */
    struct pe_weights *weights;         /* [inputs of the scheme] */
    struct pe_absolute *absolute;       /* additive schemes: how the encoding meets x */
    const char *fixed[8];               /* sizes of the config that tensors have fixed */
    size_t n_fixed;
    enum pe_dtype dtype; /* of real outputs */
    enum pe_arith arith;
    enum pe_pace pace;   /* set by plan(); quick unless it says so */
    double work;         /* multiply-adds that do not grow with the elements asked for */
    double element_work; /* those of one element; 0: as usual at this pace */
    struct pe_output *outputs;
    struct pe_part *parts;     /* [n_outputs]; NULL: all outputs are whole (core/slice.h) */
    struct pe_output *answers; /* [n_outputs]: as cut */
    enum pe_reduce reduce;
    struct pe_tallies *tallies;  /* room for long reduced rows, NULL: the stack's is enough (core/reduce.h) */
    struct pe_cost cost;         /* of planning, up to the step at hand */
    struct pe_source *sources;   /* of the outputs, in the same order */
    size_t n_outputs, n_sources; /* sources behind the outputs' are not answered, only used */
    struct pe_value resolved;    /* the config as an object */
    struct pe_field *resolved_fields;
    void *state;                      /* what the operation keeps of its own; its drop() frees it */
    struct pe_attention *attention;   /* the state of PE_ATTEND (core/attention/): schemes ask whether there is one */
    const struct pe_brought *brought; /* PE_ATTEND: tensors beside those of the scheme (core/attend.h) */
};

struct pe_attend;

struct pe_scheme {
    struct pe_scheme_info info;
    size_t config_bytes;
    bool is_pairwise; /* compares queries with keys; else it encodes one sequence */
    bool has_axes;    /* takes sequences of several axes */
    bool is_neutral;  /* an encoding that changes nothing: queries and keys are welcome as they are */
    uint64_t n_class; /* class tokens that tensors have in front of the sequence's */

    enum pe_status (*plan)(struct pe_plan *plan, struct pe_error *err); /* sets plan->arith; may be NULL */
    /* Adds what plan() will allocate and compute, and what its own part of attention will (attend->open, largest): some
     * arithmetic on the config, which may lack what plan() derives, the sequence, and the tensors sent. Every scheme
     * that has plan() has it. What passes a limit of plan() counts as the limit: plan() then refuses it by name. */
    void (*cost)(const struct pe_plan *plan, struct pe_cost *cost);
    void (*drop)(struct pe_plan *plan); /* frees plan->tables; may be NULL */

    /* What "width" in a shape stands for, where no parameter is the number of channels; else NULL. After plan(). */
    uint64_t (*width)(const struct pe_plan *plan);

    /* Columns of output id, row_len of them, where it is a table of waves; false where it is not. May be NULL. Under
     * `arith: float32` F is the recipe's frequency in radians, a float (core/waves/float32.h). */
    bool (*columns)(const struct pe_plan *plan, size_t id, struct pe_wave *columns);

    /* Writes a block of output id, elements of plan's output dtype, for outputs that are no table of waves. */
    void (*fill)(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                 void *dst);

    /* Where output id is Toeplitz: as pe_fill_line. False where it is not. May be NULL. */
    bool (*line)(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t matrix, uint64_t first,
                 size_t n, void *dst);

    /* The dtype of output id where it depends on the request (positions: i64, f64 where fractional); may be NULL. */
    enum pe_dtype (*dtype)(const struct pe_plan *plan, size_t id, enum pe_dtype usual);

    /* Describes the rotation; then, where columns is not NULL, the waves of the cosines of all pairs and of the sines
     * of all pairs: 2 · n_pairs. Only schemes that can rotate. */
    void (*rotate)(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns);

    /* Factors on cos and sin that depend on the position and on which input (id) is rotated: rows row0 … of
     * [n_rows, n_pairs]. NULL: there are none. */
    void (*magnitude)(const struct pe_plan *plan, size_t id, const struct pe_positions *positions, uint64_t row0,
                      size_t n_rows, double *factors);

    /* What it does in attention beyond that (core/attend.h); may be NULL. */
    const struct pe_attend *attend;
};

const struct pe_scheme *pe_scheme_get(const char *name); /* NULL if none */

/* Has the request given this parameter, under any of its names? Only while planning. */
bool pe_plan_gave(const struct pe_plan *plan, const char *name);        /* or the model it names */
bool pe_plan_gave_itself(const struct pe_plan *plan, const char *name); /* in its own fields */

#endif
