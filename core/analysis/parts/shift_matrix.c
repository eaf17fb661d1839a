/* The matrix from each row to the row k positions on: exact where the addition theorem has one, otherwise fitted. */
#include "core/analysis/parts/least_squares.h"
#include "core/analysis/parts/shift.h"
#include "core/numeric/gemm.h"

#include <stdlib.h>
#include <string.h>

#define CUT 1e-12 /* of the largest singular value */
enum { JUDGED = 32 /* rows at a time */ };

/* ---- The exact matrix ---- */

static double exact_residual(const struct pe_shift_search *s, size_t i, int64_t k, size_t c)
{
    const double *row = s->rows->at + i * s->rows->dim;
    size_t partner = s->exact.partner[c];
    double moved = s->exact.cosine[c] * row[c] + (partner < s->rows->dim ? s->exact.sine[c] * row[partner] : 0);
    return fabs(row[(size_t)k * s->rows->dim + c] - moved);
}

static void judge_exact(struct pe_shift_search *s, int64_t k)
{
    pe_addition_set(&s->exact, k);
    for (size_t i = 0; i + (size_t)k < s->rows->n && (i % 64 || !pe_is_cancelled()); i++) {
        s->worst[i] = 0;
        for (size_t c = 0; c < s->rows->dim; c++) {
            double residual = exact_residual(s, i, k, c);
            s->worst[i] = residual > s->worst[i] ? residual : s->worst[i];
        }
    }
}

static void write_exact(const struct pe_shift_search *s, double *matrix)
{
    size_t dim = s->rows->dim;
    for (size_t c = 0; c < dim; c++) {
        matrix[c * dim + c] = s->exact.cosine[c];
        if (s->exact.partner[c] < dim)
            matrix[c * dim + s->exact.partner[c]] = s->exact.sine[c];
    }
}

/* ---- The fit ---- */

static size_t count_pairs(size_t n, int64_t k) { return (n - (size_t)k + 1) / 2; }

/* Some pairs of all columns: in the transposes, the numbers of one column are together. */
static void gather_some(const struct pe_shift_search *s, int64_t k, size_t pairs, size_t first, size_t count)
{
    size_t dim = s->rows->dim;
    for (size_t c = 0; c < dim && (c % 256 || !pe_is_cancelled()); c++)
        for (size_t t = first; t < first + count; t++) {
            const double *from = s->rows->at + 2 * t * dim + c;
            s->a[c * pairs + t] = from[0];
            s->b[c * pairs + t] = from[(size_t)k * dim];
        }
}

static void gather(const struct pe_shift_search *s, int64_t k, size_t pairs)
{
    enum { SOME = 16 };
    for (size_t t = 0; t < pairs && !pe_was_cancelled(); t += SOME)
        gather_some(s, k, pairs, t, pairs - t < SOME ? pairs - t : SOME);
}

/* Residuals of `count` rows i, i + 2 … */
static void predict(const struct pe_shift_search *s, int64_t k, size_t i, size_t count)
{
    size_t dim = s->rows->dim;
    pe_gemm_abt_f64(count, dim, dim, 1, s->rows->at + i * dim, 2 * dim, s->matrix, dim, 0, s->judged, dim);
    for (size_t t = 0; t < count; t++)
        for (size_t c = 0; c < dim; c++)
            s->judged[t * dim + c] = fabs(s->rows->at[(i + 2 * t + (size_t)k) * dim + c] - s->judged[t * dim + c]);
}

static void judge_fit(struct pe_shift_search *s, int64_t k)
{
    size_t dim = s->rows->dim, n = s->rows->n - (size_t)k;
    for (size_t i = 1; i < n && !pe_is_cancelled(); i += 2 * JUDGED) {
        size_t left = (n - i + 1) / 2, count = left < JUDGED ? left : JUDGED;
        predict(s, k, i, count);
        for (size_t t = 0; t < count; t++) {
            s->worst[i + 2 * t] = 0;
            for (size_t c = 0; c < dim; c++)
                s->worst[i + 2 * t] = fmax(s->worst[i + 2 * t], s->judged[t * dim + c]);
        }
    }
}

