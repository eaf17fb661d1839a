/* Relations of coordinates: each test looks whether one rule gives every measured coordinate, within its error.
 *
 * A number that a rule has is the special value within the error of the fit (an integer, a small fraction, one of π,
 * then the shortest decimal), so that the request has what a person wrote. Every answer is compared with all numbers
 * afterwards, so an error that is too wide here costs time and no truth. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

/* Whole turns, degrees: k·π, k/π, π/k. NaN: none is near. */
static double of_pi(double x, double tolerance)
{
    static const double known[] = {1, 2, 4, 180, 360};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const double near[] = {known[i] * PI, known[i] / PI, PI / known[i]};
        for (size_t k = 0; k < sizeof near / sizeof *near; k++)
            if (fabs(fabs(x) - near[k]) <= fmin(tolerance, 1e-3 * near[k]))
                return copysign(near[k], x);
    }
    return (double)NAN;
}

double pe_plain_number(double x, double tolerance)
{
    enum { DENOMINATORS = 64 };
    for (int below = 1; below <= DENOMINATORS && isfinite(x); below++) {
        double above = nearbyint(x * below);
        if (fabs(x * below - above) <= tolerance * below)
            return above / below;
    }
    double pi = of_pi(x, tolerance);
    return !isnan(pi) ? pi : x != 0 ? pe_shortest_decimal(x, tolerance / fabs(x)) : x;
}

static bool is_near(const struct pe_lists *l, size_t i, double x) { return fabs(l->found[i] - x) <= l->error[i]; }

static bool holds(const struct pe_lists *l, const double *predicted)
{
    for (size_t i = 0; i < l->n; i++)
        if (!is_near(l, i, predicted[i]))
            return false;
    return true;
}

static double last_of(const double *x, size_t n) { return x[n - 1]; }

static double largest_of(const double *x, size_t n)
{
    double most = x[0];
    for (size_t i = 1; i < n; i++)
        most = fmax(most, x[i]);
    return most;
}

static double least_of(const double *x, size_t n)
{
    double least = x[0];
    for (size_t i = 1; i < n; i++)
        least = fmin(least, x[i]);
    return least;
}

static bool is_flat(const struct pe_lists *l)
{
    return largest_of(l->believed, l->n) - least_of(l->believed, l->n) < 1e-9;
}

/* The row whose coordinate is known best. */
static size_t sharpest(const struct pe_lists *l)
{
    size_t sharp = 0;
    for (size_t i = 1; i < l->n; i++)
        sharp = l->error[i] < l->error[sharp] ? i : sharp;
    return sharp;
}

/* ---- Rules of one number ---- */

/* The shift that all rows have; NaN: none. */
static double shift_of(const struct pe_lists *l, double *out)
{
    size_t sharp = sharpest(l);
    double by = pe_plain_number(l->found[sharp] - l->believed[sharp], l->error[sharp]);
    for (size_t i = 0; i < l->n; i++)
        out[i] = l->believed[i] + by;
    return holds(l, out) ? by : (double)NAN;
}

static bool zero(const struct pe_lists *l, double *out, struct pe_related *r)
{
    memset(out, 0, l->n * sizeof *out);
    *r = (struct pe_related){0, last_of(l->believed, l->n), 0, 0};
    return holds(l, out);
}

static bool shifted(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double by = shift_of(l, out);
    *r = (struct pe_related){out[0], l->believed[0], 0, 1};
    return !isnan(by);
}

static bool by_one(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return shifted(l, out, r) && fabs(r->found - r->believed) == 1;
}

static bool constant(const struct pe_lists *l, double *out, struct pe_related *r)
{
    size_t sharp = sharpest(l);
    double at = pe_plain_number(l->found[sharp], l->error[sharp]);
    for (size_t i = 0; i < l->n; i++)
        out[i] = at;
    *r = (struct pe_related){at, last_of(l->believed, l->n), 0, 1};
    return l->n > 1 && !is_flat(l) && holds(l, out);
}

