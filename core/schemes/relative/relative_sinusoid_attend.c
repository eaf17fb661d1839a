/* The Transformer-XL family in attention: R projected for each head, and what its products with queries add to the
 * scores.
 *
 * The published code multiplies queries with all distances and then shifts each row by its number ("relative shift").
 * Here the shift is no step: the distances of a block of queries are consecutive rows of the projected table, so row i
 * adds a window of the products that begins one further than row i - 1's.
 *
 * R is projected once for all heads while planning if that is not too large, else by each workspace for its own head.
 * It is sinusoids, so no weights but w_r are read for it. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>

static const struct pe_rel_sin_fields *fields(const struct pe_plan *plan) { return plan->config; }

/* ---- Sizes ---- */

/* W_r R for one head is a table with a row per distance. Row 0 is the largest delta, i.e. the key farthest before
 * the query. */
static int32_t row(const struct pe_plan *plan, int64_t rel)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    return (int32_t)(rel + (int64_t)t->first);
}

static size_t table_numbers(const struct pe_plan *plan)
{
    return pe_panels_size(((const struct pe_rel_sin_tables *)plan->tables)->n, (size_t)fields(plan)->relative.head_dim);
}

/* If a head's table is computed again, its part of w_r, some rows of R and their projections follow it in memory.
 * Rows are whole panels. */

static size_t projection_numbers(const struct pe_plan *plan)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    return ((size_t)c->relative.head_dim + PE_R_ROWS) * (size_t)c->d_model + PE_R_ROWS * (size_t)c->relative.head_dim;
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    size_t d = (size_t)fields(plan)->relative.head_dim;
    size_t own = n_rows * d + d; /* queries with a bias; a bias */
    return (struct pe_attend_room){.tables = t->projected ? 0 : table_numbers(plan) + projection_numbers(plan),
                                   .scratch = own + pe_relative_scratch(plan, n_rows, n_rows + plan->seq.k->n) +
                                              (pe_rows_are_runs(plan) ? 0 : n_rows * t->n)};
}

static double work(const struct pe_plan *plan)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    double d = (double)fields(plan)->relative.head_dim, q = (double)plan->seq.q->n, k = (double)plan->seq.k->n;
    return d * (pe_rows_are_runs(plan) ? 1 : (double)t->n / k) +
           (double)t->n * d * (double)fields(plan)->d_model / q / k;
}

/* R's rows have the norm sqrt(d_model/2); the mean column of W_r estimates their norm after the projection. */
static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    const struct pe_rel_sin_fields *c = fields(plan);
    size_t d = (size_t)c->relative.head_dim, h = (size_t)c->relative.num_heads, d_model = (size_t)c->d_model;
    double u = pe_relative_norm(t->u, h, d), v = pe_relative_norm(t->v, h, d);
    double r = sqrt((double)d_model / 2) * pe_relative_norm(t->w, h, d * d_model) / sqrt((double)d_model) * 1.5;
    double seg = t->seg ? pe_relative_norm(t->seg, 2 * h, d) : 0, b = t->seg ? pe_relative_norm(t->seg_bias, h, d) : 0;
    return u * k_norm + (q_norm + v) * r + (q_norm + b) * seg;
}

/* ---- R projected ---- */

/* Computes table, panels of [n, head_dim], for one head; room has projection_numbers().
 *
 *     table = R·W_rᵀ;   row m of the table is for rel = m - first (ascending keys)
 *
 * R's rows descend from delta = first, which is rel = -first, so their order is the same. */
static void project(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *table, void *room_)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    size_t d = (size_t)fields(plan)->relative.head_dim, d_model = (size_t)fields(plan)->d_model;
    void *w = room_, *r = pe_numbers_at(a, w, d * d_model), *rows = pe_numbers_at(a, r, PE_R_ROWS * d_model);
    pe_convert(a->dtype, w, PE_F64, t->w + head * d * d_model, d * d_model);
    for (uint64_t i = 0, n; i < t->n; i += n) {
        n = t->n - i < PE_R_ROWS ? t->n - i : PE_R_ROWS;
        struct pe_block b = {.row0 = i, .n_rows = n, .n_cols = d_model};
        pe_rel_sin_fill_r(plan, a->dtype, &b, r);
        a->abt((size_t)n, d, d_model, 1, r, d_model, w, d_model, 0, rows, d);
        a->pack(rows, d, (size_t)n, d, pe_numbers_at(a, table, i * d));
    }
}

/* Projects all heads at once if that is not too large. R is then computed once for all heads, and no two threads
 * compute the same values. */
