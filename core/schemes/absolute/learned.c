/* Learned positions: one table row for each position (BERT, GPT-2); on a grid, a table resized to the grid (ViT), or
 * one table for rows and one for columns (DETR).
 *
 *     PE(p, j) = table[p + row_offset, j]
 *     PE((y, x), j) = [col_table[x], row_table[y]]                      DETR: the columns' channels come first
 *     PE((y, x), j) = sum over a, b of wy[y, a] wx[x, b] table[num_prefix + a·w + b, j]     resized
 *
 * A table ends, which is what a learned encoding cannot do without: a position beyond it is refused, or treated as the
 * request chooses (clamp, wrap, zero, stretch), which libraries do without a word. Resizing is separable, so its
 * weights are prepared once for each axis (core/numeric/resample.c), and a row of the result reads at most four rows by
 * four, but where the grid shrinks with antialias. Sums run over a, then b, in double, so a value does not depend on
 * how many columns are asked for. */
#include "core/scheme.h"

#include <stdlib.h>
#include <string.h>

enum policy { ERROR, CLAMP, WRAP, ZERO, STRETCH };
enum input { TABLE, ROW_TABLE, COL_TABLE };

struct learned {
    int64_t dim, rows, row_offset;
    int out_of_range, interpolate;
    double interpolate_offset;
    struct pe_reals table_grid;
    int64_t num_prefix;
    int64_t seed;
    double std;
};

static const char *const policies[] = {
    [ERROR] = "error", [CLAMP] = "clamp", [WRAP] = "wrap", [ZERO] = "zero", [STRETCH] = "interpolate", NULL};
static const char *const kinds[] = {[PE_BICUBIC] = "bicubic",
                                    [PE_BICUBIC_ANTIALIAS] = "bicubic_antialias",
                                    [PE_BILINEAR] = "bilinear",
                                    [PE_BILINEAR_ALIGNED] = "bilinear_aligned",
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
        "interpolate: stretch the table so that its last row is at the largest position, and interpolate between rows"),
    {.name = "interpolate",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(learned, interpolate, int),
     .fallback = PE_UNSET_WORD,
     .words = kinds,
     .about = {"resizing of the grid",
               "how table_grid is resized to the grid: bicubic (ViT, DeiT, DINO; a -0.75), bicubic_antialias (timm; a "
               "-0.5), bilinear, bilinear_aligned (Qwen3-VL); default bicubic with table_grid"},
     .group = PE_G_AXES},
    PE_P_REAL(
        learned, interpolate_offset, PE_UNSET, 0, 0.99, "offset of the resized grid",
        "an axis of M table rows is read at (o+1/2)·M/(n+interpolate_offset) - 1/2 for row o of n; 0.1 in DINO and "
        "DINOv2; default 0",
        .group = PE_G_AXES, .usual = {0, 0.1}),
    PE_P_REALS(learned, table_grid, 1, 65536, "grid of the table",
               "rows and columns that the table was trained on: [h,w]", .group = PE_G_AXES),
    PE_P_INT(learned, num_prefix, 0, 0, 65536, "prefix rows",
             "number of first rows that are not patches (class token, registers); they come unchanged before the rows "
             "of the grid",
             .group = PE_G_AXES, .usual = {0, 16}),
    PE_P_SEED(learned),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n+num_prefix,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position"),
    {.name = NULL},
};

static const struct pe_input_row inputs[] = {
    [TABLE] = PE_INPUT("table", "rows,dim", PE_ENCODE, false, "table", "the learned rows"),
    [ROW_TABLE] = PE_INPUT("row_table", "rows,dim/2", PE_ENCODE, false, "row table",
                           "on a grid: the second half of the channels, for each row of the grid"),
    [COL_TABLE] = PE_INPUT("col_table", "rows,dim/2", PE_ENCODE, false, "column table",
                           "on a grid: the first half of the channels, for each column of the grid"),
    {.name = NULL},
};

/* plan->tables */
struct state {
    bool is_split;                   /* a table for each axis */
    bool is_resized;                 /* a table resized to the grid */
    struct pe_resample_taps taps[2]; /* rows, columns */
    uint64_t table_width;            /* columns of table_grid */
    double stretch;                  /* interpolate: place in the table = row_offset + position · stretch */
};

/* ---- Which rows are needed ---- */

