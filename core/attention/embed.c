/* Computes queries, keys and values from embeddings: y = x·Wᵀ + b, in double and rounded once. Embeddings are sent,
 * or random for the words of the textbook experiment; equal words have equal embeddings. */
#include "core/attention/internal.h"
#include "core/encode/combine.h"
#include "core/encode/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

/* N(0, 1): channel c of a word depends on seed, word and c only, so a word is the same in every sentence. */
static void embed_word(int64_t seed, const char *word, size_t dim, float *out)
{
    uint64_t hash = pe_seed_hash(seed, "embedding");
    for (const char *p = word; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3; /* continues FNV-1a */
    for (size_t c = 0; c < dim; c++)
        out[c] = (float)pe_seed_normal(hash, c);
}

static size_t same_word_before(const struct pe_value *words, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(words->list.items[j].string, words->list.items[i].string) == 0)
            return j;
    return i;
}

/* Each word is compared with those before it. */
static enum pe_status admit_words(struct pe_plan *plan, double n, double dim, struct pe_error *err)
{
    enum { NS_OF_COMPARING = 5 };
    struct pe_cost cost = {0, 0};
    pe_cost_each(&cost, n, dim * sizeof(float), dim * PE_NS_SEEDED + n * NS_OF_COMPARING);
    return pe_plan_admit(plan, &cost, err);
}

