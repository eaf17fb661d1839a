/* Computes queries, keys and values from embeddings: y = x·Wᵀ + b, in double and rounded once. Embeddings are sent, or
 * random for the words of the textbook experiment; equal words have equal embeddings, whatever the sentence, because a
 * channel depends on seed, word and channel alone (core/request/weights.c).
 *
 * For the output `terms` the two summands of an embedding, content and position, are projected apart: (x + p)·W = x·W +
 * p·W, and the four products of their parts are the four terms of a score as Transformer-XL writes them (Dai et al.
 * 2019, arXiv 1901.02860, §3.3).
 *
 * Words are few, so their products run in a fixed order in plain loops: the same numbers on every machine, which the
 * examples of the guides show. Large inputs go to BLAS, whose order of summation depends on the size and the machine.
 */
#include "core/attention/attention.h"
#include "core/encode/encode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

static size_t same_word_before(const struct pe_value *words, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(words->list.items[j].string, words->list.items[i].string) == 0)
            return j;
    return i;
}

static enum pe_status embed_words(struct pe_plan *plan, size_t dim, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_value *words = plan->sequence.tokens;
    size_t n = words->list.n;
    if (n > PE_TOKENS_MAX)
        return pe_fail(err, "/tokens", "tokens has %zu words; allowed: at most %d", n, PE_TOKENS_MAX);
    if (pe_plan_admit(plan, (double)n * (double)dim * sizeof(float), err))
        return err->status;
    float *table = t->embeddings = calloc(n * dim, sizeof *table);
    if (!table)
        return pe_no_memory(err);
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++) {
        size_t j = same_word_before(words, i);
        if (j < i)
            memcpy(table + i * dim, table + j * dim, dim * sizeof *table);
        else {
            /* N(0, 1): channel c of a word depends on seed, word and c only, so a word is the same in every sentence.
             */
            uint64_t hash = pe_seed_hash(t->fields.seed, "embedding");
            for (const char *p = words->list.items[i].string; *p; p++)
                hash = (hash ^ (unsigned char)*p) * 0x100000001b3; /* continues FNV-1a */
            for (size_t c = 0; c < dim; c++)
                (table + i * dim)[c] = (float)pe_seed_normal(hash, c);
        }
    }
    t->x = (struct pe_tensor){.dtype = PE_F32, .rank = 2, .shape = {n, dim}, .data = table};
    return PE_OK;
}

/* ---- Rows of embeddings ---- */

enum { TILE_ROWS = 64 };

/* Loads rows from row0 on as doubles, with the encoding added. */
static void load(const struct pe_plan *plan, size_t row0, size_t n, double *out)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    if (plan->scheme->info.is_additive) {
        struct pe_block b = {.row0 = row0, .n_rows = n, .n_cols = e->dim};
        pe_absolute_combine(plan, e->encoding, &e->combined, &b, out);
        return;
    }
    const struct pe_tensor *x = &t->x;
    pe_convert(PE_F64, out, x->dtype, (const char *)x->data + row0 * e->dim * pe_dtype_size(x->dtype), n * e->dim);
    for (size_t i = 0; t->x_is_text && i < n * e->dim; i++)
        out[i] = (double)(float)out[i];
}

/* Loads one part of such rows: x by itself, times x_scale, or what the encoding adds to it. room: as large as out. */
static void load_part(const struct pe_plan *plan, enum pe_embedding_part part, size_t row0, size_t n, double *out,
                      double *room)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_tensor *x = &t->x;
    size_t count = n * t->embedded.dim;
    double *content = part == PE_CONTENT ? out : room;
    pe_convert(PE_F64, content, x->dtype, (const char *)x->data + row0 * t->embedded.dim * pe_dtype_size(x->dtype),
               count);
    for (size_t i = 0; i < count; i++)
        content[i] = (t->x_is_text ? (double)(float)content[i] : content[i]) * plan->absolute->x_scale;
    if (part == PE_CONTENT)
        return;
    load(plan, row0, n, out);
    for (size_t i = 0; i < count; i++)
        out[i] -= content[i];
}

/* Adds the scheme's encoding as a source after the outputs. Its width, and that of the projections, is known only
 * now. */
