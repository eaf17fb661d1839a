/* Decomposed relative positions of a grid of h by w (Li et al. 2021, arXiv 2112.01526, section 4.1: MViTv2; ViTDet;
 * SAM's add_decomposed_rel_pos): a learned vector for each distance of rows, another for each distance of columns, both
 * multiplied by the query.
 *
 *     logit[i, j] = softmax_scale · q_i·k_j + q_i·rel_h[y_i - y_j + h - 1] + q_i·rel_w[x_i - x_j + w - 1]
 *
 * The query of the last two is not scaled. A table of another length than 2h - 1 is resized linearly, between the
 * centres of its rows, as torch's interpolate does.
 *
 * A query meets each row of keys with one number of the first table and each column with one of the second, so there is
 * one product with both tables, and then two additions for each key. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>
#include <string.h>

struct decomposed {
    struct pe_relative_fields relative;
};

static const struct pe_param params[] = {PE_RELATIVE_PARAMS, PE_P_END};

enum output { INDEX_H, INDEX_W };

static const struct pe_output_row outputs[] = {
    [INDEX_H] =
        PE_OUTPUT("index_h", "q_len,k_len", 1, PE_I32, false, NULL, "index of rows", "row of rel_h for each pair"),
    [INDEX_W] =
        PE_OUTPUT("index_w", "q_len,k_len", 1, PE_I32, false, NULL, "index of columns", "row of rel_w for each pair"),
    {.name = NULL},
};

enum input { REL_H, REL_W, N_AXES };

static const struct pe_input_row inputs[] = {
    [REL_H] = PE_INPUT("rel_h", "2h-1,head_dim", PE_ATTEND, false, "vectors of rows",
                       "rel_pos_h: a vector for each distance of two rows; of another length, it is resized linearly"),
    [REL_W] =
        PE_INPUT("rel_w", "2w-1,head_dim", PE_ATTEND, false, "vectors of columns",
                 "rel_pos_w: a vector for each distance of two columns; of another length, it is resized linearly"),
    {.name = NULL},
};

struct tables {
    uint64_t side[N_AXES];  /* h, w */
    double *vector[N_AXES]; /* [2·side - 1, head_dim]; NULL outside attention. Owned. */
};

static size_t n_rows_of(const struct tables *t, unsigned axis) { return 2 * (size_t)t->side[axis] - 1; }

static size_t head_dim_of(const struct pe_plan *plan)
{
    return (size_t)((const struct decomposed *)plan->config)->relative.head_dim;
}

/* ---- The plan ---- */

/* A grid, or outside attention a length n, which is [1,n]. */
static bool has_grid(const struct pe_plan *plan)
{
    const struct pe_sequence_fields *f = &plan->sequence;
    bool is_line = !plan->attention && plan->seq.n_grid == 0 && !f->positions.n && !f->lens.n && !f->segments;
    return (plan->seq.n_grid == 2 && !plan->seq.k->merge) || is_line;
}

/* The sequence is a whole grid, line by line; token i is at position i. */
static enum pe_status take_grid(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    struct pe_sequence *seq = &plan->seq;
    if (!has_grid(plan))
        return pe_fail(
            err, seq->n_grid == 2 ? "/order" : "/grid",
            "%s is for one grid, line by line: give grid [h,w], with queries and keys for each of its places",
            plan->scheme->info.name);
    for (unsigned a = 0; a < N_AXES; a++) {
        t->side[a] = seq->n_grid ? seq->grid[a] : a == 0 ? 1 : seq->k->n;
        if (t->side[a] > PE_RELATIVE_TABLE_MAX)
            return pe_fail(err, "/grid", "grid has an axis of %llu; allowed: up to %d", (unsigned long long)t->side[a],
                           PE_RELATIVE_TABLE_MAX);
    }
    seq->n_axes = 1;
    seq->q[0] = seq->k[0] = (struct pe_positions){.n = t->side[0] * t->side[1]};
    return PE_OK;
}

static enum pe_status resize(const struct pe_plan *plan, unsigned axis, struct tables *t, struct pe_failure *err)
{
    size_t n = n_rows_of(t, axis), d = head_dim_of(plan), sent = (size_t)plan->weights[axis].tensor.shape[0];
    double *from = pe_weights_all(plan, axis), *to = n == sent ? from : calloc(n * d, sizeof *to);
    struct pe_resample_taps taps = {0};
    t->vector[axis] = to;
    if (!from || !to || (n != sent && pe_resample_init(&taps, &(struct pe_resample){.kind = PE_BILINEAR}, sent, n))) {
        if (from != to)
            free(from);
        return pe_no_memory(err);
    }
    for (size_t i = 0; n != sent && i < n * taps.n_taps; i++)
        for (size_t c = 0; c < d; c++)
            to[i / taps.n_taps * d + c] += taps.weight[i] * from[(size_t)taps.index[i] * d + c];
    pe_resample_drop(&taps);
    if (from != to)
        free(from);
    return PE_OK;
}

