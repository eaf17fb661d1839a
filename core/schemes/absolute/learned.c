/* Learned positions: one table row for each position (BERT, GPT-2); on a grid, a table resized to the grid (ViT), or
 * one table for rows and one for columns (DETR).
 *
 *     PE(p, j) = table[p + row_offset, j]
 *     PE((y, x), j) = [col_table[x], row_table[y]]                      DETR: the columns' channels come first
 *     PE((y, x), j) = sum over a, b of wy[y, a] wx[x, b] table[num_prefix + a·w + b, j]
 *                     + window_table[y mod h', x mod w', j]             resized to a grid of one, two or three axes
 *
 * A table ends, which is what a learned encoding cannot do without: a position beyond it is refused, or treated as the
 * request chooses (clamp, wrap, zero, stretch, rows of the seed), which libraries do without a word.
 *
 * Resizing is separable, so its weights are prepared once for each axis (core/numeric/resample.c), and a row of the
 * result reads at most four rows of each axis, but where the grid shrinks with antialias. Sums run over the taps of the
 * first axis, of each over those of the next, in double, so a value does not depend on how many columns are asked
 * for. */
#include "core/schemes/absolute/absolute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum policy { ERROR, CLAMP, WRAP, ZERO, STRETCH, SEEDED };
enum { TABLE, ROW_TABLE, COL_TABLE, WINDOW }; /* inputs */
enum { TILE = 1024 };                         /* columns at a time */
enum { AXES_MAX = 3 };                        /* of a table that is resized */

struct learned {
    int64_t dim, rows, row_offset;
    int out_of_range, interpolate;
    double cubic_a, interpolate_offset;
    struct pe_reals table_grid; /* once planned, the list below if only the table's shape has it */
    int64_t num_prefix;
    int64_t seed;
    double std;
    int64_t stored_grid[AXES_MAX];
};

/* plan->tables */
struct tables {
    bool is_split;                          /* a table for each axis */
    bool is_resized;                        /* a table resized to the grid */
    struct pe_resample_taps taps[AXES_MAX]; /* of each axis of the grid */
    uint64_t sides[AXES_MAX];               /* table_grid */
    uint64_t window[2];                     /* rows and columns of window_table; 0: none */
    double stretch;                         /* interpolate: place in the table = row_offset + position · stretch */
};

static const char *const policies[] = {[ERROR] = "error",
                                       [CLAMP] = "clamp",
                                       [WRAP] = "wrap",
                                       [ZERO] = "zero",
                                       [STRETCH] = "interpolate",
                                       [SEEDED] = "seeded",
                                       NULL};