static double smallest(const struct pe_positions *p)
{
    double least = pe_position_at(p, 0);
    for (uint64_t i = 1; p->list && i < pe_positions_count(p); i++)
        least = fmin(least, pe_position_at(p, i));
    return least;
}

static enum pe_status fail_row(const struct learned *c, const char *tensor, double id, double rows,
                               struct pe_failure *err)
{
    char pointer[24] = "/";
    strncat(pointer, tensor, sizeof pointer - 2);
    return pe_fail(err, pointer,
                   "%s has %.0f rows, position %.17g%s needs row %.17g; send a longer table, or choose out_of_range: "
                   "clamp, wrap, zero, interpolate",
                   tensor, rows, id - (double)c->row_offset, c->row_offset ? pe_text(" with row_offset") : "", id);
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
    double first = smallest(p) + (double)c->row_offset, last = pe_positions_last(p) + (double)c->row_offset;
    enum pe_status status = check_whole(c, p, err);
    if (status)
        return status;
    bool below = c->out_of_range == ERROR || c->out_of_range == STRETCH; /* no rows before the first */
    if (below && first < 0)
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

static enum pe_status need(struct pe_plan *plan, size_t id, uint64_t rows, uint64_t width, struct pe_failure *err)
{
    uint64_t shape[2] = {pe_weights_sent(plan, id) ? pe_weights_axis(plan, id, 0) : rows, width};
    return pe_weights_need(plan, id, shape, 2, err);
}

static uint64_t rows_there(const struct pe_plan *plan, size_t id) { return plan->weights[id].tensor.shape[0]; }

static enum pe_status fix(struct pe_plan *plan, size_t id, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    if (!pe_weights_sent(plan, id))
        return PE_OK;
    if (pe_weights_axis(plan, id, 1) == 0)
        return pe_fail(err, "/table", "table has %u axes; needed: [rows, dim]", plan->weights[id].tensor.rank);
    status = pe_fix_size(plan, "dim", pe_weights_axis(plan, id, 1), "table", err);
    return status ? status : pe_fix_size(plan, "rows", pe_weights_axis(plan, id, 0), "table", err);
}

/* ---- The three ways ---- */

static enum pe_status plan_lookup(struct pe_plan *plan, struct state *s, struct pe_failure *err)
{
    struct learned *c = plan->config;
    /* A grid without table_grid numbers its positions row by row, like the table of a model at its own resolution. */
    struct pe_positions run = {.n = plan->seq.k->n}, *p = plan->seq.n_axes > 1 ? &run : plan->seq.k;
    if (plan->seq.n_axes > 1 && (!plan->seq.n_grid || plan->seq.k->merge))
        return pe_fail(err, "/table",
                       "table has one row for each position of a sequence of one axis or of a grid row "
                       "by row; these positions have %u axes: send row_table and col_table",
                       plan->seq.n_axes);
    enum pe_status status = fix(plan, TABLE, err);
    if (!status && (double)rows_for(c, p) > PE_POSITION_MAX)
        return pe_fail(err, "/row_offset", "row_offset %lld makes the last position row %llu; allowed: up to 2^40",
                       (long long)c->row_offset, (unsigned long long)rows_for(c, p) - 1);
    if (!status)
        status = need(plan, TABLE, rows_for(c, p), (uint64_t)c->dim, err);
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
        if (need(plan, ROW_TABLE + a, rows_for(c, &plan->seq.k[a]), (uint64_t)c->dim / 2, err) ||
            check_rows(c, &plan->seq.k[a], inputs[ROW_TABLE + a].name, (double)rows_there(plan, ROW_TABLE + a), err))
            return err->status;
    if (c->out_of_range == STRETCH)
        return pe_fail(err, "/out_of_range",
                       "out_of_range interpolate is not used with row_table and col_table; "
                       "allowed: error, clamp, wrap, zero");
    pe_absolute_prefer_channels_first(plan);
    return PE_OK;
}

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

/* Shrinking with antialias reads every row in between. */
static enum pe_status check_taps(const struct pe_plan *plan, uint64_t h, uint64_t w, struct pe_failure *err)
{
    double rows = 4 * fmax(1, (double)h / (double)plan->seq.grid[0]),
           cols = 4 * fmax(1, (double)w / (double)plan->seq.grid[1]);
    if (((const struct learned *)plan->config)->interpolate != PE_BICUBIC_ANTIALIAS ||
        rows * cols <= PE_RESAMPLE_TAPS_MAX)
        return PE_OK;
    pe_fail(err, "/table_grid", "each row would be a sum of %.0f × %.0f rows of the table; allowed: at most %d", rows,
            cols, PE_RESAMPLE_TAPS_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status plan_resized(struct pe_plan *plan, struct state *s, struct pe_failure *err)
{
    struct learned *c = plan->config;
    if (c->interpolate == PE_UNSET_WORD)
        c->interpolate = PE_BICUBIC;
    enum pe_status status = check_table_grid(plan, err);
    if (status)
        return status;
    uint64_t h = (uint64_t)pe_real_at(&c->table_grid, 0), w = (uint64_t)pe_real_at(&c->table_grid, 1);
    uint64_t rows = (uint64_t)c->num_prefix + h * w;
    status = fix(plan, TABLE, err);
    if (!status && pe_weights_sent(plan, TABLE) && (uint64_t)c->rows != rows)
        return pe_fail(err, "/table", "table has %lld rows; needed: num_prefix %lld + table_grid %llu × %llu = %llu",
                       (long long)c->rows, (long long)c->num_prefix, (unsigned long long)h, (unsigned long long)w,
                       (unsigned long long)rows);
    if (!status)
        status = need(plan, TABLE, rows, (uint64_t)c->dim, err);
    c->rows = (int64_t)rows;
    s->table_width = w;
    if (!status)
        status = check_taps(plan, h, w, err);
    enum pe_resample_kind kind = (enum pe_resample_kind)c->interpolate;
    double offset = isnan(c->interpolate_offset) ? 0 : c->interpolate_offset;
    if (!status && kind == PE_BILINEAR_ALIGNED && offset != 0)
        return pe_fail(err, "/interpolate_offset",
                       "interpolate_offset is not used with bilinear_aligned, which has the first and the last row at "
                       "the ends");
    if (!status && (pe_resample_init(&s->taps[0], kind, h, plan->seq.grid[0], offset) ||
                    pe_resample_init(&s->taps[1], kind, w, plan->seq.grid[1], offset)))
        return pe_no_memory(err);
    plan->pace = PE_SLOW;
    return status;
}

static enum pe_status check_way(const struct pe_plan *plan, const struct state *s, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    bool split_sent = pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE);
    if (pe_weights_sent(plan, TABLE) && split_sent)
        return pe_fail(err, "/table", "table is given beside row_table or col_table; give one way");
    if (s->is_resized && split_sent)
        return pe_fail(err, "/interpolate", "interpolate resizes a table; it is not used with row_table and col_table");
    if (c->num_prefix && !s->is_resized)
        return pe_fail(err, "/num_prefix", "num_prefix is not used here: it needs interpolate and a grid");
    if (!isnan(c->interpolate_offset) && !s->is_resized)
        return pe_fail(err, "/interpolate_offset",
                       "interpolate_offset is not used here: it needs interpolate and a grid");
    if (s->is_resized && (c->row_offset || c->out_of_range != ERROR))
        return pe_fail(err, c->row_offset ? "/row_offset" : "/out_of_range",
                       "%s is not used with interpolate: the whole table is resized to the grid",
                       c->row_offset ? "row_offset" : "out_of_range");
    return PE_OK;
}

/* Table rows that contribute to one row of an axis: at most four for each, and where the axis shrinks, as many as it
 * had. */
static void learned_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    enum { LENGTH_MAX = 65536 };
    const struct learned *c = plan->config;
    bool is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n;
    for (unsigned a = 0; is_resized && a < plan->seq.n_grid && a < 2; a++) {
        double to = fmin((double)plan->seq.grid[a], LENGTH_MAX);
        double from = a < c->table_grid.n ? pe_real_at(&c->table_grid, a) : 0;
        pe_cost_each(cost, to + 4 * fmax(from, to), sizeof(int64_t) + sizeof(double), 100);
    }
}

static enum pe_status learned_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct state *s = plan->tables = calloc(1, sizeof *s);
    if (!s)
        return pe_no_memory(err);
    s->is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n;
    s->is_split = !s->is_resized && !pe_weights_sent(plan, TABLE) &&
                  (plan->seq.n_axes > 1 || pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE));
    enum pe_status status = check_way(plan, s, err);
    if (status)
        return status;
    if (!pe_weights_sent(plan, TABLE))
        plan->pace = PE_SLOW; /* one number from the seed for each element */
    return s->is_resized ? plan_resized(plan, s, err) : s->is_split ? plan_split(plan, err) : plan_lookup(plan, s, err);
}

