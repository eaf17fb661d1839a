/* The relative family: rows of tables for pairs of positions, and the terms looked up in them.
 *
 * Written down, q_i · table[row(k_j - q_i)] is a tensor of pairs times channels: 16 GiB for 8192 positions and 64
 * channels. But a query meets few different rows, so it is multiplied by the whole table once (relative.h has both
 * directions), and a logit picks its number from the product. Along a row of logits the index rises by one or stays,
 * which is why picking costs a load and a permutation (kernels/attend_picks.h) and not a gather. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>
#include <string.h>

/* ---- Positions ---- */

static enum pe_status check_list(const struct pe_positions *p, const char *pointer, const char *scheme,
                                 struct pe_failure *err)
{
    for (uint64_t i = 0; p->list && i < pe_positions_count(p); i++)
        if (p->list[i] != floor(p->list[i]))
            return pe_fail(err, pointer,
                           "%s has %s at index %llu; allowed: integers, since %s has a row for each distance",
                           pointer + 1, pe_shown(p->list[i]).text, (unsigned long long)i, scheme);
    return PE_OK;
}

enum pe_status pe_relative_check(const struct pe_plan *plan, struct pe_failure *err)
{
    const char *scheme = plan->scheme->info.name;
    const struct pe_sequence_fields *f = &plan->sequence;
    const char *q = f->positions.n ? "/positions" : f->q_positions.n ? "/q_positions" : "/k_positions";
    const char *k = f->positions.n ? "/positions" : f->k_positions.n ? "/k_positions" : "/q_positions";
    enum pe_status status = check_list(plan->seq.q, q, scheme, err);
    return status ? status : check_list(plan->seq.k, k, scheme, err);
}

static void ends(const struct pe_positions *p, double *first, double *last)
{
    *first = *last = pe_position_at(p, 0);
    for (uint64_t i = 0; p->list && i < pe_positions_count(p); i++) {
        *first = fmin(*first, p->list[i]);
        *last = fmax(*last, p->list[i]);
    }
    if (!p->list)
        *last = pe_position_at(p, p->n - 1);
}

void pe_relative_reach(const struct pe_plan *plan, int64_t *least, int64_t *most)
{
    double q0, q1, k0, k1;
    ends(plan->seq.q, &q0, &q1);
    ends(plan->seq.k, &k0, &k1);
    *least = (int64_t)(k0 - q1);
    *most = (int64_t)(k1 - q0);
}

/* Relative positions in a block of logits (core/attend.h). */

bool pe_rows_are_runs(const struct pe_plan *plan)
{
    return plan->seq.piece || (!plan->seq.q->list && !plan->seq.k->list);
}

int64_t pe_rows_rel(const struct pe_rows *rows, size_t row, size_t key)
{
    const struct pe_sequence *seq = &rows->plan->seq;
    if (seq->piece)
        return (int64_t)(rows->j0 + key) - (int64_t)(rows->i0 + row);
    return (int64_t)pe_position_at(seq->k, rows->j0 + key) - (int64_t)pe_position_at(seq->q, rows->i0 + row);
}

bool pe_rows_is_after(const struct pe_rows *rows, size_t row, size_t key)
{
    const struct pe_sequence *seq = &rows->plan->seq;
    if (seq->piece)
        return rows->j0 + key > rows->i0 + row;
    return pe_position_at(seq->k, rows->j0 + key) > pe_position_at(seq->q, rows->i0 + row);
}

/* ---- The output index ---- */

static void rows_of(const struct pe_plan *plan, const void *unused, double rel, size_t n, void *out)
{
    (void)unused;
    for (size_t i = 0; i < n; i++)
        ((int32_t *)out)[i] = plan->scheme->table_row(plan, (int64_t)rel + (int64_t)i);
}

void pe_relative_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                      void *dst)
{
    const struct pe_positions *q = plan->seq.q, *k = plan->seq.k;
    int32_t *out = dst;
    (void)output, (void)id;
    if (pe_toeplitz_fits(plan)) {
        pe_toeplitz_fill(plan, rows_of, NULL, sizeof *out, b, out);
        return;
    }
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t j = 0; j < b->n_cols; j++) {
            double rel = pe_position_at(k, b->col0 + j) - pe_position_at(q, b->row0 + i);
            *out++ = plan->scheme->table_row(plan, (int64_t)rel);
        }
}