/* The factor that all rows have; NaN: none. The row with the sharpest quotient decides. */
static double factor_of(const struct pe_lists *l, double *out)
{
    double factor = (double)NAN, sharpest = (double)INFINITY;
    for (size_t i = 0; i < l->n; i++) {
        double error = l->error[i] / fabs(l->believed[i]);
        if (l->believed[i] != 0 && error < sharpest) {
            sharpest = error;
            factor = l->found[i] / l->believed[i];
        }
    }
    factor = pe_plain_number(factor, sharpest);
    for (size_t i = 0; i < l->n; i++)
        out[i] = factor * l->believed[i];
    return !isnan(factor) && holds(l, out) ? factor : (double)NAN;
}

static bool scaled(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double factor = factor_of(l, out);
    *r = (struct pe_related){factor, 1, 0, 1};
    return l->n > 1 && factor > 0;
}

/* The same where it is a ratio of small integers, which words.c writes. */
static bool by_ratio(const struct pe_lists *l, double *out, struct pe_related *r)
{
    enum { DENOMINATORS = 64 };
    bool is_ratio = false;
    if (!scaled(l, out, r) || r->found == nearbyint(r->found))
        return false;
    for (int below = 2; below <= DENOMINATORS && !is_ratio; below++) {
        double above = nearbyint(r->found * below);
        is_ratio = fabs(r->found * below - above) <= 1e-9 * fabs(above);
    }
    return is_ratio;
}

/* All frequencies begin one rung higher, or lower: base^(2/r). Those of positions times that are the same numbers. */
static bool on_rung(const struct pe_lists *l, double rung, double *out, struct pe_related *r)
{
    double sharpest = 1e-5;
    for (size_t i = 0; i < l->n; i++) {
        out[i] = rung * l->believed[i];
        if (l->believed[i] != 0)
            sharpest = fmin(sharpest, l->error[i] / fabs(l->believed[i]));
    }
    *r = (struct pe_related){rung, 1, 0, 1};
    return l->n > 1 && isfinite(rung) && fabs(rung - 1) > 1e-3 && sharpest < 1e-5 && holds(l, out);
}

static bool rung_higher(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return on_rung(l, l->rung, out, r);
}

static bool rung_lower(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return on_rung(l, 1 / l->rung, out, r);
}

static bool twice(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return scaled(l, out, r) && r->found == 2;
}

static bool whole_stride(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return scaled(l, out, r) && r->found > 2 && r->found == nearbyint(r->found);
}

/* ---- Rules without a number ---- */

static bool reversed(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (size_t i = 0; i < l->n; i++)
        out[i] = l->believed[l->n - 1 - i];
    *r = (struct pe_related){out[0], l->believed[0], 0, 0};
    return l->n > 1 && holds(l, out);
}

static bool other_axis(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (unsigned a = 0; a < l->n_axes; a++) {
        memcpy(out, l->all + a * l->n, l->n * sizeof *out);
        *r = (struct pe_related){a, l->axis, 0, 0};
        if (a != l->axis && holds(l, out))
            return true;
    }
    return false;
}

/* Where each axis has a unit of its own (DETR's sides). */
static bool other_axis_scaled(const struct pe_lists *l, double *out, struct pe_related *r)
{
    struct pe_lists other = *l;
    for (unsigned a = 0; a < l->n_axes; a++) {
        other.believed = l->all + a * l->n;
        *r = (struct pe_related){a, l->axis, 0, 1};
        if (a != l->axis && !is_flat(&other) && !isnan(factor_of(&other, out)))
            return true;
    }
    return false;
}

static bool counted(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (size_t i = 0; i < l->n; i++)
        out[i] = (double)i;
    *r = (struct pe_related){last_of(out, l->n), last_of(l->believed, l->n), 0, 0};
    return l->n > 2 && holds(l, out);
}

static bool index_of_axes(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return l->n_axes > 1 && counted(l, out, r);
}

/* Is there one believed value in each slot, and a larger one in each larger slot? Writes them by slot, NaN where no row
 * has it, and the largest slot. */
static bool fill_slots(const struct pe_lists *l, double *value, size_t *most)
{
    double before = -(double)INFINITY;
    size_t n_filled = 0;
    *most = 0;
    for (size_t i = 0; i < l->n; i++)
        value[i] = (double)NAN;
    for (size_t i = 0; i < l->n; i++) {
        double slot = nearbyint(l->found[i]);
        if (!(slot >= 0 && slot < (double)l->n) || !is_near(l, i, slot))
            return false;
        size_t at = (size_t)slot;
        if (!isnan(value[at]) && value[at] != l->believed[i])
            return false;
        value[at] = l->believed[i];
        *most = at > *most ? at : *most;
    }
    for (size_t at = 0; at <= *most; at++) {
        if (value[at] <= before)
            return false;
        before = isnan(value[at]) ? before : value[at];
        n_filled += isnan(value[at]) ? 0 : 1;
    }
    return !isnan(value[0]) && 2 * n_filled > *most;
}

