/* What all schemes and operations read of a request beside their own fields: embeddings, operands, weights; and what
 * planning it costs. */
#ifndef PE_REQUEST_H
#define PE_REQUEST_H

#include "core/inside.h"

/* ---- Embeddings ---- */

/* Shared by all absolute schemes: the embeddings `x` that the encoding is combined with, and grids with the channels
 * first. */

struct pe_plan;

enum pe_combine { PE_ADD, PE_MULTIPLY, PE_MULTIPLY_RESIDUAL, PE_CONCAT };

struct pe_absolute_fields {
    int combine;
    const struct pe_value *x_scale, *pe_scale;
    bool channels_first;
};

/* How an encoding is combined with the embeddings; plan->absolute of additive schemes. */
struct pe_absolute {
    struct pe_absolute_fields fields;
    struct pe_tensor x; /* [..., n, width]; rank 0: none */
    bool x_from_text;
    double x_scale, pe_scale; /* known once `combined` is shaped */
    bool prefers_channels_first;
};

/* Reads the fields and the tensor x of the request; the width of x becomes dim. */
enum pe_status pe_absolute_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                struct pe_failure *err);
uint64_t pe_absolute_n(const struct pe_plan *plan);        /* positions that x fixes; 0: none */
uint64_t pe_absolute_n_prefix(const struct pe_plan *plan); /* num_prefix, rows before those of positions; or 0 */

/* Checks the fields together, once the scheme has planned. */
enum pe_status pe_absolute_check(struct pe_plan *plan, struct pe_failure *err);

/* The dtype of real outputs: the one requested, else that of x, else f32. */
enum pe_dtype pe_absolute_dtype(const struct pe_plan *plan, enum pe_dtype asked);

bool pe_absolute_has_x(const struct pe_plan *plan);
void pe_absolute_give_x(struct pe_plan *plan, const struct pe_tensor *x); /* x computed by the operation; borrowed */
bool pe_absolute_channels_first(const struct pe_plan *plan);
void pe_absolute_prefer_channels_first(struct pe_plan *plan); /* DETR's default; call it before the check */

/* Writes the resolved fields for the config; returns their number (at most PE_ABSOLUTE_FIELDS_MAX). */
enum { PE_ABSOLUTE_FIELDS_MAX = 4 };
size_t pe_absolute_print(const struct pe_plan *plan, struct pe_field *fields);

void pe_absolute_drop(struct pe_plan *plan);

/* ---- Operands ---- */

/* Tensors that an operation transforms, [batch, heads, n, width], whose leading axes may be missing. */

enum pe_tensor_layout { PE_BHND, PE_BNHD, PE_NBHD, PE_NHD, PE_FLAT, PE_BFLAT, PE_N_TENSOR_LAYOUTS };
extern const char *const pe_tensor_layout_words[];

/* The description of the parameter, for every operation that has it. */
#define PE_TENSOR_LAYOUT_ABOUT                                                                                         \
    "order of the axes of q, k, v: batch b, heads h, positions n, head_dim d; flat is [tokens, heads*head_dim], "      \
    "bflat "                                                                                                           \
    "[batch, n, heads*head_dim], both with head_dim given"

struct pe_operand {
    const char *name;
    struct pe_tensor tensor; /* as sent; numbers from JSON text without a dtype are f32; no data: not sent */
    void *owned;             /* its data if it was converted */
    uint64_t n_batches, n_heads, n, width;
    uint64_t batch_step, head_step, row_step; /* elements from one to the next */
    bool has_batch, has_heads;                /* as axes of their own, or together with the channels */
};

/* Finds the axes of op->tensor in a layout, the only place where a layout becomes steps. head_dim: as given, 0: it is
 * not (flat and bflat need it; in the others the last axis is it). false: a tensor of this shape has not this layout.
 */
bool pe_operand_place(struct pe_operand *op, enum pe_tensor_layout layout, uint64_t head_dim);

/* Reads the tensor called name (a literal) from the request; leaves *op empty if there is none. Call pe_operand_drop
 * afterwards, also after a failure. */
enum pe_status pe_operand_take(struct pe_operand *op, const struct pe_request *request, const char *name,
                               enum pe_tensor_layout layout, uint64_t head_dim, bool *taken, struct pe_failure *err);
void pe_operand_drop(struct pe_operand *op);

/* Writes a shape as "[2,3]". */
void pe_shape_print(const uint64_t *shape, unsigned rank, char *out, size_t room);

