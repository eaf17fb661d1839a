/* The parameters of the decoder: one row for each tensor, one after the other in one array, so that an optimizer passes
 * over them at once and a gradient has the same shape. */
#ifndef PE_TRAINING_PARAMETERS_H
#define PE_TRAINING_PARAMETERS_H

#include "core/kernels/kernels.h"
#include "core/posenc.h"

enum {
    PE_TRAIN_VOCABULARY = 8,
    PE_TRAIN_LAYERS = 2,
    PE_TRAIN_HEADS = PE_TRAIN_WIDTH / PE_TRAIN_HEAD,
    PE_TRAIN_INNER = 4 * PE_TRAIN_WIDTH, /* channels between the two products of a layer's second half */
    PE_TRAIN_BUCKETS = 32,               /* rows of T5's table */
};

/* Parameters of one layer. */
struct pe_layer_at {
    size_t norm_1, norm_1_bias, w_qkv, b_qkv, w_o, b_o, norm_2, norm_2_bias, w_1, b_1, w_2, b_2;
};

/* Where each tensor begins. */
struct pe_parameters_at {
    size_t tok;
    struct pe_layer_at layers[PE_TRAIN_LAYERS];
    size_t norm, norm_bias, w_out, b_out;
    size_t extra; /* `pos` [E, 32] or `rel` [32, 4]; n_fixed where there is none */
    size_t n_fixed, n;
};

/* What the scheme adds to the parameters. */
enum pe_learned { PE_LEARNS_NOTHING, PE_LEARNS_POSITIONS, PE_LEARNS_BUCKETS };

struct pe_parameters {
    struct pe_parameters_at at;
    float *values; /* [at.n] */
    bool *decays;  /* [at.n]: of the matrices called w_… */
};

/* Makes them with their first values: N(0, std²) by the seed and the tensor's name ("tok", "0.w_qkv" …), biases 0,
 * gains 1. n_positions: rows of `pos`. pe_parameters_drop frees them, also after a failure. */
enum pe_status pe_parameters_init(struct pe_parameters *parameters, enum pe_learned learned, size_t n_positions,
                                  double token_std, int64_t seed, struct pe_error *err);
void pe_parameters_drop(struct pe_parameters *parameters);

#endif