bool pe_relative_line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t matrix,
                      uint64_t first, size_t n, void *dst)
{
    (void)output, (void)id, (void)matrix;
    return pe_toeplitz_line(plan, rows_of, NULL, first, n, dst);
}

/* ---- Rows of the table for a block ---- */

enum { KEYS = 64 }; /* keys processed together */

/* Distances that share a row and clipped distances keep the index; all others must step by one, always in the same
 * direction. */
static bool steps_by_one(const int32_t *run, size_t n)
{
    bool up = true, down = true;
    for (size_t m = 1; m < n; m++) {
        int32_t step = run[m] - run[m - 1];
        up &= step == 0 || step == 1;
        down &= step == 0 || step == -1;
    }
    return up || down;
}

void pe_relative_index_cost(const struct pe_plan *plan, double ns, struct pe_cost *cost)
{
    if (pe_rows_are_runs(plan))
        pe_cost_each(cost, (double)plan->seq.q->n + (double)plan->seq.k->n, sizeof(int32_t), ns);
}

/* The smallest distance is that of the last query and the first key. */
enum pe_status pe_relative_open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err)
{
    struct pe_relative_index *x = plan->tables;
    const struct pe_sequence *seq = &plan->seq;
    size_t n = seq->q->n + seq->k->n - 1;
    (void)a;
    if (!pe_rows_are_runs(plan))
        return PE_OK;
    x->run = malloc(n * sizeof *x->run);
    if (!x->run)
        return pe_no_memory(err);
    int64_t rel = 1 - (int64_t)seq->q->n + (seq->piece ? 0 : (int64_t)(seq->k->start - seq->q->start));
    for (size_t m = 0; m < n; m++)
        x->run[m] = plan->scheme->table_row(plan, rel + (int64_t)m);
    x->is_smooth = steps_by_one(x->run, n);
    return PE_OK;
}

/* The indices of a block. If sequences are runs, its rows are windows of one vector over distances; else each row is
 * computed. */
struct indices {
    const struct pe_rows *rows;
    int32_t *vector; /* [n_rows + n_keys - 1], or [n_keys] */
    bool is_run, is_smooth;
    int32_t first, n; /* rows that occur: indices are counted from the first */
};

static void open_indices(struct indices *x, const struct pe_rows *rows, const struct pe_relative_index *index,
                         size_t n_table)
{
    *x = (struct indices){.rows = rows, .vector = rows->scratch, .n = (int32_t)n_table};
    if (!index || !index->run)
        return;
    x->is_run = true;
    x->is_smooth = index->is_smooth;
    size_t n = rows->n_rows + rows->n_keys - 1;
    const int32_t *run = index->run + (rows->plan->seq.q->n - rows->i0 - rows->n_rows + rows->j0);
    int32_t least = INT32_MAX, most = 0;
    for (size_t m = 0; m < n; m++) {
        least = run[m] < least ? run[m] : least;
        most = run[m] > most ? run[m] : most;
    }
    for (size_t m = 0; m < n; m++)
        x->vector[m] = run[m] - least;
    x->first = least;
    x->n = most - least + 1;
}

static const int32_t *indices_of(const struct indices *x, size_t i)
{
    if (x->is_run)
        return x->vector + (x->rows->n_rows - 1 - i);
    for (size_t j = 0; j < x->rows->n_keys; j++)
        x->vector[j] = x->rows->plan->scheme->table_row(x->rows->plan, pe_rows_rel(x->rows, i, j));
    return x->vector;
}

/* ---- A head's table ---- */

static size_t plain_size(size_t n_table, size_t head_dim) { return (n_table * head_dim + 15) / 16 * 16; }

size_t pe_relative_table_size(size_t n_table, size_t head_dim)
{
    return plain_size(n_table, head_dim) + pe_panels_size(n_table, head_dim);
}

