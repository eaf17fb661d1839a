/* A small pre-norm decoder, its loss and its gradients, in f32 for training and, from the same source, in f64 to check
 * the gradients:
 *
 *     h = tok[x] + added                              [R, 32], R = n_seq·n rows
 *     h += attend(norm_1(h)·w_qkvᵀ + b_qkv)·w_oᵀ + b_o  and  h += GELU(norm_2(h)·w_1ᵀ + b_1)·w_2ᵀ + b_2  in each layer
 *     loss = -ln softmax(norm(h)·w_outᵀ + b_out)[next]
 *
 * (Vaswani et al. 2017; norms first: Xiong et al. 2020, arXiv 2002.04745). A pass that is cancelled (pe_watch) returns
 * soon, with arbitrary numbers. */
#ifndef PE_TRAINING_DECODER_H
#define PE_TRAINING_DECODER_H

#include "core/training/places.h"

/* What the decoder reads: n_seq sequences of n tokens, and the token that follows each. */
struct pe_batch {
    size_t n_seq, n;
    const uint8_t *tokens; /* n_seq sequences of n + 1: the last n of each are what follows the first n */
};

struct pe_decoder_f32;
struct pe_decoder_f64;

/* Room for max_rows rows in sequences of at most max_len; for_gradients: with what a backward pass needs. NULL: no
 * memory. */
struct pe_decoder_f32 *pe_decoder_new_f32(size_t max_rows, size_t max_len, bool for_gradients);
struct pe_decoder_f64 *pe_decoder_new_f64(size_t max_rows, size_t max_len, bool for_gradients);
void pe_decoder_free_f32(struct pe_decoder_f32 *decoder); /* NULL is accepted */
void pe_decoder_free_f64(struct pe_decoder_f64 *decoder);
double pe_decoder_bytes(size_t max_rows, size_t max_len, bool for_gradients); /* of the one in f32 */

/* losses [n_seq, n]: of each next token, in nats. places has at least n positions, and the dtype of the decoder. */
void pe_decoder_forward_f32(struct pe_decoder_f32 *decoder, const struct pe_parameters_at *at, const float *values,
                            const struct pe_places *places, const struct pe_batch *batch, float *losses);
void pe_decoder_forward_f64(struct pe_decoder_f64 *decoder, const struct pe_parameters_at *at, const double *values,
                            const struct pe_places *places, const struct pe_batch *batch, double *losses);

/* After forward, with the same arguments: gradients [at->n] of the mean loss. */
void pe_decoder_backward_f32(struct pe_decoder_f32 *decoder, const struct pe_parameters_at *at, const float *values,
                             const struct pe_places *places, const struct pe_batch *batch, float *gradients);
void pe_decoder_backward_f64(struct pe_decoder_f64 *decoder, const struct pe_parameters_at *at, const double *values,
                             const struct pe_places *places, const struct pe_batch *batch, double *gradients);

#endif
