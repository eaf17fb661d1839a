/* The bias family: masks, Toeplitz rows, and products rounded once.
 *
 * A bias of the family is a function of the distance for each head, so a map is one line for each head, copied in
 * windows (core/numeric/numeric.h). Lines of large maps are stored in the plan and computed in blocks by the first
 * fill that needs them; a thread that finds another one at work computes the block itself instead of waiting, with the
 * same result. Small maps are computed directly, since nothing would be computed twice.
 *
 * A value is slope times distance, correctly rounded: the product in double has an error below two units of its last
 * place, which decides the rounding of nearly all; the others are computed in double-double. */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>
#include <string.h>

/* ---- Beginning and end ---- */

static bool is_toeplitz(const struct pe_bias *bias, const struct pe_plan *plan)
{
    return bias->rule.distance && pe_toeplitz_fits(plan);
}

/* Distances of a block of a line. Small, so that a part of a large map does not wait for the whole line. */
enum { LINE_BLOCK = 1024 };

/* A head whose map is smaller than this is filled in about one call, so its line is not stored: nothing would be
 * computed twice. */
enum { MAP_TO_KEEP_MIN = 64 * 1024 };

/* Bytes of the lines of all heads; 0 if none is stored. */
static double line_bytes(const struct pe_plan *plan, double num_heads)
{
    double q_len = (double)plan->seq.q->n, k_len = (double)plan->seq.k->n, size = (double)pe_dtype_size(plan->dtype);
    double bytes = num_heads * (q_len + k_len - 1) * size;
    bool pays = q_len * k_len * size >= MAP_TO_KEEP_MIN && bytes <= (double)PE_BIAS_KEPT_MAX;
    return plan->attention || !pays ? 0 : bytes;
}

/* The whole line, because fills may write all of it, and the state of its blocks. */
void pe_bias_cost(const struct pe_plan *plan, double num_heads, struct pe_cost *cost)
{
    bool is_packed = plan->seq.is_counted && plan->sequence.lens.n > 1;
    double line = pe_toeplitz_fits(plan) && !is_packed ? line_bytes(plan, num_heads) : 0;
    if (line > 0)
        pe_cost_add(cost, line + line / LINE_BLOCK + num_heads, 2 * num_heads + 1000);
}

const struct pe_output_row pe_bias_outputs[] = {PE_BIAS_OUTPUT, {.name = NULL}};

enum pe_status pe_bias_init(struct pe_bias *bias, const struct pe_plan *plan, const struct pe_mask_fields *fields,
                            struct pe_failure *err)
{
    const struct pe_mask_fields all = {.window = PE_UNSET_INT, .window_right = PE_UNSET_INT};
    int64_t num_heads = 1;
    pe_param_integer(plan->scheme->info.params, plan->config, "num_heads", strlen("num_heads"), &num_heads);
    bias->num_heads = (size_t)num_heads;
    enum pe_status status = pe_mask_init(&bias->mask, plan->attention ? &all : fields, plan->seq.k->n, 0, err);
    if (status)
        return status;
    /* Memory from malloc that is never touched costs only address space. */
    struct pe_bias_line *line = &bias->line;
    if (!is_toeplitz(bias, plan) || line_bytes(plan, (double)bias->num_heads) == 0)
        return PE_OK;
    line->n = (size_t)(plan->seq.q->n + plan->seq.k->n - 1);
    line->n_blocks = (line->n - 1) / LINE_BLOCK + 1;
    line->values = malloc(bias->num_heads * line->n * pe_dtype_size(plan->dtype));
    line->blocks = calloc(bias->num_heads * line->n_blocks, sizeof *line->blocks);
    return line->values && line->blocks ? PE_OK : pe_no_memory(err);
}

void pe_bias_drop(struct pe_plan *plan)
{
    struct pe_bias *bias = plan->tables;
    pe_mask_drop(&bias->mask);
    free(bias->line.values);
    free(bias->line.blocks);
}

/* ---- Storing ---- */

void pe_bias_store(enum pe_dtype dtype, void *dst, size_t i, struct pe_dd v)
{
    union {
        double f64;
        float f32;
        uint16_t bits;
    } zero = {0};
    size_t size = pe_dtype_size(dtype);
    char *at = (char *)dst + i * size;
    pe_store(dtype, dst, i, dtype == PE_F64 ? v.hi : dd_round_odd(v));
    if (pe_element(dtype, dst, i) == 0)
        memcpy(at, &zero, size);
}