static void learned_drop(struct pe_plan *plan)
{
    struct state *s = plan->tables;
    for (int a = 0; s && a < 2; a++)
        pe_resample_drop(&s->taps[a]);
    free(s);
}

/* ---- Rows ---- */

enum { TILE = 1024 }; /* columns at a time */

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
    if (row < 0 || row >= rows)
        memset(out, 0, n * sizeof *out);
    else
        pe_weights_read(&plan->weights[id], (uint64_t)row * t->shape[1] + col, n, out);
}

/* The place of a position in the stretched table. */
static double place_of(const struct pe_plan *plan, double position)
{
    const struct learned *c = plan->config;
    const struct state *s = plan->tables;
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

static void add_row(const struct pe_plan *plan, uint64_t row, double weight, uint64_t col, size_t n, double *sum)
{
    double values[TILE];
    pe_weights_read(&plan->weights[TABLE], row * plan->weights[TABLE].tensor.shape[1] + col, n, values);
    for (size_t j = 0; j < n; j++)
        sum[j] += weight * values[j];
}

static void resize(const struct pe_plan *plan, uint64_t y, uint64_t x, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct state *s = plan->tables;
    const struct pe_resample_taps *v = &s->taps[0], *h = &s->taps[1];
    memset(out, 0, n * sizeof *out);
    for (unsigned a = 0; a < v->n_taps; a++)
        for (unsigned b = 0; b < h->n_taps; b++) {
            double weight = v->weight[y * v->n_taps + a] * h->weight[x * h->n_taps + b];
            uint64_t cell =
                (uint64_t)v->index[y * v->n_taps + a] * s->table_width + (uint64_t)h->index[x * h->n_taps + b];
            if (weight != 0)
                add_row(plan, (uint64_t)c->num_prefix + cell, weight, col, n, out);
        }
}

/* [col_table[x], row_table[y]]: columns of either half. */
static void join(const struct pe_plan *plan, double y, double x, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    uint64_t half = (uint64_t)c->dim / 2;
    size_t first = col < half ? (half - col < n ? (size_t)(half - col) : n) : 0;
    if (first)
        look_up(plan, COL_TABLE, x, col, first, out);
    if (first < n)
        look_up(plan, ROW_TABLE, y, col + first - half, n - first, out + first);
}

static void row_of(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *out)
{
    const struct learned *c = plan->config;
    const struct state *s = plan->tables;
    const struct pe_positions *k = plan->seq.k;
    double offset = (double)c->row_offset;
    if (s->is_resized && i < (uint64_t)c->num_prefix) {
        memset(out, 0, n * sizeof *out);
        add_row(plan, i, 1, col, n, out);
        return;
    }
    i -= s->is_resized ? (uint64_t)c->num_prefix : 0;
    if (s->is_resized)
        resize(plan, (uint64_t)pe_position_at(&k[0], i), (uint64_t)pe_position_at(&k[1], i), col, n, out);
    else if (s->is_split)
        join(plan, pe_position_at(&k[0], i) + offset, pe_position_at(&k[1], i) + offset, col, n, out);
    else if (c->out_of_range == STRETCH)
        look_between(plan, pe_position_at(k, i), col, n, out);
    else
        look_up(plan, TABLE, pe_position_at(k, i) + offset, col, n, out);
}

/* ---- What float32 loses ----
 *
 * Libraries compute in float32 the coordinate x in an axis of M rows, rounded three times, so it is off by at most
 * 3·M·2^-24. An element is off by that times its slope: at most the largest difference D of neighbouring rows that it
 * reads, of a cubic 1.5·D along the axis, and what it reads across has weights of up to 1.375 together. The weights of
 * a cubic are computed as polynomials whose terms cancel, so they do not sum to 1. In all, on each axis:
 *
 *     linear   M·2^-22 · D + 2^-23 · the largest number read
 *     cubic    M·2^-21 · D + 2^-20 · the largest number read */

/* Rows of the table along one axis: first … last of M, so many rows of the table apart. */
struct run {
    uint64_t first, last, n, step;
};

static double larger(double a, double b) { return a > b ? a : b; }

/* Adds the loss along one axis to that of each element. */
static void add_loss(const struct pe_plan *plan, bool is_cubic, const struct run *along, const struct run *across,
                     uint64_t col, size_t n, double *loss)
{
    const struct pe_weights *table = &plan->weights[TABLE];
    double values[2][TILE], apart[TILE] = {0}, most[TILE] = {0};
    for (uint64_t b = across->first; b <= across->last; b++)
        for (uint64_t a = along->first; a <= along->last; a++) {
            double *now = values[a % 2], *before = a > along->first ? values[(a + 1) % 2] : now;
            uint64_t row =
                (uint64_t)((const struct learned *)plan->config)->num_prefix + a * along->step + b * across->step;
            pe_weights_read(table, row * table->tensor.shape[1] + col, n, now);
            for (size_t j = 0; j < n; j++) {
                most[j] = larger(most[j], fabs(now[j]));
                apart[j] = larger(apart[j], fabs(now[j] - before[j]));
            }
        }
    for (size_t j = 0; j < n; j++)
        loss[j] += is_cubic ? 0x1p-21 * (double)along->n * apart[j] + 0x1p-20 * most[j]
                            : 0x1p-22 * (double)along->n * apart[j] + 0x1p-23 * most[j];
}

/* The rows of an axis that row o of the result reads. The slope of a linear kernel jumps at a row, and the coordinate
 * of an element there may be on either side. */
static struct run run_of(const struct pe_plan *plan, unsigned axis, uint64_t o, bool is_cubic)
{
    const struct state *s = plan->tables;
    const struct pe_resample_taps *t = &s->taps[axis];
    uint64_t n = (uint64_t)pe_real_at(&((const struct learned *)plan->config)->table_grid, axis),
             first = (uint64_t)t->index[o * t->n_taps], last = (uint64_t)t->index[(o + 1) * t->n_taps - 1];
    first -= !is_cubic && first > 0;
    last += !is_cubic && last < n - 1;
    return (struct run){first, last, n, axis == 0 ? s->table_width : 1};
}

static void lose(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    const struct learned *c = plan->config;
    const struct state *s = plan->tables;
    const struct pe_positions *k = plan->seq.k;
    bool is_cubic = c->interpolate == PE_BICUBIC || c->interpolate == PE_BICUBIC_ANTIALIAS;
    if (s->is_resized && i >= (uint64_t)c->num_prefix) {
        i -= (uint64_t)c->num_prefix;
        struct run y = run_of(plan, 0, (uint64_t)pe_position_at(&k[0], i), is_cubic),
                   x = run_of(plan, 1, (uint64_t)pe_position_at(&k[1], i), is_cubic);
        add_loss(plan, is_cubic, &y, &x, col, n, loss);
        add_loss(plan, is_cubic, &x, &y, col, n, loss);
    } else if (!s->is_resized && !s->is_split && c->out_of_range == STRETCH) {
        uint64_t rows = (uint64_t)c->rows, row = (uint64_t)place_of(plan, pe_position_at(k, i));
        struct run y = {row - (row > 0), row + 2 < rows ? row + 2 : rows - 1, rows, 1}, one = {0, 0, 1, 0};
        add_loss(plan, false, &y, &one, col, n, loss);
    }
}

static void learned_loss(const struct pe_plan *plan, uint64_t row, uint64_t col0, size_t n, double *loss)
{
    memset(loss, 0, n * sizeof *loss);
    for (size_t at = 0; at < n; at += TILE)
        lose(plan, row, col0 + at, n - at < TILE ? n - at : TILE, loss + at);
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

const struct pe_scheme pe_scheme_learned = {
    .info =
        {
            .name = "learned",
            .family = "absolute",
            .about = {"learned table", "a learned row for each position, looked up or interpolated"},
            .paper = "Gehring et al. 2017, arXiv 1705.03122; Devlin et al. 2018, arXiv 1810.04805 (BERT)",
            .example = "{\"scheme\":\"learned\",\"len\":8,\"dim\":16,\"seed\":0}",
            .picture = "len=64&dim=64&seed=0",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct learned),
    .is_slow = true,
    .has_axes = true,
    .cost = learned_cost,
    .plan = learned_plan,
    .drop = learned_drop,
    .fill = learned_fill,
    .coordinate_loss = learned_loss,
};
