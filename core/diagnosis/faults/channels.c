/* Which channel of q becomes which channel of q_out.
 *
 * A rotation keeps the length of each pair, whatever the angle. So a permutation that somebody may have made (a
 * conversion of weights applied twice, say) is tested by the lengths of the pairs alone, before any position or
 * frequency is known. A permutation without a name is read by turning q_out back with the cosines and sines of a model:
 * what remains are q's own numbers in another order. */
#include "core/diagnosis/diagnosis.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lengths of pairs ---- */

enum { ROWS_OF_LENGTHS = 4, LENGTHS_NOISE = 64 };

static double length2(const double *x, const struct pe_width *w, size_t c)
{
    size_t j = w->first + (w->is_half ? c : 2 * c), k = j + (w->is_half ? w->n / 2 : 1);
    return x[j] * x[j] + x[k] * x[k];
}

/* All pairs are longer by one factor, that of attention. */
static bool are_as_long(const double *in, const double *out, const struct pe_width *w, double noise)
{
    double sum_in = 0, sum_out = 0;
    for (size_t c = 0; c < w->n / 2; c++) {
        sum_in += length2(in, w, c);
        sum_out += length2(out, w, c);
    }
    double factor = sum_in > 0 ? sum_out / sum_in : 1;
    for (size_t c = 0; c < w->n / 2; c++) {
        double expected = factor * length2(in, w, c);
        if (!(fabs(length2(out, w, c) - expected) <= LENGTHS_NOISE * noise * (expected + sum_out / (double)w->n)))
            return false;
    }
    return sum_in > 0;
}

bool pe_channels_agree(struct pe_diagnosis *d, const struct pe_channels *channels, const struct pe_width *w)
{
    const struct pe_evidence *e = &d->evidence;
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX], noise = pe_evidence_noise(e);
    size_t n = (size_t)e->row_len;
    bool agree = true;
    for (uint64_t i = 0; agree && i < ROWS_OF_LENGTHS && i < e->n_rows; i++) {
        uint64_t row = (2 * i + 1) * e->n_rows / (2 * ROWS_OF_LENGTHS);
        pe_input_in_order(d, channels, row, in);
        pe_evidence_read(e, 0, row, 0, n, out);
        agree = are_as_long(in, out, w, noise);
        d->work += PE_CHANNEL_WORK * (double)n;
    }
    return agree;
}

/* ---- Sizes of rows ---- */

enum { ROWS_OF_SIZES = 8 };
#define SIZE_TOLERANCE 0x1p-6 /* cosines of 16 bits and a near fit leave less */

static double size2(const double *x, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += x[j] * x[j];
    return sum;
}

bool pe_channels_keep_sizes(struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    double x[PE_HEAD_DIM_MAX], least = (double)INFINITY, most = 0;
    size_t n = (size_t)e->row_len;
    for (uint64_t i = 0; i < ROWS_OF_SIZES && i < e->n_rows; i++) {
        uint64_t row = (2 * i + 1) * e->n_rows / (2 * ROWS_OF_SIZES);
        pe_evidence_input(e, row, x);
        double in2 = size2(x, n);
        pe_evidence_read(e, 0, row, 0, n, x);
        if (!(in2 > 0))
            continue;
        least = fmin(least, size2(x, n) / in2);
        most = fmax(most, size2(x, n) / in2);
        d->work += 4 * (double)n;
    }
    return most <= (1 + 2 * SIZE_TOLERANCE) * least || most == 0;
}

/* ---- Numbers in another order ---- */

enum { ROWS_READ = 32, NUMBERS_READ = 1 << 17, TURN_NOISE = 16 };

/* Rows of two sides that hold the same numbers in another order: x[j] is y[order[j]]. */
struct sides {
    size_t n, n_rows;
    double *x, *y; /* [n_rows, n] */
    double tolerance[ROWS_READ];
};

struct number {
    double x;
    uint32_t at;
};

