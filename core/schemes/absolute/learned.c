/* Learned positions: one table row for each position (BERT, GPT-2); on a grid, a table resized to the grid (ViT), or
 * one table for rows and one for columns (DETR).
 *
 *     PE(p, j) = table[p + row_offset, j]
 *     PE((y, x), j) = [col_table[x], row_table[y]]                      DETR: the columns' channels come first
 *     PE((y, x), j) = resized table[y, x, j]                                see learned_grid.c
 *
 * A table ends, which is what a learned encoding cannot do without: a position beyond it is refused, or treated as the
 * request chooses (clamp, wrap, zero, stretch), which libraries do without a word. */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>
#include <string.h>

enum policy { ERROR, CLAMP, WRAP, ZERO, STRETCH };
enum { TABLE = PE_LEARNED_TABLE, ROW_TABLE = PE_LEARNED_ROW_TABLE, COL_TABLE = PE_LEARNED_COL_TABLE };

static const char *const policies[] = {
    [ERROR] = "error", [CLAMP] = "clamp", [WRAP] = "wrap", [ZERO] = "zero", [STRETCH] = "interpolate", NULL};

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
    [TABLE] = PE_INPUT("table", "rows,dim", PE_ENCODE, false, "table",
                       "the learned rows; also as files have them: [1,rows,dim], [h,w,dim], [1,h,w,dim], and with "
                       "table_grid [dim,h,w]"),
    [ROW_TABLE] = PE_INPUT("row_table", "rows,dim/2", PE_ENCODE, false, "row table",
                           "on a grid: the second half of the channels, for each row of the grid"),
    [COL_TABLE] = PE_INPUT("col_table", "rows,dim/2", PE_ENCODE, false, "column table",
                           "on a grid: the first half of the channels, for each column of the grid"),
    [PE_LEARNED_WINDOW] = PE_INPUT("window_table", "h,w,dim", PE_ENCODE, false, "window table",
                                   "a second table, of a window, that is repeated over the grid and added to the "
                                   "resized one (SAM 2); also [dim,h,w]"),
    {.name = NULL},
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
                   "%s has %.0f rows, position %s%s needs row %s; send a longer table, or choose out_of_range: "
                   "clamp, wrap, zero, interpolate",
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

enum pe_status pe_learned_fix(struct pe_plan *plan, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    if (!pe_weights_sent(plan, TABLE))
        return PE_OK;
    if (pe_weights_axis(plan, TABLE, 1) == 0)
        return pe_fail(err, "/table", "table has %u axes; needed: [rows, dim]", plan->weights[TABLE].tensor.rank);
    status = pe_fix_size(plan, "dim", pe_weights_axis(plan, TABLE, 1), "table", err);
    return status ? status : pe_fix_size(plan, "rows", pe_weights_axis(plan, TABLE, 0), "table", err);
}

/* ---- The three ways ---- */

static enum pe_status plan_lookup(struct pe_plan *plan, struct pe_learned_tables *s, struct pe_failure *err)
{
    struct learned *c = plan->config;
    /* A grid without table_grid numbers its positions row by row, like the table of a model at its own resolution. */
    struct pe_positions run = {.n = plan->seq.k->n}, *p = plan->seq.n_axes > 1 ? &run : plan->seq.k;
    if (plan->seq.n_axes > 1 && (!plan->seq.n_grid || plan->seq.k->merge))
        return pe_fail(err, "/table",
                       "table has one row for each position of a sequence of one axis or of a grid row "
                       "by row; these positions have %u axes: send row_table and col_table",
                       plan->seq.n_axes);
    enum pe_status status = pe_learned_fix(plan, err);
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

static enum pe_status check_way(const struct pe_plan *plan, const struct pe_learned_tables *s, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    bool split_sent = pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE);
    if (pe_weights_sent(plan, TABLE) && split_sent)
        return pe_fail(err, "/table", "table is given beside row_table or col_table; give one way");
    if (s->is_resized && split_sent)
        return pe_fail(err, "/interpolate", "interpolate resizes a table; it is not used with row_table and col_table");
    const char *only_resized = c->num_prefix                              ? "/num_prefix"
                               : !isnan(c->interpolate_offset)            ? "/interpolate_offset"
                               : !isnan(c->cubic_a)                       ? "/cubic_a"
                               : pe_weights_sent(plan, PE_LEARNED_WINDOW) ? "/window_table"
                                                                          : NULL;
    if (only_resized && !s->is_resized)
        return pe_fail(err, only_resized, "%s is not used here: it needs interpolate and a grid", only_resized + 1);
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
    bool is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n || pe_learned_has_other_grid(plan);
    for (unsigned a = 0; is_resized && a < plan->seq.n_grid && a < PE_LEARNED_AXES_MAX; a++) {
        double to = fmin((double)plan->seq.grid[a], LENGTH_MAX);
        double from = a < c->table_grid.n ? pe_real_at(&c->table_grid, a) : 0;
        pe_cost_each(cost, to + 4 * fmax(from, to), sizeof(int64_t) + sizeof(double), 100);
    }
}

