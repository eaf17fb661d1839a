/* Taps and weights of interpolation along one axis, for position tables that are stretched to another grid.
 *
 * Output o is at the source coordinate
 *
 *     x = (o + 1/2) · n_in / n_out - 1/2        or, with aligned corners,   x = o · (n_in - 1) / (n_out - 1)
 *
 * a fraction, so index and distance are computed from exact integers: no result depends on how a machine rounds a
 * quotient before the floor is taken. Code that passes a scale in place of a size divides by n_out + offset instead
 * (DINO and DINOv2: 0.1, so that the scaled size is not rounded down); that sum is counted in steps of 2^-60.
 *
 * Semantics: torch.nn.functional.interpolate (ATen/native/UpSample.h and cpu/UpSampleKernel.cpp), timm
 * resample_abs_pos_embed, Qwen3-VL fast_pos_embed_interpolate. They differ in whether corners are aligned, in whether
 * the kernel is stretched when shrinking (antialias), each a kind here, and in cubic's parameter a (torch: -0.75
 * without antialias, -0.5 with, as PIL; TensorFlow: -0.5 without). */
#include "core/numeric/numeric.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

const char *const pe_resample_words[] = {[PE_BICUBIC] = "bicubic",
                                         [PE_BICUBIC_ANTIALIAS] = "bicubic_antialias",
                                         [PE_BILINEAR] = "bilinear",
                                         [PE_BILINEAR_ALIGNED] = "bilinear_aligned",
                                         [PE_BILINEAR_ANTIALIAS] = "bilinear_antialias",
                                         NULL};

/* (2o + 1) · n_in needs 82 bits when both are as large as a position may be. */
typedef __int128 wide;

/* A source coordinate n/d, d > 0. */
struct coordinate {
    wide n, d;
};

static wide floor_div(wide n, wide d) { return n / d - (n % d < 0); }

/* An axis of n_in rows is read as if it had `to` rows, both counted in steps of which one row has `one`: from / to is
 * the step from output to output. */
struct stretch {
    wide from, to;
};

static struct stretch stretch_of(uint64_t n_in, uint64_t n_out, double offset)
{
    const wide one = offset == 0 ? 1 : (wide)1 << 60;
    return (struct stretch){n_in * one, n_out * one + (wide)nearbyint(ldexp(offset, 60))};
}

static struct coordinate centre(uint64_t o, struct stretch s)
{
    return (struct coordinate){(wide)(2 * o + 1) * s.from - s.to, 2 * s.to};
}

static struct coordinate aligned(uint64_t o, uint64_t n_in, uint64_t n_out)
{
    return (struct coordinate){(wide)o * (n_in - 1), n_out > 1 ? (wide)(n_out - 1) : 1};
}

/* Keys 1981 (IEEE ASSP 29), with the free parameter a:
 *
 *     |x| < 1:  (a + 2)|x|³ - (a + 3)|x|² + 1    =  (1 - |x|)(1 + |x| - (a + 2)|x|²)
 *     |x| < 2:  a|x|³ - 5a|x|² + 8a|x| - 4a      =  a(|x| - 1)(2 - |x|)²
 *     else:     0
 *
 * The products on the right keep the last bits of small weights, which the sums lose. */
static double cubic(double x, double a)
{
    x = x < 0 ? -x : x;
    if (x < 1)
        return (1 - x) * (1 + x - (a + 2) * x * x);
    return x < 2 ? a * (x - 1) * (2 - x) * (2 - x) : 0;
}

static int64_t clamp(wide i, uint64_t n_in) { return (int64_t)(i < 0 ? 0 : i >= (wide)n_in ? (wide)n_in - 1 : i); }

/* Weights 1 - t and t of the rows at the floor and above; past the last row both are the last row. */
static void linear_taps(struct coordinate x, uint64_t n_in, int64_t *index, double *weight)
{
    if (x.n < 0)
        x.n = 0;
    wide below = floor_div(x.n, x.d), rest = x.n - below * x.d;
    for (unsigned t = 0; t < 2; t++)
        index[t] = clamp(below + t, n_in);
    weight[0] = (double)(x.d - rest) / (double)x.d;
    weight[1] = (double)rest / (double)x.d;
}

/* weight[t] = cubic(t - 1 - fraction of x): it sums to 1 by itself, and rows beyond the border repeat the border
 * row. */
