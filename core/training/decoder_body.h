/* The decoder's steps, forward and backward. A template: decoder_f32.c and decoder_f64.c define `real` and the names
 * and include it.
 *
 * Letters: R rows (sequences times positions), D 32 channels, F 128 inner channels, V 8 words, H 4 heads of 8. Every
 * matrix is row-major. Each backward step is below its forward step; a gradient is called g and the name.
 *
 * A decoder of GPT-2's pattern: norm, attention, sum; norm, GELU layer, sum (pre-norm, Xiong et al. 2020, arXiv
 * 2002.04745). Gradients are written by hand, one function for each step, because the graph never changes; the f64 copy
 * exists so that tests can compare them with differences of losses, which in f32 would be all noise.
 *
 * What is kept for the way back: inputs of norms with their moments, q, k and v, maxima and sums of softmax, GELU's
 * input. Scores are computed again (kernels/train_attend.h). Products run 64 rows at a time, which OpenBLAS does with
 * its kernels for small matrices, and what one step writes is in the cache for the next. */
#include "core/numeric/numeric.h"
#include "core/training/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = PE_TRAIN_WIDTH, F = PE_TRAIN_INNER, V = PE_TRAIN_VOCABULARY, H = PE_TRAIN_HEADS, W = PE_TRAIN_HEAD };

/* What a layer keeps for the way back. */
struct kept {
    real *in, *moments_1, *normed_1; /* [R, D], [R, 2], [R, D] */
    real *qkv;                       /* [R, 3·D], q and k turned */
    real *maxima, *sums;             /* [H, R] */
    real *attended;                  /* [R, D] */
    real *between, *moments_2, *normed_2;
    real *inner, *active; /* [R, F]: before and after GELU */
};

/* Weights as [in, out]: OpenBLAS multiplies by these twice as fast. */
struct turned {
    real *w_qkv, *w_o, *w_1, *w_2;
};

struct NAME(pe_decoder) {
    struct kept layers[PE_TRAIN_LAYERS];
    struct turned turned[PE_TRAIN_LAYERS];
    real *turned_out;
    real *out, *moments, *normed; /* [R, D], [R, 2], [R, D] */
    real *probs;                  /* [R, V] */
    real *gh, *grow, *gwide;      /* gradients: [R, D], [R, D], [R, F] */
    real *bias, *gbias;           /* [H, n + slack], of learned buckets */
    real *scratch;
    real *all;
};

/* ---- Memory: one block, shared out ---- */

struct share {
    real *at;
    size_t n;
};

static real *take_reals(struct share *share, size_t n)
{
    real *taken = share->at ? share->at + share->n : NULL;
    share->n += (n + 15) / 16 * 16;
    return taken;
}

static void share_layer(struct share *share, struct kept *kept, size_t rows)
{
    kept->in = take_reals(share, rows * D);
    kept->moments_1 = take_reals(share, rows * 2);
    kept->normed_1 = take_reals(share, rows * D);
    kept->qkv = take_reals(share, rows * 3 * D);
    kept->maxima = take_reals(share, rows * H);
    kept->sums = take_reals(share, rows * H);
    kept->attended = take_reals(share, rows * D);
    kept->between = take_reals(share, rows * D);
    kept->moments_2 = take_reals(share, rows * 2);
    kept->normed_2 = take_reals(share, rows * D);
    kept->inner = take_reals(share, rows * F);
    kept->active = take_reals(share, rows * F);
}

/* Without a way back all layers use the same room. */
static void share_out(struct share *share, struct NAME(pe_decoder) * d, size_t rows, size_t len, bool for_gradients)
{
    share_layer(share, &d->layers[0], rows);
    for (size_t l = 1; l < PE_TRAIN_LAYERS; l++) {
        d->layers[l] = d->layers[0];
        if (for_gradients)
            share_layer(share, &d->layers[l], rows);
    }
    for (size_t l = 0; l < PE_TRAIN_LAYERS; l++)
        d->turned[l] = (struct turned){take_reals(share, (size_t)D * 3 * D), take_reals(share, (size_t)D * D),
                                       take_reals(share, (size_t)D * F), take_reals(share, (size_t)F * D)};
    d->turned_out = take_reals(share, (size_t)D * V);
    d->out = take_reals(share, rows * D);
    d->moments = take_reals(share, rows * 2);
    d->normed = take_reals(share, rows * D);
    d->probs = take_reals(share, rows * V);
    d->gh = take_reals(share, for_gradients ? rows * D : 0);
    d->grow = take_reals(share, for_gradients ? rows * D : 0);
    d->gwide = take_reals(share, for_gradients ? rows * F : 0);
    d->bias = take_reals(share, H * len);
    d->gbias = take_reals(share, H * len);
    d->scratch = take_reals(share, PE_TRAIN_SCRATCH(len));
}

