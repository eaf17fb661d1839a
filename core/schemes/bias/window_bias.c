/* The window family (Swin, Swin V2, BEiT): finds the window, computes its table once, and copies the rows of the map
 * from it.
 *
 * A bias of a window of h × w patches depends on the difference of two coordinates, so it is block-Toeplitz: a table of
 * (2h-1)·(2w-1) numbers for each head, where a line of keys is a stretch read backwards, and the next line is 2w-1
 * numbers further on. The schemes differ in how the table is made (learned, a network of coordinates, a class token),
 * and share the copying. A map is therefore computed in the time of memcpy whatever its network costs. */
#include "core/schemes/bias/bias.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIAS, INDEX };

const struct pe_param pe_window_params[] = {
    PE_P_INT(pe_window_fields, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if a table is sent, its own",
             .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_REALS(pe_window_fields, table_grid, 1, 65536, "window of the table",
               "window that the table was trained on, [h,w] or [t,h,w]: its (2h-1)·(2w-1) rows are resized to those of "
               "the grid, rows of a class token are kept",
               .group = PE_G_AXES),
    {.name = "interpolate",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(pe_window_fields, interpolate, int),
     .fallback = PE_UNSET_WORD,
     .words = pe_resample_words,
     .about = {"resizing of the table",
               "how the table of table_grid is resized: bicubic (Swin), bilinear (BEiT in transformers), …; default "
               "bicubic with table_grid"},
     .group = PE_G_AXES},
    PE_WINDOW_PARAMS,
    PE_P_END,
};

const struct pe_output_row pe_window_outputs[] = {
    [BIAS] = PE_OUTPUT("bias", "num_heads,q_len,k_len", 1, PE_DTYPE_NONE, false, PE_WHEN_WEIGHTS, "bias",
                       "added to the scaled logits; q_len and k_len are the tokens of the window; needs weights"),
    [INDEX] = PE_OUTPUT("index", "q_len,k_len", 1, PE_I32, true, NULL, "index",
                        "row of the table for each pair; the default output if there are no weights"),
    {.name = NULL},
};

/* ---- The window ---- */

static enum pe_status no_window(const struct pe_plan *plan, const char *pointer, const char *found,
                                struct pe_failure *err)
{
    return pe_fail(err, pointer, "%s; %s is for one window: give grid [h,w] or [t,h,w], or len n for [1,n]",
                   pe_text(found), plan->scheme->info.name);
}

static const char *size_pointer(const struct pe_plan *plan) { return plan->seq.n_grid ? "/grid" : "/len"; }

static enum pe_status check_rows(const struct pe_plan *plan, const struct pe_window *t, struct pe_failure *err)
{
    double rows = (2 * (double)t->frames - 1) * (2 * (double)t->h - 1) * (2 * (double)t->w - 1) + 3;
    if (rows <= INT32_MAX)
        return PE_OK;
    pe_fail(err, size_pointer(plan),
            "a window of %llu by %llu has a table of %.0f rows; allowed: below 2^31, index is i32",
            (unsigned long long)t->h, (unsigned long long)t->w, rows);
    return err->status = PE_TOO_LARGE;
}

enum pe_status pe_window_init(struct pe_window *t, struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_sequence *seq = &plan->seq;
    const struct pe_window_fields *c = plan->config;
    enum pe_status status = PE_OK;
    /* A window is a whole grid, line by line; any other way of giving positions would leave the window or reorder it.
     */
    const struct pe_sequence_fields *f = &plan->sequence;
    char found[64];
    snprintf(found, sizeof found, pe_text("grid has %u axes"), plan->seq.n_grid);
    if (plan->seq.n_grid > 3)
        return no_window(plan, "/grid", found, err);
    if (f->positions.n)
        return no_window(plan, "/positions", "positions are single places", err);
    if (f->lens.n)
        return no_window(plan, "/lens", "lens are several sequences", err);
    if (f->segments)
        return no_window(plan, "/segments", "segments are several grids", err);
    if (plan->seq.k->merge)
        return no_window(plan, "/order", "order merge is not line by line", err);
    t->frames = seq->n_grid == 3 ? seq->grid[0] : 1;
    t->h = seq->n_grid >= 2 ? seq->grid[seq->n_grid - 2] : 1;
    t->w = seq->n_grid >= 2 ? seq->grid[seq->n_grid - 1] : seq->k->n;
    t->has_class = plan->scheme->n_class > 0;
    status = check_rows(plan, t, err);
    if (status)
        return status;
    t->n_rows = (2 * t->frames - 1) * (2 * t->h - 1) * (2 * t->w - 1) + (t->has_class ? 3 : 0);
    seq->n_axes = 1;
    seq->q[0] = seq->k[0] = (struct pe_positions){.n = t->frames * t->h * t->w + t->has_class};
    return pe_bias_init(&t->bias, plan, &c->bias, err);
}

/* ---- Weights ---- */

static enum pe_status too_large(const struct pe_plan *plan, const struct pe_window *t, int64_t num_heads,
                                struct pe_failure *err)
{
    pe_fail(err, size_pointer(plan),
            "a window of %llu by %llu has a table of %llu rows, with %lld heads %.0f biases; allowed: at most %d",
            (unsigned long long)t->h, (unsigned long long)t->w, (unsigned long long)t->n_rows, (long long)num_heads,
            (double)t->n_rows * (double)num_heads, PE_WINDOW_BIASES_MAX);
    return err->status = PE_TOO_LARGE;
}

enum pe_status pe_window_keep(struct pe_plan *plan, void (*row)(const struct pe_plan *, uint64_t, double *),
                              double work, struct pe_failure *err)
{
    struct pe_window *t = plan->tables;
    const struct pe_window_fields *c = plan->config;
    if ((double)t->n_rows * (double)c->num_heads > PE_WINDOW_BIASES_MAX)
        return too_large(plan, t, c->num_heads, err);
    t->dtype = plan->attention ? PE_F64 : plan->dtype;
    t->table = malloc((size_t)t->n_rows * (size_t)c->num_heads * pe_dtype_size(t->dtype) + PE_TOEPLITZ_SLACK);
    if (!t->table)
        return pe_no_memory(err);
    t->num_heads = (size_t)c->num_heads;
    t->row = row;
    plan->work = (double)t->n_rows * work;
    plan->pace = (double)t->n_rows * work > PE_LIGHT_WORK ? PE_HEAVY : PE_QUICK;
    return PE_OK;
}

enum { TABLE }; /* input 0 */

static void read_row(const struct pe_plan *plan, uint64_t row, double *out)
{
    size_t n = ((const struct pe_window *)plan->tables)->num_heads;
    pe_weights_read(&plan->weights[TABLE], row * n, n, out);
}

/* ---- A table of another window ---- */

static void add_row(const struct pe_plan *plan, uint64_t row, double weight, double *sum)
{
    double values[PE_HEADS_MAX];
    size_t n = ((const struct pe_window *)plan->tables)->num_heads;
    if (weight == 0)
        return;
    read_row(plan, row, values);
    for (size_t head = 0; head < n; head++)
        sum[head] += weight * values[head];
}

/* Row (f, y, x) of the table of this window; rows of a class token stand behind those of patches, as they came. */
static void resize_row(const struct pe_plan *plan, uint64_t row, double *out)
{
    const struct pe_window *t = plan->tables;
    const struct pe_resample_taps *f = &t->taps[0], *y = &t->taps[1], *x = &t->taps[2];
    uint64_t n = f->n_out * y->n_out * x->n_out, sent = t->from[0] * t->from[1] * t->from[2];
    uint64_t at[3] = {row / (y->n_out * x->n_out) * f->n_taps, row / x->n_out % y->n_out * y->n_taps,
                      row % x->n_out * x->n_taps};
    if (row >= n) {
        read_row(plan, sent + row - n, out);
        return;
    }
    memset(out, 0, t->num_heads * sizeof *out);
    for (unsigned a = 0; a < f->n_taps; a++)
        for (unsigned b = 0; b < y->n_taps; b++)
            for (unsigned c = 0; c < x->n_taps; c++) {
                int64_t line = f->index[at[0] + a] * (int64_t)t->from[1] + y->index[at[1] + b];
                add_row(plan, (uint64_t)(line * (int64_t)t->from[2] + x->index[at[2] + c]),
                        f->weight[at[0] + a] * y->weight[at[1] + b] * x->weight[at[2] + c], out);
            }
}

/* Sides of the table that is sent; {0, 0, 0} if it is that of this window. */
static enum pe_status read_table_grid(struct pe_plan *plan, struct pe_window *t, struct pe_failure *err)
{
    struct pe_window_fields *c = plan->config;
    unsigned n = plan->seq.n_grid == 3 ? 3 : 2;
    if (!c->table_grid.n)
        return c->interpolate == PE_UNSET_WORD
                   ? PE_OK
                   : pe_fail(err, "/table_grid",
                             "interpolate needs table_grid, the window that the table was trained on");
    int64_t sides[3];
    enum pe_status status =
        pe_reals_whole(&c->table_grid, n, "table_grid", "as many as the window has axes", sides, err);
    t->from[0] = 1;
    for (unsigned a = 0; a < n && !status; a++)
        t->from[3 - n + a] = 2 * (uint64_t)sides[a] - 1;
    c->interpolate = c->interpolate == PE_UNSET_WORD ? PE_BICUBIC : c->interpolate;
    return status;
}

static enum pe_status make_taps(const struct pe_plan *plan, struct pe_window *t, struct pe_failure *err)
{
    const struct pe_window_fields *c = plan->config;
    enum pe_resample_kind kind = (enum pe_resample_kind)c->interpolate;
    struct pe_resample how = {.kind = kind, .cubic_a = pe_resample_cubic_a(kind)};
    uint64_t to[3] = {2 * t->frames - 1, 2 * t->h - 1, 2 * t->w - 1};
    double n_taps = 1;
    for (unsigned a = 0; a < 3; a++) {
        if (pe_resample_init(&t->taps[a], &how, t->from[a], to[a]))
            return pe_no_memory(err);
        n_taps *= t->taps[a].n_taps;
    }
    if (n_taps <= PE_RESAMPLE_TAPS_MAX)
        return PE_OK;
    pe_fail(err, "/table_grid", "each row would be a sum of %.0f rows of the table; allowed: at most %d", n_taps,
            PE_RESAMPLE_TAPS_MAX);
    return err->status = PE_TOO_LARGE;
}

/* Room for the table, which the first fills write. */
void pe_window_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_window_fields *c = plan->config;
    const struct pe_sequence *seq = &plan->seq;
    double tokens = 1, heads = pe_size_most(plan, "num_heads");
    for (unsigned a = 0; a < seq->n_grid; a++)
        tokens *= (double)seq->grid[a];
    tokens = seq->n_grid ? tokens : (double)seq->k->n;
    double n = heads * ((seq->n_grid == 3 ? 8 : 4) * tokens + 3);
    if (!pe_weights_wanted(plan))
        return;
    pe_cost_add(cost, fmin(n, PE_WINDOW_BIASES_MAX) * sizeof(double), 1000);
    for (unsigned a = 0; c->table_grid.n && a < 3; a++) {
        double to = a < seq->n_grid ? 2 * (double)seq->grid[a] : 2 * (double)seq->k->n,
               from = a < c->table_grid.n ? 2 * pe_real_at(&c->table_grid, a) : 1;
        pe_cost_each(cost, to + 4 * fmax(from, to), sizeof(int64_t) + sizeof(double), 100);
    }
}

