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
    return pe_fail(err, pointer, "%s; %s is for one window: give grid [h,w], or len n for [1,n]", pe_text(found),
                   plan->scheme->info.name);
}

/* A window is a whole grid, line by line; any other way of giving positions would leave the window or reorder it. */
static enum pe_status check_sequence(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_sequence_fields *f = &plan->sequence;
    char found[64];
    snprintf(found, sizeof found, pe_text("grid has %u axes"), plan->seq.n_grid);
    if (plan->seq.n_grid > 2)
        return no_window(plan, "/grid", found, err);
    if (f->positions.n)
        return no_window(plan, "/positions", "positions are single places", err);
    if (f->lens.n)
        return no_window(plan, "/lens", "lens are several sequences", err);
    if (f->segments)
        return no_window(plan, "/segments", "segments are several grids", err);
    if (plan->seq.k->merge)
        return no_window(plan, "/order", "order merge is not line by line", err);
    return PE_OK;
}

static const char *size_pointer(const struct pe_plan *plan) { return plan->seq.n_grid ? "/grid" : "/len"; }

static enum pe_status check_rows(const struct pe_plan *plan, const struct pe_window *t, struct pe_failure *err)
{
    double rows = (2 * (double)t->h - 1) * (2 * (double)t->w - 1) + 3;
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
    enum pe_status status = check_sequence(plan, err);
    if (status)
        return status;
    t->h = seq->n_grid == 2 ? seq->grid[0] : 1;
    t->w = seq->n_grid == 2 ? seq->grid[1] : seq->k->n;
    t->has_class = plan->scheme->n_class > 0;
    status = check_rows(plan, t, err);
    if (status)
        return status;
    t->n_rows = (2 * t->h - 1) * (2 * t->w - 1) + (t->has_class ? 3 : 0);
    seq->n_axes = 1;
    seq->q[0] = seq->k[0] = (struct pe_positions){.n = t->h * t->w + t->has_class};
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

/* Room for the table, which the first fills write. */
void pe_window_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_window_fields *c = plan->config;
    const struct pe_sequence *seq = &plan->seq;
    double h = seq->n_grid == 2 ? (double)seq->grid[0] : 1, w = (double)(seq->n_grid == 2 ? seq->grid[1] : seq->k->n);
    double heads = fmax((double)c->num_heads, (double)pe_weights_axis(plan, TABLE, 1)), n = heads * (4 * h * w + 3);
    if (pe_weights_wanted(plan))
        pe_cost_add(cost, fmin(n, PE_WINDOW_BIASES_MAX) * sizeof(double), 1000);
}

enum pe_status pe_window_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_window_fields *c = plan->config;
    struct pe_window *t = plan->tables = calloc(1, sizeof *t);
    if (!t)
        return pe_no_memory(err);
    enum pe_status status = pe_window_init(t, plan, err);
    if (status || !pe_weights_wanted(plan))
        return status;
    if (pe_weights_axis(plan, TABLE, 1))
        status = pe_fix_size(plan, "num_heads", pe_weights_axis(plan, TABLE, 1), "table", err);
    const uint64_t shape[2] = {t->n_rows, (uint64_t)c->num_heads};
    if (!status)
        status = pe_weights_need(plan, TABLE, shape, 2, err);
    /* A number from the seed takes as long as about 32 products, a number that was sent as long as four. */
    double work = (double)c->num_heads * (pe_weights_sent(plan, TABLE) ? 4 : 32);
    return status ? status : pe_window_keep(plan, read_row, work, err);
}

void pe_window_drop(struct pe_plan *plan)
{
    struct pe_window *t = plan->tables;
    if (t)
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
    uint64_t m = (2 * t->h - 1) * (2 * t->w - 1);
    if (t->has_class && i == 0)
        return (struct stretch){j == 0 ? m + 2 : m, 1};
    if (t->has_class && j == 0)
        return (struct stretch){m + 1, 1};
    i -= t->has_class;
    j -= t->has_class;
    uint64_t y = i / t->w + t->h - 1 - j / t->w, x = i % t->w + t->w - 1 - j % t->w, left = t->w - j % t->w;
    return (struct stretch){y * (2 * t->w - 1) + x, left < most ? (size_t)left : most};
}

static void fill_index(const struct pe_window *t, uint64_t i, uint64_t j0, size_t n, int32_t *dst)
{
    struct stretch s;
    for (size_t j = 0; j < n; j += s.n) {
        s = stretch_at(t, i, j0 + j, n - j);
        for (size_t k = 0; k < s.n; k++)
            dst[j + k] = (int32_t)(s.index - k);
    }
}

/* For n keys that begin at the start of a line of the window: the number of whole lines among them, if the query is
 * a patch too. */
static size_t whole_lines(const struct pe_window *t, uint64_t i, uint64_t j, size_t n)
{
    bool are_patches = i >= t->has_class && j >= t->has_class;
    return are_patches && (j - t->has_class) % t->w == 0 ? n / (size_t)t->w : 0;
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
            fill_index(t, i, b->col0, n, (int32_t *)at);
        } else {
            fill_bias(t, (size_t)(row / plan->seq.q->n) % t->num_heads, i, b->col0, n, size, at);
            pe_bias_hide(plan, i, b->col0, n, output->dtype, at);
        }
    }
}
