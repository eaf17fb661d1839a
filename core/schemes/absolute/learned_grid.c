/* A learned table of a grid: as files have it, resized to the grid of the sequence, with a second table repeated over
 * it; and what float32 loses of one.
 *
 *     PE((y, x), j) = sum over a, b of wy[y, a] wx[x, b] table[num_prefix + a·w + b, j]
 *                     + window_table[y mod h', x mod w', j]
 *
 * Resizing is separable, so its weights are prepared once for each axis (core/numeric/resample.c), and a row of the
 * result reads at most four rows by four, but where the grid shrinks with antialias. Sums run over a, then b, in
 * double, so a value does not depend on how many columns are asked for. */
#include "core/schemes/absolute/absolute.h"

#include <string.h>

enum { TABLE = PE_LEARNED_TABLE, WINDOW = PE_LEARNED_WINDOW, TILE = PE_LEARNED_TILE };

/* ---- Tables as files have them ---- */

static bool are_sides(const uint64_t *shape, const uint64_t *sides)
{
    return sides && shape[0] == sides[0] && shape[1] == sides[1];
}

/* The sides of the table, if the request states them: table_grid, or the grid of a table that is not resized. */
static const uint64_t *stated_sides(const struct pe_plan *plan, uint64_t *sides)
{
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    for (uint64_t a = 0; a < 2 && c->table_grid.n == 2; a++)
        sides[a] = (uint64_t)pe_real_at(&c->table_grid, a);
    if (c->table_grid.n == 2)
        return sides;
    return !s->is_resized && plan->seq.n_grid == 2 ? plan->seq.grid : NULL;
}

/* [1,h,w,C] and the like: axes of one in front say nothing, but the rows of [1,h,w] are columns if that is C,h,w. */
static void drop_ones(struct pe_tensor *t, unsigned rank)
{
    for (; t->rank > rank && t->shape[0] == 1; t->rank--)
        memmove(t->shape, t->shape + 1, (t->rank - 1) * sizeof *t->shape);
}

/* [h,w,C] as [h·w, C]; of [C,h,w] the columns are the rows. */
static void join_sides(struct pe_weights *w, bool is_by_column)
{
    uint64_t *shape = w->tensor.shape, rows = is_by_column ? shape[1] * shape[2] : shape[0] * shape[1],
             width = is_by_column ? shape[0] : shape[2];
    w->is_by_column = is_by_column;
    w->tensor.rank = 2;
    shape[0] = rows;
    shape[1] = width;
}

void pe_learned_fold(struct pe_plan *plan)
{
    struct learned *c = plan->config;
    struct pe_learned_tables *s = plan->tables;
    struct pe_weights *w = &plan->weights[TABLE];
    struct pe_tensor *t = &w->tensor;
    uint64_t room[2];
    if (!pe_weights_sent(plan, TABLE) || t->rank < 3)
        return;
    const uint64_t *sides = stated_sides(plan, room);
    bool is_by_column = are_sides(t->shape + t->rank - 2, sides) && !are_sides(t->shape + t->rank - 3, sides);
    drop_ones(t, is_by_column ? 3 : 2);
    if (t->rank != 3)
        return;
    if (s->is_resized && !sides) {
        c->stored_grid[0] = (int64_t)t->shape[0];
        c->stored_grid[1] = (int64_t)t->shape[1];
        c->table_grid.array = (struct pe_tensor){.dtype = PE_I64, .rank = 1, .shape = {2}, .data = c->stored_grid};
        c->table_grid.n = 2;
    }
    join_sides(w, is_by_column);
}

/* ---- The plan ---- */

static enum pe_status check_table_grid(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    if (plan->seq.n_grid != 2) {
        bool is_asked = pe_plan_gave_itself(plan, "interpolate") || pe_plan_gave_itself(plan, "table_grid");
        return pe_fail(err, is_asked ? "/interpolate" : "/grid", /* a model resizes, and the request lacks its grid */
                       "interpolate needs a grid [h,w] to resize the table to");
    }
    for (int a = 0; a < 2; a++)
        if (plan->seq.grid[a] > 65536)
            return pe_fail(err, "/grid", "grid has an axis of %llu; allowed with interpolate: up to 65536",
                           (unsigned long long)plan->seq.grid[a]);
    if (c->table_grid.array.rank != 1 || c->table_grid.n != 2 ||
        pe_real_at(&c->table_grid, 0) != floor(pe_real_at(&c->table_grid, 0)) ||
        pe_real_at(&c->table_grid, 1) != floor(pe_real_at(&c->table_grid, 1)))
        return pe_fail(err, "/table_grid",
                       "interpolate needs table_grid, two integers [h,w]: the grid the table was "
                       "trained on");
    return PE_OK;
}

static bool is_cubic(const struct learned *c) { return pe_resample_is_cubic((enum pe_resample_kind)c->interpolate); }