enum pe_status pe_window_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_window_fields *c = plan->config;
    struct pe_window *t = plan->tables;
    enum pe_status status = pe_window_init(t, plan, err);
    if (!status)
        status = read_table_grid(plan, t, err);
    if (status || !pe_weights_wanted(plan))
        return status;
    bool is_resized = t->from[0] > 0;
    uint64_t rows = is_resized ? t->from[0] * t->from[1] * t->from[2] + (t->has_class ? 3 : 0) : t->n_rows;
    if (is_resized && make_taps(plan, t, err))
        return err->status;
    status = pe_fix_sizes(plan, (const char *const[]){"num_heads", NULL}, err);
    const uint64_t shape[2] = {rows, (uint64_t)c->num_heads};
    if (!status)
        status = pe_weights_need_shape(plan, TABLE, shape, 2, err);
    /* A number from the seed takes as long as about 32 products, a number that was sent as long as four. */
    double work = (double)c->num_heads * (pe_weights_sent(plan, TABLE) ? 4 : 32);
    for (unsigned a = 0; is_resized && a < 3; a++)
        work *= t->taps[a].n_taps;
    return status ? status : pe_window_keep(plan, is_resized ? resize_row : read_row, work, err);
}

void pe_window_drop(struct pe_plan *plan)
{
    struct pe_window *t = plan->tables;
    for (unsigned a = 0; a < 3; a++)
        pe_resample_drop(&t->taps[a]);
    free(t->table);
    pe_bias_drop(plan);
}