const void *pe_relative_panels(const struct pe_arithmetic *a, const void *table, size_t n_table, size_t head_dim)
{
    return pe_numbers_at(a, table, plain_size(n_table, head_dim));
}

void pe_relative_table_set(const struct pe_arithmetic *a, const double *from, size_t n_table, size_t head_dim,
                           void *table)
{
    pe_convert(a->dtype, table, PE_F64, from, n_table * head_dim);
    a->pack(table, head_dim, n_table, head_dim, pe_numbers_at(a, table, plain_size(n_table, head_dim)));
}

/* ---- Keys with the whole table ---- */

/* Rows of the products are not a power of two apart: otherwise the rows of eight keys would fall into one set of the
 * cache. */
static size_t meeting_stride(size_t n_table) { return (n_table + 15) / 16 * 16 + 16; }

/* For few queries each key needs only a few rows of the table, so the whole product is not computed. */
size_t pe_relative_meeting_size(const struct pe_plan *plan, size_t n_table)
{
    bool pays = n_table <= 2 * plan->seq.q->n && n_table <= PE_RELATIVE_MEETING_MAX / plan->seq.k->n;
    return pays ? plan->seq.k->n * meeting_stride(n_table) + PE_PICK_BEHIND : 0;
}

void pe_relative_meet(const struct pe_rows *keys, const void *table, size_t n_table, void *meeting)
{
    const struct pe_arithmetic *a = keys->a;
    size_t d = keys->head_dim, stride = meeting_stride(n_table);
    for (size_t j = 0, n; j < keys->n_keys; j += n) {
        n = keys->n_keys - j < KEYS ? keys->n_keys - j : KEYS;
        a->products(n, 0, n_table, d, 1, pe_numbers_at(a, keys->k, j * keys->k_stride), keys->k_stride,
                    pe_relative_panels(a, table, n_table, d), pe_numbers_at(a, meeting, j * stride), stride);
    }
}

/* ---- Terms ---- */

size_t pe_relative_scratch(const struct pe_plan *plan, size_t n_rows, size_t n_table)
{
    size_t vector = n_rows + plan->seq.k->n + 16, by_query = n_rows * n_table, by_key = KEYS * n_table + KEYS;
    return vector + (by_query > by_key ? by_query : by_key) + PE_PICK_BEHIND;
}

/* The scratch after the vector of indices. */
static void *behind(const struct pe_rows *rows)
{
    return pe_numbers_at(rows->a, rows->scratch, rows->n_rows + rows->n_keys);
}

static void *logits_at(const struct pe_rows *rows, size_t i, size_t j)
{
    return pe_numbers_at(rows->a, rows->logits, i * rows->stride + j);
}

void pe_relative_add_by_query(const struct pe_rows *rows, const struct pe_relative_index *index, const void *panels,
                              size_t n_table, double factor)
{
    const struct pe_arithmetic *a = rows->a;
    struct indices x;
    open_indices(&x, rows, index, n_table);
    size_t n = (size_t)x.n, d = rows->head_dim;
    void *products = behind(rows); /* [n_rows, n] */
    a->products(rows->n_rows, (size_t)x.first, n, d, factor, rows->q, d, panels, products, n);
    for (size_t i = 0; i < rows->n_rows; i++)
        if (x.is_smooth)
            a->pick_add(logits_at(rows, i, 0), pe_numbers_at(a, products, i * n), indices_of(&x, i), rows->n_keys);
        else
            a->gather_add(logits_at(rows, i, 0), pe_numbers_at(a, products, i * n), indices_of(&x, i), rows->n_keys, 1);
}