static enum pe_status make_table(struct pe_plan *plan, unsigned axis, struct tables *t, struct pe_failure *err)
{
    uint64_t rows = pe_weights_axis(plan, axis, 0), d = head_dim_of(plan);
    uint64_t shape[2] = {rows ? rows : n_rows_of(t, axis), d};
    if ((double)n_rows_of(t, axis) * (double)d > PE_RELATIVE_TABLE_MAX)
        return pe_fail(err, "/grid", "%s would have %zu rows of %llu channels; allowed: %d numbers", inputs[axis].name,
                       n_rows_of(t, axis), (unsigned long long)d, PE_RELATIVE_TABLE_MAX);
    enum pe_status status = pe_weights_need_shape(plan, axis, shape, 2, err);
    return status ? status : resize(plan, axis, t, err);
}

static void decomposed_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    double d = (double)head_dim_of(plan);
    for (unsigned axis = 0; axis < N_AXES && plan->attention && plan->seq.n_grid == 2; axis++) {
        double n = fmin((2 * (double)plan->seq.grid[axis] - 1) * d, PE_RELATIVE_TABLE_MAX),
               sent = (double)pe_weights_axis(plan, axis, 0) * d;
        pe_cost_weights(cost, plan, axis, fmax(n, sent));
        pe_cost_each(cost, n, sizeof(double), 10);
        pe_cost_each(cost, n / d, 2 * (sizeof(double) + sizeof(int64_t)), 100);
    }
}

static enum pe_status decomposed_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct tables *t = plan->tables;
    enum pe_status status = take_grid(plan, t, err);
    for (unsigned axis = 0; axis < N_AXES && !status && plan->attention; axis++)
        status = make_table(plan, axis, t, err);
    return status;
}

static void decomposed_drop(struct pe_plan *plan)
{
    struct tables *t = plan->tables;
    for (unsigned axis = 0; axis < N_AXES; axis++)
        free(t->vector[axis]);
}

/* index_h[i, j] = y_i - y_j + h - 1, index_w[i, j] = x_i - x_j + w - 1 */
static void decomposed_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                            const struct pe_block *b, void *dst)
{
    const struct tables *t = plan->tables;
    uint64_t w = t->side[1];
    int32_t *out = dst;
    (void)output;
    for (uint64_t i = b->row0; i < b->row0 + b->n_rows; i++)
        for (uint64_t j = b->col0; j < b->col0 + b->n_cols; j++)
            *out++ = (int32_t)(id == INDEX_H ? i / w + t->side[0] - 1 - j / w : i % w + w - 1 - j % w);
}

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct tables *t = plan->tables;
    unsigned long long q = at->row, k = at->col, w = t->side[1], side = t->side[id];
    unsigned long long of_q = id == INDEX_H ? q / w : q % w, of_k = id == INDEX_H ? k / w : k % w;
    double distance = (double)of_q - (double)of_k;
    (void)err;
    if (id == INDEX_H) {
        pe_derived(d, "d_y", dd(distance), "⌊%llu/%llu⌋ − ⌊%llu/%llu⌋ = %llu − %llu", q, w, k, w, of_q, of_k);
        pe_derived_says(d, "lines: query minus key");
        pe_derived(d, "index", dd(distance + (double)side - 1), "d_y + h − 1, h = %llu", side);
        pe_derived_says(d, "the row of rel_h, which the query meets unscaled");
    } else {
        pe_derived(d, "d_x", dd(distance), "%llu mod %llu − %llu mod %llu = %llu − %llu", q, w, k, w, of_q, of_k);
        pe_derived_says(d, "columns: query minus key");
        pe_derived(d, "index", dd(distance + (double)side - 1), "d_x + w − 1, w = %llu", side);
        pe_derived_says(d, "the row of rel_w, which the query meets unscaled");
    }
    return PE_OK;
}

/* ---- Attention ---- */

/* Before the scale, which these terms are without: the operation multiplies by it. */
static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    const struct tables *t = plan->tables;
    size_t d = head_dim_of(plan);
    double sum = 0;
    (void)k_norm;
    for (unsigned axis = 0; axis < N_AXES; axis++)
        sum += pe_relative_norm(t->vector[axis], n_rows_of(t, axis), d);
    return q_norm * sum * sqrt((double)d);
}

