/* What was done to the believed numbers as a whole, where nothing else explains the tensor: indices in another order
 * (order.c), a function of each number (values.c), numbers that are cut off, dropped, in steps, in the other byte
 * order, or all there in another order. Each is asked of every number, in float32's accuracy, of tensors that are not
 * too large, the plainest first; so an answer that knows no mistake still states what is measured. */
#include "core/diagnosis/measure/changed.h"

#include "core/diagnosis/diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64, MOST = 1 << 16, WORK = 64 /* multiply-adds of a number, of the measures in this file */ };
/* Of the largest number; what float32 loses of angles that are not far from position 0. */
static const double tolerance = 0x1p-20;

static bool is_asked(const struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    uint64_t n = e->n_tensors * e->n_rows * e->row_len;
    return d->belief.model && d->belief.model->has_shape && pe_roundoff(e->dtype) > 0 && !pe_is_printed(e) &&
           !e->padding && n >= LEAST && n <= MOST;
}

/* A key that both hide is none; where only one of them does, the numbers are no whole. */
static bool settle_hidden(struct pe_numbers *s)
{
    bool is_map = s->d->evidence.kind->id == PE_OF_MAPS || s->d->evidence.kind->id == PE_OF_BIAS;
    for (size_t i = 0; i < s->n; i++) {
        bool is_hidden = !isfinite(s->believed[i]);
        if (is_hidden && is_map && !(s->found[i] > -1e4))
            s->found[i] = s->believed[i] = (double)NAN;
        else if (is_hidden || !isfinite(s->found[i]))
            return false;
    }
    return true;
}

/* Which of the rows in the order of batch, head and position row i of the evidence is. */
static size_t row_of(const struct pe_numbers *s, size_t t, uint64_t row)
{
    struct pe_place sizes = s->sizes, at = pe_evidence_place(&s->d->evidence, &sizes, row);
    return ((t * sizes.batch + at.batch) * sizes.head + at.head) * sizes.row + at.row;
}

static bool read_all(struct pe_numbers *s)
{
    const struct pe_evidence *e = &s->d->evidence;
    size_t n = s->n_cols;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t row = 0; row < e->n_rows; row++) {
            size_t at = row_of(s, t, row) * n;
            if (pe_is_cancelled())
                return false;
            pe_evidence_read(e, t, row, 0, n, s->found + at);
            pe_model_fill(s->d->belief.model, t, row, 0, n, s->believed + at);
            if (s->input)
                pe_evidence_input(e, row, s->input + at);
        }
    return true;
}

/* ---- The other byte order ---- */

static double reversed_bytes(enum pe_dtype dtype, double x)
{
    unsigned char bytes[8], other[8];
    size_t n = pe_dtype_size(dtype);
    float single = (float)x;
    memcpy(bytes, dtype == PE_F32 ? (const void *)&single : &x, n);
    for (size_t i = 0; i < n; i++)
        other[i] = bytes[n - 1 - i];
    memcpy(dtype == PE_F32 ? (void *)&single : &x, other, n);
    return dtype == PE_F32 ? (double)single : x;
}

/* Many such numbers are NaN or huge, so those that are not finite are passed over. */
static bool are_reversed(struct pe_numbers *s, struct pe_changed *out)
{
    size_t n = 0;
    double largest = 0;
    if (s->d->evidence.dtype != PE_F32 && s->d->evidence.dtype != PE_F64)
        return false;
    for (size_t i = 0; i < s->n; i++)
        largest = isfinite(s->believed[i]) ? fmax(largest, fabs(s->believed[i])) : largest;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->found[i]) || s->found[i] == 0) /* a row that is not finite is read as zeros */
            continue;
        if (!(fabs(reversed_bytes(s->d->evidence.dtype, s->found[i]) - s->believed[i]) <= tolerance * largest))
            return false;
        n += s->believed[i] != 0;
    }
    out->change = PE_CHANGED_BYTES;
    return n >= LEAST;
}

/* ---- Cut off, dropped, in steps ---- */

static bool are_cut_off(struct pe_numbers *s, struct pe_changed *out)
{
    size_t n_tensors = s->d->evidence.n_tensors, each = s->n / n_tensors;
    out->change = PE_CHANGED_CUT_OFF;
    for (size_t t = 0; t < n_tensors; t++) {
        const double *x = s->found + t * each, *y = s->believed + t * each;
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (size_t i = 0; i < each; i++) {
            low = fmin(low, x[i]);
            high = fmax(high, x[i]);
        }
        uint64_t before = out->n;
        for (size_t i = 0; i < each; i++) {
            if (fabs(x[i] - fmax(low, fmin(high, y[i]))) > s->near)
                return false;
            out->n += y[i] > high + s->near || y[i] < low - s->near;
        }
        if (out->n > before) { /* both tensors have the same limits, or one of them is cut */
            out->low = low;
            out->high = high;
        }
    }
    return out->n > 0;
}