static enum pe_status open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err)
{
    struct pe_rel_sin_tables *t = plan->tables;
    size_t heads = (size_t)fields(plan)->relative.num_heads, d = (size_t)fields(plan)->relative.head_dim;
    size_t d_model = (size_t)fields(plan)->d_model, width = heads * d;
    if (heads * table_numbers(plan) * a->size > PE_RELATIVE_ENCODING_MAX)
        return PE_OK;
    void *w = malloc((width + PE_R_ROWS) * d_model * a->size), *rows = malloc(PE_R_ROWS * width * a->size);
    t->projected = malloc(heads * table_numbers(plan) * a->size);
    if (w && rows && t->projected)
        pe_convert(a->dtype, w, PE_F64, t->w, width * d_model);
    void *r = w ? pe_numbers_at(a, w, width * d_model) : NULL;
    for (uint64_t i = 0, n; w && rows && t->projected && i < t->n && !pe_is_cancelled(); i += n) {
        n = t->n - i < PE_R_ROWS ? t->n - i : PE_R_ROWS;
        struct pe_block b = {.row0 = i, .n_rows = n, .n_cols = d_model};
        pe_rel_sin_fill_r(plan, a->dtype, &b, r);
        a->abt((size_t)n, width, d_model, 1, r, d_model, w, d_model, 0, rows, width);
        for (size_t h = 0; h < heads; h++)
            a->pack(pe_numbers_at(a, rows, h * d), width, (size_t)n, d,
                    pe_numbers_at(a, t->projected, h * table_numbers(plan) + i * d));
    }
    bool fine = w && rows && t->projected;
    free(w);
    free(rows);
    return fine ? PE_OK : pe_no_memory(err);
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    if (t->projected)
        return pe_numbers_at(a, t->projected, head * table_numbers(plan));
    project(plan, a, head, tables, pe_numbers_at(a, tables, table_numbers(plan)));
    return tables;
}

/* ---- Scores ---- */

/* Writes queries + bias of the head, [n_rows, head_dim], to the scratch. */
static void *queries_with(const struct pe_rows *rows, const double *bias)
{
    const struct pe_arithmetic *a = rows->a;
    size_t d = rows->head_dim;
    void *sum = rows->scratch, *b = pe_numbers_at(a, sum, rows->n_rows * d);
    pe_convert(a->dtype, b, PE_F64, bias + rows->head * d, d);
    pe_convert(a->dtype, sum, a->dtype, rows->q, rows->n_rows * d);
    for (size_t i = 0; i < rows->n_rows; i++)
        a->add(pe_numbers_at(a, sum, i * d), b, d, 1);
    return sum;
}

static void *logits_at(const struct pe_rows *rows, size_t i)
{
    return pe_numbers_at(rows->a, rows->logits, i * rows->stride);
}

/* u_h is added to each query before its products with keys. */
static const double *query_bias(const struct pe_plan *plan, size_t head)
{
    return ((const struct pe_rel_sin_tables *)plan->tables)->u + head * (size_t)fields(plan)->relative.head_dim;
}

/* The distances of a block are consecutive rows of the table, and row i adds a window of the products, for keys j0 …
 * j0+n-1. */
static void add_some_windows(const struct pe_rows *rows, const void *queries, void *products, size_t j0, size_t n)
{
    const struct pe_arithmetic *a = rows->a;
    size_t d = rows->head_dim, width = n + rows->n_rows - 1;
    size_t first = (size_t)row(rows->plan, pe_rows_rel(rows, rows->n_rows - 1, j0));
    a->products(rows->n_rows, first, width, d, rows->scale, queries, d, rows->tables, products, width);
    for (size_t i = 0; i < rows->n_rows; i++)
        a->add(pe_numbers_at(a, logits_at(rows, i), j0), pe_numbers_at(a, products, i * width + rows->n_rows - 1 - i),
               n, 1);
}

/* Keys at a time: few enough that the products are still in the cache when they are added. */
enum { KEYS = 1024 };

static void add_windows(const struct pe_rows *rows, const void *queries, void *products)
{
    for (size_t j = 0; j < rows->n_keys; j += KEYS)
        add_some_windows(rows, queries, products, j, rows->n_keys - j < KEYS ? rows->n_keys - j : KEYS);
}