static const struct pe_param params[] = {
    PE_P_INT(learned, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding; if a table is sent, its own",
             .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_INT(learned, rows, PE_UNSET, 1, PE_POSITION_MAX, "table rows",
             "rows of the table; if a table is sent, its own; else as many as the positions need", .group = PE_G_SIZE,
             .usual = {1, 1024}),
    PE_P_INT(learned, row_offset, 0, -PE_POSITION_MAX, PE_POSITION_MAX, "row offset",
             "added to each position to get its row; OPT, BART and RoBERTa use 2 (padding_idx + 1)", .usual = {0, 16}),
    PE_P_WORD(
        learned, out_of_range, policies, "outside the table",
        "for a position without a row. error; clamp: the first or last row; wrap: modulo the number of rows; zero; "
        "interpolate: stretch the table so that its last row is at the largest position, and interpolate between rows; "
        "seeded: the row that a table of `seed` and `std` has there"),
    {.name = "interpolate",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(learned, interpolate, int),
     .fallback = PE_UNSET_WORD,
     .words = pe_resample_words,
     .about = {"resizing of the grid",
               "how table_grid is resized to the grid: bicubic (ViT, DeiT, DINO; a -0.75), bicubic_antialias (timm; a "
               "-0.5), bilinear, bilinear_aligned (Qwen3-VL), bilinear_antialias (SigLIP 2); default bicubic with "
               "table_grid"},
     .group = PE_G_AXES},
    PE_P_REAL(
        learned, cubic_a, PE_UNSET, -1, 0, "parameter of the cubic kernel",
        "Keys' a of the cubic kernels; default -0.75 for bicubic (torch, MLX), -0.5 for bicubic_antialias (torch, "
        "PIL); -0.5 without antialias in TensorFlow",
        .group = PE_G_AXES, .usual = {-0.75, -0.5}),
    PE_P_REAL(
        learned, interpolate_offset, PE_UNSET, 0, 0.99, "offset of the resized grid",
        "an axis of M table rows is read at (o+1/2)·M/(n+interpolate_offset) - 1/2 for row o of n; 0.1 in DINO and "
        "DINOv2; default 0",
        .group = PE_G_AXES, .usual = {0, 0.1}),
    PE_P_REALS(
        learned, table_grid, 1, 65536, "grid of the table",
        "the grid that the table was trained on: [h,w], or [n], [t,h,w], as many axes as grid; default those of a "
        "table [h,w,dim], or all rows",
        .group = PE_G_AXES),
    PE_P_INT(learned, num_prefix, 0, 0, 65536, "prefix rows",
             "number of first rows that are not patches (class token, registers); they precede the rows of the grid "
             "unchanged",
             .group = PE_G_AXES, .usual = {0, 16}),
    PE_P_SEED(learned),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n+num_prefix,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position"),
    {.name = NULL},
};

static const struct pe_input_row inputs[] = {
    [TABLE] = PE_INPUT("table", "rows,dim", PE_ENCODE, false, "table",
                       "the learned rows; also as files have them: [1,rows,dim], [h,w,dim], [1,h,w,dim], and with "
                       "table_grid [dim,h,w]"),
    [ROW_TABLE] = PE_INPUT("row_table", "rows,dim/2", PE_ENCODE, false, "row table",
                           "on a grid: the second half of the channels, for each row of the grid"),
    [COL_TABLE] = PE_INPUT("col_table", "rows,dim/2", PE_ENCODE, false, "column table",
                           "on a grid: the first half of the channels, for each column of the grid"),
    [WINDOW] = PE_INPUT("window_table", "h,w,dim", PE_ENCODE, false, "window table",
                        "a second table, of a window, that is repeated over the grid and added to the "
                        "resized one (SAM 2); also [dim,h,w]"),
    {.name = NULL},
};

/* ---- Which rows are needed ---- */

static enum pe_status fail_row(const struct learned *c, const char *tensor, double id, double rows,
                               struct pe_failure *err)
{
    char pointer[24] = "/";
    strncat(pointer, tensor, sizeof pointer - 2);
    return pe_fail(err, pointer,
                   "%s has %.0f rows, position %s%s needs row %s; send a longer table, or choose out_of_range: "
                   "clamp, wrap, zero, interpolate, seeded",
                   tensor, rows, pe_shown(id - (double)c->row_offset).text,
                   c->row_offset ? pe_text(" with row_offset") : "", pe_shown(id).text);
}

static enum pe_status check_whole(const struct learned *c, const struct pe_positions *p, struct pe_failure *err)
{
    if (c->out_of_range == STRETCH || pe_positions_are_integers(p))
        return PE_OK;
    return pe_fail(err, "/positions",
                   "positions has a fraction; a table has rows for integers only: choose "
                   "out_of_range: interpolate");
}

/* Checks the ids of an axis, from the smallest to the largest position, against the table's rows. */
static enum pe_status check_rows(const struct learned *c, const struct pe_positions *p, const char *tensor, double rows,
                                 struct pe_failure *err)
{
    double least = pe_position_at(p, 0);
    for (uint64_t i = 1; p->list && i < pe_positions_count(p); i++)
        least = fmin(least, pe_position_at(p, i));
    double first = least + (double)c->row_offset, last = pe_positions_last(p) + (double)c->row_offset;
    enum pe_status status = check_whole(c, p, err);
    if (status)
        return status;
    bool has_none = c->out_of_range == ERROR || c->out_of_range == STRETCH || c->out_of_range == SEEDED;
    if (has_none && first < 0) /* no row before the first */
        return fail_row(c, tensor, first, rows, err);
    if (c->out_of_range == STRETCH && (double)c->row_offset > rows - 1)
        return fail_row(c, tensor, (double)c->row_offset, rows, err);
    return c->out_of_range == ERROR && last >= rows ? fail_row(c, tensor, last, rows, err) : PE_OK;
}

/* Rows of a seeded table: the requested number, else as many as the positions need. */
static uint64_t rows_for(const struct learned *c, const struct pe_positions *p)
{
    if (c->rows != PE_UNSET_INT)
        return (uint64_t)c->rows;
    return (uint64_t)fmax(floor(pe_positions_last(p)) + (double)c->row_offset + 1, 1);
}

static enum pe_status need_rows(struct pe_plan *plan, size_t id, uint64_t rows, uint64_t width, struct pe_failure *err)
{
    uint64_t shape[2] = {pe_weights_sent(plan, id) ? pe_weights_axis(plan, id, 0) : rows, width};
    return pe_weights_need_shape(plan, id, shape, 2, err);
}

/* Rows beyond a table that is sent are those of a table of its name that the seed makes: its stream of numbers goes on.
 * The hash of a tensor that is sent is otherwise 0. */
static enum pe_status open_stream(struct pe_plan *plan, size_t id, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct pe_weights *w = &plan->weights[id];
    if (c->out_of_range != SEEDED || w->is_seeded)
        return PE_OK;
    if (c->seed == PE_UNSET_INT)
        return pe_fail(err, "/seed", "out_of_range seeded draws the rows that %s lacks; give seed", inputs[id].name);
    w->hash = pe_seed_hash(c->seed, inputs[id].name);
    w->std = c->std;
    plan->pace = PE_SLOW;
    return PE_OK;
}

static uint64_t rows_there(const struct pe_plan *plan, size_t id) { return plan->weights[id].tensor.shape[0]; }

/* dim and rows are those of the table that was sent. */
static enum pe_status fix_sizes(struct pe_plan *plan, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    if (!pe_weights_sent(plan, TABLE))
        return PE_OK;
    if (pe_weights_axis(plan, TABLE, 1) == 0)
        return pe_fail(err, "/table", "table has %u axes; needed: [rows, dim]", plan->weights[TABLE].tensor.rank);
    status = pe_fix_size(plan, "dim", pe_weights_axis(plan, TABLE, 1), "table", err);
    return status ? status : pe_fix_size(plan, "rows", pe_weights_axis(plan, TABLE, 0), "table", err);
}

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
    const struct tables *s = plan->tables;
    unsigned n = c->table_grid.n ? (unsigned)c->table_grid.n : s->is_resized ? 0 : plan->seq.n_grid;
    if (n > AXES_MAX)
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
    pe_reals_set(&c->table_grid, c->stored_grid, n);
}