/* 0 for the smallest believed value, 1 for the next one: a slot in place of the coordinate in it. */
static bool ranked(const struct pe_lists *l, double *out, struct pe_related *r)
{
    size_t most;
    if (l->n <= 2 || !fill_slots(l, out, &most) || most == 0)
        return false;
    for (size_t i = 0; i < l->n; i++)
        out[i] = nearbyint(l->found[i]);
    *r = (struct pe_related){(double)most, largest_of(l->believed, l->n), 0, 0};
    return true;
}

static bool goes_on(const struct pe_lists *l, double *out, struct pe_related *r)
{
    bool falls = false;
    for (size_t i = 0; i < l->n; i++) {
        out[i] = l->believed[0] + (double)i;
        falls |= i > 0 && l->believed[i] < l->believed[i - 1];
    }
    *r = (struct pe_related){last_of(out, l->n), last_of(l->believed, l->n), 0, 0};
    return l->n_axes == 1 && falls && holds(l, out);
}

typedef double rounding(double x);

static double to_bf16(double x) { return pe_round_to(PE_BF16, x); }
static double to_f16(double x) { return pe_round_to(PE_F16, x); }

static bool rounded(const struct pe_lists *l, double *out, struct pe_related *r, rounding *round)
{
    bool differs = false;
    *r = (struct pe_related){0, 0, 0, 0};
    for (size_t i = l->n; i-- > 0;) {
        out[i] = round(l->believed[i]);
        differs |= out[i] != l->believed[i];
        if (out[i] != l->believed[i])
            *r = (struct pe_related){out[i], l->believed[i], i, 0};
    }
    return differs && holds(l, out);
}

static bool rounded_bf16(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return rounded(l, out, r, to_bf16);
}

static bool rounded_f16(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return rounded(l, out, r, to_f16);
}

static bool rounded_down(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return rounded(l, out, r, floor);
}

/* ---- Rules of a table or of pieces ---- */

/* Row m has the first coordinate again, and from there on all are repeated. */
static bool repeated(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (size_t m = 1; m < l->n; m++) {
        bool begins_again = is_near(l, m, l->believed[0]) && !is_near(l, m, l->believed[m]);
        for (size_t i = 0; begins_again && i < l->n; i++) {
            out[i] = l->believed[i % m];
            begins_again = is_near(l, i, out[i]);
        }
        *r = (struct pe_related){(double)m, (double)l->n, 0, 1};
        if (begins_again)
            return true;
        if (m + 1 < l->n && !is_near(l, m, l->believed[m]))
            return false; /* the first row that is another one decides */
    }
    return false;
}

/* Of one axis of several: are there several believed values among those that differ? One value that is another one is
 * no modulus and no bound. */
static bool differ_in_several(const struct pe_lists *l)
{
    double first = (double)NAN;
    for (size_t i = 0; i < l->n; i++) {
        if (is_near(l, i, l->believed[i]))
            continue;
        if (!isnan(first) && l->believed[i] != first)
            return true;
        first = l->believed[i];
    }
    return l->n_axes == 1;
}

/* The same of a bound, which may also be a coordinate that some row has anyway. */
static bool is_bound(const struct pe_lists *l, double bound)
{
    bool is_had = false;
    for (size_t i = 0; i < l->n; i++)
        is_had |= l->believed[i] == bound;
    return is_had || differ_in_several(l);
}

/* m divides every jump of believed over found. */
static bool wrapped(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double m = 0;
    for (size_t i = 0; i < l->n; i++)
        for (double rest = nearbyint(fabs(l->believed[i] - l->found[i])), next; rest != 0; rest = next) {
            next = fmod(m, rest); /* Euclid's */
            m = rest;
        }
    for (size_t i = 0; i < l->n; i++)
        out[i] = l->believed[i] - m * floor(l->believed[i] / m);
    *r = (struct pe_related){m, largest_of(l->believed, l->n), 0, 1};
    return isfinite(m) && m > 1 && holds(l, out) && differ_in_several(l);
}