static enum pe_status add_encoding(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    struct pe_embeddings *e = &t->embedded;
    enum pe_status status = pe_outputs_add_encoding(plan, &e->encoding, err);
    if (!status && t->has_tokens)
        status = embed_words(plan, plan->outputs[e->encoding].row_len, err);
    if (!status && t->has_tokens)
        pe_absolute_give_x(plan, &t->x);
    if (!status)
        status = pe_absolute_shape(plan, &e->combined, &plan->outputs[e->encoding], err);
    if (status)
        return status;
    e->combined.dtype = PE_F64;
    e->dim = e->combined.row_len;
    t->fields.dim = (int64_t)e->dim;
    return pe_attention_need_projections(plan, e->dim, err);
}

enum pe_status pe_attention_open_x(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    enum pe_status status = PE_OK;
    t->embedded.dim = (size_t)t->fields.dim;
    if (plan->scheme->info.is_additive)
        status = add_encoding(plan, err);
    else if (t->has_tokens)
        status = embed_words(plan, t->embedded.dim, err);
    uint64_t n_rows = 0;
    pe_shape_count(t->x.shape, t->x.rank ? t->x.rank - 1 : 0, &n_rows);
    t->embedded.n_rows = n_rows;
    return status;
}

/* ---- Projections ---- */

/* Reads a whole projection as doubles; NULL if there is none or no memory. Random numbers take 30 ns each. */
static double *read_weights(const struct pe_weights *w)
{
    enum { PIECE = 1 << 16 };
    uint64_t n;
    if (!w->tensor.rank || !pe_shape_count(w->tensor.shape, w->tensor.rank, &n))
        return NULL;
    double *out = malloc(n * sizeof *out);
    for (uint64_t i = 0; out && i < n && !pe_is_cancelled(); i += PIECE)
        pe_weights_read(w, i, n - i < PIECE ? n - i : PIECE, out + i);
    return out;
}

struct projection {
    double *w, *b; /* [n_out, dim], [n_out] or NULL */
    size_t n_out;
    const char *name;
    struct pe_operand *to; /* [rows, n_out] */
};

static bool open_projection(struct pe_attention *t, enum pe_projection i, struct pe_operand *to, struct projection *p)
{
    static const char *const names[] = {[PE_W_Q] = "q", [PE_W_K] = "k", [PE_W_V] = "v"};
    const struct pe_tensor *w = &t->brought.projections[i].tensor;
    *p = (struct projection){.name = names[i], .to = to};
    if (!w->rank)
        return true;
    p->n_out = w->shape[0];
    p->w = read_weights(&t->brought.projections[i]);
    p->b = read_weights(&t->brought.projections[PE_B_Q + i]);
    return p->w && (p->b || !t->brought.projections[PE_B_Q + i].tensor.rank);
}

/* Allocates the result, [batch, n, heads, head_dim]. */
static bool make_room(const struct pe_attention *t, struct projection *p, enum pe_dtype dtype)
{
    struct pe_operand *op = p->to;
    pe_operand_drop(op);
    *op = (struct pe_operand){.name = p->name};
    if (!p->n_out)
        return true;
    op->owned = malloc(t->embedded.n_rows * p->n_out * pe_dtype_size(dtype));
    size_t head_dim = (size_t)t->fields.head_dim, n = t->x.shape[t->x.rank - 2];
    op->tensor = (struct pe_tensor){.dtype = dtype, .data = op->owned};
    op->n = n;
    op->n_batches = t->embedded.n_rows / n;
    op->n_heads = p->n_out / head_dim;
    op->width = op->head_step = head_dim;
    op->row_step = p->n_out;
    op->batch_step = n * p->n_out;
    return op->owned;
}

/* y [n, n_out] = x·Wᵀ + bias, rows row0 …, converted to the result's dtype in place. */
static void project(const struct pe_arithmetic *a, const struct projection *p, const double *bias, const double *x,
                    size_t dim, size_t row0, size_t n, double *y)
{
    if (!p->n_out)
        return;
    a->abt(n, p->n_out, dim, 1, x, dim, p->w, dim, 0, y, p->n_out);
    for (size_t i = 0; bias && i < n; i++)
        for (size_t c = 0; c < p->n_out; c++)
            y[i * p->n_out + c] += bias[c];
    enum pe_dtype dtype = p->to->tensor.dtype;
    pe_convert(dtype, (char *)p->to->owned + row0 * p->n_out * pe_dtype_size(dtype), PE_F64, y, n * p->n_out);
}