/* The sides that a table's shape states, as many as the grid has axes: of [h,w,C] and [1,h,w,C], not of [1,rows,C].
 * NULL: it states none. */
static const uint64_t *own_sides(const struct pe_plan *plan)
{
    const struct pe_tensor *t = &plan->weights[TABLE].tensor;
    unsigned n = plan->seq.n_grid;
    if (!pe_weights_sent(plan, TABLE) || n < 2 || n > AXES_MAX)
        return NULL;
    if (t->rank == n + 2 && t->shape[0] == 1)
        return t->shape + 1;
    return t->rank == n + 1 && t->shape[0] > 1 ? t->shape : NULL;
}

/* Does the shape of the table state another grid than the sequence has, or is a window repeated over it? */
static bool has_other_grid(const struct pe_plan *plan)
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

/* Reads a table of more axes as [rows, dim]; a grid that its shape alone states becomes table_grid. */
static void fold_table(struct pe_plan *plan)
{
    const struct tables *s = plan->tables;
    struct pe_weights *w = &plan->weights[TABLE];
    struct pe_tensor *t = &w->tensor;
    uint64_t sides[AXES_MAX];
    unsigned n = stated_sides(plan, sides);
    if (!pe_weights_sent(plan, TABLE))
        return;
    bool is_by_column = n > 1 && t->rank > n && are_sides(t->shape + t->rank - n, sides, n) &&
                        !are_sides(t->shape + t->rank - n - 1, sides, n);
    if (s->is_resized && !n)
        keep_own_sides(plan);
    else
        drop_ones(t, is_by_column ? n + 1 : 2);
    if (t->rank > 2 && t->rank <= AXES_MAX + 1 && (!n || t->rank == n + 1))
        join_sides(w, is_by_column);
}