/* ---- The table ---- */

/* Rounds once and never stores -0, even if a small negative number underflows in a narrow dtype. */
static void store(enum pe_dtype dtype, void *dst, size_t i, double x)
{
    pe_store(dtype, dst, i, x);
    if (pe_element(dtype, dst, i) == 0)
        pe_store(dtype, dst, i, 0);
}

static void make_row(const struct pe_plan *plan, struct pe_window *t, size_t row)
{
    double values[PE_HEADS_MAX];
    t->row(plan, row, values);
    for (size_t head = 0; head < t->num_heads; head++)
        store(t->dtype, t->table, head * t->n_rows + (t->n_rows - 1 - row), values[head]);
}

static void make_table(const struct pe_plan *plan)
{
    enum { ROWS = 16 };
    struct pe_window *t = plan->tables;
    size_t n = t->n_rows;
    if (atomic_load_explicit(&t->made, memory_order_acquire) == n)
        return;
    for (size_t row;
         !pe_is_cancelled() && (row = atomic_fetch_add_explicit(&t->next, ROWS, memory_order_relaxed)) < n;) {
        size_t end = n - row < ROWS ? n : row + ROWS;
        for (size_t i = row; i < end; i++)
            make_row(plan, t, i);
        atomic_fetch_add_explicit(&t->made, end - row, memory_order_release);
    }
    while (!pe_was_cancelled() && atomic_load_explicit(&t->made, memory_order_acquire) < n)
        pe_wait(); /* other threads compute the last rows */
}