/* Rows of one tile. A projection may be wide, so there may be fewer than 64. */
static size_t tile_rows(const struct pe_embeddings *e) { return e->n_rows < TILE_ROWS ? e->n_rows : TILE_ROWS; }

/* The embeddings as they are, beside their parts. */
enum { WHOLE = PE_N_EMBEDDING_PARTS };

/* Projects the embeddings, or a part of them, as queries, keys and, of n = 3, values. Biases belong to the content. */
static bool project_all(const struct pe_plan *plan, int part, struct pe_operand *const *to, size_t n_to,
                        enum pe_dtype dtype)
{
    struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    struct projection p[3] = {{0}};
    size_t widest = 0, tile = tile_rows(e) * e->dim, n_tiles = part == WHOLE ? 1 : 2;
    bool fine = true;
    for (size_t i = 0; i < n_to; i++) {
        fine = fine && open_projection(t, (enum pe_projection)(PE_W_Q + i), to[i], &p[i]) && make_room(t, &p[i], dtype);
        widest = p[i].n_out > widest ? p[i].n_out : widest;
    }
    double *x = fine ? malloc((n_tiles * tile + tile_rows(e) * widest) * sizeof *x) : NULL;
    for (size_t row = 0; x && row < e->n_rows && !pe_is_cancelled(); row += TILE_ROWS) {
        size_t n = e->n_rows - row < TILE_ROWS ? e->n_rows - row : TILE_ROWS;
        if (part == WHOLE)
            load(plan, row, n, x);
        else
            load_part(plan, (enum pe_embedding_part)part, row, n, x, x + tile);
        for (size_t i = 0; i < n_to && !pe_is_cancelled(); i++)
            project(t->products, &p[i], part == PE_POSITION ? NULL : p[i].b, x, e->dim, row, n, x + n_tiles * tile);
    }
    for (size_t i = 0; i < n_to; i++) {
        free(p[i].w);
        free(p[i].b);
    }
    free(x);
    return x;
}

/* Limits the work of the projections, which are computed while planning, a tile of rows at a time: once of the
 * embeddings, and for terms once of each part. */
static enum pe_status check_work(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    bool has_parts = t->wants_terms && plan->scheme->info.is_additive;
    double rows = 0;
    for (size_t i = PE_W_Q; i <= PE_W_V; i++) {
        double times = has_parts && i != PE_W_V ? 1 + PE_N_EMBEDDING_PARTS : 1;
        rows += t->brought.projections[i].tensor.rank ? times * (double)t->brought.projections[i].tensor.shape[0] : 0;
    }
    double work = (double)t->embedded.n_rows * (double)t->embedded.dim * rows;
    if (work <= PE_PROJECTION_WORK_MAX)
        return PE_OK;
    pe_fail(err, "/x", "projecting x takes %.3g multiplications; allowed: %.3g; send q, k and v instead", work,
            PE_PROJECTION_WORK_MAX);
    return err->status = PE_TOO_LARGE;
}

static double elements(const struct pe_weights *w)
{
    uint64_t n = 0;
    if (w->tensor.rank)
        pe_shape_count(w->tensor.shape, w->tensor.rank, &n);
    return (double)n;
}

/* Bytes of weights, queries, keys and values. Computing them again in double takes no more memory. */
static enum pe_status admit(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    double numbers = 0, widest = 0;
    for (size_t i = PE_W_Q; i <= PE_W_V; i++) {
        double weights = elements(&t->brought.projections[i]), width = weights / (double)e->dim;
        numbers += weights + elements(&t->brought.projections[PE_B_Q + i]) + (double)e->n_rows * width;
        widest = fmax(widest, width);
    }
    numbers += (double)tile_rows(e) * ((double)e->dim + widest);
    return pe_plan_admit(plan, t->q.owned ? 0 : numbers * sizeof(double), err);
}

enum pe_status pe_attention_embed(struct pe_plan *plan, enum pe_dtype dtype, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    if (check_work(plan, err) || admit(plan, err))
        return err->status;
    return project_all(plan, WHOLE, (struct pe_operand *const[]){&t->q, &t->k, &t->v}, 3, dtype) ? PE_OK
                                                                                                 : pe_no_memory(err);
}