static enum pe_status embed_words(struct pe_plan *plan, size_t dim, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_value *words = plan->sequence.tokens;
    size_t n = words->list.n;
    if (n > PE_TOKENS_MAX)
        return pe_fail(err, "/tokens", "tokens has %zu words; allowed: at most %d", n, PE_TOKENS_MAX);
    if (admit_words(plan, (double)n, (double)dim, err))
        return err->status;
    float *table = t->embeddings = calloc(n * dim, sizeof *table);
    if (!table)
        return pe_no_memory(err);
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++) {
        size_t j = same_word_before(words, i);
        if (j < i)
            memcpy(table + i * dim, table + j * dim, dim * sizeof *table);
        else
            embed_word(t->fields.seed, words->list.items[i].string, dim, table + i * dim);
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
static enum pe_status add_encoding(struct pe_plan *plan, struct pe_error *err)
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

enum pe_status pe_attention_open_x(struct pe_plan *plan, struct pe_error *err)
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

/* y [n, n_out] = x·Wᵀ + b, rows row0 …, converted to the result's dtype in place. */
static void project(const struct pe_arithmetic *a, const struct projection *p, const double *x, size_t dim, size_t row0,
                    size_t n, double *y)
{
    if (!p->n_out)
        return;
    a->abt(n, p->n_out, dim, 1, x, dim, p->w, dim, 0, y, p->n_out);
    for (size_t i = 0; p->b && i < n; i++)
        for (size_t c = 0; c < p->n_out; c++)
            y[i * p->n_out + c] += p->b[c];
    enum pe_dtype dtype = p->to->tensor.dtype;
    pe_convert(dtype, (char *)p->to->owned + row0 * p->n_out * pe_dtype_size(dtype), PE_F64, y, n * p->n_out);
}

/* Rows of one tile. A projection may be wide, so there may be fewer than 64. */
static size_t tile_rows(const struct pe_embeddings *e) { return e->n_rows < TILE_ROWS ? e->n_rows : TILE_ROWS; }

static bool project_all(const struct pe_plan *plan, const struct projection p[3])
{
    const struct pe_embeddings *e = &plan->attention->embedded;
    size_t widest = 0;
    for (size_t i = 0; i < 3; i++)
        widest = p[i].n_out > widest ? p[i].n_out : widest;
    double *x = malloc(tile_rows(e) * (e->dim + widest) * sizeof *x);
    for (size_t row = 0; x && row < e->n_rows && !pe_is_cancelled(); row += TILE_ROWS) {
        size_t n = e->n_rows - row < TILE_ROWS ? e->n_rows - row : TILE_ROWS;
        load(plan, row, n, x);
        for (size_t i = 0; i < 3 && !pe_is_cancelled(); i++)
            project(plan->attention->products, &p[i], x, e->dim, row, n, x + tile_rows(e) * e->dim);
    }
    free(x);
    return x;
}

/* Limits the work of the projections, which are computed while planning, a tile of rows at a time: once of the
 * embeddings, and for terms once of each part. */
static enum pe_status check_work(const struct pe_plan *plan, struct pe_error *err)
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

/* Adds the cost of a projection or its bias, as doubles. */
static double add_weights(struct pe_cost *cost, const struct pe_weights *w)
{
    uint64_t n = 0;
    if (w->tensor.rank)
        pe_shape_count(w->tensor.shape, w->tensor.rank, &n);
    pe_cost_each(cost, (double)n, sizeof(double), w->is_seeded ? PE_NS_SEEDED : PE_NS_SENT);
    return (double)n;
}

/* Nanoseconds of the encoding that is added: one for each multiply-add, as on a slow machine. */
static double ns_of_encoding(const struct pe_plan *plan)
{
    const struct pe_embeddings *e = &plan->attention->embedded;
    double each = plan->element_work > 0 ? plan->element_work : plan->pace == PE_QUICK ? 16 : PE_SLOW_WORK;
    if (!plan->scheme->info.is_additive)
        return 0;
    return plan->work + (double)e->n_rows * (double)e->dim * each;
}

/* Adds the cost of weights, queries, keys and values. Computing them again in double takes time again, but its
 * memory is already counted. */
static enum pe_status admit(struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    struct pe_cost cost = {0, 0};
    double n = (double)e->n_rows, product = t->products == pe_arithmetic_in_order() ? 4 * PE_NS_PRODUCT : PE_NS_PRODUCT;
    double widest = 0;
    for (size_t i = PE_W_Q; i <= PE_W_V; i++) {
        double width = add_weights(&cost, &t->brought.projections[i]) / (double)e->dim;
        add_weights(&cost, &t->brought.projections[PE_B_Q + i]);
        pe_cost_each(&cost, n * width, sizeof(double), (double)e->dim * product + 2 * PE_NS_SENT);
        widest = fmax(widest, width);
    }
    pe_cost_add(&cost, (double)tile_rows(e) * ((double)e->dim + widest) * sizeof(double),
                n * (double)e->dim * PE_NS_SENT);
    pe_cost_add(&cost, 0, ns_of_encoding(plan));
    if (t->q.owned)
        cost.bytes = 0;
    return pe_plan_admit(plan, &cost, err);
}

enum pe_status pe_attention_embed(struct pe_plan *plan, enum pe_dtype dtype, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    if (check_work(plan, err) || admit(plan, err))
        return err->status;
    struct projection p[3] = {{0}};
    struct pe_operand *to[3] = {&t->q, &t->k, &t->v};
    bool fine = true;
    for (size_t i = 0; i < 3; i++)
        fine = fine && open_projection(t, (enum pe_projection)(PE_W_Q + i), to[i], &p[i]) && make_room(t, &p[i], dtype);
    fine = fine && project_all(plan, p);
    for (size_t i = 0; i < 3; i++) {
        free(p[i].w);
        free(p[i].b);
    }
    return fine ? PE_OK : pe_no_memory(err);
}

/* ---- Parts ---- */

/* Queries and keys of a part. Biases belong to the content. */
static bool project_part(const struct pe_plan *plan, enum pe_embedding_part part, const struct projection p[2])
{
    const struct pe_embeddings *e = &plan->attention->embedded;
    size_t widest = p[0].n_out > p[1].n_out ? p[0].n_out : p[1].n_out, tile = tile_rows(e) * e->dim;
    double *x = malloc((2 * tile + tile_rows(e) * widest) * sizeof *x);
    for (size_t row = 0; x && row < e->n_rows && !pe_is_cancelled(); row += TILE_ROWS) {
        size_t n = e->n_rows - row < TILE_ROWS ? e->n_rows - row : TILE_ROWS;
        load_part(plan, part, row, n, x, x + tile);
        for (size_t i = 0; i < 2 && !pe_is_cancelled(); i++) {
            struct projection of_part = p[i];
            of_part.b = part == PE_CONTENT ? p[i].b : NULL;
            project(plan->attention->products, &of_part, x, e->dim, row, n, x + 2 * tile);
        }
    }
    free(x);
    return x;
}

static bool make_part(struct pe_plan *plan, enum pe_embedding_part part)
{
    struct pe_attention *t = plan->attention;
    struct projection p[2] = {{0}};
    bool fine = true;
    for (size_t i = 0; i < 2; i++)
        fine = fine && open_projection(t, (enum pe_projection)(PE_W_Q + i), &t->parts[part][i], &p[i]) &&
               make_room(t, &p[i], t->a->dtype);
    fine = fine && project_part(plan, part, p);
    for (size_t i = 0; i < 2; i++) {
        free(p[i].w);
        free(p[i].b);
    }
    return fine;
}

/* The same as admit() for the queries and keys of one part after the other. */
static enum pe_status admit_parts(struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_embeddings *e = &t->embedded;
    struct pe_cost cost = {0, 0};
    double n = (double)e->n_rows, product = t->products == pe_arithmetic_in_order() ? 4 * PE_NS_PRODUCT : PE_NS_PRODUCT;
    for (size_t i = PE_W_Q; i <= PE_W_K; i++) {
        double width = add_weights(&cost, &t->brought.projections[i]) / (double)e->dim;
        add_weights(&cost, &t->brought.projections[PE_B_Q + i]);
        pe_cost_each(&cost, PE_N_EMBEDDING_PARTS * n * width, sizeof(double),
                     (double)e->dim * product + 2 * PE_NS_SENT);
        pe_cost_add(&cost, (double)tile_rows(e) * (2 * (double)e->dim + width) * sizeof(double), 0);
    }
    pe_cost_add(&cost, 0, PE_N_EMBEDDING_PARTS * (ns_of_encoding(plan) + 2 * n * (double)e->dim * PE_NS_SENT));
    return pe_plan_admit(plan, &cost, err);
}

enum pe_status pe_attention_embed_parts(struct pe_plan *plan, struct pe_error *err)
{
    bool fine = true;
    if (admit_parts(plan, err))
        return err->status;
    for (enum pe_embedding_part part = 0; fine && part < PE_N_EMBEDDING_PARTS; part++)
        fine = make_part(plan, part);
    return fine ? PE_OK : pe_no_memory(err);
}
