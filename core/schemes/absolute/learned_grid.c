/* A learned table of a grid of one, two or three axes: as files have it, resized to the grid of the sequence, with a
 * second table repeated over it; and what float32 loses of one.
 *
 *     PE((y, x), j) = sum over a, b of wy[y, a] wx[x, b] table[num_prefix + a·w + b, j]
 *                     + window_table[y mod h', x mod w', j]
 *
 * Resizing is separable, so its weights are prepared once for each axis (core/numeric/resample.c), and a row of the
 * result reads at most four rows of each axis, but where the grid shrinks with antialias. Sums run over the taps of the
 * first axis, of each over those of the next, in double, so a value does not depend on how many columns are asked
 * for. */
#include "core/schemes/absolute/absolute.h"

#include <stdio.h>
#include <string.h>

enum { TABLE = PE_LEARNED_TABLE, WINDOW = PE_LEARNED_WINDOW, TILE = PE_LEARNED_TILE };

/* ---- Tables as files have them ---- */

static bool are_sides(const uint64_t *shape, const uint64_t *sides, unsigned n)
{
    return memcmp(shape, sides, n * sizeof *sides) == 0;
}

/* The sides of the table, if the request states them: table_grid, or the grid of a table that is not resized. Their
 * number; 0: it does not. */
static unsigned stated_sides(const struct pe_plan *plan, uint64_t *sides)
{
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    unsigned n = c->table_grid.n ? (unsigned)c->table_grid.n : s->is_resized ? 0 : plan->seq.n_grid;
    if (n > PE_LEARNED_AXES_MAX)
        return 0;
    for (unsigned a = 0; a < n; a++)
        sides[a] = c->table_grid.n ? (uint64_t)pe_real_at(&c->table_grid, a) : plan->seq.grid[a];
    return n;
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
    uint64_t *shape = w->tensor.shape, rows = 1, width = shape[is_by_column ? 0 : w->tensor.rank - 1];
    for (unsigned a = 0; a + 1 < w->tensor.rank; a++)
        rows *= shape[a + is_by_column];
    w->is_by_column = is_by_column;
    w->tensor.rank = 2;
    shape[0] = rows;
    shape[1] = width;
}

/* table_grid, which only the table itself states. */
static void keep_sides(struct learned *c, const uint64_t *sides, unsigned n)
{
    for (unsigned a = 0; a < n; a++)
        c->stored_grid[a] = (int64_t)sides[a];
    c->table_grid.array = (struct pe_tensor){.dtype = PE_I64, .rank = 1, .shape = {n}, .data = c->stored_grid};
    c->table_grid.n = n;
}

/* The sides that a table's shape states, as many as the grid has axes: of [h,w,C] and [1,h,w,C], not of [1,rows,C].
 * NULL: it states none. */
static const uint64_t *own_sides(const struct pe_plan *plan)
{
    const struct pe_tensor *t = &plan->weights[TABLE].tensor;
    unsigned n = plan->seq.n_grid;
    if (!pe_weights_sent(plan, TABLE) || n < 2 || n > PE_LEARNED_AXES_MAX)
        return NULL;
    if (t->rank == n + 2 && t->shape[0] == 1)
        return t->shape + 1;
    return t->rank == n + 1 && t->shape[0] > 1 ? t->shape : NULL;
}

bool pe_learned_has_other_grid(const struct pe_plan *plan)
{
    const struct pe_tensor *t = &plan->weights[TABLE].tensor;
    const uint64_t *sides = own_sides(plan), *grid = plan->seq.grid;
    unsigned n = plan->seq.n_grid;
    bool is_by_column = sides && are_sides(t->shape + t->rank - n, grid, n);
    return sides && !is_by_column && (pe_weights_sent(plan, WINDOW) || !are_sides(sides, grid, n));
}

/* Of a grid of one axis all rows behind the prefix. */
static void keep_own_sides(struct pe_plan *plan)
{
    struct learned *c = plan->config;
    const uint64_t *sides = own_sides(plan);
    struct pe_tensor *t = &plan->weights[TABLE].tensor;
    if (sides) {
        keep_sides(c, sides, plan->seq.n_grid);
        drop_ones(t, plan->seq.n_grid + 1);
        return;
    }
    drop_ones(t, 2);
    uint64_t n_prefix = (uint64_t)c->num_prefix, rows = t->shape[0] - n_prefix;
    if (plan->seq.n_grid == 1 && t->rank == 2 && t->shape[0] > n_prefix)
        keep_sides(c, &rows, 1);
}