#define REPEAT(type)                                                                                                   \
    for (size_t k = 1; k < n; k++)                                                                                     \
        ((type *)out)[i + k] = ((type *)out)[i];

void pe_bias_repeat(enum pe_dtype dtype, void *out, size_t i, size_t n)
{
    switch (pe_dtype_size(dtype)) {
    case 1: REPEAT(uint8_t) break;
    case 2: REPEAT(uint16_t) break;
    case 4: REPEAT(uint32_t) break;
    default: REPEAT(uint64_t) break;
    }
}

bool pe_bias_settle(enum pe_dtype dtype, void *dst, size_t i, double v, double error)
{
    double least = v - error, most = v + error;
    pe_store(dtype, dst, i, v);
    if (fabs(v) < fmax(0x1p-24, pe_real_type(dtype)->least)) /* may round to zero, whose sign is not v's */
        return false;
    return pe_rounds_alike(dtype, least, most);
}

static void store_unseen(enum pe_dtype dtype, void *dst, size_t i) { pe_store(dtype, dst, i, -(double)INFINITY); }

void pe_bias_hide(const struct pe_plan *plan, uint64_t i, uint64_t j0, size_t n, enum pe_dtype dtype, void *row)
{
    const struct pe_mask *mask = &((const struct pe_bias *)plan->tables)->mask;
    const struct pe_sequence *seq = &plan->seq;
    if (!mask->seen && pe_mask_is_far(mask))
        return;
    double q_pos = pe_position_at(seq->q, i);
    for (size_t j = 0; j < n; j++)
        if ((mask->seen && !mask->seen[j0 + j]) || !pe_mask_reaches(mask, pe_position_at(seq->k, j0 + j) - q_pos))
            store_unseen(dtype, row, j);
}

/* ---- Products ---- */

enum { RUN = 64 };

/* The fast case: n ≤ RUN products in double, narrowed to f32. Their error is below two units of the last place of a
 * double (the product's rounding, and the slope's low part), so a value farther than that from the midpoint between
 * two floats is rounded correctly. Returns false if any value is nearer, or is too small for a normal float. */
static bool products_f32(struct pe_dd slope, double first, double step, size_t n, float *out)
{
    uint32_t doubtful = 0;
    for (size_t i = 0; i < n; i++) {
        union {
            double d;
            uint64_t u;
        } p = {.d = 0 - slope.hi * (first + step * (double)i)};
        uint32_t low = (uint32_t)p.u & 0x1fffffff; /* the 29 bits of a double's fraction that a float does not have */
        double size = fabs(p.d);
        doubtful |= low - (0x10000000 - 4) <= 8;
        doubtful |= (size < 0x1p-126) & (size > 0);
        out[i] = (float)p.d;
    }
    return !doubtful;
}

void pe_bias_products(struct pe_dd slope, double first, double step, size_t n, enum pe_dtype dtype, void *out)
{
    for (size_t at = 0; at < n; at += RUN) {
        size_t m = n - at < RUN ? n - at : RUN;
        double start = first + step * (double)at;
        if (dtype == PE_F32 && products_f32(slope, start, step, m, (float *)out + at))
            continue;
        for (size_t i = 0; i < m; i++)
            pe_bias_store(dtype, out, at + i, dd_neg(dd_mul_d(slope, start + step * (double)i)));
    }
}

/* ---- Blocks ---- */

/* A part of one head's map: rows i0 … (queries), columns j0 … (keys). */
struct tile {
    const struct pe_plan *plan;
    enum pe_dtype dtype;
    size_t head, batch;
    uint64_t i0, j0;
    size_t n_rows, n_cols;
    char *dst;
    size_t stride; /* bytes from a row to the next */
};

/* Hides n columns of the tile from column j on: windows of a vector that is -inf throughout. */
static void hide_columns(const struct tile *t, size_t j, size_t n)
{
    enum { ROWS = 64, COLS = 449 };
    _Alignas(64) char hidden[(ROWS + COLS - 1) * sizeof(double)];
    size_t size = pe_dtype_size(t->dtype), most = n < COLS ? n : COLS;
    store_unseen(t->dtype, hidden, 0);
    pe_bias_repeat(t->dtype, hidden, 0, ROWS + most - 1);
    for (size_t i = 0; i < t->n_rows; i += ROWS)
        for (size_t at = 0; at < n; at += COLS)
            pe_toeplitz_copy(hidden, size, t->n_rows - i < ROWS ? t->n_rows - i : ROWS, n - at < COLS ? n - at : COLS,
                             t->dst + i * t->stride + (j + at) * size, t->stride);
}