/* As signed integers of 8 or 16 bits, which go on at their smallest one. */
static bool overflowed(const struct pe_lists *l, double *out, struct pe_related *r)
{
    static const double sizes[] = {0x1p8, 0x1p16};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t first = l->n;
        for (size_t i = l->n; i-- > 0;) {
            out[i] = l->believed[i] - sizes[k] * floor(l->believed[i] / sizes[k] + 0.5);
            first = out[i] != l->believed[i] ? i : first;
        }
        if (first < l->n && holds(l, out)) {
            *r = (struct pe_related){out[first], l->believed[first], first, 1};
            return true;
        }
    }
    return false;
}

/* Each several times, as an index that is divided by the size of a group. */
static bool divided(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double most = largest_of(l->found, l->n), span = largest_of(l->believed, l->n),
           each = round((span + 1) / (most + 1));
    for (size_t i = 0; i < l->n; i++)
        out[i] = floor(l->believed[i] / each);
    *r = (struct pe_related){each, 1, 0, 1};
    return l->n > 2 && each > 1 && isfinite(each) && holds(l, out);
}

/* ---- Rules of an order ---- */

static bool rolled(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (size_t by = 1; by < l->n; by++) {
        if (!is_near(l, 0, l->believed[by]) || !is_near(l, l->n - 1, l->believed[by - 1]))
            continue;
        for (size_t i = 0; i < l->n; i++)
            out[i] = l->believed[(i + by) % l->n];
        *r = (struct pe_related){(double)by, 0, by, 1};
        if (holds(l, out))
            return l->n > 3;
    }
    return false;
}

/* Rows of [a, b] read as those of [b, a]. */
static bool transposed(const struct pe_lists *l, double *out, struct pe_related *r)
{
    for (size_t a = 2; 2 * a <= l->n; a++) {
        size_t b = l->n / a;
        if (l->n % a || !is_near(l, 1, l->believed[b]))
            continue;
        for (size_t i = 0; i < l->n; i++)
            out[i] = l->believed[i % a * b + i / a];
        *r = (struct pe_related){(double)a, (double)b, b, 1};
        if (holds(l, out))
            return true;
    }
    return false;
}

static bool clamped(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double most = pe_plain_number(largest_of(l->found, l->n), l->loss);
    for (size_t i = 0; i < l->n; i++)
        out[i] = fmin(l->believed[i], most);
    *r = (struct pe_related){most, largest_of(l->believed, l->n), 0, 1};
    return l->n > 2 && holds(l, out) && is_bound(l, most);
}

static bool clamped_below(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double least = pe_plain_number(least_of(l->found, l->n), l->loss);
    for (size_t i = 0; i < l->n; i++)
        out[i] = fmax(l->believed[i], least);
    *r = (struct pe_related){least, least_of(l->believed, l->n), 0, 1};
    return l->n > 2 && holds(l, out) && is_bound(l, least);
}

/* The other sign, of one axis of several; of all of them it would be the direction. */
static bool scaled_back(const struct pe_lists *l, double *out, struct pe_related *r)
{
    double factor = factor_of(l, out);
    *r = (struct pe_related){factor, 1, 0, 1};
    return l->n > 1 && l->n_axes > 1 && factor < 0;
}

/* s·p + c, by two rows that are far apart; c is s·k with a whole
 * k where that is as near. */
static bool linear(const struct pe_lists *l, double *out, struct pe_related *r)
{
    size_t low = 0, high = 0;
    for (size_t i = 0; i < l->n; i++) {
        low = l->believed[i] < l->believed[low] ? i : low;
        high = l->believed[i] > l->believed[high] ? i : high;
    }
    double span = l->believed[high] - l->believed[low];
    if (!(span > 0) || l->n < 3)
        return false;
    double error = (l->error[low] + l->error[high]) / span;
    double factor = pe_plain_number((l->found[high] - l->found[low]) / span, error);
    double plus = l->found[low] - factor * l->believed[low];
    double shift = factor != 0 ? nearbyint(plus / factor) : (double)NAN;
    double tolerance = l->error[low] + fabs(l->believed[low]) * error;
    plus = fabs(shift * factor - plus) <= tolerance ? shift * factor : pe_plain_number(plus, tolerance);
    for (size_t i = 0; i < l->n; i++)
        out[i] = factor * l->believed[i] + plus;
    *r = (struct pe_related){factor, 1, 0, 2};
    return factor > 0 && holds(l, out);
}

