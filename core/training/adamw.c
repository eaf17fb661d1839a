/* The optimizer: AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) with a linear warm-up, a cosine down to zero and
 * clipping of the gradients' norm at 1.
 *
 * A run has some hundred steps, so the schedule is short, and beta_2 is 0.98 instead of 0.999: a mean over a thousand
 * steps would never be warm. Decay applies to matrices and not to norms and biases (parameters.c has the rows). */
#include "core/training/adamw.h"

#include <math.h>
#include <stdlib.h>

enum { WARM_UP = 20 };
#define RATE 5e-3
#define DECAY 0.01
#define BETA_1 0.9
#define BETA_2 0.98
#define EPS 1e-8F
#define PI 3.14159265358979323846

enum pe_status pe_adamw_init(struct pe_adamw *adamw, size_t n, struct pe_error *err)
{
    *adamw = (struct pe_adamw){n, calloc(n, sizeof(float)), calloc(n, sizeof(float))};
    return adamw->first && adamw->second ? PE_OK : pe_no_memory(err);
}

void pe_adamw_drop(struct pe_adamw *adamw)
{
    free(adamw->first);
    free(adamw->second);
    *adamw = (struct pe_adamw){0};
}

double pe_adamw_rate(size_t m, size_t n_steps)
{
    if (m <= WARM_UP)
        return RATE * (double)m / WARM_UP;
    return RATE * 0.5 * (1 + cos(PI * (double)(m - WARM_UP) / (double)(n_steps - WARM_UP)));
}

/* 1, or what brings the gradients' norm down to 1. */
static float clipping(const float *gradients, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)gradients[i] * (double)gradients[i];
    double norm = sqrt(sum);
    return norm > 1 ? (float)(1 / norm) : 1;
}

void pe_adamw_step(struct pe_adamw *adamw, struct pe_parameters *parameters, float *gradients, size_t m, size_t n_steps)
{
    double rate = pe_adamw_rate(m, n_steps);
    const float clip = clipping(gradients, adamw->n), shrink = (float)(1 - rate * DECAY);
    const float beta_1 = (float)BETA_1, beta_2 = (float)BETA_2;
    const float step = (float)(rate / (1 - pow(BETA_1, (double)m)));
    const float inverse = (float)(1 / sqrt(1 - pow(BETA_2, (double)m)));
    float *restrict first = adamw->first, *restrict second = adamw->second, *restrict x = parameters->values;
    const bool *restrict decays = parameters->decays;
    for (size_t i = 0; i < adamw->n; i++) {
        float g = gradients[i] * clip;
        first[i] = beta_1 * first[i] + (1 - beta_1) * g;
        second[i] = beta_2 * second[i] + (1 - beta_2) * g * g;
        x[i] = x[i] * (decays[i] ? shrink : 1) - step * first[i] / (sqrtf(second[i]) * inverse + EPS);
    }
}