#if defined(COUNTS_BYTES)
double pe_decoder_bytes(size_t max_rows, size_t max_len, bool for_gradients)
{
    struct NAME(pe_decoder) decoder;
    struct share share = {NULL, 0};
    share_out(&share, &decoder, max_rows, max_len, for_gradients);
    return (double)share.n * sizeof(real);
}
#endif

struct NAME(pe_decoder) * NAME(pe_decoder_new)(size_t max_rows, size_t max_len, bool for_gradients)
{
    struct NAME(pe_decoder) *decoder = calloc(1, sizeof *decoder);
    struct share share = {NULL, 0};
    if (!decoder)
        return NULL;
    share_out(&share, decoder, max_rows, max_len, for_gradients);
    decoder->all = aligned_alloc(64, (share.n * sizeof(real) + 63) / 64 * 64);
    if (!decoder->all) {
        free(decoder);
        return NULL;
    }
    share = (struct share){decoder->all, 0};
    share_out(&share, decoder, max_rows, max_len, for_gradients);
    return decoder;
}

void NAME(pe_decoder_free)(struct NAME(pe_decoder) * decoder)
{
    if (decoder)
        free(decoder->all);
    free(decoder);
}

/* ---- Linear layers: y = x·wᵀ + b ---- */

/* Rows at a time: what a step writes is still in the cache for the next, and products of this size are those for which
 * OpenBLAS lays nothing out. */
enum { BLOCK = 64 };

static size_t block_from(size_t first, size_t rows) { return rows - first < BLOCK ? rows - first : BLOCK; }

static void turn_weights(size_t n_in, size_t n_out, const real *w, real *turned)
{
    for (size_t o = 0; o < n_out; o++)
        for (size_t i = 0; i < n_in; i++)
            turned[i * n_out + o] = w[o * n_in + i];
}

static void linear(size_t rows, size_t n_in, size_t n_out, const real *x, const real *turned, const real *b, real *y)
{
    KERNEL(train_repeat)(rows, n_out, b, y);
    NAME(pe_gemm_ab)(rows, n_out, n_in, x, n_in, turned, n_out, 1, y, n_out);
}

/* Adds to gw and gb; writes gx. */
static void linear_back(size_t rows, size_t n_in, size_t n_out, const real *x, const real *w, const real *gy, real *gx,
                        real *gw, real *gb)
{
    NAME(pe_gemm_ab)(rows, n_in, n_out, gy, n_out, w, n_in, 0, gx, n_in);
    NAME(pe_gemm_atb)(n_out, n_in, rows, gy, n_out, x, n_in, 1, gw, n_in);
    KERNEL(train_add_up)(rows, n_out, gy, gb);
}

static void add_reals(size_t n, const real *x, real *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += x[i];
}

/* ---- Attention of all heads ---- */

/* One pass: what every step needs. */
struct pass {
    struct NAME(pe_decoder) * d;
    const struct pe_parameters_at *at;
    const real *values;
    const struct pe_places *places;
    const struct pe_batch *batch;
    size_t rows;
    real *gradients; /* of a backward pass */
};

static real scale(void) { return (real)(1 / sqrt((double)W)); }

/* The bias of a head at distances 0 … n-1, the last is 0. */
static const real *bias_of(const struct pass *pass, size_t head)
{
    const struct pe_places *places = pass->places;
    const real *bias = places->buckets ? pass->d->bias : places->bias;
    return bias ? bias + head * places->n + (places->n - pass->batch->n) : NULL;
}