static bool linear_on_an_axis(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return l->n_axes > 1 && linear(l, out, r);
}

static bool stride_from_elsewhere(const struct pe_lists *l, double *out, struct pe_related *r)
{
    return l->n_axes == 1 && linear(l, out, r) && r->found >= 2 && r->found == nearbyint(r->found);
}

/* The measured list itself: integers where all are near one. */
static void write_list(const struct pe_lists *l, double *out)
{
    bool are_whole = true;
    for (size_t i = 0; i < l->n; i++)
        are_whole &= is_near(l, i, nearbyint(l->found[i])) && l->error[i] < 0.25;
    for (size_t i = 0; i < l->n; i++) {
        bool is_believed = isinf(l->error[i]) || is_near(l, i, l->believed[i]);
        out[i] = is_believed ? l->believed[i]
                 : are_whole ? nearbyint(l->found[i])
                             : pe_plain_number(l->found[i], l->error[i]);
    }
}

/* How often the difference from the believed list changes; the first row that differs. */
static size_t runs_of(const struct pe_lists *l, const double *out, struct pe_related *r)
{
    size_t n = 1, first = l->n;
    for (size_t i = 0; i < l->n; i++) {
        double by = out[i] - l->believed[i], before = i > 0 ? out[i - 1] - l->believed[i - 1] : by;
        n += fabs(by - before) > 2 * l->loss;
        if (first == l->n && out[i] != l->believed[i])
            first = i;
    }
    first = first < l->n ? first : 0;
    *r = (struct pe_related){out[first], l->believed[first], first, (unsigned)n};
    return n;
}

static bool restarted(const struct pe_lists *l, double *out, struct pe_related *r)
{
    write_list(l, out);
    bool begin_alike = true;
    size_t n = 1, first = 0;
    for (size_t i = 1; i < l->n; i++)
        if (fabs(out[i] - out[i - 1] - (l->believed[i] - l->believed[i - 1])) > 2 * l->loss) {
            begin_alike &= is_near(l, i, out[0]);
            first = n++ == 1 ? i : first;
        }
    *r = (struct pe_related){out[first], l->believed[first], first, (unsigned)n};
    return l->n_axes == 1 && n > 1 && n <= (l->n > 8 ? l->n / 4 : 2) && begin_alike;
}

/* Blocks of equal length, each of which begins elsewhere. */
static bool in_blocks(const struct pe_lists *l, double *out, struct pe_related *r)
{
    size_t length = 0, n_blocks = 1;
    write_list(l, out);
    for (size_t i = 1; i < l->n; i++) {
        if (fabs(out[i] - out[i - 1] - (l->believed[i] - l->believed[i - 1])) <= 2 * l->loss)
            continue;
        length = length ? length : i;
        if (i % length)
            return false;
        n_blocks++;
    }
    *r = (struct pe_related){(double)length, out[length < l->n ? length : 0], 0, (unsigned)n_blocks};
    return length > 1 && n_blocks > 2 && n_blocks == (l->n + length - 1) / length;
}

static bool in_stretches(const struct pe_lists *l, double *out, struct pe_related *r)
{
    write_list(l, out);
    size_t n = runs_of(l, out, r);
    return n <= (l->n / 3 < 12 ? l->n / 3 : 12);
}

static bool listed(const struct pe_lists *l, double *out, struct pe_related *r)
{
    write_list(l, out);
    runs_of(l, out, r);
    r->numbers = (unsigned)l->n;
    return true;
}

/* ---- The faults ---- */

/* Without alternatives: a relation alone finds it. */

const struct pe_fault pe_fault_off_by_one = {
    FAULT_TEXT("off_by_one", "positions", POSITIONS, 1, "off by one", "All positions are larger or smaller by one.",
               "The tensor begins at position {found}; the configuration begins at {believed}."),
    .evidence = PE_OF_POSITIONS, PE_MAPS({.scale = 1, .shift = 1}, {.scale = 1, .shift = -1}),
    .cures = pe_cures_shifted};

