/* Relations of biases and buckets by distance: a shift, the sign, the slopes of both sides, the ladder of slopes.
 *
 * Each row looks at the found line of every head and at the believed one. It proposes fields of the request, whose plan
 * is compared with all numbers. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdlib.h>

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)

const struct pe_fault pe_fault_bias_signed = {
    FAULT_TEXT("bias_signed", "bias", BIAS, 2, "sign of the distance",
               "The bias keeps the sign of the distance, so it grows on one side of the query.",
               "The bias keeps the sign of the distance, so it grows on one side of the query."),
    .schemes = "alibi", .evidence = OF_BIAS};
/* `asymmetric` differs from `symmetric` only by lists of slopes. */
const struct pe_fault pe_fault_form_other = {
    FAULT_TEXT("form_other", "bias", BIAS, 3, "other form", "The bias has another form, e.g. key instead of relative.",
               "The form is {found}; the configuration has {believed}."),
    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_WORD_OF("form", "symmetric"), PE_WORD_OF("form", "relative"), PE_WORD_OF("form", "key"),
              PE_WORD_OF("form", "key_end"), PE_WORD_OF("form", "key_mask")),
    .combines_as = PE_KIND_SINUSOID};

struct bias {
    struct pe_diagnosis *d;
    const struct pe_edit *edit;
    struct pe_lines lines;
    bool is_alibi;
};

static double found_at(const struct bias *b, size_t head, size_t i) { return b->lines.found[head * b->lines.n + i]; }

static double believed_at(const struct bias *b, size_t head, size_t i)
{
    return b->lines.believed[head * b->lines.n + i];
}

/* Is every found number the believed one of a place `by` further on, times a factor that depends on its side? At least
 * half of those that are known must have one. */
static bool agrees(const struct bias *b, int64_t by, double before, double after)
{
    size_t known = 0, compared = 0;
    for (size_t h = 0; h < b->lines.n_heads; h++)
        for (size_t i = 0; i < b->lines.n; i++) {
            int64_t from = (int64_t)i + by;
            double x = found_at(b, h, i), side = i > b->lines.zero ? after : before;
            known += isnan(x) ? 0 : 1;
            if (isnan(x) || from < 0 || from >= (int64_t)b->lines.n || isnan(believed_at(b, h, (size_t)from)))
                continue;
            compared++;
            if (!pe_lines_are_near(&b->lines, x, side * believed_at(b, h, (size_t)from)))
                return false;
        }
    return compared > 1 && 2 * compared >= known;
}

/* Numbers that are known and not 0, on one side of the query. */
static size_t count_side(const struct bias *b, bool is_after)
{
    size_t n = 0;
    for (size_t i = 0; i < b->lines.n; i++) {
        bool is_there = is_after ? i > b->lines.zero : i < b->lines.zero;
        n += is_there && fabs(found_at(b, 0, i)) > 0 ? 1 : 0;
    }
    return n;
}

/* ---- A shift ---- */

static bool shifted(struct bias *b, struct pe_named *out)
{
    enum { FARTHEST = 64 };
    double at = pe_position_at(b->d->belief.plan->seq.q, 0) - pe_position_at(b->d->belief.plan->seq.k, 0);
    for (int64_t k = 1; k <= FARTHEST && pe_is_run_of_maps(b->d, b->edit); k++)
        for (int sign = -1; sign <= 1; sign += 2)
            if (agrees(b, sign * k, 1, 1)) {
                out->related = (struct pe_related){at - (double)(sign * k), at, 0, 1};
                return true;
            }
    return false;
}

/* ---- Slopes of both sides ---- */

/* The slope of a head to one side, of the found line or the believed one: the bias falls by it from 0 at distance 0.
 * NaN: it is no straight line, or nothing is known. */
static double slope_of(const struct bias *b, size_t head, const double *line, bool is_after)
{
    const struct pe_lines *l = &b->lines;
    const double *x = line + head * l->n + l->zero;
    int64_t last = is_after ? (int64_t)(l->n - 1 - l->zero) : -(int64_t)l->zero, step = is_after ? 1 : -1;
    while (last != 0 && isnan(x[last]))
        last -= step;
    double slope = last != 0 ? -x[last] / fabs((double)last) : (double)NAN;
    for (int64_t i = last; i != 0; i -= step)
        if (!isnan(x[i]) && !pe_lines_are_near(l, x[i], -slope * fabs((double)i)))
            return (double)NAN;
    return slope;
}

/* Writes the slopes of all heads to the left and to the right, [2, n_heads]. */
static bool read_slopes(const struct bias *b, const double *line, double *slopes)
{
    size_t n = b->lines.n_heads;
    for (size_t h = 0; h < 2 * n && b->lines.zero < b->lines.n; h++) {
        slopes[h] = slope_of(b, h % n, line, h >= n);
        if (isnan(slopes[h]))
            return false;
    }
    return b->lines.zero < b->lines.n;
}

