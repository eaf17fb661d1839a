/* AdamW (Loshchilov and Hutter, arXiv 1711.05101) with clipped gradients and the experiment's schedule. */
#ifndef PE_TRAINING_ADAMW_H
#define PE_TRAINING_ADAMW_H

#include "core/training/parameters.h"

struct pe_adamw {
    size_t n;
    float *first, *second; /* [n]: moments */
};

enum pe_status pe_adamw_init(struct pe_adamw *adamw, size_t n, struct pe_error *err);
void pe_adamw_drop(struct pe_adamw *adamw);

/* Step m = 1, 2, … of n_steps: clips gradients to norm 1, then changes the parameters' values. */
void pe_adamw_step(struct pe_adamw *adamw, struct pe_parameters *parameters, float *gradients, size_t m,
                   size_t n_steps);
/* The rate at step m: 5e-3·m/20 up to step 20, then half a cosine down to 0. */
double pe_adamw_rate(size_t m, size_t n_steps);

#endif