const struct pe_fault pe_fault_offset_other = {
    FAULT_TEXT("offset_other", "positions", POSITIONS, 2, "other offset", "The sequence begins at another position.",
               "The tensor begins at position {found}; the configuration begins at {believed}."),
    .evidence = PE_OF_POSITIONS,
    PE_MAPS({.scale = 1, .shift = 2}, {.scale = 1, .shift = -2}, {.scale = 1, .shift = 3}, {.scale = 1, .shift = -3},
            {.scale = 1, .first = -1, .of = PE_OF_A_MOVED_RUN}) +
        1,
    .fit = pe_fit_offset,
    .reads_typed = true,
    .n_fits = 1,
    .fit_rank = 1,
    .cures = pe_cures_shifted};

const struct pe_fault pe_fault_not_rotated = {
    FAULT_TEXT("not_rotated", "positions", POSITIONS, 2, "positions without effect",
               "Every row is computed at position 0, so nothing is rotated.", "Every row is computed at position 0."),
    .evidence = PE_OF_POSITIONS, PE_MAPS({.scale = 0}), .cures = pe_cures_positions};

/* Nothing has been applied to tables yet, so their positions are doubled for another reason. */
static int surprise_of_twice(const struct pe_diagnosis *d, size_t i)
{
    (void)i;
    return d->evidence.kind->id == PE_OF_TABLES ? 3 : 0;
}

const struct pe_fault pe_fault_rotated_twice = {
    FAULT_TEXT("rotated_twice", "positions", POSITIONS, 2, "rotated twice",
               "Every row is computed at twice its position, as when a rotation is applied two times.",
               "Every row is computed at twice its position."),
    .evidence = PE_OF_POSITIONS | PE_EVIDENCE_BIT(MAPS), PE_MAPS({.scale = 2}), .surprise_of = surprise_of_twice,
    .cures = pe_cures_twice};

const struct pe_fault pe_fault_positions_reversed = {
    FAULT_TEXT("positions_reversed", "positions", POSITIONS, 4, "reversed positions",
               "The rows have the positions in reverse order.",
               "The positions run in reverse order: the first row has the last position."),
    .evidence = PE_OF_POSITIONS, PE_MAPS({.scale = 1, .is_reversed = true}), .cures = pe_cures_reversed};

#define STRIDE(s)                                                                                                      \
    {                                                                                                                  \
        .scale = s, .first = 1 - (s), .of = PE_OF_A_RUN                                                                \
    }
/* Of its rules, the last: rather rotated twice. It counts as fitted, since one row does not show it as a stride. */
enum { TWICE_FROM_ELSEWHERE = 5 };

static int surprise_of_stride(const struct pe_diagnosis *d, size_t i)
{
    (void)d;
    return i == TWICE_FROM_ELSEWHERE ? 3 : 0;
}

/* The belief may have twice the coordinates; of a run that would be a scaling. */
const struct pe_fault pe_fault_position_stride = {
    FAULT_TEXT("position_stride", "positions", POSITIONS, 3, "other stride",
               "Positions advance by another step than the configuration's.",
               "Positions advance by another step than in the configuration."),
    .evidence = PE_OF_POSITIONS,
    PE_MAPS(STRIDE(2), STRIDE(3), STRIDE(4), STRIDE(8), {.scale = 0.5, .of = PE_OF_NO_RUN},
            {.scale = 2, .of = PE_OF_A_MOVED_RUN}),
    .surprise_of = surprise_of_stride,
    .n_fits = 1,
    .fit_rank = 1,
    .cures = pe_cures_stretched};

const struct pe_fault pe_fault_positions_constant = {
    FAULT_TEXT("positions_constant", "positions", POSITIONS, 3, "constant position",
               "All rows are computed at one and the same position.",
               "All rows are computed at one and the same position."),
    .evidence = PE_OF_POSITIONS, PE_MAPS({.scale = 0, .first = 1, .of = PE_OF_A_MOVED_RUN}),
    .cures = pe_cures_positions};

const struct pe_fault pe_fault_position_reset = {
    FAULT_TEXT("position_reset", "positions", POSITIONS, 2, "positions restart",
               "Positions restart at 0 inside the sequence, as for packed sequences.",
               "Positions restart inside the sequence; in the configuration they run on."),
    .evidence = PE_OF_POSITIONS,
    .n_alternatives = 1,
    .fit = pe_fit_lens,
    .n_fits = 1,
    .fit_rank = 1,
    .cures = pe_cures_positions};