/* ---- A table resized to a grid ---- */

static enum pe_status check_grid(const struct pe_plan *plan, struct pe_failure *err)
{
    bool is_asked = pe_plan_gave_itself(plan, "interpolate") || pe_plan_gave_itself(plan, "table_grid");
    if (plan->seq.n_grid == 0)
        return pe_fail(err, is_asked ? "/interpolate" : "/grid", /* a model resizes, and the request lacks its grid */
                       "interpolate needs a grid [h,w] to resize the table to");
    if (plan->seq.n_grid > AXES_MAX)
        return pe_fail(err, "/grid", "grid has %u axes; allowed with interpolate: 1 to %d", plan->seq.n_grid, AXES_MAX);
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
enum { PRODUCT_ROOM = 32 * AXES_MAX };
static void print_product(const double *x, unsigned n, char *out)
{
    for (unsigned a = 0, used = 0; a < n; a++)
        used += (unsigned)snprintf(out + used, PRODUCT_ROOM - used, "%s%.0f", a ? " × " : "", x[a]);
}

/* Shrinking with antialias reads every row in between. */
static enum pe_status check_taps(const struct pe_plan *plan, const uint64_t *sides, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    double each[AXES_MAX], rows = 1;
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
    double each[AXES_MAX], cells = 1, rows;
    char product[PRODUCT_ROOM];
    enum pe_status status = fix_sizes(plan, err);
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
    return pe_weights_need_shape(plan, TABLE, (const uint64_t[]){(uint64_t)rows, (uint64_t)c->dim}, 2, err);
}

static enum pe_status take_window(struct pe_plan *plan, struct tables *s, struct pe_failure *err)
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

static enum pe_status plan_resized(struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct tables *s = plan->tables;
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

/* ---- Rows of a resized table ---- */

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

/* The place in the grid of a row behind the prefix. */
static void cell_of(const struct pe_plan *plan, uint64_t i, uint64_t *place)
{
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        place[a] = (uint64_t)pe_position_at(&plan->seq.k[a], i);
}

static void resized_row(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix, place[AXES_MAX];
    if (i < n_prefix) {
        memset(out, 0, n * sizeof *out);
        add_row(plan, TABLE, i, 1, col, n, out);
        return;
    }
    cell_of(plan, i - n_prefix, place);
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    uint64_t tap[AXES_MAX] = {0}, n_taps[AXES_MAX];
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

/* Rows of the table along one axis: first … last of n, so many rows of the table apart. */
struct run {
    uint64_t first, last, n, step;
};

/* Adds what code in float32 may lose of n elements of a row: along the first of n_axes runs, and of row i. n <= TILE.
 */
static void add_loss(const struct pe_plan *plan, const struct run *runs, unsigned n_axes, uint64_t col, size_t n,
                     double *loss)
{
    double values[2][TILE], apart[TILE] = {0}, most[TILE] = {0};
    uint64_t at[AXES_MAX] = {0}, count[AXES_MAX] = {0};
    const struct run *along = runs;
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
    double steeper = is_cubic(plan->config) ? fmax(1, -cubic_a(plan->config) / 0.75) : 1;
    for (size_t j = 0; j < n; j++)
        loss[j] += is_cubic(plan->config) ? 0x1p-21 * steeper * (double)along->n * apart[j] + 0x1p-20 * most[j]
                                          : 0x1p-22 * (double)along->n * apart[j] + 0x1p-23 * most[j];
}

/* The rows of an axis that row o of the result reads. The slope of a linear kernel jumps at a row, and the coordinate
 * of an element there may be on either side. */
static struct run run_of(const struct pe_plan *plan, unsigned axis, uint64_t o)
{
    const struct tables *s = plan->tables;
    const struct pe_resample_taps *t = &s->taps[axis];
    const struct learned *c = plan->config;
    uint64_t n = s->sides[axis], first = (uint64_t)t->index[o * t->n_taps],
             last = (uint64_t)t->index[(o + 1) * t->n_taps - 1], step = 1;
    first -= !is_cubic(c) && first > 0;
    last += !is_cubic(c) && last < n - 1;
    for (unsigned a = axis + 1; a < plan->seq.n_grid; a++)
        step *= s->sides[a];
    return (struct run){first, last, n, step};
}

static void resized_loss(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    uint64_t n_prefix = (uint64_t)((const struct learned *)plan->config)->num_prefix, place[AXES_MAX];
    unsigned n_axes = plan->seq.n_grid;
    struct run runs[AXES_MAX];
    if (i < n_prefix)
        return;
    cell_of(plan, i - n_prefix, place);
    for (unsigned along = 0; along < n_axes; along++) {
        for (unsigned a = 0; a < n_axes; a++)
            runs[a] = run_of(plan, (along + a) % n_axes, place[(along + a) % n_axes]);
        add_loss(plan, runs, n_axes, col, n, loss);
    }
}

/* ---- The three ways ---- */

static enum pe_status plan_lookup(struct pe_plan *plan, struct tables *s, struct pe_failure *err)
{
    struct learned *c = plan->config;
    /* A grid without table_grid numbers its positions row by row, like the table of a model at its own resolution. */
    struct pe_positions run = {.n = plan->seq.k->n}, *p = plan->seq.n_axes > 1 ? &run : plan->seq.k;
    if (plan->seq.n_axes > 1 && (!plan->seq.n_grid || plan->seq.k->merge))
        return pe_fail(err, "/table",
                       "table has one row for each position of a sequence of one axis or of a grid row "
                       "by row; these positions have %u axes: send row_table and col_table",
                       plan->seq.n_axes);
    enum pe_status status = fix_sizes(plan, err);
    if (!status && (double)rows_for(c, p) > PE_POSITION_MAX)
        return pe_fail(err, "/row_offset", "row_offset %lld makes the last position row %llu; allowed: up to 2^40",
                       (long long)c->row_offset, (unsigned long long)rows_for(c, p) - 1);
    if (!status)
        status = need_rows(plan, TABLE, rows_for(c, p), (uint64_t)c->dim, err);
    if (!status)
        status = open_stream(plan, TABLE, err);
    if (status)
        return status;
    plan->seq.k[0] = *p;
    c->rows = (int64_t)rows_there(plan, TABLE);
    double last = pe_positions_last(p), room = (double)(c->rows - 1 - c->row_offset);
    s->stretch = last > room ? room / last : 1; /* rows before row_offset are not positions and are not stretched */
    return check_rows(c, p, "table", (double)c->rows, err);
}

static enum pe_status plan_split(struct pe_plan *plan, struct pe_failure *err)
{
    struct learned *c = plan->config;
    if (plan->seq.n_axes != 2)
        return pe_fail(err, "/row_table",
                       "row_table and col_table are for two axes, the sequence has %u: give a grid "
                       "[h,w]",
                       plan->seq.n_axes);
    for (size_t id = ROW_TABLE; id <= COL_TABLE; id++)
        if (pe_weights_axis(plan, id, 1) &&
            pe_fix_size(plan, "dim", 2 * pe_weights_axis(plan, id, 1), inputs[id].name, err))
            return err->status;
    if (c->dim % 2)
        return pe_fail(err, "/dim", "dim is %lld; needed: an even number, half for rows and half for columns",
                       (long long)c->dim);
    for (size_t a = 0; a < 2; a++)
        if (need_rows(plan, ROW_TABLE + a, rows_for(c, &plan->seq.k[a]), (uint64_t)c->dim / 2, err) ||
            open_stream(plan, ROW_TABLE + a, err) ||
            check_rows(c, &plan->seq.k[a], inputs[ROW_TABLE + a].name, (double)rows_there(plan, ROW_TABLE + a), err))
            return err->status;
    if (c->out_of_range == STRETCH)
        return pe_fail(err, "/out_of_range",
                       "out_of_range interpolate is not used with row_table and col_table; "
                       "allowed: error, clamp, wrap, zero, seeded");
    pe_absolute_prefer_channels_first(plan);
    return PE_OK;
}

/* Table rows that contribute to one row of an axis: at most four for each, and where the axis shrinks, as many as it
 * had. */
static void learned_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    enum { LENGTH_MAX = 65536 };
    const struct learned *c = plan->config;
    bool is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n || has_other_grid(plan);
    for (unsigned a = 0; is_resized && a < plan->seq.n_grid && a < AXES_MAX; a++) {
        double to = fmin((double)plan->seq.grid[a], LENGTH_MAX);
        double from = a < c->table_grid.n ? pe_real_at(&c->table_grid, a) : 0;
        pe_cost_each(cost, to + 4 * fmax(from, to), sizeof(int64_t) + sizeof(double), 100);
    }
}

static enum pe_status learned_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct tables *s = plan->tables;
    s->is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n ||
                    (c->out_of_range == ERROR && c->row_offset == 0 && has_other_grid(plan));
    s->is_split = !s->is_resized && !pe_weights_sent(plan, TABLE) &&
                  (plan->seq.n_axes > 1 || pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE));
    bool split_sent = pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE);
    if (pe_weights_sent(plan, TABLE) && split_sent)
        return pe_fail(err, "/table", "table is given beside row_table or col_table; give one way");
    if (s->is_resized && split_sent)
        return pe_fail(err, "/interpolate", "interpolate resizes a table; it is not used with row_table and col_table");
    const char *only_resized = c->num_prefix                   ? "/num_prefix"
                               : !isnan(c->interpolate_offset) ? "/interpolate_offset"
                               : !isnan(c->cubic_a)            ? "/cubic_a"
                               : pe_weights_sent(plan, WINDOW) ? "/window_table"
                                                               : NULL;
    if (only_resized && !s->is_resized)
        return pe_fail(err, only_resized, "%s is not used here: it needs interpolate and a grid", only_resized + 1);
    if (s->is_resized && (c->row_offset || c->out_of_range != ERROR))
        return pe_fail(err, c->row_offset ? "/row_offset" : "/out_of_range",
                       "%s is not used with interpolate: the whole table is resized to the grid",
                       c->row_offset ? "row_offset" : "out_of_range");
    fold_table(plan);
    if (!pe_weights_sent(plan, TABLE))
        plan->pace = PE_SLOW; /* one number from the seed for each element */
    return s->is_resized ? plan_resized(plan, err) : s->is_split ? plan_split(plan, err) : plan_lookup(plan, s, err);
}

