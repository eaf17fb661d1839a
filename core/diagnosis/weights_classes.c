/* Rows of two matrices, and their classes: equal rows get one number. */
#include "core/diagnosis/weights.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_matrices_conversions[] = {"none", "interleaved_to_half", "half_to_interleaved", NULL};
const char *const pe_matrices_names[] = {"w_believed", "w_found"};

/* ---- A matrix ---- */

/* n numbers of a row as they were sent. */
void pe_matrices_read_plain(const struct pe_matrix *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    size_t size = pe_dtype_size(m->dtype);
    const char *from = (const char *)m->data + (row * m->row_step + col0 * m->col_step) * size;
    if (m->col_step == 1)
        pe_convert(PE_F64, out, m->dtype, from, n);
    for (size_t i = 0; m->col_step != 1 && i < n; i++)
        out[i] = pe_element(m->dtype, from, i * m->col_step);
    for (size_t i = 0; m->is_text && i < n; i++)
        out[i] = (double)(float)out[i];
}

void pe_matrices_read(const struct pe_matrices *w, const struct pe_matrix *m, uint64_t row, uint64_t col0, size_t n,
                      double *out)
{
    bool is_rounded = w->dtype != (m->is_text ? PE_F32 : m->dtype);
    pe_matrices_read_plain(m, row, col0, n, out);
    for (size_t i = 0; is_rounded && i < n; i++)
        out[i] = pe_round_to(w->dtype, out[i]);
}

bool pe_matrices_gives_up(const struct pe_matrices *w)
{
    if (!pe_is_cancelled())
        return false;
    pe_cancelled(w->err);
    return true;
}

struct pe_matrix pe_matrices_turned(const struct pe_matrix *m)
{
    struct pe_matrix t = *m;
    t.n_rows = m->n_cols;
    t.n_cols = m->n_rows;
    t.row_step = m->col_step;
    t.col_step = m->row_step;
    return t;
}

bool pe_matrices_is_like(const struct pe_matrices *w, const struct pe_matrix *found)
{
    return found->n_cols == w->believed.n_cols && found->n_rows <= PE_WEIGHT_ROWS_MAX;
}

/* ---- Classes of rows ---- */

/* The bits of a number, mixed (MurmurHash3's finalizer); -0 is 0. */
static uint64_t mix(uint64_t h, double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0xff51afd7ed558ccdU;
    return h ^ (h >> 32);
}

static uint64_t hash_row(const struct pe_matrices *w, const struct pe_matrix *m, uint64_t row, double sign)
{
    double x[PE_WEIGHTS_PIECE];
    uint64_t h = 0x9e3779b97f4a7c15U;
    for (uint64_t at = 0; at < m->n_cols; at += PE_WEIGHTS_PIECE) {
        size_t n = pe_matrices_piece(m->n_cols, at);
        pe_matrices_read(w, m, row, at, n, x);
        for (size_t i = 0; i < n; i++)
            h = mix(h, sign * x[i]);
    }
    return h;
}

/* Is found = sign·believed, number for number? */
static bool are_equal(const struct pe_matrices *w, const struct pe_matrix *a, uint64_t i, const struct pe_matrix *b,
                      uint64_t j, double sign)
{
    double x[PE_WEIGHTS_PIECE], y[PE_WEIGHTS_PIECE];
    for (uint64_t at = 0; at < a->n_cols; at += PE_WEIGHTS_PIECE) {
        size_t n = pe_matrices_piece(a->n_cols, at);
        pe_matrices_read(w, a, i, at, n, x);
        pe_matrices_read(w, b, j, at, n, y);
        for (size_t k = 0; k < n; k++)
            if (x[k] != sign * y[k])
                return false;
    }
    return true;
}

