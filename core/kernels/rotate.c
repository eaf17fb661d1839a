/* Rotation of one head at one position: y1 = x1·cos - x2·sin, y2 = x2·cos + x1·sin for every pair (RoFormer,
 * 2104.09864).
 *
 * Arithmetic is in double whatever the data's type, and rounded once at the store: for f32 that is the correctly
 * rounded rotation but for one value in about 10^8. No contraction (the build forbids it), so all machines give the
 * same bytes. */
#include "core/kernels/kernels.h"

/* The two usual layouts get loops whose strides the compiler knows, so that it can vectorise them. */
#define ROTATE_LOOP(T, step, partner)                                                                                  \
    for (size_t c = 0; c < n_pairs; c++) {                                                                             \
        double x1 = (double)x[c * (step)], x2 = (double)x[c * (step) + (partner)];                                     \
        y[c * (step)] = (T)(x1 * cosines[c] - x2 * sines[c]);                                                          \
        y[c * (step) + (partner)] = (T)(x2 * cosines[c] + x1 * sines[c]);                                              \
    }

#define ROTATE(T, name)                                                                                                \
    void PE_KERNEL(name)(const double *restrict cosines, const double *restrict sines, const T *restrict x,            \
                         T *restrict y, size_t n_pairs, size_t step, size_t partner)                                   \
    {                                                                                                                  \
        if (step == 1)                                                                                                 \
            ROTATE_LOOP(T, 1, partner)                                                                                 \
        else if (step == 2 && partner == 1)                                                                            \
            ROTATE_LOOP(T, 2, 1)                                                                                       \
        else                                                                                                           \
            ROTATE_LOOP(T, step, partner)                                                                              \
    }

ROTATE(float, pe_rotate_f32)
ROTATE(double, pe_rotate_f64)