/* The learned table, spread over the distances. */
static void spread_buckets(const struct pass *pass)
{
    const struct pe_places *places = pass->places;
    const real *table = pass->values + pass->at->extra;
    for (size_t h = 0; places->buckets && h < H; h++)
        for (size_t i = 0; i < places->n; i++)
            pass->d->bias[h * places->n + i] = table[(size_t)places->buckets[i] * H + h];
}

static void collect_buckets(const struct pass *pass)
{
    const struct pe_places *places = pass->places;
    real *gtable = pass->gradients + pass->at->extra;
    for (size_t h = 0; places->buckets && h < H; h++)
        for (size_t i = 0; i < places->n; i++)
            gtable[(size_t)places->buckets[i] * H + h] += pass->d->gbias[h * places->n + i];
}

static void turn(const struct pass *pass, const real *matrices, real *qkv)
{
    size_t n = pass->batch->n;
    for (size_t s = 0; matrices && s < pass->batch->n_seq; s++)
        KERNEL(train_turn)(n, (size_t)2 * H, matrices, qkv + s * n * 3 * D, 3 * D);
}

static void attend(const struct pass *pass, struct kept *kept)
{
    size_t n = pass->batch->n;
    turn(pass, pass->places->turns, kept->qkv);
    for (size_t s = 0; s < pass->batch->n_seq && !pe_is_cancelled(); s++)
        for (size_t h = 0; h < H; h++) {
            const real *q = kept->qkv + s * n * 3 * D + h * W;
            size_t row = h * pass->rows + s * n;
            KERNEL(train_attend)
            (n, scale(), q, q + D, q + 2 * D, 3 * D, bias_of(pass, h), kept->attended + s * n * D + h * W, D,
             kept->maxima + row, kept->sums + row, pass->d->scratch);
        }
}

/* gqkv [R, 3·D] from g, the gradient of what was attended. */
static void attend_back(const struct pass *pass, const struct kept *kept, const real *g, real *gqkv)
{
    size_t n = pass->batch->n, width = pass->places->n;
    for (size_t s = 0; s < pass->batch->n_seq && !pe_is_cancelled(); s++)
        for (size_t h = 0; h < H; h++) {
            size_t at = s * n * 3 * D + h * W, out = s * n * D + h * W, row = h * pass->rows + s * n;
            const real *q = kept->qkv + at;
            real *gbias = pass->places->buckets ? pass->d->gbias + h * width + (pass->places->n - n) : NULL;
            KERNEL(train_attend_back)
            (n, scale(), q, q + D, q + 2 * D, 3 * D, bias_of(pass, h), kept->attended + out, g + out, D,
             kept->maxima + row, kept->sums + row, gqkv + at, gqkv + at + D, gqkv + at + 2 * D, gbias,
             pass->d->scratch);
        }
    turn(pass, pass->places->turns_back, gqkv);
}

/* ---- Layers ---- */

/* Up to the projections of attention, for `rows` rows from `first` on. */
static void project(const struct pass *pass, size_t l, size_t first, size_t rows)
{
    const struct pe_layer_at *at = &pass->at->layers[l];
    const struct kept *kept = &pass->d->layers[l];
    const real *v = pass->values;
    real *normed = kept->normed_1 + first * D;
    KERNEL(train_norm)
    (rows, kept->in + first * D, v + at->norm_1, v + at->norm_1_bias, normed, kept->moments_1 + first * 2);
    linear(rows, D, 3 * D, normed, pass->d->turned[l].w_qkv, v + at->b_qkv, kept->qkv + first * 3 * D);
}

/* From what was attended to the layer's output, which may be where its input does. */
static void mix(const struct pass *pass, size_t l, size_t first, size_t rows, real *out)
{
    const struct pe_layer_at *at = &pass->at->layers[l];
    const struct kept *kept = &pass->d->layers[l];
    const struct turned *turned = &pass->d->turned[l];
    const real *v = pass->values;
    real *between = kept->between + first * D, *normed = kept->normed_2 + first * D, *inner = kept->inner + first * F;
    real *active = kept->active + first * F;
    linear(rows, D, D, kept->attended + first * D, turned->w_o, v + at->b_o, between);
    add_reals(rows * D, kept->in + first * D, between);
    KERNEL(train_norm)(rows, between, v + at->norm_2, v + at->norm_2_bias, normed, kept->moments_2 + first * 2);
    linear(rows, D, F, normed, turned->w_1, v + at->b_1, inner);
    KERNEL(train_gelu)(inner, rows * F, active);
    linear(rows, F, D, active, turned->w_2, v + at->b_2, out + first * D);
    add_reals(rows * D, between, out + first * D);
}