static void learned_drop(struct pe_plan *plan)
{
    struct tables *s = plan->tables;
    for (unsigned a = 0; a < AXES_MAX; a++)
        pe_resample_drop(&s->taps[a]);
}

/* ---- Rows ---- */

/* Reads elements of one row of a table under the policy out_of_range; row may be outside the table. */
static void look_up(const struct pe_plan *plan, size_t id, double row, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct pe_tensor *t = &plan->weights[id].tensor;
    double rows = (double)t->shape[0];
    if (c->out_of_range == CLAMP)
        row = fmin(fmax(row, 0), rows - 1);
    else if (c->out_of_range == WRAP)
        row -= floor(row / rows) * rows;
    const struct pe_weights *w = &plan->weights[id];
    if (c->out_of_range == SEEDED && row >= rows) {
        for (size_t j = 0; j < n; j++)
            out[j] = (double)(float)(w->std * pe_seed_normal(w->hash, (uint64_t)row * t->shape[1] + col + j));
        return;
    }
    if (row < 0 || row >= rows)
        memset(out, 0, n * sizeof *out);
    else
        pe_weights_read(&plan->weights[id], (uint64_t)row * t->shape[1] + col, n, out);
}

/* The place of a position in the stretched table. */
static double place_of(const struct pe_plan *plan, double position)
{
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    return fmin((double)c->row_offset + position * s->stretch, (double)(c->rows - 1));
}