static enum pe_status fit(struct pe_shift_search *s, int64_t k, struct pe_error *err)
{
    size_t dim = s->rows->dim, pairs = count_pairs(s->rows->n, k);
    gather(s, k, pairs);
    enum pe_status status = pe_least_squares(pairs, dim, dim, s->a, s->b, CUT, s->matrix, err);
    if (!status)
        judge_fit(s, k);
    return status;
}

/* ---- One shift ---- */

/* The first column of the row whose residual is as large as the worst. */
static size_t find_column(const struct pe_shift_search *s, int64_t k, size_t row, double bound)
{
    size_t c = 0;
    if (!s->is_exact)
        predict(s, k, row, 1);
    while (c + 1 < s->rows->dim && (s->is_exact ? exact_residual(s, row, k, c) : s->judged[c]) < bound)
        c++;
    return c;
}

enum pe_status pe_shift_find(struct pe_shift_search *s, int64_t k, struct pe_shift *found, struct pe_error *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; i < s->rows->n; i++)
        s->worst[i] = (double)NAN;
    if (s->is_exact)
        judge_exact(s, k);
    else
        status = fit(s, k, err);
    found->value = (double)NAN;
    for (size_t i = 0; i < s->rows->n; i++)
        found->value = fmax(found->value, s->worst[i]); /* NaN only if all are */
    if (status || isnan(found->value) || pe_was_cancelled())
        return status;
    found->row = pe_first_extreme(s->worst, s->rows->n, 1, s->rows->largest);
    found->column = find_column(s, k, found->row, found->value - pe_tie(found->value, s->rows->largest));
    return PE_OK;
}

/* ---- All shifts of a subject ---- */

static enum pe_status allocate(struct pe_shift_search *s, size_t pairs, struct pe_error *err)
{
    size_t dim = s->rows->dim;
    s->worst = malloc(s->rows->n * sizeof *s->worst);
    s->a = s->is_exact ? NULL : malloc((2 * pairs + dim + JUDGED) * dim * sizeof *s->a);
    if (!s->worst || (!s->is_exact && !s->a))
        return pe_no_memory(err);
    if (s->is_exact)
        return PE_OK;
    s->b = s->a + pairs * dim;
    s->matrix = s->b + pairs * dim;
    s->judged = s->matrix + dim * dim;
    return PE_OK;
}

void pe_shift_write(const struct pe_shift_search *s, double *matrix)
{
    if (s->is_exact)
        write_exact(s, matrix);
    else
        memcpy(matrix, s->matrix, s->rows->dim * s->rows->dim * sizeof *matrix);
}

enum pe_status pe_shift_open(struct pe_shift_search *s, const struct pe_subject *subject, struct pe_error *err)
{
    *s = (struct pe_shift_search){.rows = &subject->rows};
    enum pe_status status = pe_addition_init(&s->exact, subject, &s->is_exact, err);
    return status ? status : allocate(s, (subject->rows.n + 1) / 2, err);
}

void pe_shift_close(struct pe_shift_search *s)
{
    pe_addition_drop(&s->exact);
    free(s->worst);
    pe_free_large(s->a, (2 * ((s->rows->n + 1) / 2) + s->rows->dim + JUDGED) * s->rows->dim * sizeof *s->a);
}

enum pe_status pe_shift_of(const struct pe_subject *subject, int64_t k, double *value, struct pe_error *err)
{
    struct pe_shift_search s;
    struct pe_shift found = {(double)NAN, 0, 0};
    enum pe_status status = pe_shift_open(&s, subject, err);
    if (!status && (uint64_t)k < subject->rows.n)
        status = pe_shift_find(&s, k, &found, err);
    *value = found.value;
    pe_shift_close(&s);
    return status;
}

double pe_shift_bytes(const struct pe_subject *subject)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    size_t pairs = (subject->n_rows + 1) / 2;
    double bytes = (n + 4 * dim) * sizeof(double) + dim * sizeof(struct pe_wave);
    if (!pe_addition_has(subject))
        bytes +=
            (2 * (double)pairs + dim + JUDGED) * dim * sizeof(double) + pe_least_squares_bytes(pairs, subject->dim);
    return bytes;
}
