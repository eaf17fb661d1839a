/* Interpolation of a grid of learned rows to another size, as vision models do for an image of another size than in
 * training. It is separable: an output row is a weighted sum of a few rows of the table. */
#ifndef PE_RESAMPLE_H
#define PE_RESAMPLE_H

#include "core/posenc.h"

enum pe_resample_kind {
    PE_BICUBIC, /* torch bicubic, align_corners False: a = -0.75, indices clamped at the border, no antialias */
    PE_BICUBIC_ANTIALIAS, /* timm: a = -0.5, kernel stretched by max(1, in/out), weights renormalised, also to enlarge
                           */
    PE_BILINEAR,          /* align_corners False, source coordinate clamped at 0 */
    PE_BILINEAR_ALIGNED   /* align_corners True: Qwen3-VL */
};

/* The source rows and weights of each output index o of one axis: out[o] = sum weight[t] * in[index(t)]. */
struct pe_resample_taps {
    uint64_t n_out;
    unsigned n_taps; /* of every output index; weights beyond those needed are 0 */
    int64_t *index;  /* [n_out, n_taps], within 0 … n_in-1 (clamped already). The one allocation. */
    double *weight;  /* [n_out, n_taps] */
};

/* Computes the taps that resize an axis from n_in rows to n_out. PE_NO_MEMORY is its only failure. n_in, n_out >= 1. */
enum pe_status pe_resample_init(struct pe_resample_taps *taps, enum pe_resample_kind kind, uint64_t n_in,
                                uint64_t n_out);
void pe_resample_drop(struct pe_resample_taps *taps); /* of zeros: nothing */

#endif