static void cubic_taps(struct coordinate x, uint64_t n_in, double a, int64_t *index, double *weight)
{
    wide below = floor_div(x.n, x.d), rest = x.n - below * x.d;
    for (int t = 0; t < 4; t++) {
        index[t] = clamp(below - 1 + t, n_in);
        weight[t] = cubic((double)((t - 1) * x.d - rest) / (double)x.d, a);
    }
}

/* The kernel without and with antialias; how far it reaches. */
bool pe_resample_is_cubic(enum pe_resample_kind kind) { return kind == PE_BICUBIC || kind == PE_BICUBIC_ANTIALIAS; }
bool pe_resample_is_antialiased(enum pe_resample_kind kind)
{
    return kind == PE_BICUBIC_ANTIALIAS || kind == PE_BILINEAR_ANTIALIAS;
}
static unsigned radius_of(enum pe_resample_kind kind) { return pe_resample_is_cubic(kind) ? 2 : 1; }

double pe_resample_cubic_a(enum pe_resample_kind kind)
{
    return !pe_resample_is_cubic(kind) ? (double)NAN : pe_resample_is_antialiased(kind) ? -0.5 : -0.75;
}

static double triangle(double x) { return fmax(1 - fabs(x), 0); }

/* weight[t] = kernel((index - x) / max(1, from/to)) / their sum, over the rows there are. The distance is
 * (index · d - n) / (2 · max(from, to)) as d = 2 · to. Rows at a distance of the radius or more have weight 0, so where
 * the window starts changes no value, as long as all nearer ones are in it. */
static void stretched_taps(struct coordinate x, uint64_t n_in, struct stretch s, const struct pe_resample *how,
                           unsigned n_taps, int64_t *index, double *weight)
{
    wide unit = 2 * (s.from > s.to ? s.from : s.to), first = floor_div(x.n - radius_of(how->kind) * unit, x.d) + 1;
    int64_t from = clamp(first, n_in - n_taps + 1);
    double sum = 0;
    for (unsigned t = 0; t < n_taps; t++) {
        index[t] = from + t;
        double distance = (double)(index[t] * x.d - x.n) / (double)unit;
        weight[t] = pe_resample_is_cubic(how->kind) ? cubic(distance, how->cubic_a) : triangle(distance);
        sum += weight[t];
    }
    for (unsigned t = 0; t < n_taps; t++)
        weight[t] /= sum;
}

/* The number of rows that can be nearer than the kernel's radius, which antialias multiplies by max(1, from/to). */
static wide count_taps(enum pe_resample_kind kind, uint64_t n_in, struct stretch s)
{
    if (!pe_resample_is_antialiased(kind))
        return 2 * radius_of(kind);
    wide width = 2 * radius_of(kind) * (s.from > s.to ? s.from : s.to), n = (width + s.to - 1) / s.to;
    return n < (wide)n_in ? n : (wide)n_in;
}

static void set_taps(struct pe_resample_taps *taps, const struct pe_resample *how, uint64_t n_in, struct stretch s,
                     uint64_t o)
{
    int64_t *index = taps->index + o * taps->n_taps;
    double *weight = taps->weight + o * taps->n_taps;
    if (pe_resample_is_antialiased(how->kind))
        stretched_taps(centre(o, s), n_in, s, how, taps->n_taps, index, weight);
    else if (how->kind == PE_BICUBIC)
        cubic_taps(centre(o, s), n_in, how->cubic_a, index, weight);
    else if (how->kind == PE_BILINEAR)
        linear_taps(centre(o, s), n_in, index, weight);
    else
        linear_taps(aligned(o, n_in, taps->n_out), n_in, index, weight);
}

enum pe_status pe_resample_init(struct pe_resample_taps *taps, const struct pe_resample *how, uint64_t n_in,
                                uint64_t n_out)
{
    struct stretch s = stretch_of(n_in, n_out, how->offset);
    const size_t pair = sizeof *taps->index + sizeof *taps->weight;
    wide n_taps = count_taps(how->kind, n_in, s);
    if (n_taps > UINT_MAX || n_taps * n_out > (wide)(SIZE_MAX / 2 / pair))
        return PE_NO_MEMORY;
    size_t n = (size_t)n_taps * n_out;
    int64_t *index = malloc(n * pair);
    if (!index)
        return PE_NO_MEMORY;
    *taps = (struct pe_resample_taps){n_out, (unsigned)n_taps, index, (double *)(index + n)};
    for (uint64_t o = 0; o < n_out; o++)
        set_taps(taps, how, n_in, s, o);
    return PE_OK;
}

void pe_resample_drop(struct pe_resample_taps *taps) { free(taps->index); }