/* The same as admit() for the queries and keys of one part after the other. */
static enum pe_status admit_parts(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    double numbers = 0;
    for (size_t i = PE_W_Q; i <= PE_W_K; i++) {
        double weights = elements(&t->brought.projections[i]), width = weights / (double)e->dim;
        numbers += weights + elements(&t->brought.projections[PE_B_Q + i]);
        numbers += PE_N_EMBEDDING_PARTS * (double)e->n_rows * width;
        numbers += (double)tile_rows(e) * (2 * (double)e->dim + width);
    }
    return pe_plan_admit(plan, numbers * sizeof(double), err);
}

enum pe_status pe_attention_embed_parts(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    bool fine = true;
    if (admit_parts(plan, err))
        return err->status;
    for (int part = 0; fine && part < PE_N_EMBEDDING_PARTS; part++)
        fine = project_all(plan, part, (struct pe_operand *const[]){&t->parts[part][0], &t->parts[part][1]}, 2,
                           t->a->dtype);
    return fine ? PE_OK : pe_no_memory(err);
}

/* ---- What they will take ---- */

/* Columns of a projection: as sent, else those that are derived from another's. */
static double width_of(const struct pe_attention *t, enum pe_projection i, double derived)
{
    const struct pe_tensor *w = &t->brought.projections[i].tensor;
    return w->data && w->rank == 2 ? (double)w->shape[0] : derived;
}

struct pe_embedding_sizes pe_attention_sizes_most(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    struct pe_embedding_sizes sizes = {.n = (double)t->q_len * (double)t->n_batches};
    bool is_additive = plan->scheme->info.is_additive;
    double encoding = is_additive ? pe_encoding_width_most(plan) : 0;
    sizes.dim = t->x.rank ? (double)t->x.shape[t->x.rank - 1] : is_additive ? encoding : (double)t->fields.dim;
    if (is_additive && plan->absolute->fields.combine == PE_CONCAT)
        sizes.dim += encoding;
    bool has_width = pe_plan_gave(plan, "head_dim") && t->fields.head_dim > 0;
    double heads = has_width ? (double)t->fields.num_heads * (double)t->fields.head_dim : sizes.dim;
    sizes.widths[0] = width_of(t, PE_W_Q, heads);
    sizes.widths[1] = width_of(t, PE_W_K, sizes.widths[0]);
    sizes.widths[2] = width_of(t, PE_W_V, t->wants_output ? sizes.widths[1] : 0);
    return sizes;
}

static bool has_parts(const struct pe_plan *plan)
{
    for (size_t i = 0; i < plan->request->n_outputs; i++)
        if (strcmp(plan->request->outputs[i], "terms") == 0)
            return plan->scheme->info.is_additive;
    return false;
}

/* Each word is compared with those before it. */
static double ns_of_words(double n, double dim)
{
    enum { NS_OF_COMPARING = 5 };
    return n * (dim * PE_NS_SEEDED + n * NS_OF_COMPARING);
}

/* Of the encoding that is added to n rows: one for each multiply-add, as on a slow machine. */
static double ns_of_encoding(const struct pe_plan *plan, double n, double dim)
{
    if (!plan->scheme->info.is_additive)
        return 0;
    if (plan->scheme->is_slow)
        return (double)INFINITY;
    return pe_encoding_ns(plan) + n * dim * (plan->arith != PE_ARITH_EXACT ? PE_SLOW_WORK : 16);
}

/* Embeddings are projected once, and once more in double if float32 could overflow; terms project each part again. */
double pe_attention_embed_ns(const struct pe_plan *plan, const struct pe_embedding_sizes *sizes)
{
    const struct pe_attention *t = plan->attention;
    double n = sizes->n, dim = sizes->dim, product = t->has_tokens ? 4 * PE_NS_PRODUCT : PE_NS_PRODUCT, once = 0;
    double times = (plan->dtype == PE_F64 || t->has_tokens ? 1 : 2) + (has_parts(plan) ? PE_N_EMBEDDING_PARTS : 0);
    for (size_t i = PE_W_Q; i <= PE_W_V; i++) {
        double each = t->brought.projections[i].tensor.data ? PE_NS_SENT : PE_NS_SEEDED;
        once += sizes->widths[i] * ((dim + 1) * each + n * (dim * product + 2 * PE_NS_SENT));
    }
    once += n * dim * 2 * PE_NS_SENT + ns_of_encoding(plan, n, dim);
    return times * once + (t->has_tokens ? ns_of_words(n, dim) : 0);
}
