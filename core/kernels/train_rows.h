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

/* Queries that are computed together, so that what is loaded of a key serves all of them. */
enum { QUERIES = LANES == 8 ? 4 : 2 };

/* The queries i, i + 1 … of a block, each with a row of numbers for the keys up to its own. */
struct block {
    size_t i, n_padded;
    real *rows; /* [QUERIES, n_padded] */
};

/* out[q][k] += row q · columns, one group of keys. n is a constant at each call. */
PE_INLINED void group_of_products(size_t n, const real rows[QUERIES][PE_TRAIN_HEAD], const real *columns,
                                  size_t n_padded, vr out[QUERIES][SIDE])
{
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++) {
        vr column[SIDE];
        EACH column[k] = load_wide(columns + c * n_padded + k * WIDTH);
        for (size_t q = 0; q < n; q++)
            EACH out[q][k] = plus(everywhere(rows[q][c]), column[k], out[q][k]);
    }
}

/* Makes lanes after key i of the group at j negative infinity. */
PE_INLINED void hide_after(size_t i, size_t j, vr s[SIDE])
{
    vm lane;
    for (int l = 0; l < WIDTH; l++)
        lane[l] = l;
    EACH s[k] = where(lane > (whole)i - (whole)(j + k * WIDTH), everywhere(-(real)INFINITY), s[k]);
}

/* Scores of the queries with the group of keys at j; bias begins at key 0 of query i, a number later for each query
 * before it. */
PE_INLINED void group_of_scores(size_t n, const struct block *at, size_t j, const real scaled[QUERIES][PE_TRAIN_HEAD],
                                const real *columns, const real *bias, vr s[QUERIES][SIDE])
{
    for (size_t q = 0; q < n; q++)
        EACH s[q][k] = bias ? load_wide(bias + j + k * WIDTH - q) : everywhere(0);
    group_of_products(n, scaled, columns + j, at->n_padded, s);
    for (size_t q = 0; q < n; q++)
        if (j + GROUP > at->i + q + 1)
            hide_after(at->i + q, j, s[q]);
}

