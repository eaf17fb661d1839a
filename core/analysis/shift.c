/* shift: is the row k positions on a linear function of the row, the same for all positions? This lets attention
 * learn to look k positions away (Vaswani et al. 2017, section 3.5).
 *
 *     value = max over i, c of |r_{i+k} - M r_i|
 *
 * Sinusoids and rotations have an exact M. Otherwise M is fitted to the pairs of even i, and judged by those of odd i:
 * M = (X⁺ Y)ᵀ, where the rows of X are r_i, those of Y r_{i+k}.
 *
 * The exact M is the addition theorem's:
 *
 *     sin(w(p + k)) = cos(wk) sin(wp) + sin(wk) cos(wp),   cos(w(p + k)) = cos(wk) cos(wp) - sin(wk) sin(wp) */
#include "core/analysis/analysis.h"
#include "core/numeric/numeric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The addition theorem ---- */

/* Row c of the matrix has two numbers: cosine[c] in column c, sine[c] in column partner[c]. */
struct addition {
    size_t dim;
    struct pe_wave *columns; /* [dim] */
    size_t *partner;         /* [dim]: the column a quarter turn away; dim: a column of zeros */
    double *cosine, *sine;   /* [dim], of the shift that was set */
    bool is_float32;         /* frequencies are in radians, not in quarter turns */
    bool is_identity;        /* no positions at all */
};

static bool is_scheme(const struct pe_subject *subject, const char *name)
{
    return strcmp(pe_plan_scheme(subject->plan)->name, name) == 0;
}

/* ---- Which columns belong together ---- */

/* The padding of an odd width. */
static bool is_zero(const struct pe_wave *w) { return w->fh == 0 && w->quarter % 2 == 0; }

static bool is_pair(const struct pe_wave *a, const struct pe_wave *b)
{
    return a->fh == b->fh && a->fl == b->fl && a->ah == b->ah && a->al == b->al && a->axis == b->axis;
}

/* The next column from *c on that is a sine (0), or a cosine (1), of any sign; dim: none is left. */
static size_t next_column(const struct addition *a, size_t c, int quarter)
{
    while (c < a->dim && (is_zero(&a->columns[c]) || a->columns[c].quarter % 2 != quarter))
        c++;
    return c;
}

/* [cos | sin] of all pairs; those that do not turn are pairs too. */
static bool pair_halves(struct addition *a)
{
    size_t half = a->dim / 2;
    for (size_t c = 0; c < half; c++) {
        a->partner[c] = half + c;
        a->partner[half + c] = c;
    }
    return true;
}

/* The i-th sine with the i-th cosine, in whatever order the layout has them. */
static bool find_partners(struct addition *a)
{
    size_t s = next_column(a, 0, 0), c = next_column(a, 0, 1);
    for (size_t i = 0; i < a->dim; i++)
        a->partner[i] = a->dim;
    for (; s < a->dim && c < a->dim; s = next_column(a, s + 1, 0), c = next_column(a, c + 1, 1)) {
        if (!is_pair(&a->columns[s], &a->columns[c]))
            return false;
        a->partner[s] = c;
        a->partner[c] = s;
    }
    return s == a->dim && c == a->dim;
}

static bool read_columns(struct addition *a, const struct pe_subject *subject)
{
    struct pe_rotation rotation;
    const struct pe_scheme *scheme = subject->plan->scheme;
    if (subject->family == PE_ROTARY) {
        scheme->rotate(subject->plan, &rotation, a->columns);
        return pair_halves(a);
    }
    return is_scheme(subject, "sinusoidal") && scheme->columns(subject->plan, 0, a->columns) && find_partners(a);
}

/* ---- The matrix ---- */

/* Is there such a matrix: for rotary schemes, `none`, and sinusoids with a cosine for every sine? Without memory or
 * where there is none, *has is false. addition_drop accepts any. */
