/* Tensors that a scheme needs: sent with the request, or computed from `seed`.
 *
 * Seeded: element i of the tensor NAME is std · Φ⁻¹((k + 1/2) / 2^53), rounded to f32, where Φ is the normal
 * distribution, k the upper 53 bits of m(h + (i+1)·g), h = seed·g xor FNV-1a(NAME), g = 0x9E3779B97F4A7C15, m the
 * finalizer of SplitMix64 (Steele, Lea, Flood 2014), all modulo 2^64. Φ⁻¹ is Wichura's algorithm AS 241 (1988, PPND16).
 * So an element depends on seed, name and i only, and is the same on every machine. */
#ifndef PE_WEIGHTS_H
#define PE_WEIGHTS_H

#include "core/posenc.h"

struct pe_operation;
struct pe_plan;

/* One tensor of the scheme's inputs. */
struct pe_weights {
    struct pe_tensor tensor; /* as sent; seeded: shape and dtype f32, without data; rank 0 and no data: none */
    bool is_text;            /* numbers of JSON without a dtype: a tensor of f32 */
    uint64_t hash;           /* of seed and name */
    double std;
    bool is_seeded;
};

/* Does the operation take the row's tensor as weights? */
bool pe_weights_takes(const struct pe_input_row *row, const struct pe_operation *operation);

/* Reads the tensors that the operation's input rows name from the request: plan->weights, one for each input row. */
enum pe_status pe_weights_init(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                               struct pe_error *err);
void pe_weights_drop(struct pe_plan *plan);

/* For the plan() of a scheme that needs input row id with this shape. Checks the tensor if it was sent, or seeds one if
 * the config has a `seed` that is set; otherwise fails with an error that lists the three ways to give weights. */
enum pe_status pe_weights_need(struct pe_plan *plan, size_t id, const uint64_t *shape, unsigned rank,
                               struct pe_error *err);
/* Refuses `seed` and `std` if no tensor was computed from them. Call it once the scheme has planned. */
enum pe_status pe_weights_check(struct pe_plan *plan, struct pe_error *err);
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
enum pe_status pe_weights_take(struct pe_weights *weights, const struct pe_field *field, struct pe_error *err);
void pe_weights_seed(struct pe_weights *weights, int64_t seed, const char *name, double std, const uint64_t *shape,
                     unsigned rank);

/* n elements from `first` on, counted flat, as doubles. Any thread; cannot fail. */
void pe_weights_read(const struct pe_weights *weights, uint64_t first, size_t n, double *out);

/* The same of any seed, name and std: the generator itself. */
uint64_t pe_seed_hash(int64_t seed, const char *name);
double pe_seed_uniform(uint64_t hash, uint64_t i); /* u of (0, 1), of which the normal one is Φ⁻¹(u) */
double pe_seed_normal(uint64_t hash, uint64_t i);  /* Φ⁻¹, before std and rounding */

/* Sets the integer parameter called name (a literal) to a size of a tensor, unless the request gives the parameter. The
 * first tensor decides; pe_weights_need then checks the shapes of the others. */
enum pe_status pe_fix_size(struct pe_plan *plan, const char *name, uint64_t size, const char *tensor,
                           struct pe_error *err);

/* Rows for the config struct of a scheme with weights. */
#define PE_P_SEED(S)                                                                                                   \
    PE_P_INT(S, seed, PE_UNSET, 0, 0x1p53, "seed", "seed of random weights: N(0, std^2), the same on every machine",   \
             .level = PE_BASIC, .group = PE_G_WEIGHTS, .usual = {0, 99}),                                              \
        PE_P_REAL(S, std, 0.02, 0, 1e6, "standard deviation", "standard deviation of weights from the seed",           \
                  .group = PE_G_WEIGHTS, .usual = {0.001, 1})

#endif