static bool no_reset(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    bool is_packed = pe_edit_has(d, edit, "lens") || pe_edit_has(d, edit, "cu_seqlens");
    return is_packed && pe_edit_run(d, edit, pe_belief_position(d, 0));
}

const struct pe_fault pe_fault_position_no_reset = {
    FAULT_TEXT("position_no_reset", "positions", POSITIONS, 2, "positions run on",
               "Positions run on through packed sequences instead of restarting in each.",
               "Positions run on; in the configuration they restart in each packed sequence."),
    .evidence = PE_OF_POSITIONS, .n_alternatives = 1, .apply = no_reset};

const struct pe_fault pe_fault_positions_clamped = {
    FAULT_TEXT("positions_clamped", "positions", POSITIONS, 3, "clamped positions",
               "Positions beyond a table's last row are computed at that row.",
               "The table that the code looks rows up in ends: every position behind its last row is computed at that "
               "row."),
    .cures = pe_cures_positions};

const struct pe_fault pe_fault_positions_wrapped = {
    FAULT_TEXT("positions_wrapped", "positions", POSITIONS, 4, "wrapped positions",
               "Positions begin again behind a table's last row.",
               "Positions begin again at 0 behind the last row of the table that the code looks rows up in."),
    .cures = pe_cures_positions};

const struct pe_fault pe_fault_positions_scaled = {
    FAULT_TEXT("positions_scaled", "positions", POSITIONS, 3, "scaled positions",
               "Positions, of all axes or of one, are multiplied by a factor.",
               "The positions are {found} times those of the configuration."),
    .cures = pe_cures_stretched};

const struct pe_fault pe_fault_positions_rounded = {
    FAULT_TEXT("positions_rounded", "positions", POSITIONS, 3, "rounded positions",
               "Positions, of all axes or of one, are rounded to few bits or to integers.",
               "The positions are rounded: {found} in place of {believed}."),
    .cures = pe_cures_positions};

const struct pe_fault pe_fault_positions_other = {
    FAULT_TEXT("positions_other", "positions", POSITIONS, 8, "other positions",
               "The positions of the rows, fitted one by one, are not the configuration's.",
               "The rows have other positions than in the configuration."),
    .evidence = PE_OF_POSITIONS,
    .n_alternatives = 1,
    .fit = pe_fit_rows,
    .is_free_list = true,
    .n_fits = 1,
    .fit_rank = 1,
    .fit_cost = 3,
    .cures = pe_cures_positions};

/* ---- The table ---- */