size_t pe_matrices_slots(uint64_t n)
{
    size_t slots = 2;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

/* The slot of the believed row that this row equals, or the free one where it belongs. */
static uint32_t *slot_of(const struct pe_matrices *w, const struct pe_matrix *m, uint64_t row, uint64_t hash,
                         double sign)
{
    size_t slots = pe_matrices_slots(w->believed.n_rows), at = (size_t)hash & (slots - 1);
    for (;; at = (at + 1) & (slots - 1)) {
        uint32_t other = w->table[at];
        if (other == PE_NOWHERE || (w->hashes[other] == hash && are_equal(w, m, row, &w->believed, other, sign)))
            return &w->table[at];
    }
}

/* The first believed row that is equal is the class. */
bool pe_matrices_class_believed(struct pe_matrices *w)
{
    memset(w->table, 0xff, pe_matrices_slots(w->believed.n_rows) * sizeof *w->table);
    for (uint64_t row = 0; row < w->believed.n_rows; row++) {
        if (row % 16 == 0 && pe_matrices_gives_up(w))
            return false;
        w->hashes[row] = hash_row(w, &w->believed, row, 1);
        uint32_t *slot = slot_of(w, &w->believed, row, w->hashes[row], 1);
        if (*slot == PE_NOWHERE)
            *slot = (uint32_t)row;
        w->of_believed[row] = *slot;
    }
    return true;
}

bool pe_matrices_class_found(struct pe_matrices *w, const struct pe_matrix *found, double sign)
{
    for (uint64_t row = 0; row < found->n_rows; row++) {
        if (row % 16 == 0 && pe_matrices_gives_up(w))
            return false;
        w->of_found[row] = *slot_of(w, found, row, hash_row(w, found, row, sign), sign);
    }
    return true;
}

/* Believed rows that no found row is. */
uint64_t pe_matrices_missing(const struct pe_matrices *w, uint64_t n_found)
{
    uint64_t missing = w->believed.n_rows;
    uint32_t *left = w->place; /* of each class, rows without a partner */
    memset(left, 0, w->believed.n_rows * sizeof *left);
    for (uint64_t i = 0; i < w->believed.n_rows; i++)
        left[w->of_believed[i]]++;
    for (uint64_t i = 0; i < n_found; i++)
        if (w->of_found[i] != PE_NOWHERE && left[w->of_found[i]]) {
            left[w->of_found[i]]--;
            missing--;
        }
    return missing;
}

/* ---- One factor ---- */

/* Sums of a row: of squares; of numbers with signs and weights that follow no pattern, and of their magnitudes. */
struct sums {
    double squares, key, size;
};

static struct sums sums_of(const struct pe_matrices *w, const struct pe_matrix *m, uint64_t row)
{
    struct sums s = {0, 0, 0};
    double x[PE_WEIGHTS_PIECE];
    for (uint64_t at = 0; at < m->n_cols; at += PE_WEIGHTS_PIECE) {
        size_t n = pe_matrices_piece(m->n_cols, at);
        pe_matrices_read(w, m, row, at, n, x);
        for (size_t i = 0; i < n; i++) {
            uint64_t h = mix(0x243f6a8885a308d3U, (double)(at + i + 1));
            double weight = ((double)(h >> 11) * 0x1p-53 - 0.5) * x[i];
            s.squares += x[i] * x[i];
            s.key += weight;
            s.size += fabs(weight);
        }
    }
    return s;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Lengths of rows, sorted; the sum of their squares. NaN: given up. */
static double sorted_lengths(struct pe_matrices *w, const struct pe_matrix *m, double *lengths)
{
    double all = 0;
    for (uint64_t row = 0; row < m->n_rows; row++) {
        if (row % 16 == 0 && pe_matrices_gives_up(w))
            return (double)NAN;
        double squares = sums_of(w, m, row).squares;
        lengths[row] = sqrt(squares);
        all += squares;
    }
    qsort(lengths, m->n_rows, sizeof *lengths, by_number);
    return all;
}

/* The magnitude of the factor, if every length has it; 0: there is none. keys: [4, n_rows]. */
double pe_matrices_factor(struct pe_matrices *w, const struct pe_matrix *found)
{
    uint64_t n = found->n_rows;
    double *a = w->keys, *b = w->keys + n, u = pe_roundoff(w->dtype);
    double of_believed = sorted_lengths(w, &w->believed, a), of_found = sorted_lengths(w, found, b);
    double factor = sqrt(of_found / of_believed);
    if (!(of_believed > 0) || !isfinite(factor) || !(factor > 0))
        return 0;
    for (uint64_t i = 0; i < n; i++)
        if (fabs(b[i] - factor * a[i]) > 4 * u * b[i])
            return 0;
    return pe_shortest_decimal(factor, 4 * u / sqrt((double)n * (double)found->n_cols) + 1e-15);
}

static bool is_scaled(const struct pe_matrices *w, const struct pe_matrix *found, uint64_t i, uint64_t j, double factor)
{
    double x[PE_WEIGHTS_PIECE], y[PE_WEIGHTS_PIECE], u = pe_roundoff(w->dtype);
    for (uint64_t at = 0; at < found->n_cols; at += PE_WEIGHTS_PIECE) {
        size_t n = pe_matrices_piece(found->n_cols, at);
        pe_matrices_read(w, found, i, at, n, x);
        pe_matrices_read(w, &w->believed, j, at, n, y);
        for (size_t k = 0; k < n; k++)
            if (fabs(x[k] - factor * y[k]) > 4 * u * fabs(x[k]) + 0x1p-126)
                return false;
    }
    return true;
}

/* Rows are found by one number each, sorted, and compared. keys: pairs of key and row, then sizes. */
bool pe_matrices_class_scaled(struct pe_matrices *w, const struct pe_matrix *found, double factor)
{
    struct keyed {
        double key, row;
    } *sorted = (struct keyed *)(void *)w->keys;
    uint64_t n = w->believed.n_rows;
    for (uint64_t j = 0; j < n; j++) {
        if (j % 16 == 0 && pe_matrices_gives_up(w))
            return false;
        sorted[j] = (struct keyed){factor * sums_of(w, &w->believed, j).key, (double)j};
    }
    qsort(sorted, n, sizeof *sorted, by_number);
    for (uint64_t i = 0; i < n; i++) {
        struct sums s = sums_of(w, found, i);
        double most = 4 * pe_roundoff(w->dtype) * s.size;
        uint64_t low = 0, high = n;
        while (low < high) {
            uint64_t middle = (low + high) / 2;
            if (sorted[middle].key < s.key - most)
                low = middle + 1;
            else
                high = middle;
        }
        w->of_found[i] = PE_NOWHERE;
        for (; low < n && sorted[low].key <= s.key + most && w->of_found[i] == PE_NOWHERE; low++)
            if (is_scaled(w, found, i, (uint64_t)sorted[low].row, factor))
                w->of_found[i] = w->of_believed[(uint64_t)sorted[low].row];
        if (i % 16 == 0 && pe_matrices_gives_up(w))
            return false;
    }
    return true;
}
