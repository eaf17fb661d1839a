/* The Transformer-XL family: the table of distances, the rules of its fields, the weights of its term; and in attention
 * R projected for each head, and what its products with queries add to the scores.
 *
 * The published code multiplies queries with all distances and then shifts each row by its number ("relative shift").
 * Here the shift is no step: the distances of a block of queries are consecutive rows of the projected table, so row i
 * adds a window of the products that begins one further than row i - 1's.
 *
 * R is projected once for all heads while planning if that is not too large, else by each workspace for its own head.
 * It is sinusoids, so no weights but w_r are read for it. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>

enum output { ENCODING, DISTANCES };

const struct pe_output_row pe_rel_sin_outputs[] = {
    [ENCODING] = PE_OUTPUT("encoding", "width,d_model", 1, PE_DTYPE_NONE, false, NULL, "encoding", "R of each distance",
                           .range = {-1, 1}, .axes = "distance,dim"),
    [DISTANCES] = PE_OUTPUT("distances", "width", 1, PE_I32, false, NULL, "distances",
                            "query minus key, descending; not clamped", .axes = "distance"),
    {.name = NULL},
};

enum { R_ROWS = 64 }; /* rows of R projected at a time */

static const struct pe_rel_sin_fields *fields(const struct pe_plan *plan) { return plan->config; }

static const struct pe_rel_sin_style *style_of(const struct pe_plan *plan) { return plan->scheme->style; }

uint64_t pe_rel_sin_width(const struct pe_plan *plan) { return ((const struct pe_rel_sin_tables *)plan->tables)->n; }

/* ---- R ---- */

static double clamped(const struct pe_plan *plan, double delta)
{
    double limit = (double)fields(plan)->clamp_len;
    if (limit <= 0)
        return delta;
    delta = fmin(delta, limit);
    return style_of(plan)->clamps_both ? fmax(delta, -limit) : delta;
}

static enum pe_status make_waves(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    size_t d = (size_t)c->d_model, h = d / 2;
    struct pe_dd *freq = calloc(h, sizeof *freq);
    struct pe_wave *columns = calloc(d, sizeof *columns);
    enum pe_status status = freq && columns ? PE_OK : pe_no_memory(err);
    if (!status)
        pe_ladder(c->base, (double)h, h, freq);
    for (size_t i = 0; !status && i < h; i++) {
        struct pe_dd f = pe_quarter_turns(freq[i]);
        struct pe_wave wave = {.fh = f.hi, .fl = f.lo, .ah = 1};
        columns[style_of(plan)->is_interleaved ? 2 * i : i] = wave;
        wave.quarter = 1;
        columns[style_of(plan)->is_interleaved ? 2 * i + 1 : h + i] = wave;
    }
    if (!status)
        status = pe_waves_new(columns, d, &t->waves) ? pe_no_memory(err) : PE_OK;
    free(freq);
    free(columns);
    return status;
}

enum { RUN = 512 }; /* distances computed at a time */

/* Writes rows from row0 on and columns from col0 on of R, without gaps. */
static void fill_r(const struct pe_plan *plan, enum pe_dtype dtype, const struct pe_block *b, char *dst)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    double deltas[RUN];
    for (uint64_t i = 0, n; i < b->n_rows; i += n) {
        n = b->n_rows - i < RUN ? b->n_rows - i : RUN;
        for (uint64_t m = 0; m < n; m++)
            deltas[m] = clamped(plan, t->first - (double)(b->row0 + i + m));
        struct pe_positions list = {.n = n, .list = deltas};
        pe_waves_fill(t->waves, dtype, &list, 0, (size_t)n, (size_t)b->col0, (size_t)b->n_cols,
                      dst + i * b->n_cols * pe_dtype_size(dtype), (size_t)b->n_cols);
    }
}

void pe_rel_sin_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                     void *dst)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    if (id == ENCODING)
        fill_r(plan, output->dtype, b, dst);
    else
        for (uint64_t j = 0; j < b->n_cols; j++)
            ((int32_t *)dst)[j] = (int32_t)(t->first - (double)(b->col0 + j));
}

/* ---- One number ---- */

