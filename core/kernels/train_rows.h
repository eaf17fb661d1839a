/* Inner loops of training a small decoder: layer norm of rows of PE_TRAIN_WIDTH, GELU, each with its gradient; rows
 * repeated and added up; turns of heads by matrices. A template, included after attend_rows.h for floats and for
 * doubles.
 *
 * A row has 32 channels, four octaves of eight, so all of it fits into registers: a norm reads it once, and the loops
 * over octaves have a constant length that the compiler unrolls. Longer rows would need other code; experiments have
 * one width (training.h).
 *
 * Forward, a norm stores each row's mean and 1/deviation (moments), so that the gradient need not compute them again:
 * gx = (h - mean(h) - y·mean(h·y))/deviation (Ba et al. 2016, arXiv 1607.06450). Gradients are added to what is there,
 * because a row is read by two branches of the decoder.
 *
 * The copy for doubles is the same code, for the tests that compare gradients with differences of losses. Last bits
 * differ between instruction sets, since tanh is that of attend_rows.h, which fuses. */

/* A head's channels, at any address. On narrow machines the compiler splits them. */
typedef real octave __attribute__((vector_size(PE_TRAIN_HEAD * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline octave *octave_at(const real *x) { return (octave *)(uintptr_t)x; }

static inline real sum_of_octave(const octave *x)
{
    octave v = *x;
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

/* GELU by tanh (Hendrycks and Gimpel 2016, arXiv 1606.08415): x/2·(1 + tanh(u)), u = √(2/π)·(x + 0.044715·x³). */
#define GELU_SLOPE ((real)0.79788456080286535588)
#define GELU_CUBE ((real)0.044715)

static inline void tanh_of_gelu(const vr x[SIDE], vr t[SIDE])
{
    EACH t[k] = GELU_SLOPE * (x[k] + GELU_CUBE * x[k] * x[k] * x[k]);
    capped(t, 1);
}

static inline void gelu(vr x[SIDE], real unused)
{
    (void)unused;
    vr t[SIDE];
    tanh_of_gelu(x, t);
    EACH x[k] = (x[k] * (real)0.5) * (t[k] + 1);
}

void KERNEL(train_gelu)(const real *x, size_t n, real *out) { map(gelu, 0, x, n, out); }

static inline void gelu_slope(vr x[SIDE], real unused)
{
    (void)unused;
    vr t[SIDE];
    tanh_of_gelu(x, t);
    EACH
    {
        vr inner = GELU_SLOPE * (1 + 3 * GELU_CUBE * x[k] * x[k]);
        x[k] = (real)0.5 * ((t[k] + 1) + x[k] * (1 - t[k] * t[k]) * inner);
    }
}

void KERNEL(train_gelu_back)(const real *x, size_t n, real *g)
{
    real slopes[GROUP];
    for (size_t i = 0; i < n; i += GROUP) {
        size_t m = n - i < GROUP ? n - i : GROUP;
        map(gelu_slope, 0, x + i, m, slopes);
        for (size_t j = 0; j < m; j++)
            g[i + j] *= slopes[j];
    }
}

enum { OCTAVES = PE_TRAIN_WIDTH / PE_TRAIN_HEAD };
#define EVERY for (size_t o = 0; o < OCTAVES; o++)

static inline real mean_of(const octave x[OCTAVES])
{
    octave all = x[0];
    for (size_t o = 1; o < OCTAVES; o++)
        all += x[o];
    return sum_of_octave(&all) / PE_TRAIN_WIDTH;
}

void KERNEL(train_norm)(size_t n, const real *x, const real *gain, const real *bias, real *out, real *moments)
{
    for (size_t i = 0; i < n; i++, x += PE_TRAIN_WIDTH, out += PE_TRAIN_WIDTH, moments += 2) {
        octave at[OCTAVES], squares[OCTAVES];
        EVERY at[o] = octave_at(x)[o];
        real mean = mean_of(at);
        EVERY at[o] -= mean;
        EVERY squares[o] = at[o] * at[o];
        real inverse = (real)(1 / sqrt((double)mean_of(squares) + PE_TRAIN_EPS));
        EVERY octave_at(out)[o] = at[o] * inverse * octave_at(gain)[o] + octave_at(bias)[o];
        moments[0] = mean;
        moments[1] = inverse;
    }
}

/* gx += the gradient by x:  (h - mean(h) - y·mean(h·y)) / deviation, h = g·gain, y the normalized row. */
void KERNEL(train_norm_back)(size_t n, const real *x, const real *moments, const real *gain, const real *g, real *gx,
                             real *ggain, real *gbias)
{
    octave gains[OCTAVES], biases[OCTAVES];
    EVERY gains[o] = biases[o] = (octave){0};
    for (size_t i = 0; i < n; i++, x += PE_TRAIN_WIDTH, g += PE_TRAIN_WIDTH, gx += PE_TRAIN_WIDTH, moments += 2) {
        octave y[OCTAVES], h[OCTAVES], products[OCTAVES];
        EVERY y[o] = (octave_at(x)[o] - moments[0]) * moments[1];
        EVERY gains[o] += octave_at(g)[o] * y[o];
        EVERY biases[o] += octave_at(g)[o];
        EVERY h[o] = octave_at(g)[o] * octave_at(gain)[o];
        EVERY products[o] = h[o] * y[o];
        real mean = mean_of(h), along = mean_of(products);
        EVERY octave_at(gx)[o] += (h[o] - mean - y[o] * along) * moments[1];
    }
    EVERY octave_at(ggain)[o] += gains[o];
    EVERY octave_at(gbias)[o] += biases[o];
}

void KERNEL(train_repeat)(size_t n_rows, size_t n, const real *row, real *out)
{
    for (size_t i = 0; i < n_rows; i++, out += n)
        for (size_t o = 0; o < n / PE_TRAIN_HEAD; o++)
            octave_at(out)[o] = octave_at(row)[o];
}

void KERNEL(train_add_up)(size_t n_rows, size_t n, const real *rows, real *sums)
{
    for (size_t o = 0; o < n / PE_TRAIN_HEAD; o++) {
        octave sum[4] = {{0}};
        for (size_t i = 0; i < n_rows; i++)
            sum[i % 4] += octave_at(rows + i * n)[o];
        octave_at(sums)[o] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

void KERNEL(train_turn)(size_t n, size_t n_heads, const real *matrices, real *x, size_t stride)
{
    for (size_t i = 0; i < n; i++, x += stride, matrices += PE_TRAIN_HEAD * PE_TRAIN_HEAD)
        for (size_t h = 0; h < n_heads; h++) {
            const real *from = x + h * PE_TRAIN_HEAD;
            octave turned = {0};
            for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
                turned += from[c] * octave_at(matrices)[c];
            *octave_at(from) = turned;
        }
}