/* Halves meet until one lane is left: a chain through all lanes would take longer than the row. */
static inline real largest_lane(const vr x[SIDE])
{
    real lane[WIDTH];
    store_wide(lane, at_least(at_least(x[0], x[1]), at_least(x[2], x[3])));
    for (int n = WIDTH / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            lane[l] = lane[l] > lane[l + n] ? lane[l] : lane[l + n];
    return lane[0];
}

static inline real sum_of_lanes(const vr x[SIDE])
{
    real lane[WIDTH];
    store_wide(lane, (x[0] + x[1]) + (x[2] + x[3]));
    for (int n = WIDTH / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            lane[l] += lane[l + n];
    return lane[0];
}

/* row = e^(row - max) for n keys and the rest of their last group; the sum of them. */
static inline real exponentials(size_t n, real max, real *row)
{
    vr s[SIDE], e[SIDE], sums[SIDE];
    EACH sums[k] = everywhere(0);
    for (size_t j = 0; j < n; j += GROUP) {
        load_group(s, row + j);
        EACH s[k] -= max;
        exponential(s, e);
        EACH sums[k] += e[k];
        store_group(row + j, e);
    }
    return sum_of_lanes(sums);
}

/* out[q] = factor · sum over keys j ≤ i + q of weight[q][j] · x_j, for rows x of PE_TRAIN_HEAD. */
PE_INLINED void weighted_rows(size_t n, const struct block *at, const real *weights, const real *x, octave out[QUERIES])
{
    octave even[QUERIES], odd[QUERIES];
    size_t j = 0, end = at->i + n;
    for (size_t q = 0; q < n; q++)
        even[q] = odd[q] = (octave){0};
    for (; j + 2 <= end; j += 2)
        for (size_t q = 0; q < n; q++) {
            even[q] += weights[q * at->n_padded + j] * *octave_at(x + j * PE_TRAIN_HEAD);
            odd[q] += weights[q * at->n_padded + j + 1] * *octave_at(x + (j + 1) * PE_TRAIN_HEAD);
        }
    for (size_t q = 0; q < n; q++) {
        if (j < end)
            even[q] += weights[q * at->n_padded + j] * *octave_at(x + j * PE_TRAIN_HEAD);
        out[q] = even[q] + odd[q];
    }
}

/* One head: its operands laid out for the loops. */
struct head {
    size_t n, n_padded, stride, o_stride;
    real scale;
    const real *q, *bias;
    real *k_columns, *v_columns, *k_rows, *v_rows; /* [8, n_padded], [n_padded, 8] */
    real *rows[2];                                 /* [QUERIES, n_padded] */
    const real *o, *go;                            /* what follows is for gradients */
    real *gk_columns, *gv_columns, *gq, *gbias;
};

static void copy_rows(size_t n, const real *from, size_t from_stride, real *to, size_t to_stride)
{
    for (size_t i = 0; i < n; i++)
        *octave_at(to + i * to_stride) = *octave_at(from + i * from_stride);
}

static void turn_into_rows(size_t n, const real *columns, size_t n_padded, real *rows, size_t stride)
{
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
            rows[j * stride + c] = columns[c * n_padded + j];
}

static real *take_scratch(real **scratch, size_t n)
{
    real *taken = *scratch;
    *scratch += n;
    return taken;
}

static struct head head_of(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                           const real *bias, real *scratch)
{
    size_t square = PE_TRAIN_HEAD * padded(n);
    struct head head = {.n = n, .n_padded = padded(n), .stride = stride, .scale = scale, .q = q, .bias = bias};
    real **places[] = {&head.k_columns, &head.v_columns,  &head.k_rows,
                       &head.v_rows,    &head.gk_columns, &head.gv_columns};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        *places[i] = take_scratch(&scratch, square);
    head.rows[0] = take_scratch(&scratch, QUERIES * head.n_padded);
    head.rows[1] = take_scratch(&scratch, QUERIES * head.n_padded);
    turn_into_columns(n, k, stride, head.k_columns);
    copy_rows(n, v, stride, head.v_rows, PE_TRAIN_HEAD);
    return head;
}

PE_INLINED void scaled_queries(size_t n, const struct head *head, size_t i, real scaled[QUERIES][PE_TRAIN_HEAD])
{
    for (size_t q = 0; q < n; q++)
        *octave_at(scaled[q]) = *octave_at(head->q + (i + q) * head->stride) * head->scale;
}

/* The bias of key 0 for query i. */
static inline const real *bias_at(const struct head *head, size_t i)
{
    return head->bias ? head->bias + (head->n - 1 - i) : NULL;
}

PE_INLINED void attend_block(size_t n, const struct head *head, size_t i, real *o, real *maxima, real *sums)
{
    struct block at = {i, head->n_padded, head->rows[0]};
    real scaled[QUERIES][PE_TRAIN_HEAD];
    vr most[QUERIES][SIDE];
    octave out[QUERIES];
    scaled_queries(n, head, i, scaled);
    for (size_t q = 0; q < n; q++)
        EACH most[q][k] = everywhere(-(real)INFINITY);
    for (size_t j = 0; j < i + n; j += GROUP) {
        vr s[QUERIES][SIDE];
        group_of_scores(n, &at, j, scaled, head->k_columns, bias_at(head, i), s);
        for (size_t q = 0; q < n; q++) {
            EACH most[q][k] = at_least(most[q][k], s[q][k]);
            store_group(at.rows + q * at.n_padded + j, s[q]);
        }
    }
    for (size_t q = 0; q < n; q++) {
        maxima[i + q] = largest_lane(most[q]);
        sums[i + q] = exponentials(i + n, maxima[i + q], at.rows + q * at.n_padded);
    }
    weighted_rows(n, &at, at.rows, head->v_rows, out);
    for (size_t q = 0; q < n; q++)
        *octave_at(o + (i + q) * head->o_stride) = out[q] / sums[i + q];
}

void KERNEL(train_attend)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                          const real *bias, real *o, size_t o_stride, real *maxima, real *sums, real *scratch)
{
    struct head head = head_of(n, scale, q, k, v, stride, bias, scratch);
    size_t i = 0;
    head.o_stride = o_stride;
    for (; i + QUERIES <= n; i += QUERIES)
        attend_block(QUERIES, &head, i, o, maxima, sums);
    for (; i < n; i++)
        attend_block(1, &head, i, o, maxima, sums);
}

/* Of the queries of a block: rows[0] = probabilities, rows[1] = gradients of the scores, p·(dp - o·go). */
PE_INLINED void score_gradients(size_t n, const struct head *head, const struct block *at,
                                const real scaled[QUERIES][PE_TRAIN_HEAD], const real given[QUERIES][PE_TRAIN_HEAD],
                                const real *maxima, const real *sums)
{
    real dots[QUERIES];
    for (size_t q = 0; q < n; q++) {
        octave product = *octave_at(head->o + (at->i + q) * head->o_stride) * *octave_at(given[q]);
        dots[q] = sum_of_octave(&product);
    }
    for (size_t j = 0; j < at->i + n; j += GROUP) {
        vr s[QUERIES][SIDE], p[SIDE], g[QUERIES][SIDE];
        group_of_scores(n, at, j, scaled, head->k_columns, bias_at(head, at->i), s);
        for (size_t q = 0; q < n; q++) {
            EACH s[q][k] -= maxima[at->i + q];
            exponential(s[q], p);
            EACH s[q][k] = p[k] * (1 / sums[at->i + q]);
            store_group(head->rows[0] + q * at->n_padded + j, s[q]);
            EACH g[q][k] = everywhere(-dots[q]);
        }
        group_of_products(n, given, head->v_columns + j, at->n_padded, g);
        for (size_t q = 0; q < n; q++) {
            load_group(p, head->rows[0] + q * at->n_padded + j);
            EACH g[q][k] *= p[k];
            store_group(head->rows[1] + q * at->n_padded + j, g[q]);
        }
    }
}

/* columns[c] += sum over queries of weights[q] · row q's channel c. */
PE_INLINED void add_outer(size_t n, const struct block *at, const real *weights,
                          const real rows[QUERIES][PE_TRAIN_HEAD], real *columns)
{
    for (size_t j = 0; j < at->i + n; j += WIDTH) {
        vr w[QUERIES];
        for (size_t q = 0; q < n; q++)
            w[q] = load_wide(weights + q * at->n_padded + j);
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++) {
            vr sum = load_wide(columns + c * at->n_padded + j);
            for (size_t q = 0; q < n; q++)
                sum = plus(w[q], everywhere(rows[q][c]), sum);
            store_wide(columns + c * at->n_padded + j, sum);
        }
    }
}