/* ---- Shapes ---- */

/* The axes of a shape as a row states it, "num_heads,q_len,k_len", and their number; before the scheme's plan() at
 * most: a size that plan() will derive is at most the largest of those given. */
unsigned pe_shape_of(const struct pe_plan *plan, const char *expression, uint64_t *shape);
unsigned pe_shape_most(const struct pe_plan *plan, const char *expression, uint64_t *shape);

/* ---- Weights ---- */

/* Tensors that a scheme needs: sent with the request, or computed from `seed`.
 *
 * Seeded: element i of the tensor NAME is std · Φ⁻¹((k + 1/2) / 2^53), rounded to f32, where Φ is the normal
 * distribution, k the upper 53 bits of m(h + (i+1)·g), h = seed·g xor FNV-1a(NAME), g = 0x9E3779B97F4A7C15, m the
 * finalizer of SplitMix64 (Steele, Lea, Flood 2014), all modulo 2^64. Φ⁻¹ is Wichura's algorithm AS 241 (1988, PPND16).
 * So an element depends on seed, name and i only, and is the same on every machine. */

struct pe_operation;
struct pe_plan;

/* One tensor of the scheme's inputs. */
struct pe_weights {
    struct pe_tensor tensor; /* as sent; seeded: shape and dtype f32, without data; rank 0 and no data: none */
    bool is_text;            /* numbers of JSON without a dtype: a tensor of f32 */
    bool is_by_column;       /* the shape is [rows, width], the data [width, rows], as sent */
    uint64_t hash;           /* of seed and name */
    double std;
    bool is_seeded;
};

/* Does the operation take the row's tensor as weights? */
bool pe_weights_takes(const struct pe_input_row *row, const struct pe_operation *operation);

/* Reads the tensors that the operation's input rows name from the request: plan->weights, one for each input row. */
enum pe_status pe_weights_init(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                               struct pe_failure *err);
void pe_weights_drop(struct pe_plan *plan);

/* For the plan() of a scheme that needs input row id with the shape that its row states, or with another one. Checks
 * the tensor if it was sent, or seeds one if the config has a `seed` that is set; otherwise fails with an error that
 * lists the three ways to give weights. */
enum pe_status pe_weights_need(struct pe_plan *plan, size_t id, struct pe_failure *err);
enum pe_status pe_weights_need_shape(struct pe_plan *plan, size_t id, const uint64_t *shape, unsigned rank,
                                     struct pe_failure *err);
/* Refuses `seed` and `std` if no tensor was computed from them. Call it once the scheme has planned. */
enum pe_status pe_weights_check(struct pe_plan *plan, struct pe_failure *err);
/* `when` of an output row that needs weights. A scheme with other outputs plans without weights, unless a tensor is
 * sent, a seed is given, or the request names such an output. Without weights the other outputs are the default. Only
 * while planning. */
#define PE_WHEN_WEIGHTS "weights"
bool pe_weights_wanted(const struct pe_plan *plan);
bool pe_weights_seedable(const struct pe_plan *plan); /* has the scheme's config a seed that is set? */
bool pe_weights_there(const struct pe_plan *plan);    /* after the scheme's plan(): are there any weights? */
bool pe_weights_sent(const struct pe_plan *plan, size_t id);
/* Length of an axis of a tensor that was sent; 0 if it was not sent or has fewer axes. */
uint64_t pe_weights_axis(const struct pe_plan *plan, size_t id, unsigned axis);

/* The same for tensors of an operation instead of a scheme: sent or from the seed. */
enum pe_status pe_weights_take(struct pe_weights *weights, const struct pe_field *field, struct pe_failure *err);
void pe_weights_seed(struct pe_weights *weights, int64_t seed, const char *name, double std, const uint64_t *shape,
                     unsigned rank);

/* n elements from `first` on, counted flat, as doubles. Any thread; cannot fail. */
void pe_weights_read(const struct pe_weights *weights, uint64_t first, size_t n, double *out);

/* Makes an array of all elements of input id as doubles (free it with free); NULL: no memory. */
double *pe_weights_all(const struct pe_plan *plan, size_t id);

/* The same of any seed, name and std: the generator itself. */
uint64_t pe_seed_hash(int64_t seed, const char *name);
double pe_seed_uniform(uint64_t hash, uint64_t i); /* u of (0, 1), of which the normal one is Φ⁻¹(u) */
double pe_seed_normal(uint64_t hash, uint64_t i);  /* Φ⁻¹, before std and rounding */

