/* Runs of positions: x(n+1) = 2cos(w)·x(n) - x(n-1), one multiplication a value, outwards both ways from an anchor in
 * the middle of 32 rows; and the way from one anchor to the next, a rotation by 32 steps.
 *
 * Errors in units u = 2^-53, with ρ = min(1, 16|sin w|) and M = |x| + |y|·ρ, which no |value| of a block passes.
 *
 * A block: a step adds at most 6u·M (its one or two roundings, and a coefficient right to 2.6u), a later value sees it
 * times its distance, so 16 steps give 6u·M·136. The first step's own roundings, the anchor's and those of x(-1) add
 * less than 84u·M. Together 900u·M.
 *
 * An anchor after k ≤ 3 turns by 32w, where j turns bring |sin 32jw| ≤ min(1, 2jρ): j turns before, |x| was at most
 * max(1, 2j)·M and |y| at most |x| + |y| of now. A turn adds 3u(|xc| + |ys|) + u|x'| to x, over the three less than
 * Σ(6j + 12 + max(1, 2j))u·M = 61u·M; to y less than 7u(|x| + |y|), of which later turns bring 7u·Σ 2jρ(|x| + |y|) ≤
 * 42u·M to x. The exact anchor's own 2^-50 are 8u·(2·3 + 6)M = 96u·M. So x is right to 199u·M; of y's error, by the
 * same sums, the block sees the share ρ: 21 + 61 + 8 + 48 = 138u·M.
 *
 * In all (900 + 199 + 138)u·M = 1237u·M < 1.2109·2^-43·M. */
#include "core/kernels/kernels.h"
#include "core/kernels/lanes.h"

#include <math.h>

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

/* Below this, f32 is subnormal. */
#define TINY 0x1p-100

/* The bound of each column's doubles; lanes of ones where one of them came nearer to a middle. */
static inline vi bound(const double *x, const double *y, const double *bounds, const double *reach,
                       const double *nearest, double *errors)
{
    vd most = magnitude(load(x)) + magnitude(load(y)) * load(reach);
    vd error = choose(most > TINY, PE_RUN_ERROR * most + load(bounds), all_lanes(HUGE_VAL));
    error = choose(most > 0, error, all_lanes(-1));
    memcpy(errors, &error, sizeof error);
    return ~(load(nearest) > error); /* also where one is NaN */
}

bool PE_KERNEL(pe_run_f32)(const double *x, const double *y, const double *bounds, const double *cosines,
                           const double *sines, const double *reach, size_t n, float *out, size_t stride,
                           double *nearest, double *errors)
{
    _Static_assert(PE_WAVES_LANES % (SIDE * LANES) == 0, "padding holds whole groups");
    vi doubtful = {0};
    for (size_t j = 0; j < n; j += SIDE * LANES)
        run_columns(x + j, y + j, cosines + j, sines + j, out + j, stride, nearest + j);
    for (size_t j = 0; j < n; j += LANES)
        doubtful |= bound(x + j, y + j, bounds + j, reach + j, nearest + j, errors + j);
    int64_t any = 0;
    for (int k = 0; k < LANES; k++)
        any |= doubtful[k];
    return any != 0;
}

void PE_KERNEL(pe_turn)(double *x, double *y, const double *cosines, const double *sines, size_t n)
{
    for (size_t j = 0; j < n; j += LANES) {
        vd a = load(x + j), b = load(y + j), c = load(cosines + j), s = load(sines + j);
        vd turned = a * c + b * s, next = b * c - a * s;
        memcpy(x + j, &turned, sizeof turned);
        memcpy(y + j, &next, sizeof next);
    }
}