void pe_learned_fold(struct pe_plan *plan)
{
    const struct pe_learned_tables *s = plan->tables;
    struct pe_weights *w = &plan->weights[TABLE];
    struct pe_tensor *t = &w->tensor;
    uint64_t sides[PE_LEARNED_AXES_MAX];
    unsigned n = stated_sides(plan, sides);
    if (!pe_weights_sent(plan, TABLE))
        return;
    bool is_by_column = n > 1 && t->rank > n && are_sides(t->shape + t->rank - n, sides, n) &&
                        !are_sides(t->shape + t->rank - n - 1, sides, n);
    if (s->is_resized && !n)
        keep_own_sides(plan);
    else
        drop_ones(t, is_by_column ? n + 1 : 2);
    if (t->rank > 2 && t->rank <= PE_LEARNED_AXES_MAX + 1 && (!n || t->rank == n + 1))
        join_sides(w, is_by_column);
}

/* ---- The plan ---- */

static enum pe_status check_grid(const struct pe_plan *plan, struct pe_failure *err)
{
    bool is_asked = pe_plan_gave_itself(plan, "interpolate") || pe_plan_gave_itself(plan, "table_grid");
    if (plan->seq.n_grid == 0)
        return pe_fail(err, is_asked ? "/interpolate" : "/grid", /* a model resizes, and the request lacks its grid */
                       "interpolate needs a grid [h,w] to resize the table to");
    if (plan->seq.n_grid > PE_LEARNED_AXES_MAX)
        return pe_fail(err, "/grid", "grid has %u axes; allowed with interpolate: 1 to %d", plan->seq.n_grid,
                       PE_LEARNED_AXES_MAX);
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        if (plan->seq.grid[a] > 65536)
            return pe_fail(err, "/grid", "grid has an axis of %llu; allowed with interpolate: up to 65536",
                           (unsigned long long)plan->seq.grid[a]);
    return PE_OK;
}

static enum pe_status check_table_grid(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    bool is_right = c->table_grid.array.rank == 1 && c->table_grid.n == plan->seq.n_grid;
    for (uint64_t a = 0; is_right && a < c->table_grid.n; a++)
        is_right = pe_real_at(&c->table_grid, a) == floor(pe_real_at(&c->table_grid, a));
    if (is_right)
        return PE_OK;
    return pe_fail(err, "/table_grid",
                   "interpolate needs table_grid, the grid the table was trained on: as many integers as grid has "
                   "axes, here %u",
                   plan->seq.n_grid);
}

static bool is_cubic(const struct learned *c) { return pe_resample_is_cubic((enum pe_resample_kind)c->interpolate); }

static double cubic_a(const struct learned *c)
{
    return isnan(c->cubic_a) ? pe_resample_cubic_a((enum pe_resample_kind)c->interpolate) : c->cubic_a;
}

/* "4 × 6" */
enum { PRODUCT_ROOM = 32 * PE_LEARNED_AXES_MAX };
static void print_product(const double *x, unsigned n, char *out)
{
    for (unsigned a = 0, used = 0; a < n; a++)
        used += (unsigned)snprintf(out + used, PRODUCT_ROOM - used, "%s%.0f", a ? " × " : "", x[a]);
}