/* Interpolates between two rows of the stretched table. */
static void look_between(const struct pe_plan *plan, double position, uint64_t col, size_t n, double *out)
{
    double next[TILE], at = place_of(plan, position), row = floor(at), t = at - row;
    look_up(plan, TABLE, row, col, n, out);
    if (t == 0)
        return;
    look_up(plan, TABLE, row + 1, col, n, next);
    for (size_t j = 0; j < n; j++)
        out[j] = out[j] * (1 - t) + next[j] * t;
}

static void row_of(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    const struct pe_positions *k = plan->seq.k;
    double offset = (double)c->row_offset;
    if (s->is_resized)
        resized_row(plan, i, col, n, out);
    else if (s->is_split) {
        /* [col_table[x], row_table[y]]: columns of either half. */
        uint64_t half = (uint64_t)c->dim / 2;
        size_t first = col < half ? (half - col < n ? (size_t)(half - col) : n) : 0;
        if (first)
            look_up(plan, COL_TABLE, pe_position_at(&k[1], i) + offset, col, first, out);
        if (first < n)
            look_up(plan, ROW_TABLE, pe_position_at(&k[0], i) + offset, col + first - half, n - first, out + first);
    } else if (c->out_of_range == STRETCH)
        look_between(plan, pe_position_at(k, i), col, n, out);
    else
        look_up(plan, TABLE, pe_position_at(k, i) + offset, col, n, out);
}

