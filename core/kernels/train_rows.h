/* Inner loops of training a small decoder: attention of heads of PE_TRAIN_HEAD channels, layer norm of rows of
 * PE_TRAIN_WIDTH, GELU, each with its gradient; and turns of heads by matrices. A template, included after
 * attend_rows.h for floats and for doubles.
 *
 * Attention is causal, so a row has i + 1 keys: a general product would compute the other half too, and with 8
 * channels it would spend its time on laying out matrices. Scores are not kept: the gradient computes them again from
 * the logarithms of the sums, as FlashAttention does (Dao et al. 2022, arXiv 2205.14135), so memory grows with the
 * length and not with its square. */

/* A head's channels, at any address. On narrow machines the compiler splits them. */
typedef real octave __attribute__((vector_size(PE_TRAIN_HEAD * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline octave *octave_at(const real *x) { return (octave *)(uintptr_t)x; }

static inline real sum_of_octave(const octave *x)
{
    octave v = *x;
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

static size_t padded(size_t n) { return (n + GROUP - 1) / GROUP * GROUP; }

/* Rows [n, PE_TRAIN_HEAD] to columns [PE_TRAIN_HEAD, padded(n)], zeros behind. */
static void turn_into_columns(size_t n, const real *rows, size_t stride, real *columns)
{
    size_t n_padded = padded(n);
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++, columns += n_padded) {
        for (size_t j = 0; j < n; j++)
            columns[j] = rows[j * stride + c];
        memset(columns + n, 0, (n_padded - n) * sizeof *columns);
    }
}

/* out[k] = sum over channels of row[c] · column c, one group of keys. */
PE_INLINED void group_of_products(const real *row, const real *columns, size_t n_padded, vr out[SIDE])
{
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
        EACH out[k] = plus(everywhere(row[c]), load_wide(columns + c * n_padded + k * WIDTH), out[k]);
}

/* Makes lanes after key i of the group at j negative infinity. */
PE_INLINED void hide_after(size_t i, size_t j, vr s[SIDE])
{
    vm lane;
    for (int l = 0; l < WIDTH; l++)
        lane[l] = l;
    EACH s[k] = where(lane > (whole)i - (whole)(j + k * WIDTH), everywhere(-(real)INFINITY), s[k]);
}

/* Scores of query i with the group of keys at j; bias begins at key 0. */
PE_INLINED void group_of_scores(size_t i, size_t j, const real *scaled, const real *columns, size_t n_padded,
                                const real *bias, vr s[SIDE])
{
    EACH s[k] = bias ? load_wide(bias + j + k * WIDTH) : everywhere(0);
    group_of_products(scaled, columns + j, n_padded, s);
    if (j + GROUP > i + 1)
        hide_after(i, j, s);
}

static inline real largest_lane(const vr x[SIDE])
{
    vr most = at_least(at_least(x[0], x[1]), at_least(x[2], x[3]));
    real max = most[0];
    for (int l = 1; l < WIDTH; l++)
        max = most[l] > max ? most[l] : max;
    return max;
}

static inline real sum_of_lanes(const vr x[SIDE])
{
    vr all = (x[0] + x[1]) + (x[2] + x[3]);
    real sum = 0;
    for (int l = 0; l < WIDTH; l++)
        sum += all[l];
    return sum;
}

/* o = sum over j ≤ i of weight_j · v_j, four sums side by side. */
static void weighted_values(size_t i, const real *weights, const real *v, size_t stride, real factor, real *o)
{
    octave sums[4] = {{0}};
    size_t j = 0;
    for (; j + 4 <= i + 1; j += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += weights[j + k] * *octave_at(v + (j + k) * stride);
    for (; j <= i; j++)
        sums[0] += weights[j] * *octave_at(v + j * stride);
    *octave_at(o) = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * factor;
}

static void attend_row(size_t i, const real *scaled, const real *columns, size_t n_padded, const real *bias, real *row,
                       real *max, real *sum)
{
    vr most[SIDE], s[SIDE], e[SIDE], sums[SIDE];
    EACH most[k] = everywhere(-(real)INFINITY);
    EACH sums[k] = everywhere(0);
    for (size_t j = 0; j <= i; j += GROUP) {
        group_of_scores(i, j, scaled, columns, n_padded, bias, s);
        EACH most[k] = at_least(most[k], s[k]);
        store_group(row + j, s);
    }
    *max = largest_lane(most);
    for (size_t j = 0; j <= i; j += GROUP) {
        load_group(s, row + j);
        EACH s[k] -= *max;
        exponential(s, e);
        EACH sums[k] += e[k];
        store_group(row + j, e);
    }
    *sum = sum_of_lanes(sums);
}

void KERNEL(train_attend)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                          const real *bias, real *o, size_t o_stride, real *maxima, real *sums, real *scratch)
{
    size_t n_padded = padded(n);
    real *columns = scratch, *row = scratch + PE_TRAIN_HEAD * n_padded, scaled[PE_TRAIN_HEAD];
    turn_into_columns(n, k, stride, columns);
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
            scaled[c] = scale * q[i * stride + c];
        attend_row(i, scaled, columns, n_padded, bias ? bias + (n - 1 - i) : NULL, row, maxima + i, sums + i);
        weighted_values(i, row, v, stride, 1 / sums[i], o + i * o_stride);
    }
}

/* Of query i: its probabilities, and the gradients of its scores, p·(dp - dot). */
static void score_gradients(size_t i, const real *scaled, const real *go, const real *columns[2], size_t n_padded,
                            const real *bias, real max, real sum, real dot, real *p_row, real *g_row)
{
    for (size_t j = 0; j <= i; j += GROUP) {
        vr s[SIDE], p[SIDE], g[SIDE];
        group_of_scores(i, j, scaled, columns[0], n_padded, bias, s);
        EACH s[k] -= max;
        exponential(s, p);
        EACH p[k] = p[k] / sum;
        EACH g[k] = everywhere(-dot);
        group_of_products(go, columns[1] + j, n_padded, g);
        EACH g[k] *= p[k];
        store_group(p_row + j, p);
        store_group(g_row + j, g);
    }
}

void KERNEL(train_attend_back)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                               const real *bias, const real *o, const real *go, size_t o_stride, const real *maxima,
                               const real *sums, real *gq, real *gk, real *gv, real *gbias, real *scratch)
{
    size_t n_padded = padded(n);
    const real *columns[2] = {scratch, scratch + PE_TRAIN_HEAD * n_padded};
    real *p = scratch + 2 * PE_TRAIN_HEAD * n_padded, *g = p + n_padded, scaled[PE_TRAIN_HEAD];
    turn_into_columns(n, k, stride, scratch);
    turn_into_columns(n, v, stride, scratch + PE_TRAIN_HEAD * n_padded);
    for (size_t i = 0; i < n; i++)
        *octave_at(gk + i * stride) = *octave_at(gv + i * stride) = (octave){0};
    for (size_t i = 0; i < n; i++) {
        octave product = *octave_at(o + i * o_stride) * *octave_at(go + i * o_stride), gqs = {0};
        octave given = *octave_at(go + i * o_stride);
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
            scaled[c] = scale * q[i * stride + c];
        score_gradients(i, scaled, go + i * o_stride, columns, n_padded, bias ? bias + (n - 1 - i) : NULL, maxima[i],
                        sums[i], sum_of_octave(&product), p, g);
        for (size_t j = 0; j <= i; j++) {
            gqs += g[j] * *octave_at(k + j * stride);
            *octave_at(gk + j * stride) += g[j] * *octave_at(scaled);
            *octave_at(gv + j * stride) += p[j] * given;
        }
        *octave_at(gq + i * stride) = gqs * scale;
        for (size_t j = 0; gbias && j <= i; j++)
            gbias[n - 1 - i + j] += g[j];
    }
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