static enum pe_status learned_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct learned *c = plan->config;
    struct pe_learned_tables *s = plan->tables = calloc(1, sizeof *s);
    if (!s)
        return pe_no_memory(err);
    s->is_resized = c->interpolate != PE_UNSET_WORD || c->table_grid.n ||
                    (c->out_of_range == ERROR && c->row_offset == 0 && pe_learned_has_other_grid(plan));
    s->is_split = !s->is_resized && !pe_weights_sent(plan, TABLE) &&
                  (plan->seq.n_axes > 1 || pe_weights_sent(plan, ROW_TABLE) || pe_weights_sent(plan, COL_TABLE));
    enum pe_status status = check_way(plan, s, err);
    if (status)
        return status;
    pe_learned_fold(plan);
    if (!pe_weights_sent(plan, TABLE))
        plan->pace = PE_SLOW; /* one number from the seed for each element */
    return s->is_resized ? pe_learned_resized_plan(plan, err)
           : s->is_split ? plan_split(plan, err)
                         : plan_lookup(plan, s, err);
}

static void learned_drop(struct pe_plan *plan)
{
    struct pe_learned_tables *s = plan->tables;
    for (unsigned a = 0; s && a < PE_LEARNED_AXES_MAX; a++)
        pe_resample_drop(&s->taps[a]);
    free(s);
}

/* ---- Rows ---- */

enum { TILE = PE_LEARNED_TILE };

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
    const struct pe_learned_tables *s = plan->tables;
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
    const struct pe_learned_tables *s = plan->tables;
    const struct pe_positions *k = plan->seq.k;
    double offset = (double)c->row_offset;
    if (s->is_resized)
        pe_learned_resized_row(plan, i, col, n, out);
    else if (s->is_split)
        join(plan, pe_position_at(&k[0], i) + offset, pe_position_at(&k[1], i) + offset, col, n, out);
    else if (c->out_of_range == STRETCH)
        look_between(plan, pe_position_at(k, i), col, n, out);
    else
        look_up(plan, TABLE, pe_position_at(k, i) + offset, col, n, out);
}

/* ---- One number ---- */

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
    const struct pe_learned_tables *s = plan->tables;
    uint64_t i = at->row, col = at->col, half = (uint64_t)c->dim / 2;
    double offset = (double)c->row_offset, p = s->is_resized ? 0 : pe_position_at(plan->seq.k, i);
    (void)id;
    (void)err;
    d->is_looked_up = true;
    if (s->is_resized) {
        pe_learned_resized_derive(plan, at, d);
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

/* What float32 loses: see learned_grid.c; here of a table that is stretched. */
static void lose(const struct pe_plan *plan, uint64_t i, uint64_t col, size_t n, double *loss)
{
    const struct learned *c = plan->config;
    const struct pe_learned_tables *s = plan->tables;
    if (s->is_resized)
        pe_learned_resized_loss(plan, i, col, n, loss);
    else if (!s->is_split && c->out_of_range == STRETCH) {
        uint64_t rows = (uint64_t)c->rows, row = (uint64_t)place_of(plan, pe_position_at(plan->seq.k, i));
        struct pe_learned_run run = {row - (row > 0), row + 2 < rows ? row + 2 : rows - 1, rows, 1};
        pe_learned_add_loss(plan, &run, 1, col, n, loss);
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
    .derive = learned_derive,
};
