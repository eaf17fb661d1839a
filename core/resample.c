/* Weights of the interpolations that PyTorch and timm resize learned position tables with. */
#include "core/resample.h"

#include <math.h>
#include <stdlib.h>

/* Cubic convolution (Keys 1981), |x| < 2. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t clamp(int64_t i, uint64_t n) { return i < 0 ? 0 : i >= (int64_t)n ? (int64_t)n - 1 : i; }

/* ---- One output index o ---- */

struct taps {
    int64_t *index;
    double *weight;
};

/* aten upsample_bicubic2d: source (o + 1/2)·in/out - 1/2, four neighbours, indices clamped, a = -3/4. */
static void bicubic(struct taps t, uint64_t o, uint64_t n_in, uint64_t n_out)
{
    double source = ((double)o + 0.5) * (double)n_in / (double)n_out - 0.5, whole = floor(source);
    for (int k = 0; k < 4; k++) {
        t.index[k] = clamp((int64_t)whole + k - 1, n_in);
        t.weight[k] = cubic(source - (whole + k - 1), -0.75);
    }
}

/* Both kinds of linear: between the two neighbours of a source coordinate that is not negative. */
static void linear(struct taps t, double source, uint64_t n_in)
{
    double whole = floor(source);
    t.index[0] = clamp((int64_t)whole, n_in);
    t.index[1] = clamp((int64_t)whole + 1, n_in);
    t.weight[1] = source - whole;
    t.weight[0] = 1 - t.weight[1];
}

/* aten _upsample_bicubic2d_aa, as Pillow: the kernel (a = -1/2) is stretched when shrinking, cut at the border, and the
 * weights that are left sum to one. */
static void antialias(struct taps t, unsigned n_taps, uint64_t o, uint64_t n_in, uint64_t n_out)
{
    double scale = (double)n_in / (double)n_out, stretch = scale > 1 ? scale : 1, center = scale * ((double)o + 0.5);
    int64_t first = (int64_t)fmax(center - 2 * stretch + 0.5, 0);
    int64_t end = (int64_t)fmin(center + 2 * stretch + 0.5, (double)n_in);
    double sum = 0;
    for (unsigned k = 0; k < n_taps; k++) {
        int64_t i = first + (int64_t)k;
        t.index[k] = clamp(i, n_in);
        t.weight[k] = i < end ? cubic(((double)i - center + 0.5) / stretch, -0.5) : 0;
        sum += t.weight[k];
    }
    for (unsigned k = 0; k < n_taps; k++)
        t.weight[k] /= sum;
}

/* ---- An axis ---- */

static unsigned taps_of(enum pe_resample_kind kind, uint64_t n_in, uint64_t n_out)
{
    double scale = (double)n_in / (double)n_out;
    switch (kind) {
    case PE_BICUBIC: return 4;
    case PE_BICUBIC_ANTIALIAS: return (unsigned)(4 * fmax(scale, 1)) + 2;
    case PE_BILINEAR:
    case PE_BILINEAR_ALIGNED: break;
    }
    return 2;
}

static void set_taps(struct taps t, unsigned n_taps, enum pe_resample_kind kind, uint64_t o, uint64_t n_in,
                     uint64_t n_out)
{
    switch (kind) {
    case PE_BICUBIC: bicubic(t, o, n_in, n_out); break;
    case PE_BICUBIC_ANTIALIAS: antialias(t, n_taps, o, n_in, n_out); break;
    case PE_BILINEAR: linear(t, fmax(((double)o + 0.5) * (double)n_in / (double)n_out - 0.5, 0), n_in); break;
    case PE_BILINEAR_ALIGNED:
        linear(t, n_out > 1 ? (double)o * (double)(n_in - 1) / (double)(n_out - 1) : 0, n_in);
        break;
    }
}

enum pe_status pe_resample_init(struct pe_resample_taps *taps, enum pe_resample_kind kind, uint64_t n_in,
                                uint64_t n_out)
{
    *taps = (struct pe_resample_taps){.n_out = n_out, .n_taps = taps_of(kind, n_in, n_out)};
    size_t n = (size_t)n_out * taps->n_taps;
    taps->index = calloc(n, sizeof *taps->index + sizeof *taps->weight);
    if (!taps->index)
        return PE_NO_MEMORY;
    taps->weight = (double *)(void *)(taps->index + n);
    for (uint64_t o = 0; o < n_out; o++)
        set_taps((struct taps){taps->index + o * taps->n_taps, taps->weight + o * taps->n_taps}, taps->n_taps, kind, o,
                 n_in, n_out);
    return PE_OK;
}

void pe_resample_drop(struct pe_resample_taps *taps) { free(taps->index); }