static bool new_slopes(struct bias *b, struct pe_named *out)
{
    out->predicted = calloc(2 * b->lines.n_heads, sizeof *out->predicted);
    b->d->no_memory |= !out->predicted;
    return out->predicted;
}

/* slope·(query - key), or the reverse: on one side it has not the believed sign. */
static bool has_sign(struct bias *b, struct pe_named *out, double before)
{
    size_t n = b->lines.n_heads;
    if (!b->is_alibi || !count_side(b, false) || !count_side(b, true) || !agrees(b, 0, before, -before) ||
        !new_slopes(b, out) || !read_slopes(b, b->lines.believed, out->predicted))
        return false;
    for (size_t h = 0; h < 2 * n; h++)
        out->predicted[h] *= h < n ? before : -before;
    out->related = (struct pe_related){-1, 1, 0, 0};
    return true;
}

static bool grows_before(struct bias *b, struct pe_named *out) { return has_sign(b, out, -1); }
static bool grows_after(struct bias *b, struct pe_named *out) { return has_sign(b, out, 1); }

/* Each side has slopes of its own; equal ones are other slopes and no other form. */
static bool two_sides(struct bias *b, struct pe_named *out)
{
    size_t n = b->lines.n_heads, n_equal = 0;
    out->related = (struct pe_related){.numbers = 2 * (unsigned)n};
    if (!b->is_alibi || !new_slopes(b, out) || !read_slopes(b, b->lines.found, out->predicted))
        return false;
    for (size_t h = 0; h < n; h++)
        n_equal += pe_lines_are_near(&b->lines, out->predicted[h], out->predicted[n + h]);
    return n_equal < n;
}

static bool set_sides(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    size_t n = (size_t)pe_edit_integer(d, edit, "num_heads", 0);
    pe_edit_set_word(edit, "form", "asymmetric");
    pe_edit_set_reals(edit, "slopes_left", named->predicted, n);
    pe_edit_set_reals(edit, "slopes_right", named->predicted + n, n);
    return n > 0;
}

/* ---- The table ---- */

/* The plainest first. A row without a sentence has that of its fault. */
static const struct row {
    struct pe_relation relation;
    bool (*test)(struct bias *b, struct pe_named *out);
    pe_apply apply; /* NULL: … */
    const char *field;
} rows[] = {
    {{PE_OF_ROLE(PLACE_OF_QUERIES), 1, NULL, NULL}, shifted, NULL, "q_offset"},
    {{&pe_fault_bias_signed, 1, NULL,
      "The bias is slope·(query - key) and keeps the sign of the distance: it grows before the query, where that of "
      "the "
      "configuration falls on both sides."},
     grows_before,
     set_sides,
     NULL},
    {{&pe_fault_bias_signed, 1, NULL,
      "The bias is slope·(key - query) and keeps the sign of the distance: it grows after the query, where that of the "
      "configuration falls on both sides."},
     grows_after,
     set_sides,
     NULL},
    {{&pe_fault_form_other, 3, NULL, NULL}, two_sides, set_sides, NULL},
};

/* Numbers that are not 0 show more than the relation takes. */
static bool has_bits(const struct bias *b, unsigned numbers)
{
    enum { BITS_OF_A_NUMBER = 20 };
    double n = 0;
    for (size_t h = 0; h < b->lines.n_heads; h++)
        for (size_t i = 0; i < b->lines.n; i++)
            n += fabs(found_at(b, h, i)) > 0 ? 1 : 0;
    return n * log2(1 / b->lines.tolerance) > BITS_OF_A_NUMBER * (1.0 + numbers);
}

static size_t relate(struct bias *b, struct pe_part *parts)
{
    if (agrees(b, 0, 1, 1))
        return 0;
    size_t n = pe_relate_buckets(b->d, b->edit, &b->lines, parts);
    if (n > 0)
        return n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pe_named one = {.relation = &rows[i].relation, .apply = rows[i].apply, .field = rows[i].field};
        bool holds = rows[i].test(b, &one) && has_bits(b, one.related.numbers);
        struct pe_named *named = holds ? pe_part_add(b->d, one.relation, 0, 0, parts, &n) : NULL;
        if (named) {
            *named = one;
            return n;
        }
        free(one.predicted);
    }
    return 0;
}

size_t pe_relate_bias(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts)
{
    struct bias b = {.d = d, .edit = edit, .is_alibi = pe_same(d->belief.inheritance->scheme->info.name, "alibi")};
    (void)is_first;
    size_t n = pe_relate_window(d, edit, parts);
    if (n == 0)
        n = pe_relate_slopes(d, edit, parts);
    if (n > 0)
        return n;
    n = pe_measure_lines(d, edit, &b.lines) ? relate(&b, parts) : 0;
    pe_lines_drop(&b.lines);
    return n;
}