PE_INLINED void attend_block_back(size_t n, const struct head *head, size_t i, const real *maxima, const real *sums)
{
    struct block at = {i, head->n_padded, NULL};
    real scaled[QUERIES][PE_TRAIN_HEAD], given[QUERIES][PE_TRAIN_HEAD];
    octave gq[QUERIES];
    scaled_queries(n, head, i, scaled);
    copy_rows(n, head->go + i * head->o_stride, head->o_stride, given[0], PE_TRAIN_HEAD);
    score_gradients(n, head, &at, scaled, given, maxima, sums);
    add_outer(n, &at, head->rows[0], given, head->gv_columns);
    add_outer(n, &at, head->rows[1], scaled, head->gk_columns);
    weighted_rows(n, &at, head->rows[1], head->k_rows, gq);
    for (size_t q = 0; q < n; q++) {
        *octave_at(head->gq + (i + q) * head->stride) = gq[q] * head->scale;
        for (size_t j = 0; head->gbias && j <= i + q; j++)
            head->gbias[head->n - 1 - i - q + j] += head->rows[1][q * at.n_padded + j];
    }
}

void KERNEL(train_attend_back)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                               const real *bias, const real *o, const real *go, size_t o_stride, const real *maxima,
                               const real *sums, real *gq, real *gk, real *gv, real *gbias, real *scratch)
{
    struct head head = head_of(n, scale, q, k, v, stride, bias, scratch);
    size_t i = 0, square = PE_TRAIN_HEAD * head.n_padded * sizeof(real);
    head.o_stride = o_stride;
    head.o = o;
    head.go = go;
    head.gq = gq;
    head.gbias = gbias;
    turn_into_columns(n, v, stride, head.v_columns);
    copy_rows(n, k, stride, head.k_rows, PE_TRAIN_HEAD);
    memset(head.gk_columns, 0, square);
    memset(head.gv_columns, 0, square);
    for (; i + QUERIES <= n; i += QUERIES)
        attend_block_back(QUERIES, &head, i, maxima, sums);
    for (; i < n; i++)
        attend_block_back(1, &head, i, maxima, sums);
    turn_into_rows(n, head.gk_columns, head.n_padded, gk, stride);
    turn_into_rows(n, head.gv_columns, head.n_padded, gv, stride);
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
