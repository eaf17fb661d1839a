/* Attention of a small decoder's heads of PE_TRAIN_HEAD channels, and its gradient. A template, included after
 * attend_rows.h and train_rows.h for floats and for doubles.
 *
 * Attention is causal, so a row has i + 1 keys: a general product would compute the other half too, and with 8
 * channels it would spend its time on laying out matrices. Forward, the lanes of a register are WIDTH queries, whose
 * keys come one after the other; backward they are WIDTH keys, whose queries do. So no sum goes across lanes but that
 * of the queries' gradients. Scores are not kept: the gradient computes them again from the maxima and sums of rows, as
 * FlashAttention does (Dao et al. 2022, arXiv 2205.14135), so memory grows with the length and not with its square.
 *
 * Loops go over whole blocks and have no case for the diagonal. A head is padded with zeros to a multiple of BLOCK, and
 * the bias of a key ahead is -infinity, read from a margin beside the biases: its weight is an exact 0. So a
 * key that is hidden, or padding, adds nothing, and the sums are those of the i + 1 keys alone. */

/* A head's n positions are padded to blocks; biases have a margin on both sides for what lies ahead or is padding. */
enum { BLOCK = (int)WIDTH > (int)SIDE ? (int)WIDTH : (int)SIDE, MARGIN = 24 };
_Static_assert((int)MARGIN >= (int)WIDTH + (int)SIDE, "a block fits the margin");

/* *sum += w·x. */
static inline void octave_plus(real w, const octave *x, octave *sum)
{
#ifdef HAS_TILES
    *sum = (octave)_mm256_fmadd_ps(_mm256_set1_ps(w), (octet)*x, (octet)*sum);
#else
    *sum += w * *x;
#endif
}

/* One head: its operands laid out for the loops, zeros up to n_padded. */
struct head {
    size_t n, n_padded;
    const real *q, *k, *v, *go; /* [n_padded, 8]; the queries scaled */
    const real *biases;         /* [MARGIN + n + MARGIN], from MARGIN on as each direction wants them */
    real *scratch;              /* what is not yet taken */
};

static real *take_scratch(struct head *head, size_t n)
{
    real *taken = head->scratch;
    head->scratch += n;
    return taken;
}

static real *take_rows(struct head *head) { return take_scratch(head, PE_TRAIN_HEAD * head->n_padded); }

static const real *lay_out(struct head *head, const real *rows, size_t stride, real scale)
{
    real *to = take_rows(head);
    for (size_t i = 0; i < head->n; i++)
        octave_at(to)[i] = *octave_at(rows + i * stride) * scale;
    memset(to + head->n * PE_TRAIN_HEAD, 0, (head->n_padded - head->n) * PE_TRAIN_HEAD * sizeof *to);
    return to;
}

static struct head head_of(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                           real *scratch)
{
    struct head head = {.n = n, .n_padded = (n + BLOCK - 1) / BLOCK * BLOCK, .scratch = scratch};
    head.q = lay_out(&head, q, stride, scale);
    head.k = lay_out(&head, k, stride, 1);
    head.v = lay_out(&head, v, stride, 1);
    return head;
}

/* Channel c of the rows i, i + 1 … */
static inline void columns_at(const real *rows, size_t i, vr columns[PE_TRAIN_HEAD])
{
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++) {
        real column[WIDTH];
        for (size_t l = 0; l < WIDTH; l++)
            column[l] = rows[(i + l) * PE_TRAIN_HEAD + c];
        columns[c] = load_wide(column);
    }
}

/* The other way, for the first n rows. */
static inline void rows_at(const vr columns[PE_TRAIN_HEAD], size_t n, real *rows, size_t stride)
{
    for (size_t l = 0; l < n; l++)
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
            rows[l * stride + c] = columns[c][l];
}

/* sums[k] += columns · row k, for SIDE rows. */
static inline void add_products(const vr columns[PE_TRAIN_HEAD], const real *rows, vr sums[SIDE])
{
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
        EACH sums[k] = plus(everywhere(rows[k * PE_TRAIN_HEAD + c]), columns[c], sums[k]);
}

/* columns += sum of weights[k] · row k. */
static inline void add_weighted(const vr weights[SIDE], const real *rows, vr columns[PE_TRAIN_HEAD])
{
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
        EACH columns[c] = plus(everywhere(rows[k * PE_TRAIN_HEAD + c]), weights[k], columns[c]);
}

/* ---- Forward: the lanes are queries ---- */