enum pe_status pe_rel_sin_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                 struct pe_derivation *d, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    const struct pe_rel_sin_tables *t = plan->tables;
    const struct pe_rel_sin_style *style = style_of(plan);
    size_t h = (size_t)c->d_model / 2, column = (size_t)at->index[1];
    size_t i = style->is_interleaved ? column / 2 : column % h;
    int quarter = style->is_interleaved ? (int)(column % 2) : column >= h;
    double delta = t->first - (double)at->index[0], p = clamped(plan, delta);
    (void)err;
    pe_derived(d, "d", dd(delta), "%.0f − %llu", t->first, (unsigned long long)at->index[0]);
    pe_derived_says(d, "query minus key: rows go down from the largest distance");
    if (id == DISTANCES)
        return PE_OK;
    if (c->clamp_len > 0) {
        pe_derived(d, "d'", dd(p), style->clamps_both ? "max(min(d, %lld), −%lld)" : "min(d, %lld)",
                   (long long)c->clamp_len, (long long)c->clamp_len);
        pe_derived_says(d, "clamp_len bounds the distance");
    }
    pe_derived_case(d, "%zu → %s %zu", column, quarter ? "cos" : "sin", i);
    pe_derived_says(d, quarter ? "the column has the cosine of pair %zu" : "the column has the sine of pair %zu", i);
    struct pe_dd w = pe_derived_frequency(d, c->base, (double)h, i);
    struct pe_dd angle = pe_derived(d, "θ", pe_derived_angle(d, dd(p), w, i), "%.0f·%s", p, d->at[d->n - 1].symbol);
    pe_derived(d, quarter ? "cos θ" : "sin θ", pe_derived_sine(d, angle, quarter), "%s", "");
    return PE_OK;
}

/* ---- The plan ---- */

static enum pe_status check(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rel_sin_fields *c = plan->config;
    if (pe_fix_sizes(plan, (const char *const[]){"d_model", NULL}, err))
        return err->status;
    if (c->d_model == PE_UNSET_INT)
        c->d_model = c->relative.num_heads * c->relative.head_dim;
    if (c->d_model % 2)
        return pe_fail(err, "/d_model", "d_model is %lld; allowed: even numbers, a sine and a cosine each",
                       (long long)c->d_model);
    if (c->d_model > PE_DIM_MAX)
        return pe_fail(err, "/num_heads", "num_heads·head_dim is %lld; give d_model, at most %d", (long long)c->d_model,
                       PE_DIM_MAX);
    if (c->same_length && !c->causal)
        return pe_fail(err, "/same_length", "same_length is the shape of a causal mask; it needs \"causal\":true");
    return pe_relative_check(plan, err);
}

/* Sets the distances that the output lists. With one sequence, the memory's keys come before it. */
static enum pe_status set_list(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    int64_t least, most;
    double last;
    pe_relative_reach(plan, &least, &most);
    if (plan->sequence.len != PE_UNSET_INT)
        least -= c->mem_len;
    style_of(plan)->list(c, -(double)least, -(double)most, &t->first, &last);
    if (fmax(fabs(t->first), fabs(last)) >= 0x1p31)
        return pe_fail(err, "/len", "the distances go from %.0f to %.0f; allowed: below 2^31", t->first, last);
    t->n = t->first < last ? 0 : (uint64_t)(t->first - last) + 1;
    return PE_OK;
}

/* Sets the distances between any query and any key. */
static enum pe_status set_reach(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    int64_t least, most;
    pe_relative_reach(plan, &least, &most);
    if (plan->seq.piece) { /* packed sequences: differences of indices are the distances inside each sequence */
        most = (int64_t)plan->seq.k->n - 1;
        least = -most;
    }
    t->first = (double)-least;
    t->n = (uint64_t)(most - least) + 1;
    if (!pe_rows_are_runs(plan) && t->n > PE_LISTED_POSITIONS_MAX)
        return pe_fail(err, "/k_positions", "the positions span %llu distances; allowed: at most %d",
                       (unsigned long long)t->n, PE_LISTED_POSITIONS_MAX);
    if (!(fabs(t->first) + (double)t->n < 0x1p31))
        return pe_fail(err, "/q_offset", "the distances go up to %.0f; allowed: below 2^31", fabs(t->first));
    return PE_OK;
}

/* Segment ids of XLNet: one for each key. A query has the id of its own key. */
static enum pe_status read_types(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_reals *ids = &fields(plan)->token_type_ids;
    uint64_t n = plan->seq.k->n;
    if (!style_of(plan)->has_segments)
        return PE_OK;
    bool wanted = pe_weights_sent(plan, PE_REL_SEG_EMBED) || pe_weights_sent(plan, PE_REL_SEG_BIAS) || ids->n;
    if (!wanted)
        return PE_OK;
    if (!ids->n)
        return pe_fail(err, "/token_type_ids", "seg_embed needs token_type_ids, a segment number for each key");
    enum pe_status status = pe_reals_expect(ids, n, "token_type_ids", "one per key", err);
    if (!status && plan->seq.q->n > n)
        return pe_fail(err, "/token_type_ids", "there are %llu queries and %llu keys; a query has the id of its key",
                       (unsigned long long)plan->seq.q->n, (unsigned long long)n);
    t->types = status ? NULL : malloc(n);
    if (!status && !t->types)
        return pe_no_memory(err);
    for (uint64_t j = 0; !status && j < n && !pe_is_cancelled_at(j); j++)
        t->types[j] = (uint8_t)pe_real_at(ids, j);
    return status;
}