/* If the products of all keys with the whole table exist, row i reads [j, row(i, j)]. */
static void add_met(const struct indices *x, const void *meeting, size_t stride, double factor)
{
    const struct pe_rows *rows = x->rows;
    const struct pe_arithmetic *a = rows->a;
    meeting = pe_numbers_at(a, meeting, rows->j0 * stride + (size_t)x->first);
    if (x->is_smooth) {
        a->pick_across_add(rows->logits, rows->stride, meeting, stride, indices_of(x, 0), rows->n_rows, rows->n_keys,
                           factor);
        return;
    }
    int32_t at[KEYS];
    for (size_t i = 0; i < rows->n_rows; i++) {
        const int32_t *index = indices_of(x, i);
        for (size_t j = 0, n; j < rows->n_keys; j += n) {
            n = rows->n_keys - j < KEYS ? rows->n_keys - j : KEYS;
            for (size_t m = 0; m < n; m++)
                at[m] = index[j + m] + (int32_t)(m * stride);
            a->gather_add(logits_at(rows, i, j), pe_numbers_at(a, meeting, j * stride), at, n, factor);
        }
    }
}

/* Keys j0 … (n of them) of all rows: products[r, j] = factor · table[r]·k_j, of which row i reads [row(i, j), j]. */
static void add_keys(const struct indices *x, const void *table, double factor, size_t j0, size_t n)
{
    const struct pe_rows *rows = x->rows;
    const struct pe_arithmetic *a = rows->a;
    int32_t least = 0, most = x->n - 1, at[KEYS];
    for (size_t m = 0; x->is_run && m < n + rows->n_rows - 1; m++) {
        int32_t r = x->vector[j0 + m];
        least = m == 0 || r < least ? r : least;
        most = m == 0 || r > most ? r : most;
    }
    size_t d = rows->head_dim;
    void *products = behind(rows);
    a->abt((size_t)(most - least + 1), n, d, factor, pe_numbers_at(a, table, (size_t)(x->first + least) * d), d,
           pe_numbers_at(a, rows->k, j0 * rows->k_stride), rows->k_stride, 0, products, n);
    for (size_t i = 0; i < rows->n_rows; i++) {
        const int32_t *index = indices_of(x, i);
        for (size_t j = 0; j < n; j++)
            at[j] = (index[j0 + j] - least) * (int32_t)n + (int32_t)j;
        a->gather_add(logits_at(rows, i, j0), products, at, n, 1);
    }
}

void pe_relative_add_by_key(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            const void *meeting, size_t n_table, double factor)
{
    struct indices x;
    open_indices(&x, rows, index, n_table);
    if (pe_relative_meeting_size(rows->plan, n_table)) {
        add_met(&x, meeting, meeting_stride(n_table), factor);
        return;
    }
    for (size_t j = 0; j < rows->n_keys; j += KEYS)
        add_keys(&x, table, factor, j, rows->n_keys - j < KEYS ? rows->n_keys - j : KEYS);
}

void pe_relative_add_parts(const struct pe_rows *rows)
{
    const struct pe_attend *attend = rows->plan->scheme->attend;
    for (size_t part = 1; attend->parts[part]; part++)
        if (!attend->has_part || attend->has_part(rows->plan, part))
            attend->add_part(rows, part);
}

/* First sums the weight of each row of the table, then computes one product. */
void pe_relative_add_values(const struct pe_rows *rows, const struct pe_relative_index *index, const void *table,
                            size_t n_table, void *out, size_t out_stride, size_t v_dim)
{
    const struct pe_arithmetic *a = rows->a;
    struct indices x;
    open_indices(&x, rows, index, n_table);
    void *weights = behind(rows); /* [n_rows, n_table] */
    pe_numbers_set(a, weights, 0, rows->n_rows * n_table, 0);
    for (size_t i = 0; i < rows->n_rows; i++) {
        const int32_t *at = indices_of(&x, i);
        for (size_t j = 0; j < rows->n_keys; j++) {
            size_t to = i * n_table + (size_t)(x.first + at[j]);
            pe_number_set(a, weights, to, pe_number(a, weights, to) + pe_number(a, logits_at(rows, i, j), 0));
        }
    }
    a->ab(rows->n_rows, v_dim, n_table, weights, n_table, table, v_dim, 1, out, out_stride);
}

/* ---- Tables ---- */

double pe_relative_norm(const double *table, size_t n, size_t width)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t c = 0; c < width; c++)
            sum += table[i * width + c] * table[i * width + c];
        most = fmax(most, sum);
    }
    return sqrt(most);
}