/* biases[MARGIN + d] of distance d; what lies ahead is hidden. */
static void biases_by_distance(struct head *head, const real *bias)
{
    real *to = take_scratch(head, MARGIN + head->n + MARGIN);
    for (size_t d = 0; d < MARGIN; d++) {
        to[d] = -(real)INFINITY;
        to[MARGIN + head->n + d] = 0;
    }
    for (size_t d = 0; d < head->n; d++)
        to[MARGIN + d] = bias ? bias[head->n - 1 - d] : 0;
    head->biases = to;
}

/* scores [end, WIDTH] of the queries i, i + 1 … with the keys up to end, a multiple of SIDE; returns their maxima. */
static inline vr scores_of(const struct head *head, size_t i, size_t end, real *scores)
{
    vr queries[PE_TRAIN_HEAD], most[SIDE];
    columns_at(head->q, i, queries);
    EACH most[k] = everywhere(-(real)INFINITY);
    for (size_t j = 0; j < end; j += SIDE) {
        vr s[SIDE];
        EACH s[k] = load_wide(head->biases + MARGIN + i - j - k);
        add_products(queries, head->k + j * PE_TRAIN_HEAD, s);
        EACH most[k] = at_least(most[k], s[k]);
        store_group(scores + j * WIDTH, s);
    }
    return at_least(at_least(most[0], most[1]), at_least(most[2], most[3]));
}

/* out: the queries i, i + 1 … with the keys up to end; *most and *sums: their rows' maxima and sums. */
static inline void queries_forward(const struct head *head, size_t i, size_t end, vr out[PE_TRAIN_HEAD], vr *most,
                                   vr *sums)
{
    real *scores = head->scratch;
    vr sum[SIDE];
    *most = scores_of(head, i, end, scores);
    EACH sum[k] = everywhere(0);
    for (size_t j = 0; j < end; j += SIDE) {
        vr s[SIDE], p[SIDE];
        load_group(s, scores + j * WIDTH);
        EACH s[k] -= *most;
        exponential(s, p);
        EACH sum[k] += p[k];
        add_weighted(p, head->v + j * PE_TRAIN_HEAD, out);
    }
    *sums = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (size_t c = 0; c < PE_TRAIN_HEAD; c++)
        out[c] /= *sums;
}

void KERNEL(train_attend)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                          const real *bias, real *o, size_t o_stride, real *maxima, real *sums, real *scratch)
{
    struct head head = head_of(n, scale, q, k, v, stride, scratch);
    biases_by_distance(&head, bias);
    for (size_t i = 0; i < n; i += WIDTH) {
        size_t n_here = n - i < WIDTH ? n - i : WIDTH;
        vr out[PE_TRAIN_HEAD] = {0}, most, sum;
        queries_forward(&head, i, (i + n_here + SIDE - 1) / SIDE * SIDE, out, &most, &sum);
        rows_at(out, n_here, o + i * o_stride, o_stride);
        memcpy(maxima + i, &most, n_here * sizeof *maxima);
        memcpy(sums + i, &sum, n_here * sizeof *sums);
    }
}

/* ---- Backward: the lanes are keys ---- */

/* biases[MARGIN + n-1 - (i-j)]; what lies ahead is hidden. */
static void biases_by_key(struct head *head, const real *bias)
{
    real *to = take_scratch(head, MARGIN + head->n + MARGIN);
    for (size_t d = 0; d < MARGIN; d++) {
        to[d] = 0;
        to[MARGIN + head->n + d] = -(real)INFINITY;
    }
    for (size_t d = 0; d < head->n; d++)
        to[MARGIN + d] = bias ? bias[d] : 0;
    head->biases = to;
}

/* Of each query: a probability is e^(score - maxima)·inverses, its gradient is e times (that of its weight - along). */
struct queries {
    real *maxima, *inverses, *along; /* [n_padded]; zeros behind, so that these have no weight */
};

static struct queries queries_of(struct head *head, const real *o, const real *go, size_t o_stride, const real *maxima,
                                 const real *sums)
{
    size_t n = head->n, bytes = head->n_padded * sizeof(real);
    struct queries of = {take_scratch(head, head->n_padded), take_scratch(head, head->n_padded),
                         take_scratch(head, head->n_padded)};
    memset(of.maxima, 0, bytes);
    memset(of.inverses, 0, bytes);
    memset(of.along, 0, bytes);
    for (size_t i = 0; i < n; i++) {
        octave product = *octave_at(o + i * o_stride) * *octave_at(go + i * o_stride);
        of.maxima[i] = maxima[i];
        of.inverses[i] = 1 / sums[i];
        of.along[i] = sum_of_octave(&product);
    }
    return of;
}

/* A block of keys, j, j + 1 …, with the queries that see one of them, from first on. */
struct key_block {
    size_t j, first;
    real *p, *g; /* [n_padded, WIDTH]: probabilities, and the gradients of scores */
};