/* ---- Rows of the map ---- */

/* Consecutive keys; the table row of each is the row before that of the previous key. */
struct stretch {
    uint64_t index; /* of the first */
    size_t n;
};

/* The stretch of query i from key j on, at most `most` keys, up to the end of a line of the window. */
static struct stretch stretch_at(const struct pe_window *t, uint64_t i, uint64_t j, size_t most)
{
    uint64_t wide = 2 * t->w - 1, high = 2 * t->h - 1, m = (2 * t->frames - 1) * high * wide, plane = t->h * t->w;
    if (t->has_class && i == 0)
        return (struct stretch){j == 0 ? m + 2 : m, 1};
    if (t->has_class && j == 0)
        return (struct stretch){m + 1, 1};
    i -= t->has_class;
    j -= t->has_class;
    uint64_t f = i / plane + t->frames - 1 - j / plane, y = i % plane / t->w + t->h - 1 - j % plane / t->w,
             x = i % t->w + t->w - 1 - j % t->w, left = t->w - j % t->w;
    return (struct stretch){(f * high + y) * wide + x, left < most ? (size_t)left : most};
}

/* For n keys that begin at the start of a line of the window: the number of whole lines among them up to the end of
 * their frame, if the query is a patch too. */
static size_t whole_lines(const struct pe_window *t, uint64_t i, uint64_t j, size_t n)
{
    bool are_patches = i >= t->has_class && j >= t->has_class;
    uint64_t place = j - t->has_class, left = t->h - place % (t->h * t->w) / t->w;
    size_t lines = n / (size_t)t->w;
    return are_patches && place % t->w == 0 ? lines < left ? lines : (size_t)left : 0;
}