/* q, in the scratch or elsewhere, with the projected R. */
static void add_products(const struct pe_rows *rows, const void *q)
{
    const struct pe_rel_sin_tables *t = rows->plan->tables;
    const struct pe_relative_index index = {.row = row};
    struct pe_rows with_v = *rows;
    with_v.q = q;
    with_v.scratch = pe_numbers_at(rows->a, rows->scratch, (rows->n_rows + 1) * rows->head_dim);
    if (pe_rows_are_runs(rows->plan))
        add_windows(rows, with_v.q, with_v.scratch);
    else
        pe_relative_add_by_query(&with_v, &index, rows->tables, t->n, rows->scale);
}

static void add_position(const struct pe_rows *rows)
{
    add_products(rows, queries_with(rows, ((const struct pe_rel_sin_tables *)rows->plan->tables)->v));
}

/* scale · (q + r_s_bias)·seg_embed[s], s = 1 where the segments differ. */
static void add_segments(const struct pe_rows *rows)
{
    const struct pe_rel_sin_tables *t = rows->plan->tables;
    const struct pe_arithmetic *a = rows->a;
    size_t d = rows->head_dim, heads = (size_t)fields(rows->plan)->relative.num_heads;
    size_t shift = rows->plan->seq.k->n - rows->plan->seq.q->n;
    const double *embed = t->seg + rows->head * d, *bias = t->seg_bias + rows->head * d;
    for (size_t i = 0; i < rows->n_rows; i++) {
        double terms[2] = {0};
        for (size_t c = 0; c < d; c++) {
            double q = pe_number(a, rows->q, i * d + c) + bias[c];
            terms[0] += q * embed[c];
            terms[1] += q * embed[heads * d + c];
        }
        for (size_t j = 0; j < rows->n_keys; j++) {
            bool differ = t->types[rows->i0 + i + shift] != t->types[rows->j0 + j];
            void *row_of = logits_at(rows, i);
            pe_number_set(a, row_of, j, pe_number(a, row_of, j) + rows->scale * terms[differ]);
        }
    }
}

static void add_scores(const struct pe_rows *rows)
{
    add_position(rows);
    if (((const struct pe_rel_sin_tables *)rows->plan->tables)->types)
        add_segments(rows);
}

/* ---- Parts of the scores ---- */

/* The four terms of Dai et al. 2019, section 3.3, in their order, then the segments. */
static const char *const parts[] = {"content_content", "content_position", "bias_content",
                                    "bias_position",   "content_segment",  NULL};
enum { CONTENT_POSITION = 1, BIAS_CONTENT, BIAS_POSITION, CONTENT_SEGMENT };

static bool has_part(const struct pe_plan *plan, size_t part)
{
    return part < CONTENT_SEGMENT || ((const struct pe_rel_sin_tables *)plan->tables)->types;
}

/* A bias of the head in place of every query. */
static const void *only(const struct pe_rows *rows, const double *bias)
{
    size_t d = rows->head_dim;
    for (size_t i = 0; i < rows->n_rows; i++)
        pe_convert(rows->a->dtype, pe_numbers_at(rows->a, rows->scratch, i * d), PE_F64, bias + rows->head * d, d);
    return rows->scratch;
}

static void add_part(const struct pe_rows *rows, size_t part)
{
    const struct pe_rel_sin_tables *t = rows->plan->tables;
    size_t d = rows->head_dim;
    if (part == CONTENT_POSITION)
        add_products(rows, rows->q);
    else if (part == BIAS_CONTENT)
        rows->a->abt(rows->n_rows, rows->n_keys, d, rows->scale, only(rows, t->u), d, rows->k, rows->k_stride, 0,
                     rows->logits, rows->stride);
    else if (part == BIAS_POSITION)
        add_products(rows, only(rows, t->v));
    else
        add_segments(rows);
}

/* ---- The mask ---- */

/* Transformer-XL's same_length: with a full memory of mem_len keys, every query sees the same number of keys. Keys j
 * ≤ i - shift are hidden, shift = q_len - (k_len - mem_len), or q_len where that is not positive. */
static double reach_left(const struct pe_plan *plan)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    double q_len = (double)plan->seq.q->n, k_len = (double)plan->seq.k->n, mask_len = k_len - (double)c->mem_len;
    double shift = mask_len > 0 ? q_len - mask_len : q_len, place = plan->seq.q->start - plan->seq.k->start;
    return c->same_length ? shift + place : (double)INFINITY;
}

const struct pe_attend pe_rel_sin_attend = {
    .reach_left = reach_left,
    .largest = largest,
    .room = room,
    .work = work,
    .open = open,
    .open_head = open_head,
    .query_bias = query_bias,
    .add_scores = add_scores,
    .parts = parts,
    .has_part = has_part,
    .add_part = add_part,
};