static inline void score_gradients(const struct head *head, const struct queries *of, const struct key_block *block)
{
    vr keys[PE_TRAIN_HEAD], values[PE_TRAIN_HEAD];
    columns_at(head->k, block->j, keys);
    columns_at(head->v, block->j, values);
    for (size_t i = block->first; i < head->n; i += SIDE) {
        const real *biases = head->biases + MARGIN + head->n - 1 + block->j - i;
        vr s[SIDE], p[SIDE], g[SIDE];
        EACH s[k] = load_wide(biases - k);
        EACH g[k] = everywhere(-of->along[i + k]);
        add_products(keys, head->q + i * PE_TRAIN_HEAD, s);
        add_products(values, head->go + i * PE_TRAIN_HEAD, g);
        EACH s[k] -= of->maxima[i + k];
        exponential(s, p);
        EACH p[k] *= of->inverses[i + k];
        EACH g[k] *= p[k];
        store_group(block->p + i * WIDTH, p);
        store_group(block->g + i * WIDTH, g);
    }
}

/* The gradients of the block's keys and values. */
static inline void key_gradients(const struct head *head, const struct key_block *block, vr gk[PE_TRAIN_HEAD],
                                 vr gv[PE_TRAIN_HEAD])
{
    for (size_t i = block->first; i < head->n; i++) {
        const real *q = head->q + i * PE_TRAIN_HEAD, *go = head->go + i * PE_TRAIN_HEAD;
        vr p = load_wide(block->p + i * WIDTH), g = load_wide(block->g + i * WIDTH);
        for (size_t c = 0; c < PE_TRAIN_HEAD; c++) {
            gv[c] = plus(everywhere(go[c]), p, gv[c]);
            gk[c] = plus(everywhere(q[c]), g, gk[c]);
        }
    }
}

/* gq += what the block's keys give to their queries. */
static inline void query_gradients(const struct head *head, const struct key_block *block, real *gq)
{
    octave keys[WIDTH];
    for (size_t l = 0; l < WIDTH; l++)
        keys[l] = octave_at(head->k + block->j * PE_TRAIN_HEAD)[l];
    for (size_t i = block->first; i < head->n; i++) {
        octave even = octave_at(gq)[i], odd = {0};
        for (size_t l = 0; l < WIDTH; l += 2) {
            octave_plus(block->g[i * WIDTH + l], keys + l, &even);
            octave_plus(block->g[i * WIDTH + l + 1], keys + l + 1, &odd);
        }
        octave_at(gq)[i] = even + odd;
    }
}

static inline void bias_gradients(const struct head *head, const struct key_block *block, real *gbiases)
{
    for (size_t i = block->first; i < head->n; i++) {
        real *at = gbiases + MARGIN + head->n - 1 + block->j - i;
        store_wide(at, load_wide(at) + load_wide(block->g + i * WIDTH));
    }
}

void KERNEL(train_attend_back)(size_t n, real scale, const real *q, const real *k, const real *v, size_t stride,
                               const real *bias, const real *o, const real *go, size_t o_stride, const real *maxima,
                               const real *sums, real *gq, real *gk, real *gv, real *gbias, real *scratch)
{
    struct head head = head_of(n, scale, q, k, v, stride, scratch);
    head.go = lay_out(&head, go, o_stride, 1);
    biases_by_key(&head, bias);
    struct queries of = queries_of(&head, o, go, o_stride, maxima, sums);
    real *gqueries = take_rows(&head), *gbiases = gbias ? take_scratch(&head, MARGIN + n + MARGIN) : NULL;
    memset(gqueries, 0, PE_TRAIN_HEAD * head.n_padded * sizeof *gqueries);
    if (gbias)
        memset(gbiases, 0, (MARGIN + n + MARGIN) * sizeof *gbiases);
    for (size_t j = 0; j < n; j += WIDTH) {
        size_t n_here = n - j < WIDTH ? n - j : WIDTH;
        struct key_block block = {j, j / SIDE * SIDE, head.scratch, head.scratch + head.n_padded * WIDTH};
        vr gkeys[PE_TRAIN_HEAD] = {0}, gvalues[PE_TRAIN_HEAD] = {0};
        score_gradients(&head, &of, &block);
        key_gradients(&head, &block, gkeys, gvalues);
        query_gradients(&head, &block, gqueries);
        if (gbias)
            bias_gradients(&head, &block, gbiases);
        rows_at(gkeys, n_here, gk + j * stride, stride);
        rows_at(gvalues, n_here, gv + j * stride, stride);
    }
    for (size_t i = 0; i < n; i++)
        *octave_at(gq + i * stride) = octave_at(gqueries)[i] * scale;
    for (size_t d = 0; gbias && d < n; d++)
        gbias[d] += gbiases[MARGIN + d];
}
