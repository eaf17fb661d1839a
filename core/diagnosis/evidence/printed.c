/* Evidence as people print it: numbers of few digits, with "..." for what is left out.
 *
 * A printed number is any number that is printed so: its digits leave half a unit of the last one open. So before a
 * prediction is judged, each number found becomes the one nearest to it that is printed so, and what was left out
 * becomes the prediction itself; then the bounds of judge.c hold as for any other tensor. In a tensor every number has
 * the digits of the one that has most: 1.0 beside 0.5403023 is 1.0000000. Whole numbers are what they are.
 *
 * Measurements read what was left out as 0, which turns nothing; what they find is compared with all numbers that are
 * there. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Digits ---- */

/* The float32 of a number just below a power of ten is still printed with that power. */
static double half_of(const struct pe_print *p, double x)
{
    if (!p->is_scientific)
        return p->half;
    return x == 0 ? 0 : p->half * pow(10, floor(log10(fabs(x) * (1 + 0x1p-20))));
}

/* The smallest magnitude but 0, and the largest. */
struct extent {
    double least, most;
};

static void extend(struct extent *x, double value)
{
    double a = fabs(value);
    if (a > 0 && isfinite(a)) {
        x->least = fmin(x->least, a);
        x->most = fmax(x->most, a);
    }
}

static struct extent extent_of(const struct pe_evidence *e, size_t t)
{
    struct extent x = {(double)INFINITY, 0};
    double value;
    for (uint64_t row = 0; row < e->n_rows && !(row % 64 == 0 && pe_is_cancelled()); row++)
        for (uint64_t col = 0; col < e->row_len; col++) {
            pe_evidence_read(e, t, row, col, 1, &value);
            extend(&x, value);
        }
    return x;
}

static struct extent extent_of_input(const struct pe_evidence *e)
{
    struct extent x = {(double)INFINITY, 0};
    double value[PE_HEAD_DIM_MAX];
    for (uint64_t row = 0; row < e->n_rows && !(row % 64 == 0 && pe_is_cancelled()); row++) {
        pe_evidence_input(e, row, value);
        for (uint64_t col = 0; col < e->row_len; col++)
            extend(&x, value[col]);
    }
    return x;
}

/* Has the number with fewest significant digits as many as float32? */
static bool has_all_digits(const struct pe_print *p, const struct extent *x)
{
    return !p->has_gaps && (p->is_scientific ? p->half <= 0x1p-26 : p->half <= 0x1p-23 * x->least);
}

/* ---- What is left out ---- */

static bool is_left_out(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col)
{
    const struct pe_printed *all = &e->printed;
    const struct pe_print *p = all->of[t];
    if (!p || !p->has_gaps)
        return false;
    uint64_t element = pe_moved_element(e, pe_evidence_element(e, t, row, col));
    for (unsigned axis = all->rank; axis-- > 0; element /= all->shape[axis]) {
        uint64_t i = element % all->shape[axis];
        if (i >= p->gaps[axis].from && i < p->gaps[axis].to)
            return true;
    }
    return false;
}

static bool is_row_left_out(const struct pe_evidence *e, uint64_t row)
{
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t col = 0; col < e->row_len; col++)
            if (!is_left_out(e, t, row, col))
                return false;
    return true;
}

size_t pe_printed_settle(const struct pe_evidence *e, const struct pe_piece *at, const double *expected, double *found)
{
    const struct pe_print *p = e->printed.of[at->t];
    size_t n_left_out = 0;
    for (size_t i = 0; i < at->n; i++) {
        bool is_gap = e->printed.has_gaps && is_left_out(e, at->t, at->row, at->col0 + i);
        double half = (p ? half_of(p, found[i]) : 0) + e->printed.more;
        n_left_out += is_gap;
        if (is_gap || fabs(found[i] - expected[i]) <= half)
            found[i] = expected[i];
        else if (isfinite(expected[i]))
            found[i] += copysign(half, expected[i] - found[i]);
    }
    return n_left_out;
}

/* ---- Reading ---- */

static void state(const struct pe_print **print, struct pe_print *room, double half)
{
    *room = *print ? **print : (struct pe_print){.half = 0};
    room->half = half;
    room->is_scientific = false;
    *print = room;
}

void pe_printed_state(struct pe_evidence *e, double half)
{
    struct pe_printed *p = &e->printed;
    for (size_t t = 0; t < e->n_tensors; t++)
        if (e->is_text[t])
            state(&p->of[t], &p->stated[t], half);
    if (e->input_is_text)
        state(&p->input, &p->stated[PE_EVIDENCE_TENSORS_MAX], half);
}

enum pe_status pe_printed_is_whole(const struct pe_print *print, const char *name, struct pe_failure *err)
{
    char pointer[24] = "/";
    if (!print || !print->has_gaps)
        return PE_OK;
    strncat(pointer, name, sizeof pointer - 2);
    return pe_fail(err, pointer,
                   "%s has numbers left out (...), and what is rotated must be whole; print it after "
                   "torch.set_printoptions(threshold=10**6) or numpy.set_printoptions(threshold=10**6)",
                   name);
}

/* What the digits leave open, and which tensor has the fewest. */
static void open_digits(struct pe_evidence *e)
{
    struct pe_printed *p = &e->printed;
    bool is_whole = pe_evidence_is_whole(e);
    for (size_t t = 0; t < e->n_tensors; t++) {
        struct extent x = p->of[t] ? extent_of(e, t) : (struct extent){0, 0};
        if (p->of[t] && (has_all_digits(p->of[t], &x) || (is_whole && !p->of[t]->has_gaps)))
            p->of[t] = NULL;
        if (!p->of[t])
            continue;
        p->has_gaps |= p->of[t]->has_gaps;
        p->half = fmax(p->half, half_of(p->of[t], x.most));
        p->name = p->name ? p->name : pe_evidence_name(e, t);
    }
    struct extent x = p->input ? extent_of_input(e) : (struct extent){0, 0};
    if (!p->input || has_all_digits(p->input, &x))
        return;
    p->more = 2 * half_of(p->input, x.most); /* of two products, and a factor */
    p->half += p->more;
    p->name = p->name ? p->name : e->kind->input;
}

enum pe_status pe_printed_open(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    struct pe_printed *p = &e->printed;
    open_digits(e);
    if (!p->has_gaps)
        return PE_OK;
    if (pe_diagnosis_admit(d, (double)e->n_rows, err))
        return err->status;
    p->left_out = calloc(e->n_rows, 1);
    if (!p->left_out)
        return pe_no_memory(err);
    for (uint64_t row = 0; row < e->n_rows; row++) {
        p->left_out[row] = is_row_left_out(e, row);
        if (row % 64 == 0 && pe_is_cancelled())
            return pe_cancelled(err);
    }
    return PE_OK;
}