const struct pe_relation pe_coordinate_relations[] = {
    {&pe_fault_not_rotated, 1, zero, "The positions are all {found}; in the configuration the last is {believed}."},
    {&pe_fault_off_by_one, 1, by_one, "The tensor begins at position {found}; the configuration begins at {believed}."},
    {&pe_fault_offset_other, 1, shifted,
     "The tensor begins at position {found}; the configuration begins at {believed}."},
    {&pe_fault_positions_constant, 1, constant,
     "The positions are all {found}; in the configuration the last is {believed}."},
    {PE_OF_ROLE(RUNG_HIGHER), 1, rung_higher,
     "The positions are multiplied by base^(2/r) = {found} in place of {believed}, as where the exponents of the "
     "frequencies begin at -2/r."},
    {PE_OF_ROLE(RUNG_LOWER), 1, rung_lower,
     "The positions are multiplied by base^(-2/r) = {found} in place of {believed}, as where the exponents of the "
     "frequencies begin at 2/r."},
    {&pe_fault_rotated_twice, 1, twice, "The positions are {found} times those of the configuration."},
    {&pe_fault_position_stride, 1, whole_stride, "The positions are {found} times those of the configuration."},
    {&pe_fault_positions_scaled, 1, by_ratio,
     "The positions are {found} times ({meaning}) those of the configuration."},
    {&pe_fault_positions_scaled, 1, scaled, "The positions are {found} times those of the configuration."},
    {&pe_fault_positions_reversed, 1, reversed,
     "The positions run in reverse order: they begin at {found}, those of the configuration at {believed}."},
    {PE_OF_ROLE(AXES_EXCHANGED), 1, other_axis,
     "The positions are those of axis {found}; the configuration has those of axis {believed}."},
    {PE_OF_ROLE(AXES_EXCHANGED), 1, other_axis_scaled,
     "The positions are those of axis {found}, in a unit of its own; the configuration has those of axis {believed}."},
    {&pe_fault_position_no_reset, 1, goes_on,
     "The positions run on: the last is {found}, in the configuration {believed}."},
    {PE_OF_ROLE(AXES_FORGOTTEN), 1, index_of_axes,
     "The positions count the rows: the last is {found}, in the configuration {believed}."},
    {&pe_fault_positions_other, 3, ranked,
     "The positions count the believed values, as an index of a slot for the coordinate in it: the largest is {found}, "
     "in the configuration {believed}."},
    {&pe_fault_positions_rounded, 1, rounded_bf16,
     "The positions are rounded to bfloat16: {found} in place of {believed}, first in row {row}."},
    {&pe_fault_positions_rounded, 1, rounded_f16,
     "The positions are rounded to float16: {found} in place of {believed}, first in row {row}."},
    {&pe_fault_positions_rounded, 1, rounded_down,
     "The positions are rounded down to integers: {found} in place of {believed}, first in row {row}."},
    {&pe_fault_positions_wrapped, 1, overflowed,
     "The positions overflow a signed integer of few bits: {found} in place of {believed}, first in row {row}."},
    {&pe_fault_position_stride, 1, divided,
     "Each position is that of {found} rows: it is the believed one divided by {found} and rounded down."},
    {&pe_fault_position_reset, 1, repeated,
     "The positions begin again after {found} rows; the configuration has {believed} rows."},
    {&pe_fault_positions_wrapped, 1, wrapped,
     "The positions are taken modulo {found}; the largest of the configuration is {believed}."},
    {&pe_fault_positions_clamped, 1, clamped,
     "The positions are at most {found}; the largest of the configuration is {believed}."},
    {&pe_fault_positions_clamped, 1, clamped_below,
     "The positions are at least {found}; the smallest of the configuration is {believed}."},
    {&pe_fault_position_reset, 2, restarted,
     "The positions begin again: at {found} in place of {believed}, first in row {row}."},
    {&pe_fault_positions_other, 2, rolled,
     "The rows are shifted round: the first row has the position of row {found}, and the rows before that come last."},
    {&pe_fault_positions_other, 2, transposed,
     "The rows are in another order: those of [{found}, {believed}] are stored as [{believed}, {found}], so row 1 has "
     "the "
     "position of row {row}."},
    {&pe_fault_position_stride, 2, stride_from_elsewhere,
     "The positions begin elsewhere and are {found} times those of the configuration."},
    {&pe_fault_positions_scaled, 2, linear_on_an_axis,
     "The positions begin elsewhere and are {found} times those of the configuration."},
    {&pe_fault_positions_scaled, 3, scaled_back, "The positions are {found} times those of the configuration."},
    {&pe_fault_positions_other, 3, in_blocks,
     "The positions begin elsewhere in each block of {found} rows: the second block begins at {believed}."},
    {&pe_fault_positions_other, 3, in_stretches,
     "The positions are others in some stretches of rows: {found} in place of {believed}, first in row {row}."},
    {&pe_fault_positions_other, 3, listed,
     "The positions follow no rule that is known: {found} in place of {believed}, first in row {row}."},
};

const struct pe_relation *pe_listed(void)
{
    return &pe_coordinate_relations[sizeof pe_coordinate_relations / sizeof *pe_coordinate_relations - 1];
}

bool pe_relation_is_of_all(const struct pe_relation *relation)
{
    return relation->test == zero || relation->test == twice;
}

bool pe_relation_is_factor(const struct pe_relation *relation)
{
    return relation->test == by_ratio || relation->test == scaled;
}

bool pe_lists_agree(const struct pe_lists *l) { return holds(l, l->believed); }

const struct pe_relation *pe_relate(const struct pe_lists *l, double *predicted, struct pe_related *out)
{
    const struct pe_relation *row = pe_coordinate_relations;
    if (pe_lists_agree(l))
        return NULL;
    while ((pe_relation_is_of_all(row) && l->n_axes > 1) || !row->test(l, predicted, out))
        row++;
    return row;
}