static enum pe_status addition_init(struct addition *a, const struct pe_subject *subject, bool *has,
                                    struct pe_failure *err)
{
    size_t dim = subject->dim;
    *a = (struct addition){.dim = dim, .is_identity = is_scheme(subject, "none")};
    a->is_float32 = subject->plan->arith != PE_ARITH_EXACT;
    a->columns = calloc(dim, sizeof *a->columns);
    a->partner = malloc(dim * sizeof *a->partner);
    a->cosine = malloc(2 * dim * sizeof *a->cosine);
    *has = false;
    if (!a->columns || !a->partner || !a->cosine)
        return pe_no_memory(err);
    a->sine = a->cosine + dim;
    for (size_t c = 0; c < dim; c++)
        a->partner[c] = dim;
    *has = a->is_identity || read_columns(a, subject);
    return PE_OK;
}

static void addition_drop(struct addition *a)
{
    free(a->columns);
    free(a->partner);
    free(a->cosine);
}

/* The same question without the matrix: cheap enough to ask before anything is computed. */
static bool has_addition(const struct pe_subject *subject)
{
    struct addition a;
    struct pe_failure err;
    bool has;
    addition_init(&a, subject, &has, &err);
    addition_drop(&a);
    return has;
}

bool pe_is_turned(const struct pe_subject *subject)
{
    return subject->is_run && subject->family <= PE_ROTARY && subject->plan->arith == PE_ARITH_EXACT &&
           has_addition(subject);
}

/* cos and sin of k times the column's frequency. A product of k with a float's radians is exact in a double. */
static void turn(const struct addition *a, const struct pe_wave *w, double k, double *cosine, double *sine)
{
    double twice[] = {k, k}, parts[] = {w->fh, w->fl};
    if (a->is_float32) {
        *cosine = cos(k * w->fh);
        *sine = sin(k * w->fh);
        return;
    }
    struct pe_phase phase = pe_phase_of_products(twice, parts, 2);
    pe_phases_fill(PE_F64, &phase, 1, sine, 0);
    phase.whole++;
    pe_phases_fill(PE_F64, &phase, 1, cosine, 0);
}

/* Fills cosine and sine for a shift by k. A column of quarter q is turned towards that of quarter q + 1; its partner is
 * that or its negative. */
static void set_shift(struct addition *a, int64_t k)
{
    for (size_t c = 0; c < a->dim && (c % 256 || !pe_is_cancelled()); c++) {
        const struct pe_wave *w = &a->columns[c];
        a->cosine[c] = a->is_identity;
        a->sine[c] = 0;
        if (a->partner[c] == a->dim)
            continue;
        turn(a, w, (double)k, &a->cosine[c], &a->sine[c]);
        bool is_next = (a->columns[a->partner[c]].quarter - w->quarter + 4) % 4 == 1;
        a->sine[c] = is_next ? a->sine[c] : -a->sine[c];
    }
}

/* ---- One matrix for each shift ---- */

/* The matrix from each row to the row k positions on: exact where the addition theorem has one, otherwise fitted. */

/* Of one subject, for any number of shifts. X has the rows r_i of the pairs that a matrix M is fitted to, Y their
 * r_{i+k}. */
struct shift_search {
    const struct pe_rows *rows;
    struct addition exact;
    bool is_exact;
    double *worst;  /* [n]: largest residual of each row; NaN: not judged */
    double *a, *b;  /* fit: the transposes of X and Y, [dim, pairs] */
    double *matrix; /* fit: M, [dim, dim] */
    double *judged; /* fit: residuals of a few rows, [rows, dim] */
};

/* What is left of a shift: its largest residual, and the row and column that have it. */
struct found_shift {
    double value; /* NaN: there was no pair to judge */
    size_t row, column;
};

#define CUT 1e-12 /* of the largest singular value */
enum { JUDGED = 32 /* rows at a time */ };

/* ---- The exact matrix ---- */