static void layer_forward(const struct pass *pass, size_t l, real *out)
{
    const struct pe_layer_at *at = &pass->at->layers[l];
    const struct turned *turned = &pass->d->turned[l];
    turn_weights(D, 3 * D, pass->values + at->w_qkv, turned->w_qkv);
    turn_weights(D, D, pass->values + at->w_o, turned->w_o);
    turn_weights(D, F, pass->values + at->w_1, turned->w_1);
    turn_weights(F, D, pass->values + at->w_2, turned->w_2);
    for (size_t first = 0; first < pass->rows; first += BLOCK)
        project(pass, l, first, block_from(first, pass->rows));
    attend(pass, &pass->d->layers[l]);
    for (size_t first = 0; first < pass->rows; first += BLOCK)
        mix(pass, l, first, block_from(first, pass->rows), out);
}

/* d->gh: the gradient of the layer's output becomes that of what goes around the second half; d->grow: that of what was
 * attended. */
static void mix_back(const struct pass *pass, size_t l, size_t first, size_t rows)
{
    const struct pe_layer_at *at = &pass->at->layers[l];
    const struct kept *kept = &pass->d->layers[l];
    const real *v = pass->values;
    real *g = pass->gradients, *gh = pass->d->gh + first * D, *grow = pass->d->grow + first * D;
    real *gwide = pass->d->gwide + first * F;
    linear_back(rows, F, D, kept->active + first * F, v + at->w_2, gh, gwide, g + at->w_2, g + at->b_2);
    KERNEL(train_gelu_back)(kept->inner + first * F, rows * F, gwide);
    linear_back(rows, D, F, kept->normed_2 + first * D, v + at->w_1, gwide, grow, g + at->w_1, g + at->b_1);
    KERNEL(train_norm_back)
    (rows, kept->between + first * D, kept->moments_2 + first * 2, v + at->norm_2, grow, gh, g + at->norm_2,
     g + at->norm_2_bias);
    linear_back(rows, D, D, kept->attended + first * D, v + at->w_o, gh, grow, g + at->w_o, g + at->b_o);
}

/* gqkv: the gradients of the projections; d->gh becomes that of the layer's input. */
static void project_back(const struct pass *pass, size_t l, const real *gqkv, size_t first, size_t rows)
{
    const struct pe_layer_at *at = &pass->at->layers[l];
    const struct kept *kept = &pass->d->layers[l];
    const real *v = pass->values;
    real *g = pass->gradients, *grow = pass->d->grow + first * D;
    linear_back(rows, D, 3 * D, kept->normed_1 + first * D, v + at->w_qkv, gqkv + first * 3 * D, grow, g + at->w_qkv,
                g + at->b_qkv);
    KERNEL(train_norm_back)
    (rows, kept->in + first * D, kept->moments_1 + first * 2, v + at->norm_1, grow, pass->d->gh + first * D,
     g + at->norm_1, g + at->norm_1_bias);
}

/* d->gh is the gradient of the layer's output, and becomes that of its input. */
static void layer_backward(const struct pass *pass, size_t l)
{
    real *gqkv = pass->d->gwide;
    for (size_t first = 0; first < pass->rows; first += BLOCK)
        mix_back(pass, l, first, block_from(first, pass->rows));
    attend_back(pass, &pass->d->layers[l], pass->d->grow, gqkv);
    for (size_t first = 0; first < pass->rows; first += BLOCK)
        project_back(pass, l, gqkv, first, block_from(first, pass->rows));
}

/* ---- Embeddings ---- */

static const real *added_at(const struct pass *pass, size_t i)
{
    if (pass->places->learned == PE_LEARNS_POSITIONS)
        return pass->values + pass->at->extra + i * D;
    return pass->places->added ? (const real *)pass->places->added + i * D : NULL;
}

static void embed(const struct pass *pass, real *h)
{
    const struct pe_batch *batch = pass->batch;
    for (size_t r = 0; r < pass->rows; r++) {
        size_t s = r / batch->n, i = r % batch->n;
        const real *added = added_at(pass, i);
        memcpy(h + r * D, pass->values + pass->at->tok + (size_t)D * batch->tokens[s * (batch->n + 1) + i],
               D * sizeof *h);
        if (added)
            add_reals(D, added, h + r * D);
    }
}