/* Sets the integer parameter called name (a literal) to a size of a tensor, unless the request gives the parameter. The
 * first tensor decides; pe_weights_need then checks the shapes of the others. */
enum pe_status pe_fix_size(struct pe_plan *plan, const char *name, uint64_t size, const char *tensor,
                           struct pe_failure *err);
/* Sets each of these (NULL-terminated) to the length of the axis of that name in the first tensor sent whose row has
 * it. For cost(), which comes before: the larger of that length and the parameter; 0: neither is known. */
enum pe_status pe_fix_sizes(struct pe_plan *plan, const char *const *names, struct pe_failure *err);
double pe_size_most(const struct pe_plan *plan, const char *name);

/* Rows for the config struct of a scheme with weights. */
#define PE_P_SEED(S)                                                                                                   \
    PE_P_INT(S, seed, PE_UNSET, 0, 0x1p53, "seed", "seed of random weights: N(0, std^2), the same on every machine",   \
             .level = PE_BASIC, .group = PE_G_WEIGHTS, .usual = {0, 99}),                                              \
        PE_P_REAL(S, std, 0.02, 0, 1e6, "standard deviation", "standard deviation of weights from the seed",           \
                  .group = PE_G_WEIGHTS, .usual = {0.001, 1})

/* ---- Cost ---- */

/* The cost of planning, estimated in a few additions before anything is done, from sizes that are known by then.
 *
 * Each part of planning estimates its own cost, beside the code that does the work: a scheme in its descriptor's
 * cost(), an operation in its ns(). Time is estimated once, by pe_plan_check, and only chooses the thread that builds.
 * Bytes are asked for step by step: pe_plan_admit() asks the caller whether the next step may allocate them. */

struct pe_plan;
struct pe_positions;
struct pe_sequence_fields;

/* Times on a slow machine, twice those of a plain x86-64 of 2020 (tests/core/request/test_cost.c measures them by the
 * clock): a number from a seed; a sent number, as a double; a logarithm or exponential in double-double, or to 2^-58; a
 * byte that is set to zero; a multiply-add of BLAS; a position that the checks of a list read; a position that is
 * computed and stored. */
#define PE_NS_SEEDED 50.0
#define PE_NS_SENT 4.0
#define PE_NS_DD 1000.0
#define PE_NS_NEAR 150.0
#define PE_NS_BYTE 1.0
#define PE_NS_PRODUCT 0.6
#define PE_NS_VISIT 25.0
#define PE_NS_PLACE 20.0

/* Bytes that planning allocates and keeps or writes, and nanoseconds on a slow machine, both rather too high. */
struct pe_cost {
    double bytes, ns;
};

static inline void pe_cost_add(struct pe_cost *cost, double bytes, double ns)
{
    cost->bytes += bytes;
    cost->ns += ns;
}

/* n things, each of so many bytes and nanoseconds. */
static inline void pe_cost_each(struct pe_cost *cost, double n, double bytes, double ns)
{
    pe_cost_add(cost, n * bytes, n * ns);
}

/* pe_waves_new of n columns, with the columns themselves; what pe_waves_new_for adds for bf16; base^-i of n rungs. */
void pe_cost_waves(struct pe_cost *cost, double n);
void pe_cost_waves_of(struct pe_cost *cost, double n, enum pe_dtype dtype); /* and what runs of the dtype prepare */
void pe_cost_ladder(struct pe_cost *cost, double n, bool float32);

/* All n numbers of input id, read as doubles. Adds nothing if they are neither sent nor seeded: then there are none, or
 * the plan refuses. */
void pe_cost_weights(struct pe_cost *cost, const struct pe_plan *plan, size_t id, double n);
double pe_cost_of_weight(const struct pe_plan *plan, size_t id); /* nanoseconds of one number */

/* cost() of a scheme whose plan() only checks. */
void pe_cost_nothing(const struct pe_plan *plan, struct pe_cost *cost);

/* A plan itself, and numbers of the request that it copies. */
void pe_cost_request(struct pe_cost *cost, const struct pe_request *request);
/* pe_sequence_init, and the positions that checks read afterwards. */
void pe_cost_sequence(struct pe_cost *cost, const struct pe_sequence_fields *fields);

/* Adds bytes to what planning takes, and asks the caller whether they may be allocated. */
enum pe_status pe_plan_admit(struct pe_plan *plan, double bytes, struct pe_failure *err);

#endif