static double exact_residual(const struct shift_search *s, size_t i, int64_t k, size_t c)
{
    const double *row = s->rows->at + i * s->rows->dim;
    size_t partner = s->exact.partner[c];
    double moved = s->exact.cosine[c] * row[c] + (partner < s->rows->dim ? s->exact.sine[c] * row[partner] : 0);
    return fabs(row[(size_t)k * s->rows->dim + c] - moved);
}

static void judge_exact(struct shift_search *s, int64_t k)
{
    set_shift(&s->exact, k);
    for (size_t i = 0; i + (size_t)k < s->rows->n && (i % 64 || !pe_is_cancelled()); i++) {
        s->worst[i] = 0;
        for (size_t c = 0; c < s->rows->dim; c++) {
            double residual = exact_residual(s, i, k, c);
            s->worst[i] = residual > s->worst[i] ? residual : s->worst[i];
        }
    }
}

/* ---- The fit ---- */

static size_t count_pairs(size_t n, int64_t k) { return (n - (size_t)k + 1) / 2; }

/* Some pairs of all columns: in the transposes, the numbers of one column are together. */
static void gather_some(const struct shift_search *s, int64_t k, size_t pairs, size_t first, size_t count)
{
    size_t dim = s->rows->dim;
    for (size_t c = 0; c < dim && (c % 256 || !pe_is_cancelled()); c++)
        for (size_t t = first; t < first + count; t++) {
            const double *from = s->rows->at + 2 * t * dim + c;
            s->a[c * pairs + t] = from[0];
            s->b[c * pairs + t] = from[(size_t)k * dim];
        }
}

/* Residuals of `count` rows i, i + 2 … */
static void predict(const struct shift_search *s, int64_t k, size_t i, size_t count)
{
    size_t dim = s->rows->dim;
    pe_gemm_abt_f64(count, dim, dim, 1, s->rows->at + i * dim, 2 * dim, s->matrix, dim, 0, s->judged, dim);
    for (size_t t = 0; t < count; t++)
        for (size_t c = 0; c < dim; c++)
            s->judged[t * dim + c] = fabs(s->rows->at[(i + 2 * t + (size_t)k) * dim + c] - s->judged[t * dim + c]);
}

static void judge_fit(struct shift_search *s, int64_t k)
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

static enum pe_status fit(struct shift_search *s, int64_t k, struct pe_failure *err)
{
    size_t dim = s->rows->dim, pairs = count_pairs(s->rows->n, k);
    enum { SOME = 16 };
    for (size_t t = 0; t < pairs && !pe_was_cancelled(); t += SOME)
        gather_some(s, k, pairs, t, pairs - t < SOME ? pairs - t : SOME);
    enum pe_status status = pe_least_squares(pairs, dim, dim, s->a, s->b, CUT, s->matrix, err);
    if (!status)
        judge_fit(s, k);
    return status;
}

/* ---- One shift ---- */

/* The first column of the row whose residual is as large as the worst. */
static size_t find_column(const struct shift_search *s, int64_t k, size_t row, double bound)
{
    size_t c = 0;
    if (!s->is_exact)
        predict(s, k, row, 1);
    while (c + 1 < s->rows->dim && (s->is_exact ? exact_residual(s, row, k, c) : s->judged[c]) < bound)
        c++;
    return c;
}

/* Shifts by k; write_matrix then writes the matrix [dim, dim] over zeros. */
static enum pe_status find_shift(struct shift_search *s, int64_t k, struct found_shift *found, struct pe_failure *err)
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

static enum pe_status allocate(struct shift_search *s, size_t pairs, struct pe_failure *err)
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

/* Of a subject whose rows are loaded. pe_shift_close afterwards, also after a failure. */
static enum pe_status open_search(struct shift_search *s, const struct pe_subject *subject, struct pe_failure *err)
{
    *s = (struct shift_search){.rows = &subject->rows};
    enum pe_status status = addition_init(&s->exact, subject, &s->is_exact, err);
    return status ? status : allocate(s, (subject->rows.n + 1) / 2, err);
}