static int by_size(const void *a, const void *b)
{
    const struct number *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

/* q_out, turned back by the model's angles. */
static void turn_back(const struct pe_model *m, const struct pe_row_rotation *turn, uint64_t row, double *out)
{
    double table[PE_HEAD_DIM_MAX], found[PE_HEAD_DIM_MAX];
    size_t pairs = m->n_columns / 2;
    pe_rotary_row(m, pe_model_place(m, row), table);
    for (size_t c = 0; c < pairs; c++) {
        double size2 = table[c] * table[c] + table[pairs + c] * table[pairs + c];
        table[c] /= size2;
        table[pairs + c] /= -size2;
    }
    pe_evidence_read(&m->d->evidence, 0, row, 0, (size_t)m->d->evidence.row_len, found);
    pe_rotate_row(turn, table, PE_F64, found, PE_F64, out);
}

static void read_sides(const struct pe_model *m, const struct pe_row_rotation *turn, bool is_after, size_t i,
                       uint64_t row, struct sides *s)
{
    const struct pe_evidence *e = &m->d->evidence;
    double p = fabs(pe_position_at(&m->plan->seq.k[0], pe_model_place(m, row)));
    s->tolerance[i] = (TURN_NOISE * pe_evidence_noise(e) + fmin(0x1p-20 * p, 0.125)) * e->largest;
    if (is_after) {
        pe_evidence_read(e, 0, row, 0, s->n, s->x + i * s->n);
        pe_model_fill(m, 0, row, 0, s->n, s->y + i * s->n);
    } else {
        turn_back(m, turn, row, s->x + i * s->n);
        pe_evidence_input(e, row, s->y + i * s->n);
    }
    *m->work += 4 * PE_CHANNEL_WORK * (double)s->n;
}

static void sort(const double *x, size_t n, struct number *sorted)
{
    for (size_t j = 0; j < n; j++)
        sorted[j] = (struct number){x[j], (uint32_t)j};
    qsort(sorted, n, sizeof *sorted, by_size);
}

/* Has row 0 the same numbers on both sides? Nearly every model ends here. */
static bool are_alike(const struct sides *s, struct number *x, struct number *y)
{
    sort(s->x, s->n, x);
    sort(s->y, s->n, y);
    for (size_t j = 0; j < s->n; j++)
        if (!(fabs(x[j].x - y[j].x) <= s->tolerance[0]))
            return false;
    return true;
}

/* The largest difference of channel j of x and channel a of y, as a share of what is allowed; above 1: too large. */
static double distance(const struct sides *s, size_t j, size_t a)
{
    double most = 0;
    for (size_t i = 0; i < s->n_rows && most <= 1; i++)
        most = fmax(most, fabs(s->x[i * s->n + j] - s->y[i * s->n + a]) / s->tolerance[i]);
    return most;
}

/* The channel of y that is channel j of x and is not used yet; n: none. Among equal ones the channel itself. */
static size_t find(const struct sides *s, const struct number *sorted, const bool *used, size_t j)
{
    size_t low = 0, best = s->n;
    double least = used[j] ? 2 : distance(s, j, j), x = s->x[j];
    best = least <= 1 ? j : best;
    for (size_t high = s->n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle].x < x - s->tolerance[0])
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n && sorted[low].x <= x + s->tolerance[0]; low++) {
        size_t a = sorted[low].at;
        double far = used[a] ? 2 : distance(s, j, a);
        if (far <= 1 && far < least) {
            least = far;
            best = a;
        }
    }
    return best;
}

static bool match(const struct sides *s, const struct number *sorted, bool *used, uint32_t *order)
{
    bool is_whole = true, is_moved = false;
    for (size_t j = 0; is_whole && j < s->n && !(j % 64 == 0 && pe_is_cancelled()); j++) {
        size_t a = find(s, sorted, used, j);
        is_whole = a < s->n;
        if (is_whole)
            used[a] = true;
        is_moved |= a != j;
        order[j] = (uint32_t)a;
    }
    return is_whole && is_moved && !pe_is_cancelled();
}

static bool read_order(const struct pe_model *m, bool is_after, struct sides *s, struct number *sorted, uint32_t *order)
{
    const struct pe_evidence *e = &m->d->evidence;
    struct pe_row_rotation turn;
    memset(&turn, 0, sizeof turn);
    m->plan->scheme->rotate(m->plan, &turn.rotation, NULL);
    if (turn.rotation.to_half || turn.rotation.is_tiled)
        return false;
    for (size_t i = 0; i < s->n_rows; i++) {
        read_sides(m, &turn, is_after, i, (2 * i + 1) * e->n_rows / (2 * s->n_rows), s);
        if (i == 0 && !are_alike(s, sorted, sorted + s->n))
            return false;
    }
    *m->work += PE_CHANNEL_WORK * (double)s->n * (double)s->n_rows;
    return match(s, sorted + s->n, (bool *)(sorted + 2 * s->n), order);
}

bool pe_channels_read(struct pe_diagnosis *d, const struct pe_model *m, bool is_after, uint32_t *order)
{
    const struct pe_evidence *e = &d->evidence;
    struct sides s = {.n = (size_t)e->row_len, .n_rows = e->n_rows < ROWS_READ ? (size_t)e->n_rows : ROWS_READ};
    if (s.n * s.n_rows > NUMBERS_READ)
        s.n_rows = NUMBERS_READ / s.n;
    size_t n_bytes = s.n * (2 * s.n_rows * sizeof(double) + 2 * sizeof(struct number) + sizeof(bool));
    s.x = m->columns ? calloc(1, n_bytes) : NULL;
    d->no_memory |= m->columns && !s.x;
    if (!s.x)
        return false;
    s.y = s.x + s.n_rows * s.n;
    bool is_read = read_order(m, is_after, &s, (struct number *)(void *)(s.y + s.n_rows * s.n), order);
    free(s.x);
    return is_read;
}