/* Adds the cost of R projected for all heads (open). If that is too large, each head's projection is computed
 * separately. */
static void add_attention(const struct pe_plan *plan, double d_model, struct pe_cost *cost)
{
    const struct pe_rel_sin_fields *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double w = fmin(width * d_model, PE_RELATIVE_WEIGHTS_MAX);
    int64_t least, most;
    pe_relative_reach(plan, &least, &most);
    double n = plan->seq.piece || plan->seq.is_counted ? 2 * (double)plan->seq.k->n : (double)most - (double)least + 1;
    pe_cost_weights(cost, plan, PE_REL_W, w);
    pe_cost_each(cost, 5 * width, sizeof(double), pe_cost_of_weight(plan, PE_REL_U));
    pe_cost_add(cost, (double)plan->seq.k->n, 3 * w); /* types; the norm of w_r */
    if (width * n * sizeof(float) > (double)PE_RELATIVE_ENCODING_MAX)
        return;
    pe_cost_each(cost, w + R_ROWS * (width + d_model), sizeof(double), PE_NS_SENT);
    pe_cost_each(cost, width * (n + 32), sizeof(double), d_model * PE_NS_PRODUCT + 4);
    pe_cost_each(cost, n * d_model, 0, 10);
}

void pe_rel_sin_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_rel_sin_fields *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double d_model = c->d_model == PE_UNSET_INT ? width : (double)c->d_model;
    d_model = fmin(fmax(d_model, pe_size_most(plan, "d_model")), PE_DIM_MAX);
    pe_cost_waves(cost, d_model);
    pe_cost_ladder(cost, d_model / 2, false);
    if (plan->attention)
        add_attention(plan, d_model, cost);
}

enum pe_status pe_rel_sin_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rel_sin_tables *t = plan->tables;
    enum pe_status status = check(plan, err);
    bool attends = plan->attention != NULL;
    if (!status)
        status = attends ? set_reach(plan, t, err) : set_list(plan, t, err);
    if (!status)
        status = make_waves(plan, t, err);
    if (status || !attends)
        return status;
    const struct pe_rel_sin_fields *c = fields(plan);
    const uint64_t h = (uint64_t)c->relative.num_heads, d = (uint64_t)c->relative.head_dim;
    const uint64_t w[2] = {h * d, (uint64_t)c->d_model};
    if ((double)w[0] * (double)w[1] > PE_RELATIVE_WEIGHTS_MAX)
        return pe_fail(err, "/w_r", "w_r would have %llu by %llu numbers; allowed: %d in all", (unsigned long long)w[0],
                       (unsigned long long)w[1], PE_RELATIVE_WEIGHTS_MAX);
    status = PE_OK;
    for (size_t id = PE_REL_U; !status && id <= PE_REL_W; id++)
        status = pe_weights_need(plan, id, err);
    if (!status)
        status = read_types(plan, t, err);
    for (size_t id = PE_REL_SEG_EMBED; !status && t->types && id <= PE_REL_SEG_BIAS; id++)
        status = pe_weights_need(plan, id, err);
    if (status)
        return status;
    t->u = pe_weights_all(plan, PE_REL_U);
    t->v = pe_weights_all(plan, PE_REL_V);
    t->w = pe_weights_all(plan, PE_REL_W);
    if (t->types) {
        t->seg = pe_weights_all(plan, PE_REL_SEG_EMBED);
        t->seg_bias = pe_weights_all(plan, PE_REL_SEG_BIAS);
    }
    return t->u && t->v && t->w && (!t->types || (t->seg && t->seg_bias)) ? PE_OK : pe_no_memory(err);
}

void pe_rel_sin_drop(struct pe_plan *plan)
{
    struct pe_rel_sin_tables *t = plan->tables;
    pe_waves_free(t->waves);
    free(t->u);
    free(t->v);
    free(t->seg);
    free(t->seg_bias);
    free(t->w);
    free(t->types);
    free(t->projected);
}