/* Hides padding and keys of other packed sequences. */
static void hide_keys(const struct pe_bias *bias, const struct tile *t)
{
    const uint32_t *piece = t->plan->attention ? NULL : t->plan->seq.piece;
    if (bias->mask.seen) {
        /* Hides padding; neighbouring keys are hidden together. */
        for (size_t j = 0, n; j < t->n_cols; j += n) {
            const uint8_t *key = bias->mask.seen + t->j0 + j, *end = memchr(key, !*key, t->n_cols - j);
            n = end ? (size_t)(end - key) : t->n_cols - j;
            if (!*key)
                hide_columns(t, j, n);
        }
    }
    for (size_t i = 0; piece && i < t->n_rows; i++)
        for (size_t j = 0; j < t->n_cols; j++)
            if (piece[t->i0 + i] != piece[t->j0 + j])
                store_unseen(t->dtype, t->dst + i * t->stride, j);
}

/* The biases of n distances from rel on, -inf where the mask hides the key. */
static void make_distances(const struct pe_bias *bias, const struct pe_plan *plan, size_t head, double rel, size_t n,
                           enum pe_dtype dtype, char *out)
{
    bias->rule.distance(plan, head, rel, n, dtype, out);
    for (size_t m = 0; !pe_mask_is_far(&bias->mask) && m < n; m++)
        if (!pe_mask_reaches(&bias->mask, rel + (double)m))
            store_unseen(dtype, out, m);
}

enum { TO_MAKE, IN_MAKING, MADE }; /* the state of a block of a line */

/* Computes block i of the line of a head if that is not done. Returns false if another thread is computing it:
 * waiting for that thread would take longer than computing the needed biases separately. */
static bool block_is_made(struct pe_bias *bias, const struct pe_plan *plan, size_t head, size_t i)
{
    struct pe_bias_line *line = &bias->line;
    atomic_uchar *state = &line->blocks[head * line->n_blocks + i];
    unsigned char found = atomic_load_explicit(state, memory_order_acquire);
    if (found == TO_MAKE &&
        atomic_compare_exchange_strong_explicit(state, &found, IN_MAKING, memory_order_acquire, memory_order_acquire)) {
        size_t first = i * LINE_BLOCK, n = line->n - first < LINE_BLOCK ? line->n - first : LINE_BLOCK;
        char *out = line->values + (head * line->n + first) * pe_dtype_size(plan->dtype);
        make_distances(bias, plan, head, pe_toeplitz_start(plan) + (double)first, n, plan->dtype, out);
        bool is_whole = !pe_was_cancelled(); /* an incomplete block must not be marked: other threads read it */
        atomic_store_explicit(state, is_whole ? MADE : TO_MAKE, memory_order_release);
        return is_whole;
    }
    return found == MADE;
}

/* The n biases from `first` on of the line of a head; NULL if they are not stored or not ready. */
static const char *kept_distances(struct pe_bias *bias, const struct tile *t, size_t first, size_t n)
{
    if (!bias->line.values || t->dtype != t->plan->dtype)
        return NULL;
    for (size_t i = first / LINE_BLOCK; i * LINE_BLOCK < first + n; i++)
        if (!block_is_made(bias, t->plan, t->head, i))
            return NULL;
    return bias->line.values + (t->head * bias->line.n + first) * pe_dtype_size(t->dtype);
}

/* Both sequences are runs: the tile's rows are windows of one vector over distances. Row i starts i entries before row
 * 0. */
static void fill_windows(struct pe_bias *bias, const struct tile *t)
{
    _Alignas(64) char scratch[PE_SCRATCH_BYTES];
    const struct pe_sequence *seq = &t->plan->seq;
    uint64_t last = t->i0 + t->n_rows - 1; /* the last row: the vector begins with its first bias */
    size_t n = t->n_cols + t->n_rows - 1;
    size_t first = (size_t)(t->j0 + (seq->q->n - 1 - last));
    const char *vector = kept_distances(bias, t, first, n);
    if (!vector) {
        make_distances(bias, t->plan, t->head, pe_toeplitz_start(t->plan) + (double)first, n, t->dtype, scratch);
        vector = scratch;
    }
    pe_toeplitz_copy(vector, pe_dtype_size(t->dtype), t->n_rows, t->n_cols, t->dst, t->stride);
    hide_keys(bias, t);
}