/* The next line of the window is 2w-1 places further on in the table. */
static void fill_bias(const struct pe_window *t, size_t head, uint64_t i, uint64_t j0, size_t n, size_t size, char *dst)
{
    const char *table = (const char *)t->table + head * t->n_rows * size;
    struct stretch s;
    for (size_t j = 0; j < n; j += s.n) {
        s = stretch_at(t, i, j0 + j, n - j);
        const char *from = table + (t->n_rows - 1 - s.index) * size;
        size_t n_lines = whole_lines(t, i, j0 + j, n - j), step = 2 * (size_t)t->w - 1;
        if (n_lines)
            pe_toeplitz_join(from, step * size, n_lines, s.n * size, dst + j * size);
        else
            memcpy(dst + j * size, from, s.n * size);
        s.n *= n_lines ? n_lines : 1;
    }
}

void pe_window_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                    void *dst)
{
    const struct pe_window *t = plan->tables;
    size_t size = pe_dtype_size(output->dtype), n = (size_t)b->n_cols;
    if (id == BIAS)
        make_table(plan);
    for (uint64_t r = 0; r < b->n_rows; r++) {
        uint64_t row = b->row0 + r, i = row % plan->seq.q->n;
        char *at = (char *)dst + r * n * size;
        if (id == INDEX) {
            struct stretch s;
            for (size_t j = 0; j < n; j += s.n) {
                s = stretch_at(t, i, b->col0 + j, n - j);
                for (size_t k = 0; k < s.n; k++)
                    ((int32_t *)at)[j + k] = (int32_t)(s.index - k);
            }
        } else {
            fill_bias(t, (size_t)(row / plan->seq.q->n) % t->num_heads, i, b->col0, n, size, at);
            pe_bias_hide(plan, i, b->col0, n, output->dtype, at);
        }
    }
}

/* ---- One number ---- */

/* The row of the table of tokens i and j, by how far apart they are. */
static uint64_t state_index(const struct pe_window *t, uint64_t i, uint64_t j, struct pe_derivation *d)
{
    uint64_t index = stretch_at(t, i, j, 1).index, wide = 2 * t->w - 1, high = 2 * t->h - 1, plane = t->h * t->w;
    if (t->has_class && (i == 0 || j == 0)) {
        unsigned more = i ? 1 : j ? 0 : 2;
        pe_derived(d, "index", dd((double)index), "(2·h − 1)·(2·w − 1) + %u = %llu·%llu + %u", more,
                   (unsigned long long)high, (unsigned long long)wide, more);
        pe_derived_says(d, i   ? "from the patch to the class token: a row behind those of patches"
                           : j ? "from the class token to the patch: a row behind those of patches"
                               : "the class token to itself: a row behind those of patches");
        return index;
    }
    i -= t->has_class;
    j -= t->has_class;
    const char *in_frame = t->frames > 1 ? " mod h" : "";
    unsigned long long q = i, k = j, w = t->w, q_line = i % plane / w, k_line = j % plane / w;
    if (t->frames > 1) {
        pe_derived(d, "d_t", dd((double)(q / plane) - (double)(k / plane)), "⌊%llu/(h·w)⌋ − ⌊%llu/(h·w)⌋ = %llu − %llu",
                   q, k, q / plane, k / plane);
        pe_derived_says(d, "frames: query minus key");
    }
    pe_derived(d, "d_y", dd((double)q_line - (double)k_line), "⌊%llu/%llu⌋%s − ⌊%llu/%llu⌋%s = %llu − %llu", q, w,
               in_frame, k, w, in_frame, q_line, k_line);
    pe_derived_says(d, "lines: query minus key");
    pe_derived(d, "d_x", dd((double)(q % w) - (double)(k % w)), "%llu mod %llu − %llu mod %llu = %llu − %llu", q, w, k,
               w, q % w, k % w);
    pe_derived_says(d, "columns: query minus key");
    if (t->frames > 1)
        pe_derived(d, "index", dd((double)index),
                   "((d_t + t − 1)·(2·h − 1) + d_y + h − 1)·(2·w − 1) + d_x + w − 1, t = %llu, h = %llu, w = %llu",
                   (unsigned long long)t->frames, (unsigned long long)t->h, (unsigned long long)t->w);
    else
        pe_derived(d, "index", dd((double)index), "(d_y + h − 1)·(2·w − 1) + d_x + w − 1, h = %llu, w = %llu",
                   (unsigned long long)t->h, (unsigned long long)t->w);
    pe_derived_says(d, "the row of the table: one for each difference of two places");
    return index;
}