static void embed_back(const struct pass *pass, const real *gh)
{
    const struct pe_batch *batch = pass->batch;
    for (size_t r = 0; r < pass->rows; r++) {
        size_t s = r / batch->n, i = r % batch->n;
        add_reals(D, gh + r * D, pass->gradients + pass->at->tok + (size_t)D * batch->tokens[s * (batch->n + 1) + i]);
        if (pass->places->learned == PE_LEARNS_POSITIONS)
            add_reals(D, gh + r * D, pass->gradients + pass->at->extra + i * D);
    }
}

/* ---- The loss ---- */

static size_t next_token(const struct pass *pass, size_t r)
{
    const struct pe_batch *batch = pass->batch;
    return batch->tokens[r / batch->n * (batch->n + 1) + r % batch->n + 1];
}

/* probs: logits in, probabilities out. */
static void softmax_rows(const struct pass *pass, real *losses)
{
    for (size_t r = 0; r < pass->rows; r++) {
        real *p = pass->d->probs + r * V, max = p[0];
        size_t next = next_token(pass, r);
        double sum = 0;
        for (size_t c = 1; c < V; c++)
            max = p[c] > max ? p[c] : max;
        double logit = (double)(p[next] - max);
        for (size_t c = 0; c < V; c++)
            p[c] -= max;
        sum = KERNEL(exp)(p, V, 0, NULL);
        for (size_t c = 0; c < V; c++)
            p[c] = (real)((double)p[c] / sum);
        losses[r] = (real)(log(sum) - logit);
    }
}

/* probs become the gradients of the logits. */
static void softmax_rows_back(const struct pass *pass)
{
    real mean = 1 / (real)pass->rows;
    for (size_t r = 0; r < pass->rows; r++)
        for (size_t c = 0; c < V; c++) {
            real *p = pass->d->probs + r * V + c;
            *p = (*p - (c == next_token(pass, r) ? 1 : 0)) * mean;
        }
}

/* ---- The whole ---- */

void NAME(pe_decoder_forward)(struct NAME(pe_decoder) * d, const struct pe_parameters_at *at, const real *values,
                              const struct pe_places *places, const struct pe_batch *batch, real *losses)
{
    struct pass pass = {d, at, values, places, batch, batch->n_seq * batch->n, NULL};
    spread_buckets(&pass);
    embed(&pass, d->layers[0].in);
    for (size_t l = 0; l < PE_TRAIN_LAYERS; l++)
        layer_forward(&pass, l, l + 1 < PE_TRAIN_LAYERS ? d->layers[l + 1].in : d->out);
    KERNEL(train_norm)(pass.rows, d->out, values + at->norm, values + at->norm_bias, d->normed, d->moments);
    turn_weights(D, V, values + at->w_out, d->turned_out);
    linear(pass.rows, D, V, d->normed, d->turned_out, values + at->b_out, d->probs);
    softmax_rows(&pass, losses);
}

void NAME(pe_decoder_backward)(struct NAME(pe_decoder) * d, const struct pe_parameters_at *at, const real *values,
                               const struct pe_places *places, const struct pe_batch *batch, real *gradients)
{
    struct pass pass = {d, at, values, places, batch, batch->n_seq * batch->n, gradients};
    memset(gradients, 0, at->n * sizeof *gradients);
    memset(d->gbias, 0, H * places->n * sizeof *d->gbias);
    memset(d->gh, 0, pass.rows * D * sizeof *d->gh);
    softmax_rows_back(&pass);
    linear_back(pass.rows, D, V, d->normed, values + at->w_out, d->probs, d->grow, gradients + at->w_out,
                gradients + at->b_out);
    KERNEL(train_norm_back)
    (pass.rows, d->out, d->moments, values + at->norm, d->grow, d->gh, gradients + at->norm, gradients + at->norm_bias);
    for (size_t l = PE_TRAIN_LAYERS; l-- > 0;)
        layer_backward(&pass, l);
    embed_back(&pass, d->gh);
    collect_buckets(&pass);
}