static bool are_dropped(struct pe_numbers *s, struct pe_changed *out)
{
    enum { LEAST_SHARE = 200 }; /* one of so many is dropped */
    double both = 0, squares = 0;
    out->change = PE_CHANGED_DROPPED;
    for (size_t i = 0; i < s->n; i++) {
        bool is_dropped = s->found[i] == 0 && fabs(s->believed[i]) > s->near;
        out->n += is_dropped;
        both += is_dropped || isnan(s->found[i]) ? 0 : s->found[i] * s->believed[i];
        squares += is_dropped || isnan(s->found[i]) ? 0 : s->believed[i] * s->believed[i];
    }
    if (out->n * LEAST_SHARE < s->n || out->n + LEAST > s->n || !(squares > 0))
        return false;
    out->x = both / squares;
    for (size_t i = 0; i < s->n; i++)
        if (s->found[i] != 0 && fabs(s->found[i] - out->x * s->believed[i]) > s->near)
            return false;
    return true;
}

/* Multiples of one step that are nearest to those believed: the smallest number is one of few. */
static bool are_in_steps(struct pe_numbers *s, struct pe_changed *out)
{
    enum { COARSE = 64, FEW = 8 };
    double least = HUGE_VAL;
    for (size_t i = 0; i < s->n; i++)
        least = fabs(s->found[i]) > s->near ? fmin(least, fabs(s->found[i])) : least;
    out->change = PE_CHANGED_STEPS;
    for (int k = 1; k <= FEW && least / k > COARSE * s->near; k++) {
        double step = least / k, whole = round(1 / step);
        bool holds = true;
        step = fabs(whole * step - 1) < 1e-5 ? 1 / whole : step;
        for (size_t i = 0; holds && i < s->n; i++)
            holds = isnan(s->found[i]) || (fabs(s->found[i] - step * round(s->found[i] / step)) <= s->near &&
                                           fabs(s->found[i] - s->believed[i]) <= step / 2 + s->near);
        out->x = step;
        if (!holds)
            continue;
        snprintf(out->rule, sizeof out->rule, step * whole == 1 && whole > 1 ? "1/%.0f" : "%.6g",
                 step * whole == 1 && whole > 1 ? whole : step);
        return true;
    }
    return false;
}

/* A buffer that was filled with one number and never written. */
static bool is_constant(struct pe_numbers *s, struct pe_changed *out)
{
    for (size_t i = 1; i < s->n; i++)
        if (!(s->found[i] == s->found[0]))
            return false;
    out->change = PE_CHANGED_CONSTANT;
    snprintf(out->rule, sizeof out->rule, "%.9g", s->found[0]);
    return true;
}

/* ---- Probabilities ---- */

/* Of every map: do the numbers of a column sum to 1, and those of a row to what? Infinite: to different numbers. */
static bool have_other_sums(struct pe_numbers *s, struct pe_changed *out)
{
    const double near = 1e-4;
    size_t n_maps = s->n_rows / s->sizes.row;
    bool are_of_columns = s->d->evidence.kind == &pe_evidence_probs;
    double sum = (double)NAN, of_rows = (double)NAN;
    for (size_t row = 0; are_of_columns && row < s->n_rows; row++) {
        sum = 0;
        for (size_t c = 0; c < s->n_cols; c++)
            sum += s->found[row * s->n_cols + c];
        of_rows = row == 0 || fabs(sum - of_rows) <= near * sum ? sum : HUGE_VAL;
    }
    for (size_t i = 0; are_of_columns && i < n_maps * s->n_cols; i++) {
        const double *x = s->found + i / s->n_cols * s->sizes.row * s->n_cols + i % s->n_cols;
        sum = 0;
        for (size_t row = 0; row < s->sizes.row; row++)
            sum += x[row * s->n_cols];
        are_of_columns = fabs(sum - 1) <= near;
    }
    out->change = are_of_columns ? PE_CHANGED_SUMS : PE_CHANGED_ROW_SUMS;
    out->x = are_of_columns ? 0 : of_rows;
    return isfinite(of_rows) ? fabs(of_rows - 1) > near : are_of_columns;
}

/* ---- All there, in another order ---- */

struct number {
    double x;
    uint32_t at;
};

static int by_size(const void *a, const void *b)
{
    return pe_rising(&((const struct number *)a)->x, &((const struct number *)b)->x);
}