/* For any positions: row by row where the rule has rows, all rows alike but for the mask where it is key_only, else
 * pair by pair. k - q may need two doubles, so the rule gets both positions. */
static void fill_rows(const struct pe_bias *bias, const struct tile *t)
{
    _Alignas(64) char vector[PE_SCRATCH_BYTES];
    const struct pe_sequence *seq = &t->plan->seq;
    const struct pe_bias_rule *rule = &bias->rule;
    struct pe_pair g = {.head = t->head, .batch = t->batch};
    for (size_t i = 0; i < t->n_rows; i++) {
        char *row = t->dst + i * t->stride, *to = rule->key_only ? vector : row;
        g.q_pos = pe_position_at(seq->q, t->i0 + i);
        g.k_pos = pe_position_at(seq->k, t->j0);
        g.key = t->j0;
        if (rule->row)
            rule->row(t->plan, &g, t->n_cols, t->dtype, row);
        for (size_t j = 0; !rule->row && !(rule->key_only && i) && j < t->n_cols; j++) {
            g.key = t->j0 + j;
            g.k_pos = pe_position_at(seq->k, g.key);
            if (rule->key_only || pe_mask_reaches(&bias->mask, g.k_pos - g.q_pos))
                pe_bias_store(t->dtype, to, j, rule->pair(t->plan, &g));
        }
        if (rule->key_only)
            memcpy(row, vector, t->n_cols * pe_dtype_size(t->dtype));
        for (size_t j = 0; j < t->n_cols; j++)
            if (!pe_mask_reaches(&bias->mask, pe_position_at(seq->k, t->j0 + j) - g.q_pos))
                store_unseen(t->dtype, row, j);
    }
    hide_keys(bias, t);
}

static void fill_tile(struct pe_bias *bias, const struct tile *t)
{
    if (is_toeplitz(bias, t->plan))
        fill_windows(bias, t);
    else
        fill_rows(bias, t);
}

/* A quarter of the vector is for rows, the rest for columns, so the vector is at most a third longer than a row of
 * the tile. */
void pe_bias_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                  void *dst)
{
    (void)id;
    struct pe_bias *bias = plan->tables; /* only its line changes */
    uint64_t q_len = plan->seq.q->n, end = b->row0 + b->n_rows;
    size_t size = pe_dtype_size(output->dtype), stride = b->n_cols * size;
    size_t tile_rows = PE_SCRATCH_BYTES / size / 4, tile_cols = PE_SCRATCH_BYTES / size - tile_rows;
    struct tile t = {.plan = plan, .dtype = output->dtype, .stride = stride};
    for (uint64_t row = b->row0; row < end; row += t.n_rows) {
        uint64_t left_in_head = q_len - row % q_len, left = end - row;
        t.head = (size_t)(row / q_len) % bias->num_heads;
        t.batch = (size_t)(row / q_len) / bias->num_heads;
        t.i0 = row % q_len;
        t.n_rows = (size_t)(left < left_in_head ? left : left_in_head);
        t.n_rows = t.n_rows < tile_rows ? t.n_rows : tile_rows;
        for (uint64_t col = 0; col < b->n_cols; col += t.n_cols) {
            t.n_cols = b->n_cols - col < tile_cols ? (size_t)(b->n_cols - col) : tile_cols;
            t.j0 = b->col0 + col;
            t.dst = (char *)dst + (row - b->row0) * stride + col * size;
            fill_tile(bias, &t);
        }
    }
}

bool pe_bias_fill_line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t head,
                       uint64_t first, size_t n, void *dst)
{
    enum { BIAS }; /* the first output of every scheme of the family */
    const struct pe_bias *bias = plan->tables;
    if (id != BIAS || !is_toeplitz(bias, plan) || bias->mask.seen)
        return false;
    make_distances(bias, plan, (size_t)head, pe_toeplitz_start(plan) + (double)first, n, output->dtype, dst);
    return true;
}

/* ---- For attention ---- */

/* Positions of packed sequences restart, but inside each sequence they are a run, so the distance is the difference
 * of the indices. */
bool pe_bias_at(const struct pe_plan *plan, size_t head, double rel, size_t n, double *out)
{
    const struct pe_bias *bias = plan->tables;
    if (!bias->rule.distance || !pe_rows_are_runs(plan))
        return false;
    bias->rule.distance(plan, head, rel, n, PE_F64, out);
    return true;
}

const struct pe_attend pe_bias_attend = {.bias_at = pe_bias_at};