/* Shrinking with antialias reads every row in between. */
static enum pe_status check_taps(const struct pe_plan *plan, const uint64_t *sides, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    double each[PE_LEARNED_AXES_MAX], rows = 1;
    char product[PRODUCT_ROOM];
    for (unsigned a = 0; a < plan->seq.n_grid; a++) {
        each[a] = (is_cubic(c) ? 4 : 2) * fmax(1, (double)sides[a] / (double)plan->seq.grid[a]);
        each[a] = fmin(ceil(each[a]), (double)sides[a]);
        rows *= each[a];
    }
    if (!pe_resample_is_antialiased((enum pe_resample_kind)c->interpolate) || rows <= PE_RESAMPLE_TAPS_MAX)
        return PE_OK;
    print_product(each, plan->seq.n_grid, product);
    pe_fail(err, "/table_grid", "each row would be a sum of %s rows of the table; allowed: at most %d", product,
            PE_RESAMPLE_TAPS_MAX);
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
    double each[PE_LEARNED_AXES_MAX], cells = 1, rows;
    char product[PRODUCT_ROOM];
    enum pe_status status = pe_learned_fix(plan, err);
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        cells *= each[a] = (double)sides[a];
    print_product(each, plan->seq.n_grid, product);
    rows = (double)c->num_prefix + cells;
    if (status)
        return status;
    if (rows > PE_POSITION_MAX)
        return pe_fail(err, "/table_grid", "table_grid has %s = %.0f rows; allowed: up to 2^40", product, cells);
    if (pe_weights_sent(plan, TABLE) && (double)c->rows != rows)
        return pe_fail(err, "/table", "table has %lld rows; needed: num_prefix %lld + table_grid %s = %.0f",
                       (long long)c->rows, (long long)c->num_prefix, product, rows);
    c->rows = (int64_t)rows;
    return pe_weights_need(plan, TABLE, (const uint64_t[]){(uint64_t)rows, (uint64_t)c->dim}, 2, err);
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
    if (plan->seq.n_grid != 2)
        return pe_fail(err, "/window_table", "window_table is repeated over a grid [h,w]; grid has %u axes",
                       plan->seq.n_grid);
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
        status = check_grid(plan, err);
    if (!status)
        status = check_table_grid(plan, err);
    if (status)
        return status;
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        s->sides[a] = (uint64_t)pe_real_at(&c->table_grid, a);
    status = need_table(plan, s->sides, err);
    if (!status)
        status = take_window(plan, s, err);
    if (!status)
        status = check_taps(plan, s->sides, err);
    struct pe_resample how = {(enum pe_resample_kind)c->interpolate,
                              isnan(c->interpolate_offset) ? 0 : c->interpolate_offset, cubic_a(c)};
    for (unsigned a = 0; a < plan->seq.n_grid && !status; a++)
        if (pe_resample_init(&s->taps[a], &how, s->sides[a], plan->seq.grid[a]))
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

/* The next of n numbers below most[a] each, the last fastest; false: there is none. */
static bool count_on(uint64_t *at, const uint64_t *most, unsigned n)
{
    while (n-- > 0) {
        if (++at[n] < most[n])
            return true;
        at[n] = 0;
    }
    return false;
}

static void resize(const struct pe_plan *plan, const uint64_t *place, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    uint64_t tap[PE_LEARNED_AXES_MAX] = {0}, n_taps[PE_LEARNED_AXES_MAX];
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        n_taps[a] = s->taps[a].n_taps;
    memset(out, 0, n * sizeof *out);
    do {
        double weight = 1;
        uint64_t cell = 0;
        for (unsigned a = 0; a < plan->seq.n_grid; a++) {
            uint64_t at = place[a] * n_taps[a] + tap[a];
            weight *= s->taps[a].weight[at];
            cell = cell * s->sides[a] + (uint64_t)s->taps[a].index[at];
        }
        if (weight != 0)
            add_row(plan, TABLE, (uint64_t)c->num_prefix + cell, weight, col, n, out);
    } while (count_on(tap, n_taps, plan->seq.n_grid));
    if (s->window[0])
        add_row(plan, WINDOW, place[0] % s->window[0] * s->window[1] + place[1] % s->window[1], 1, col, n, out);
}

/* The place in the grid of a row behind the prefix. */
static void place_of(const struct pe_plan *plan, uint64_t i, uint64_t *place)
{
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        place[a] = (uint64_t)pe_position_at(&plan->seq.k[a], i);
}

void pe_learned_resized_row(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix, place[PE_LEARNED_AXES_MAX];
    if (i < n_prefix) {
        memset(out, 0, n * sizeof *out);
        add_row(plan, TABLE, i, 1, col, n, out);
        return;
    }
    place_of(plan, i - n_prefix, place);
    resize(plan, place, col, n, out);
}

/* ---- One number ---- */

/* The rows that it is a sum of, of most weight first where they are too many to show. */
void pe_learned_resized_derive(const struct pe_plan *plan, const struct pe_address *to, struct pe_derivation *d)
{
    static const char *const symbols[] = {"x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",
                                          "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16"};
    enum { SHOWN = sizeof symbols / sizeof *symbols };
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    uint64_t n_prefix = (uint64_t)c->num_prefix, place[PE_LEARNED_AXES_MAX], tap[PE_LEARNED_AXES_MAX] = {0},
             n_taps[PE_LEARNED_AXES_MAX];
    unsigned n_axes = plan->seq.n_grid, n = 0;
    struct pe_dd sum = dd(0);
    if (to->row < n_prefix) {
        double v = 0;
        add_row(plan, TABLE, to->row, 1, to->col, 1, &v);
        pe_derived(d, "x", dd(v), "table[%llu, %llu]", (unsigned long long)to->row, (unsigned long long)to->col);
        pe_derived_says(d, "a prefix row is not resized");
        return;
    }
    place_of(plan, to->row - n_prefix, place);
    for (unsigned a = 0; a < n_axes; a++)
        n_taps[a] = s->taps[a].n_taps;
    do {
        char weights[PE_DERIVED_BYTES / 2] = "";
        double weight = 1, v = 0;
        uint64_t cell = n_prefix;
        for (unsigned a = 0, used = 0; a < n_axes; a++) {
            uint64_t at = place[a] * n_taps[a] + tap[a], step = 1;
            for (unsigned b = a + 1; b < n_axes; b++)
                step *= s->sides[b];
            weight *= s->taps[a].weight[at];
            cell += (uint64_t)s->taps[a].index[at] * step;
            used += (unsigned)snprintf(weights + used, sizeof weights - used, "·%s",
                                       pe_brief(dd(s->taps[a].weight[at]), 7).text);
        }
        if (weight == 0)
            continue;
        add_row(plan, TABLE, cell, 1, to->col, 1, &v);
        struct pe_dd x = dd_two_prod(weight, v);
        sum = dd_add(sum, x);
        if (n < SHOWN)
            pe_derived(d, symbols[n], x, "table[%llu, %llu]%s = %s%s", (unsigned long long)cell,
                       (unsigned long long)to->col, weights, pe_shown(v).text, weights);
        n++;
    } while (count_on(tap, n_taps, n_axes));
    if (s->window[0]) {
        double v = 0;
        add_row(plan, WINDOW, place[0] % s->window[0] * s->window[1] + place[1] % s->window[1], 1, to->col, 1, &v);
        sum = dd_add(sum, pe_derived(d, "v", dd(v), "window_table[%llu, %llu, %llu]",
                                     (unsigned long long)(place[0] % s->window[0]),
                                     (unsigned long long)(place[1] % s->window[1]), (unsigned long long)to->col));
    }
    pe_derived(d, "x", sum, s->window[0] ? "Σ + v" : "Σ");
    pe_derived_says(d, "the sum of %u rows with their weights (%s)", n, pe_resample_words[c->interpolate]);
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

static void add_slopes(const struct learned *c, uint64_t n_rows, const double *apart, const double *most, size_t n,
                       double *loss)
{
    double steeper = is_cubic(c) ? fmax(1, -cubic_a(c) / 0.75) : 1;
    for (size_t j = 0; j < n; j++)
        loss[j] += is_cubic(c) ? 0x1p-21 * steeper * (double)n_rows * apart[j] + 0x1p-20 * most[j]
                               : 0x1p-22 * (double)n_rows * apart[j] + 0x1p-23 * most[j];
}

void pe_learned_add_loss(const struct pe_plan *plan, const struct pe_learned_run *runs, unsigned n_axes, uint64_t col,
                         size_t n, double *loss)
{
    double values[2][TILE], apart[TILE] = {0}, most[TILE] = {0};
    uint64_t at[PE_LEARNED_AXES_MAX] = {0}, count[PE_LEARNED_AXES_MAX] = {0};
    const struct pe_learned_run *along = runs;
    for (unsigned a = 0; a < n_axes; a++)
        count[a] = a == 0 ? 1 : runs[a].last - runs[a].first + 1;
    do {
        uint64_t row = (uint64_t)((const struct learned *)plan->config)->num_prefix;
        for (unsigned a = 1; a < n_axes; a++)
            row += (runs[a].first + at[a]) * runs[a].step;
        for (uint64_t i = along->first; i <= along->last; i++) {
            double *now = values[i % 2], *before = i > along->first ? values[(i + 1) % 2] : now;
            const struct pe_weights *table = &plan->weights[TABLE];
            pe_weights_read(table, (row + i * along->step) * table->tensor.shape[1] + col, n, now);
            for (size_t j = 0; j < n; j++) {
                most[j] = larger(most[j], fabs(now[j]));
                apart[j] = larger(apart[j], fabs(now[j] - before[j]));
            }
        }
    } while (count_on(at, count, n_axes));
    add_slopes(plan->config, along->n, apart, most, n, loss);
}

/* The rows of an axis that row o of the result reads. The slope of a linear kernel jumps at a row, and the coordinate
 * of an element there may be on either side. */
static struct pe_learned_run run_of(const struct pe_plan *plan, unsigned axis, uint64_t o)
{
    const struct pe_learned_tables *s = plan->tables;
    const struct pe_resample_taps *t = &s->taps[axis];
    const struct learned *c = plan->config;
    uint64_t n = s->sides[axis], first = (uint64_t)t->index[o * t->n_taps],
             last = (uint64_t)t->index[(o + 1) * t->n_taps - 1], step = 1;
    first -= !is_cubic(c) && first > 0;
    last += !is_cubic(c) && last < n - 1;
    for (unsigned a = axis + 1; a < plan->seq.n_grid; a++)
        step *= s->sides[a];
    return (struct pe_learned_run){first, last, n, step};
}

void pe_learned_resized_loss(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix, place[PE_LEARNED_AXES_MAX];
    unsigned n_axes = plan->seq.n_grid;
    struct pe_learned_run runs[PE_LEARNED_AXES_MAX];
    if (i < n_prefix)
        return;
    place_of(plan, i - n_prefix, place);
    for (unsigned along = 0; along < n_axes; along++) {
        for (unsigned a = 0; a < n_axes; a++)
            runs[a] = run_of(plan, (along + a) % n_axes, place[(along + a) % n_axes]);
        pe_learned_add_loss(plan, runs, n_axes, col, n, loss);
    }
}