static struct pe_number_place place_of(const struct pe_numbers *s, size_t at)
{
    uint64_t n_rows = s->d->evidence.n_rows, row = 0;
    size_t t = at / s->n_cols / n_rows;
    while (row_of(s, t, row) != at / s->n_cols)
        row++;
    return (struct pe_number_place){t, row, at % s->n_cols};
}

/* The example is the number that has moved and whose neighbours are farthest. */
static bool are_reordered(struct pe_numbers *s, struct pe_changed *out)
{
    size_t n = s->n, n_off = 0;
    double most = 8 * s->near;
    struct number *found = malloc(2 * n * sizeof *found), *believed = found + n;
    bool is_any = false;
    out->change = PE_CHANGED_REORDERED;
    s->d->no_memory |= !found;
    for (size_t i = 0; found && i < n; i++) {
        found[i] = (struct number){s->found[i], (uint32_t)i};
        believed[i] = (struct number){s->believed[i], (uint32_t)i};
        n_off += isnan(s->found[i]) ? 1 : 0;
    }
    if (found && !n_off) {
        qsort(found, n, sizeof *found, by_size);
        qsort(believed, n, sizeof *believed, by_size);
        for (size_t i = 0; i < n; i++)
            n_off += fabs(found[i].x - believed[i].x) > s->near ? 1 : 0;
    }
    for (size_t i = 1; found && 1000 * n_off <= n && i + 1 < n; i++) {
        double alone = fmin(found[i].x - found[i - 1].x, found[i + 1].x - found[i].x);
        if (alone > most && found[i].at != believed[i].at) {
            out->x = found[i].x;
            out->found = place_of(s, found[i].at);
            out->believed = place_of(s, believed[i].at);
            most = alone;
            is_any = true;
        }
    }
    free(found);
    return is_any;
}

/* No row is missing, or set aside for what it has. */
static bool is_whole(const struct pe_evidence *e)
{
    uint64_t row = 0;
    while (e->aside && row < e->n_rows && !(e->aside[row] & (PE_ASIDE_NOT_FINITE | PE_ASIDE_MISSING)))
        row++;
    return !e->aside || row == e->n_rows;
}

/* In float32's accuracy, and then in that of the numbers, where they are rounded to fewer bits. */
static bool measure(struct pe_numbers *s, struct pe_changed *out)
{
    static bool (*const measures[])(struct pe_numbers *, struct pe_changed *) = {
        is_constant,       are_cut_off,      pe_changed_order, have_other_sums,   are_dropped,  are_in_steps,
        pe_changed_values, pe_changed_input, pe_changed_along, pe_changed_phases, are_reordered};
    double largest = s->d->evidence.largest, near[] = {tolerance, 4 * pe_evidence_noise(&s->d->evidence)};
    for (size_t k = 0; k < sizeof near / sizeof *near && near[k] >= near[0]; k++) {
        s->near = near[k] * largest;
        s->is_coarse = k > 0;
        for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
            *out = (struct pe_changed){.n = 0}; /* nothing of the measures before */
            if (measures[i](s, out))
                return true;
        }
    }
    return false;
}

static bool measure_all(struct pe_diagnosis *d, struct pe_changed *out)
{
    const struct pe_evidence *e = &d->evidence;
    struct pe_numbers s = {.d = d,
                           .n = e->n_tensors * e->n_rows * e->row_len,
                           .n_rows = e->n_tensors * e->n_rows,
                           .n_cols = e->row_len,
                           .sizes = pe_evidence_places(e)};
    s.found = malloc(s.n * (4 * sizeof *s.found));
    d->no_memory |= !s.found;
    if (!s.found)
        return false;
    s.believed = s.found + s.n;
    s.room = (uint32_t *)(void *)(s.believed + s.n);
    s.input = e->kind->input ? s.believed + 2 * s.n : NULL;
    bool is_read = read_all(&s), is_measured = is_read && is_whole(e);
    bool is_any = is_read && (are_reversed(&s, out) || (is_measured && pe_changed_mask(&s, out)) ||
                              (is_measured && settle_hidden(&s) && measure(&s, out)));
    d->work += WORK * (double)s.n + s.work;
    free(s.found);
    return is_any && !pe_is_cancelled();
}

bool pe_changed_measure(struct pe_diagnosis *d, struct pe_changed *out)
{
    *out = (struct pe_changed){.n = 0};
    if (!d->belief.is_given || d->evidence.is_typed)
        return false;
    if (is_asked(d) && measure_all(d, out))
        return true;
    *out = (struct pe_changed){.n = 0};
    return pe_changed_distance(d, out);
}