static void close_search(struct shift_search *s)
{
    addition_drop(&s->exact);
    free(s->worst);
    pe_free_large(s->a, (2 * ((s->rows->n + 1) / 2) + s->rows->dim + JUDGED) * s->rows->dim * sizeof *s->a);
}

enum pe_status pe_shift_of(const struct pe_subject *subject, int64_t k, double *value, struct pe_failure *err)
{
    struct shift_search s;
    struct found_shift found = {(double)NAN, 0, 0};
    enum pe_status status = open_search(&s, subject, err);
    if (!status && (uint64_t)k < subject->rows.n)
        status = find_shift(&s, k, &found, err);
    *value = found.value;
    close_search(&s);
    return status;
}

/* Its memory. */
static double search_bytes(const struct pe_subject *subject)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    size_t pairs = (subject->n_rows + 1) / 2;
    double bytes = (n + 4 * dim) * sizeof(double) + dim * sizeof(struct pe_wave);
    if (!has_addition(subject))
        bytes +=
            (2 * (double)pairs + dim + JUDGED) * dim * sizeof(double) + pe_least_squares_bytes(pairs, subject->dim);
    return bytes;
}

/* ---- The metric ---- */

enum { FITTED_DIM_MAX = 2048 };

/* ---- The result ---- */

static const char *const details[] = {
    "A matrix moves every row exactly: the largest residual is {value}.",
    "A fitted matrix moves every row: the largest residual on rows that it was not fitted to is {value}.",
    "No matrix moves every row: with the best fit, row {witness.row} misses by {value} for k = {witness.k}.",
    "The exact matrix leaves a residual of {value}, at row {witness.row} for k = {witness.k}.",
    "There are too few rows to judge.",
};
enum { EXACT, FITTED, NO_MATRIX, ROUNDED, TOO_FEW };

static int64_t shift_at(const struct pe_analysis *study, size_t i)
{
    return study->fields.k.n ? (int64_t)pe_real_at(&study->fields.k, i) : 1;
}

/* Without `k`, 1; a single row has no neighbour. */
static size_t count_shifts(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return study->fields.k.n ? study->fields.k.n : subject->n_rows > 1;
}

static void put_witness(const struct pe_rows *rows, const struct found_shift *found, int64_t k, struct pe_node *node)
{
    if (!(found->value > PE_NOISE * rows->largest)) {
        pe_put_null(node, "witness");
        return;
    }
    struct pe_node *witness = pe_put_object(node, "witness");
    pe_put_integer(witness, "k", k);
    pe_put_integer(witness, "row", (int64_t)found->row);
    pe_put_integer(witness, "column", (int64_t)found->column);
}

static void put_one(const struct pe_rows *rows, const struct found_shift *found, int64_t k, struct pe_node *node)
{
    pe_put_integer(node, "k", k);
    pe_put_real_or_null(node, "value", found->value);
    pe_put_real_or_null(node, "relative", rows->largest > 0 || isnan(found->value) ? found->value / rows->largest : 0);
    put_witness(rows, found, k, node);
}

/* The smallest k whose residual is the largest of all, ties within a rounding counting as equal. */
static size_t find_worst(const struct found_shift *found, size_t n, double largest)
{
    size_t worst = 0;
    double value = (double)NAN;
    for (size_t i = 0; i < n; i++)
        value = fmax(value, found[i].value);
    while (worst + 1 < n && !(found[worst].value >= value - pe_tie(value, largest)))
        worst++;
    return worst;
}

/* ---- The metric ---- */