/* ---- Attention ---- */

/* W_r R for one head is a table with a row per distance. Row 0 is the largest delta, i.e. the key farthest before
 * the query. */
int32_t pe_rel_sin_row(const struct pe_plan *plan, int64_t rel)
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
    return ((size_t)c->relative.head_dim + R_ROWS) * (size_t)c->d_model + R_ROWS * (size_t)c->relative.head_dim;
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

/* Computes the tables of n_heads heads, panels of [n, head_dim] each; room: for their part of w_r, some rows of R and
 * their projections.
 *
 *     table = R·W_rᵀ;   row m of the table is for rel = m - first (ascending keys)
 *
 * R's rows descend from delta = first, which is rel = -first, so their order is the same. */
static void project(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, size_t n_heads,
                    void *tables, void *room_)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    size_t d = (size_t)fields(plan)->relative.head_dim, d_model = (size_t)fields(plan)->d_model, width = n_heads * d;
    void *w = room_, *r = pe_numbers_at(a, w, width * d_model), *rows = pe_numbers_at(a, r, R_ROWS * d_model);
    pe_convert(a->dtype, w, PE_F64, t->w + head * d * d_model, width * d_model);
    for (uint64_t i = 0, n; i < t->n && (n_heads == 1 || !pe_is_cancelled()); i += n) {
        n = t->n - i < R_ROWS ? t->n - i : R_ROWS;
        struct pe_block b = {.row0 = i, .n_rows = n, .n_cols = d_model};
        fill_r(plan, a->dtype, &b, r);
        a->abt((size_t)n, width, d_model, 1, r, d_model, w, d_model, 0, rows, width);
        for (size_t h = 0; h < n_heads; h++)
            a->pack(pe_numbers_at(a, rows, h * d), width, (size_t)n, d,
                    pe_numbers_at(a, tables, h * table_numbers(plan) + i * d));
    }
}

/* Projects all heads at once if that is not too large. R is then computed once for all heads, and no two threads
 * compute the same values. */
static enum pe_status open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err)
{
    struct pe_rel_sin_tables *t = plan->tables;
    size_t heads = (size_t)fields(plan)->relative.num_heads, width = heads * (size_t)fields(plan)->relative.head_dim;
    size_t d_model = (size_t)fields(plan)->d_model;
    if (heads * table_numbers(plan) * a->size > PE_RELATIVE_ENCODING_MAX)
        return PE_OK;
    void *room_of_all = malloc(((width + R_ROWS) * d_model + R_ROWS * width) * a->size);
    t->projected = malloc(heads * table_numbers(plan) * a->size);
    bool fine = room_of_all && t->projected;
    if (fine)
        project(plan, a, 0, heads, t->projected, room_of_all);
    free(room_of_all);
    return fine ? PE_OK : pe_no_memory(err);
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    if (t->projected)
        return pe_numbers_at(a, t->projected, head * table_numbers(plan));
    project(plan, a, head, 1, tables, pe_numbers_at(a, tables, table_numbers(plan)));
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
    size_t first = (size_t)pe_rel_sin_row(rows->plan, pe_rows_rel(rows, rows->n_rows - 1, j0));
    a->products(rows->n_rows, first, width, d, rows->scale, queries, d, rows->tables, products, width);
    for (size_t i = 0; i < rows->n_rows; i++)
        a->add(pe_numbers_at(a, logits_at(rows, i), j0), pe_numbers_at(a, products, i * width + rows->n_rows - 1 - i),
               n, 1);
}

/* Keys at a time: few enough that the products are still in the cache when they are added. */
enum { KEYS = 1024 };

/* q, in the scratch or elsewhere, with the projected R. */
static void add_products(const struct pe_rows *rows, const void *q)
{
    const struct pe_rel_sin_tables *t = rows->plan->tables;
    struct pe_rows with_v = *rows;
    with_v.q = q;
    with_v.scratch = pe_numbers_at(rows->a, rows->scratch, (rows->n_rows + 1) * rows->head_dim);
    if (pe_rows_are_runs(rows->plan))
        for (size_t j = 0; j < rows->n_keys; j += KEYS)
            add_some_windows(rows, with_v.q, with_v.scratch, j, rows->n_keys - j < KEYS ? rows->n_keys - j : KEYS);
    else
        pe_relative_add_by_query(&with_v, NULL, rows->tables, t->n, rows->scale);
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
    add_products(rows, queries_with(rows, ((const struct pe_rel_sin_tables *)rows->plan->tables)->v));
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