static double cubic_a(const struct learned *c)
{
    return isnan(c->cubic_a) ? pe_resample_cubic_a((enum pe_resample_kind)c->interpolate) : c->cubic_a;
}

/* Shrinking with antialias reads every row in between. */
static enum pe_status check_taps(const struct pe_plan *plan, uint64_t h, uint64_t w, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    double width = is_cubic(c) ? 4 : 2, rows = width * fmax(1, (double)h / (double)plan->seq.grid[0]),
           cols = width * fmax(1, (double)w / (double)plan->seq.grid[1]);
    if (!pe_resample_is_antialiased((enum pe_resample_kind)c->interpolate) || rows * cols <= PE_RESAMPLE_TAPS_MAX)
        return PE_OK;
    pe_fail(err, "/table_grid", "each row would be a sum of %.0f × %.0f rows of the table; allowed: at most %d", rows,
            cols, PE_RESAMPLE_TAPS_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status resolve_kernel(struct learned *c, struct pe_failure *err)
{
    if (c->interpolate == PE_UNSET_WORD)
        c->interpolate = PE_BICUBIC;
    if (!isnan(c->cubic_a) && !is_cubic(c))
        return pe_fail(err, "/cubic_a",
                       "cubic_a is not used with %s; it is the parameter of bicubic and bicubic_antialias",
                       pe_resample_words[c->interpolate]);
    if (!isnan(c->interpolate_offset) && c->interpolate_offset != 0 && c->interpolate == PE_BILINEAR_ALIGNED)
        return pe_fail(err, "/interpolate_offset",
                       "interpolate_offset is not used with bilinear_aligned, which has the first and the last row at "
                       "the ends");
    return PE_OK;
}

/* The rows of the table that was sent are those of its grid. */
static enum pe_status need_table(struct pe_plan *plan, const uint64_t *sides, struct pe_failure *err)
{
    struct learned *c = plan->config;
    uint64_t rows = (uint64_t)c->num_prefix + sides[0] * sides[1];
    enum pe_status status = pe_learned_fix(plan, err);
    if (status)
        return status;
    if (pe_weights_sent(plan, TABLE) && (uint64_t)c->rows != rows)
        return pe_fail(err, "/table", "table has %lld rows; needed: num_prefix %lld + table_grid %llu × %llu = %llu",
                       (long long)c->rows, (long long)c->num_prefix, (unsigned long long)sides[0],
                       (unsigned long long)sides[1], (unsigned long long)rows);
    c->rows = (int64_t)rows;
    return pe_weights_need(plan, TABLE, (const uint64_t[]){rows, (uint64_t)c->dim}, 2, err);
}

static enum pe_status take_window(struct pe_plan *plan, struct pe_learned_tables *s, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct pe_weights *w = &plan->weights[WINDOW];
    struct pe_tensor *t = &w->tensor;
    uint64_t dim = (uint64_t)c->dim;
    char sent[128];
    if (!pe_weights_sent(plan, WINDOW))
        return PE_OK;
    drop_ones(t, 3);
    bool is_by_column = t->rank == 3 && t->shape[2] != dim;
    if (t->rank != 3 || t->shape[is_by_column ? 0 : 2] != dim) {
        pe_shape_print(t->shape, t->rank, sent, sizeof sent);
        return pe_fail(err, "/window_table", "window_table has the shape %s; needed: [h,w,%llu] or [%llu,h,w]", sent,
                       (unsigned long long)dim, (unsigned long long)dim);
    }
    s->window[0] = t->shape[is_by_column];
    s->window[1] = t->shape[is_by_column + 1];
    join_sides(w, is_by_column);
    return PE_OK;
}

enum pe_status pe_learned_resized_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct pe_learned_tables *s = plan->tables;
    enum pe_status status = resolve_kernel(plan->config, err);
    if (!status)
        status = check_table_grid(plan, err);
    if (status)
        return status;
    uint64_t sides[2] = {(uint64_t)pe_real_at(&c->table_grid, 0), (uint64_t)pe_real_at(&c->table_grid, 1)};
    s->table_width = sides[1];
    status = need_table(plan, sides, err);
    if (!status)
        status = take_window(plan, s, err);
    if (!status)
        status = check_taps(plan, sides[0], sides[1], err);
    struct pe_resample how = {(enum pe_resample_kind)c->interpolate,
                              isnan(c->interpolate_offset) ? 0 : c->interpolate_offset, cubic_a(c)};
    for (int a = 0; a < 2 && !status; a++)
        if (pe_resample_init(&s->taps[a], &how, sides[a], plan->seq.grid[a]))
            status = pe_no_memory(err);
    plan->pace = PE_SLOW;
    return status;
}

/* ---- Rows ---- */

static void add_row(const struct pe_plan *plan, size_t id, uint64_t row, double weight, uint64_t col, size_t n,
                    double *sum)
{
    double values[TILE];
    pe_weights_read(&plan->weights[id], row * plan->weights[id].tensor.shape[1] + col, n, values);
    for (size_t j = 0; j < n; j++)
        sum[j] += weight * values[j];
}

static void resize(const struct pe_plan *plan, uint64_t y, uint64_t x, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    const struct pe_resample_taps *v = &s->taps[0], *h = &s->taps[1];
    memset(out, 0, n * sizeof *out);
    for (unsigned a = 0; a < v->n_taps; a++)
        for (unsigned b = 0; b < h->n_taps; b++) {
            double weight = v->weight[y * v->n_taps + a] * h->weight[x * h->n_taps + b];
            uint64_t cell =
                (uint64_t)v->index[y * v->n_taps + a] * s->table_width + (uint64_t)h->index[x * h->n_taps + b];
            if (weight != 0)
                add_row(plan, TABLE, (uint64_t)c->num_prefix + cell, weight, col, n, out);
        }
    if (s->window[0])
        add_row(plan, WINDOW, y % s->window[0] * s->window[1] + x % s->window[1], 1, col, n, out);
}

void pe_learned_resized_row(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix;
    const struct pe_positions *k = plan->seq.k;
    if (i < n_prefix) {
        memset(out, 0, n * sizeof *out);
        add_row(plan, TABLE, i, 1, col, n, out);
        return;
    }
    i -= n_prefix;
    resize(plan, (uint64_t)pe_position_at(&k[0], i), (uint64_t)pe_position_at(&k[1], i), col, n, out);
}

/* ---- What float32 loses ----
 *
 * Libraries compute in float32 the coordinate x in an axis of M rows, rounded three times, so it is off by at most
 * 3·M·2^-24. An element is off by that times its slope: at most the largest difference D of neighbouring rows that it
 * reads, of a cubic 1.5·D along the axis, and what it reads across has weights of up to 1.375 together. The weights of
 * a cubic are computed as polynomials whose terms cancel, so they do not sum to 1. In all, on each axis:
 *
 *     linear   M·2^-22 · D + 2^-23 · the largest number read
 *     cubic    M·2^-21 · D + 2^-20 · the largest number read
 *
 * for a = -0.75; the slope of a kernel with a larger one is at most in proportion. */

static double larger(double a, double b) { return a > b ? a : b; }

void pe_learned_add_loss(const struct pe_plan *plan, const struct pe_learned_run *along,
                         const struct pe_learned_run *across, uint64_t col, size_t n, double *loss)
{
    const struct learned *c = plan->config;
    const struct pe_weights *table = &plan->weights[TABLE];
    double values[2][TILE], apart[TILE] = {0}, most[TILE] = {0};
    for (uint64_t b = across->first; b <= across->last; b++)
        for (uint64_t a = along->first; a <= along->last; a++) {
            double *now = values[a % 2], *before = a > along->first ? values[(a + 1) % 2] : now;
            uint64_t row = (uint64_t)c->num_prefix + a * along->step + b * across->step;
            pe_weights_read(table, row * table->tensor.shape[1] + col, n, now);
            for (size_t j = 0; j < n; j++) {
                most[j] = larger(most[j], fabs(now[j]));
                apart[j] = larger(apart[j], fabs(now[j] - before[j]));
            }
        }
    double steeper = is_cubic(c) ? fmax(1, -cubic_a(c) / 0.75) : 1;
    for (size_t j = 0; j < n; j++)
        loss[j] += is_cubic(c) ? 0x1p-21 * steeper * (double)along->n * apart[j] + 0x1p-20 * most[j]
                               : 0x1p-22 * (double)along->n * apart[j] + 0x1p-23 * most[j];
}

/* The rows of an axis that row o of the result reads. The slope of a linear kernel jumps at a row, and the coordinate
 * of an element there may be on either side. */
static struct pe_learned_run run_of(const struct pe_plan *plan, unsigned axis, uint64_t o)
{
    const struct pe_learned_tables *s = plan->tables;
    const struct pe_resample_taps *t = &s->taps[axis];
    const struct learned *c = plan->config;
    uint64_t n = (uint64_t)pe_real_at(&c->table_grid, axis), first = (uint64_t)t->index[o * t->n_taps],
             last = (uint64_t)t->index[(o + 1) * t->n_taps - 1];
    first -= !is_cubic(c) && first > 0;
    last += !is_cubic(c) && last < n - 1;
    return (struct pe_learned_run){first, last, n, axis == 0 ? s->table_width : 1};
}

void pe_learned_resized_loss(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix;
    const struct pe_positions *k = plan->seq.k;
    if (i < n_prefix)
        return;
    struct pe_learned_run y = run_of(plan, 0, (uint64_t)pe_position_at(&k[0], i - n_prefix)),
                          x = run_of(plan, 1, (uint64_t)pe_position_at(&k[1], i - n_prefix));
    pe_learned_add_loss(plan, &y, &x, col, n, loss);
    pe_learned_add_loss(plan, &x, &y, col, n, loss);
}