/* The rows of the table that was sent, whose sum the row is, as many as there is room for. */
static unsigned state_sum(const struct pe_plan *plan, uint64_t row, size_t head, struct pe_derivation *d)
{
    static const char *const symbols[] = {"x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",
                                          "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16"};
    enum { SHOWN = sizeof symbols / sizeof *symbols };
    const struct pe_window *t = plan->tables;
    const struct pe_resample_taps *f = &t->taps[0], *y = &t->taps[1], *x = &t->taps[2];
    uint64_t at[3] = {row / (y->n_out * x->n_out) * f->n_taps, row / x->n_out % y->n_out * y->n_taps,
                      row % x->n_out * x->n_taps};
    unsigned n = 0;
    for (unsigned i = 0; i < f->n_taps * y->n_taps * x->n_taps; i++) {
        uint64_t a = at[0] + i / (y->n_taps * x->n_taps), b = at[1] + i / x->n_taps % y->n_taps,
                 c = at[2] + i % x->n_taps;
        double weight = f->weight[a] * y->weight[b] * x->weight[c], v;
        int64_t line = f->index[a] * (int64_t)t->from[1] + y->index[b];
        uint64_t sent = (uint64_t)(line * (int64_t)t->from[2] + x->index[c]);
        if (weight == 0)
            continue;
        pe_weights_read(&plan->weights[TABLE], sent * t->num_heads + head, 1, &v);
        if (n < SHOWN)
            pe_derived(d, symbols[n], dd_two_prod(weight, v), "table[%llu, %zu]·%s = %s·%s", (unsigned long long)sent,
                       head, pe_brief(dd(weight), 7).text, pe_shown(v).text, pe_brief(dd(weight), 7).text);
        n++;
    }
    return n;
}

static void state_looked_up(const struct pe_plan *plan, uint64_t row, size_t head, struct pe_derivation *d)
{
    const struct pe_window_fields *c = plan->config;
    const struct pe_window *t = plan->tables;
    uint64_t n = t->n_rows - (t->has_class ? 3 : 0), sent = t->from[0] * t->from[1] * t->from[2];
    double values[PE_HEADS_MAX];
    t->row(plan, row, values);
    if (sent && row < n) {
        unsigned n_rows = state_sum(plan, row, head, d);
        pe_derived(d, "bias", dd(values[head]), "Σ");
        pe_derived_says(d, "the sum of %u rows of the table of another window with their weights (%s)", n_rows,
                        pe_resample_words[c->interpolate]);
    } else
        pe_derived(d, "bias", dd(values[head]), "table[%llu, %zu]", (unsigned long long)(sent ? sent + row - n : row),
                   head);
}

enum pe_status pe_window_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                struct pe_derivation *d, struct pe_failure *err)
{
    const struct pe_window *t = plan->tables;
    struct pe_pair g;
    (void)err;
    if (id == BIAS && pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    uint64_t row = state_index(t, at->row, at->col, d);
    if (id == BIAS)
        (t->state ? t->state : state_looked_up)(plan, row, g.head, d);
    d->is_looked_up = id == BIAS;
    return PE_OK;
}