/* ---- One number ---- */

/* The rows that it is a sum of, of most weight first where they are too many to show. */
static void resized_derive(const struct pe_plan *plan, const struct pe_address *to, struct pe_derivation *d)
{
    static const char *const symbols[] = {"x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",
                                          "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16"};
    enum { SHOWN = sizeof symbols / sizeof *symbols };
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    uint64_t n_prefix = (uint64_t)c->num_prefix, place[AXES_MAX], tap[AXES_MAX] = {0}, n_taps[AXES_MAX];
    unsigned n_axes = plan->seq.n_grid, n = 0;
    struct pe_dd sum = dd(0);
    if (to->row < n_prefix) {
        double v = 0;
        add_row(plan, TABLE, to->row, 1, to->col, 1, &v);
        pe_derived(d, "x", dd(v), "table[%llu, %llu]", (unsigned long long)to->row, (unsigned long long)to->col);
        pe_derived_says(d, "a prefix row is not resized");
        return;
    }
    cell_of(plan, to->row - n_prefix, place);
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

static struct pe_dd state_row(const struct pe_plan *plan, size_t id, const char *symbol, double row, uint64_t col,
                              struct pe_derivation *d)
{
    const struct learned *c = plan->config;
    double v, rows = (double)plan->weights[id].tensor.shape[0];
    look_up(plan, id, row, col, 1, &v);
    if (row >= 0 && row < rows)
        return pe_derived(d, symbol, dd(v), "%s[%.0f, %llu]", inputs[id].name, row, (unsigned long long)col);
    struct pe_dd x = pe_derived(d, symbol, dd(v), "%s[%.0f, %llu]", inputs[id].name, row, (unsigned long long)col);
    pe_derived_says(d, "the table has %.0f rows; out_of_range is %s", rows, policies[c->out_of_range]);
    return x;
}

static void state_between(const struct pe_plan *plan, double position, uint64_t col, struct pe_derivation *d)
{
    const struct learned *c = plan->config;
    double at = place_of(plan, position), row = floor(at), t = at - row;
    pe_derived(d, "r", dd(at), "min(row_offset + p·(rows − 1 − row_offset)/p_last, rows − 1)");
    pe_derived_says(d, "the table of %lld rows is stretched to the last position", (long long)c->rows);
    struct pe_dd a = state_row(plan, TABLE, "a", row, col, d);
    if (t == 0)
        return;
    struct pe_dd b = state_row(plan, TABLE, "b", row + 1, col, d);
    pe_derived(d, "x", dd_add(dd_mul_d(a, 1 - t), dd_mul_d(b, t)), "a·(1 − t) + b·t, t = %s", pe_shown(t).text);
}

static enum pe_status learned_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                     struct pe_derivation *d, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    uint64_t i = at->row, col = at->col, half = (uint64_t)c->dim / 2;
    double offset = (double)c->row_offset, p = s->is_resized ? 0 : pe_position_at(plan->seq.k, i);
    (void)id;
    (void)err;
    d->is_looked_up = true;
    if (s->is_resized) {
        resized_derive(plan, at, d);
    } else if (s->is_split) {
        bool is_column = col < half;
        p = pe_position_at(&plan->seq.k[is_column], i);
        pe_derived_case(d, "%llu %s dim/2 = %llu", (unsigned long long)col, is_column ? "<" : "≥",
                        (unsigned long long)half);
        pe_derived_says(d, is_column ? "the first half is of the column" : "the second half is of the row");
        state_row(plan, is_column ? COL_TABLE : ROW_TABLE, "x", p + offset, is_column ? col : col - half, d);
    } else if (c->out_of_range == STRETCH) {
        state_between(plan, p, col, d);
    } else {
        pe_derived(d, "r", dd(p + offset), "%s + %s", pe_shown(p).text, pe_shown(offset).text);
        pe_derived_says(d, "position and row_offset");
        state_row(plan, TABLE, "x", p + offset, col, d);
    }
    return PE_OK;
}

