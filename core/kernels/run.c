/* Runs of positions: x(n+1) = 2cos(w)·x(n) - x(n-1), one multiplication a value, outwards both ways from an anchor in
 * the middle of 32 rows.
 *
 * Error, in units u = 2^-53 and with M the largest |x| of the block: a step adds at most 6u·M (its one or two
 * roundings, and a coefficient right to 2.6u), a later value sees it times its distance, so 16 steps give 6u·M·136. The
 * first step's own roundings, the anchor's and those of x(-1) add less than 84u·M. M is at most |x| + |y|·min(1, 16|sin
 * w|). In all 900u·M = 1.758·2^-44·M. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

/* Registers worked on side by side, to hide the latency of a step: with both directions twice as many chains. */
#if defined(__AVX512F__)
enum { SIDE = 4 };
#else
enum { SIDE = 2 };
#endif

enum { DROPPED_BITS = 29 }; /* of a double's fraction, in a float */

/* The distance of x from the middle between the two floats around it, if that is less than so_far. */
static inline vd nearer(vd so_far, vd x)
{
    const int64_t half = (int64_t)1 << (DROPPED_BITS - 1), kept = -((int64_t)1 << DROPPED_BITS);
    vd middle = (vd)(((vi)x & kept) | half);
    return smaller(so_far, magnitude(x - middle));
}

static inline void store(float *to, vd x)
{
    vf narrow = __builtin_convertvector(x, vf);
    memcpy(to, &narrow, sizeof narrow);
}

/* SIDE registers of columns, all rows. */
static inline void run_columns(const double *x, const double *y, const double *cosines, const double *sines, float *out,
                               size_t stride, double *nearest)
{
    vd twice[SIDE], up[SIDE], up_before[SIDE], down[SIDE], down_before[SIDE], near[SIDE];
    for (int k = 0; k < SIDE; k++) {
        vd anchor = load(x + k * LANES), c = load(cosines + k * LANES);
        twice[k] = c + c;
        up[k] = down_before[k] = anchor;
        up_before[k] = down[k] = anchor * c - load(y + k * LANES) * load(sines + k * LANES);
        near[k] = all_lanes(1e300);
    }
    for (size_t n = 0; n < PE_RUN_HALF; n++)
        for (int k = 0; k < SIDE; k++) {
            store(out + (PE_RUN_HALF + n) * stride + (size_t)k * LANES, up[k]);
            store(out + (PE_RUN_HALF - 1 - n) * stride + (size_t)k * LANES, down[k]);
            near[k] = nearer(nearer(near[k], up[k]), down[k]);
            vd next = product_minus(twice[k], up[k], up_before[k]);
            up_before[k] = up[k];
            up[k] = next;
            next = product_minus(twice[k], down[k], down_before[k]);
            down_before[k] = down[k];
            down[k] = next;
        }
    memcpy(nearest, near, sizeof near);
}

void PE_KERNEL(pe_run_f32)(const double *x, const double *y, const double *cosines, const double *sines, size_t n,
                           float *out, size_t stride, double *nearest)
{
    _Static_assert(PE_WAVES_LANES % (SIDE * LANES) == 0, "padding holds whole groups");
    for (size_t j = 0; j < n; j += SIDE * LANES)
        run_columns(x + j, y + j, cosines + j, sines + j, out + j, stride, nearest + j);
}