static enum pe_status find_all(struct pe_analysis *study, const struct pe_subject *subject, struct shift_search *s,
                               struct found_shift *found, size_t n, struct pe_failure *err)
{
    double *tensor = pe_study_tensor(study, subject, "shift_matrix");
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < n && !pe_was_cancelled(); i++) {
        status = find_shift(s, shift_at(study, i), &found[i], err);
        if (!status && tensor) {
            double *matrix = tensor + i * s->rows->dim * s->rows->dim;
            if (s->is_exact) {
                size_t dim = s->rows->dim;
                for (size_t c = 0; c < dim; c++) {
                    matrix[c * dim + c] = s->exact.cosine[c];
                    if (s->exact.partner[c] < dim)
                        matrix[c * dim + s->exact.partner[c]] = s->exact.sine[c];
                }
            } else {
                memcpy(matrix, s->matrix, s->rows->dim * s->rows->dim * sizeof *matrix);
            }
        }
    }
    return status;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct shift_search s;
    size_t n = count_shifts(study, subject);
    struct found_shift *found = malloc((n + 1) * sizeof *found);
    enum pe_status status = open_search(&s, subject, err);
    if (!status && !found)
        status = pe_no_memory(err);
    if (!status)
        status = find_all(study, subject, &s, found, n, err);
    if (!status && !pe_was_cancelled()) {
        struct found_shift none = {(double)NAN, 0, 0};
        size_t worst = find_worst(found, n, s.rows->largest);
        const struct found_shift *it = n ? &found[worst] : &none;
        pe_put_real_or_null(out, "value", it->value);
        put_witness(s.rows, it, shift_at(study, worst), out);
        pe_put_string(out, "method", s.is_exact ? "exact" : "fit");
        struct pe_node *list = pe_put_list(out, "by_k");
        for (size_t i = 0; i < n; i++)
            put_one(s.rows, &found[i], shift_at(study, i), pe_put_object(list, NULL));
        bool is_noise = !(it->value > PE_NOISE * s.rows->largest);
        pe_put_detail(out, study->request->lang,
                      details[isnan(it->value) ? TOO_FEW
                              : is_noise       ? (s.is_exact ? EXACT : FITTED)
                              : s.is_exact     ? ROUNDED
                                               : NO_MATRIX]);
    }
    close_search(&s);
    free(found);
    return status;
}

/* ---- The row ---- */

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->is_run && subject->n_rows > 0 && subject->family <= PE_ROTARY &&
           (subject->dim <= FITTED_DIM_MAX || has_addition(subject));
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    if (study->fields.k.n > subject->n)
        return pe_fail(err, "/k", "k has %llu distances, and the sequence %llu positions; allowed: each distance once",
                       (unsigned long long)study->fields.k.n, (unsigned long long)subject->n);
    for (size_t i = 0; i < study->fields.k.n; i++) {
        double k = pe_real_at(&study->fields.k, i);
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/k/%zu", i);
        if (k != floor(k))
            return pe_fail(err, pointer, "k has %s; allowed: integers", pe_shown(k).text);
        if (k >= (double)subject->n)
            return pe_fail(err, pointer, "k has %.0f, and the sequence %llu positions; allowed: at most %llu", k,
                           (unsigned long long)subject->n, (unsigned long long)subject->n - 1);
    }
    return PE_OK;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim, shifts = (double)count_shifts(study, subject);
    double rank = fmin(dim, ceil(n / 2)); /* at most: a fit has n/2 pairs of rows */
    cost->work = shifts * (has_addition(subject) ? 2 * n * dim : n * dim * dim + 4 * rank * rank * dim);
    cost->bytes =
        search_bytes(subject) + shifts * (sizeof(struct found_shift) + 1024); /* an object of the answer for each */
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)i;
    *rank = 3;
    shape[0] = count_shifts(study, subject);
    shape[1] = shape[2] = subject->dim;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("shift_matrix", "k,D,D", 1, PE_F64, true, NULL, "shift matrices",
              "the matrix for each k: row i+k of the encoding is the matrix times row i"),
    {.name = NULL},
};

const struct pe_metric pe_metric_shift = {
    .info =
        {
            .name = "shift",
            .about = {"linear shift", "whether one matrix turns every row into the row k positions on"},
            .applies_to = "absolute and rotary schemes at consecutive positions of one axis; without an exact matrix, "
                          "up to 2048 columns",
            .params = "k",
            .work = "n D^2 + 4 r^2 D for each k, r the smaller of D and n/2; with an exact matrix 2 n D",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .check = check,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