/* What float32 loses, here of a table that is stretched. */
static void lose_tile(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    const struct learned *c = plan->config;
    const struct tables *s = plan->tables;
    if (s->is_resized)
        resized_loss(plan, i, col, n, loss);
    else if (!s->is_split && c->out_of_range == STRETCH) {
        uint64_t rows = (uint64_t)c->rows, row = (uint64_t)place_of(plan, pe_position_at(plan->seq.k, i));
        struct run run = {row - (row > 0), row + 2 < rows ? row + 2 : rows - 1, rows, 1};
        add_loss(plan, &run, 1, col, n, loss);
    }
}

static void learned_loss(const struct pe_plan *plan, uint64_t row, uint64_t col0, size_t n, double *loss)
{
    memset(loss, 0, n * sizeof *loss);
    for (size_t at = 0; at < n; at += TILE)
        lose_tile(plan, row, col0 + at, n - at < TILE ? n - at : TILE, loss + at);
}

static void learned_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                         const struct pe_block *b, void *dst)
{
    double values[TILE];
    (void)id;
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t at = 0; at < b->n_cols; at += TILE) {
            size_t n = b->n_cols - at < TILE ? (size_t)(b->n_cols - at) : TILE;
            row_of(plan, b->row0 + i, b->col0 + at, n, values);
            pe_convert(output->dtype, (char *)dst + (i * b->n_cols + at) * pe_dtype_size(output->dtype), PE_F64, values,
                       n);
        }
}

static const struct pe_formula_line formula[] = {
    {"R = rows - 1 - row_offset", "the rows after that of position 0"},
    {"z = { R/P if P > R; 1 }", "how out_of_range interpolate stretches the table to the largest position"},
    {"i = p + row_offset", "the row of position p"},
    {"i' = { min(max(i, 0), rows - 1) if out_of_range is clamp; i mod rows if out_of_range is wrap; min(row_offset + "
     "p*z, rows - 1) if out_of_range is interpolate; i }",
     "what becomes of a row outside the table; error refuses it"},
    {"f = i' - floor(i')", "its place between two rows"},
    {"PE[p, j] = { 0 if i' < 0 or i' >= rows; (1 - f)*table[floor(i'), j] + f*table[ceil(i'), j] }",
     "the learned row is looked up; zero has no row outside the table, seeded draws it"},
    {"E[j] = { col_table[x[1], j] if j < dim/2; row_table[x[0], j - dim/2] }",
     "on a grid with two tables (DETR): half of the channels for the column, half for the row"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_learned = {
    .info =
        {
            .name = "learned",
            .family = "absolute",
            .about = {"learned table", "a learned row for each position, looked up or interpolated"},
            .paper = "Gehring et al. 2017, arXiv 1705.03122; Devlin et al. 2018, arXiv 1810.04805 (BERT)",
            .formula = formula,
            .example = "{\"scheme\":\"learned\",\"len\":8,\"dim\":16,\"seed\":0}",
            .picture = "len=64&dim=64&seed=0",
            .worked = "dim=8&seed=0&position=3&channel=1",
            .traps = "A table ends: a position without a row is refused, or `out_of_range` states what it is. "
                     "OPT, BART and RoBERTa leave out the first two rows (`row_offset`). A resized table "
                     "depends on the kernel: the cubic of torch has a = -0.75, its antialiased one -0.5.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct learned),
    .tables_bytes = sizeof(struct tables),
    .is_slow = true,
    .has_axes = true,
    .cost = learned_cost,
    .plan = learned_plan,
    .drop = learned_drop,
    .fill = learned_fill,
    .coordinate_loss = learned_loss,
    .derive = learned_derive,
};