static size_t n_vectors(const struct pe_plan *plan) { return n_rows_of(plan->tables, 0) + n_rows_of(plan->tables, 1); }

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    return (struct pe_attend_room){.tables = n_vectors(plan) * head_dim_of(plan), .scratch = n_rows * n_vectors(plan)};
}

static double work(const struct pe_plan *plan)
{
    return (double)n_vectors(plan) * (double)head_dim_of(plan) / (double)plan->seq.k->n + 2;
}

/* [n_vectors, head_dim]: those of rows, then those of columns. */
static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct tables *t = plan->tables;
    size_t d = head_dim_of(plan);
    (void)head;
    for (unsigned axis = 0; axis < N_AXES; axis++)
        pe_convert(a->dtype, pe_numbers_at(a, tables, axis * n_rows_of(t, 0) * d), PE_F64, t->vector[axis],
                   n_rows_of(t, axis) * d);
    return tables;
}

/* The products of a query with the vectors of an axis are added to its logits: z[distance + side - 1]. */
static void add_axis(const struct pe_rows *rows, size_t i, unsigned axis, const void *z, void *logits)
{
    const struct tables *t = rows->plan->tables;
    const struct pe_arithmetic *a = rows->a;
    size_t w = (size_t)t->side[1], side = (size_t)t->side[axis];
    size_t query = axis == REL_H ? (rows->i0 + i) / w : (rows->i0 + i) % w;
    for (size_t j = 0; j < rows->n_keys; j++) {
        size_t key = axis == REL_H ? (rows->j0 + j) / w : (rows->j0 + j) % w;
        pe_number_set(a, logits, j, pe_number(a, logits, j) + pe_number(a, z, query + side - 1 - key));
    }
}

static const char *const parts[] = {"content", "rows", "columns", NULL};

static void add_part(const struct pe_rows *rows, size_t part)
{
    const struct tables *t = rows->plan->tables;
    const struct pe_arithmetic *a = rows->a;
    unsigned axis = part == 1 ? REL_H : REL_W;
    size_t n = n_rows_of(t, axis), d = rows->head_dim;
    const void *vectors = pe_numbers_at(a, rows->tables, axis * n_rows_of(t, 0) * d);
    a->abt(rows->n_rows, n, d, 1, rows->q, d, vectors, d, 0, rows->scratch, n);
    for (size_t i = 0; i < rows->n_rows; i++)
        add_axis(rows, i, axis, pe_numbers_at(a, rows->scratch, i * n),
                 pe_numbers_at(a, rows->logits, i * rows->stride));
}

static const struct pe_attend attend = {
    .largest = largest,
    .room = room,
    .work = work,
    .open_head = open_head,
    .add_scores = pe_relative_add_parts,
    .parts = parts,
    .add_part = add_part,
};

static const struct pe_formula_line formula[] = {
    {"H = grid[0]", "the height of the grid"},
    {"W = grid[1]", "the width of the grid"},
    {"index_h[m, n] = floor(m/W) - floor(n/W) + H - 1", "the row of rel_h: rows from key to query"},
    {"index_w[m, n] = m mod W - n mod W + W - 1", "the row of rel_w: columns from key to query"},
    {"S[m, n] = sum(c, 0, head_dim - 1, softmax_scale*Q[h, m, c]*K[h, n, c] + Q[h, m, c]*(rel_h[index_h[m, n], c] + "
     "rel_w[index_w[m, n], c]))",
     "the logit: the query of the last two terms is not scaled"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_decomposed = {
    .info =
        {
            .name = "decomposed",
            .family = "relative",
            .about =
                {"decomposed relative positions",
                 "a learned vector for each distance of rows and of columns of a grid, multiplied by the query (SAM, "
                 "ViTDet, MViTv2)"},
            .paper = "Li et al. 2021, arXiv 2112.01526",
            .formula = formula,
            .example = "{\"scheme\":\"decomposed\",\"grid\":[2,3]}",
            .picture = "grid=6,6",
            .worked = "grid=2,3&query=5&key=1",
            .traps = "The query is scaled in the product with the key, and not in those with the two tables. "
                     "A table of another length than 2h - 1 is resized linearly.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct decomposed),
    .tables_bytes = sizeof(struct tables),
    .has_axes = true,
    .cost = decomposed_cost,
    .plan = decomposed_plan,
    .drop = decomposed_drop,
    .fill = decomposed_fill,
    .derive = derive,
    .attend = &attend,
};
