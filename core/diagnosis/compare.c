/* One model against all numbers of the evidence. */
#include "core/diagnosis/answer.h"
#include "core/numeric/dtype.h"

#include <stdlib.h>
#include <string.h>

/* A row of numbers: as found, as predicted, as predicted and rounded, and the phases. */
struct row {
    double *found, *expected, *phase;
    size_t n;
};

static bool row_new(struct row *row, size_t n)
{
    row->n = n;
    row->found = malloc(3 * (n + 1) * sizeof *row->found);
    row->expected = row->found ? row->found + n : NULL;
    row->phase = row->found ? row->found + 2 * n : NULL;
    return row->found;
}

static void set_first_bad(struct pe_misfit *bad, const struct row *row, size_t t, uint64_t i, size_t c, double rounded)
{
    if (!bad->is_any)
        *bad = (struct pe_misfit){true, t, i, c, row->found[c], rounded};
}

/* More than the rounding of products and sums explains. In f64, angles cost a few units of their size too. */
static bool is_beyond(const struct pe_judge *j, double error, double phase)
{
    return error > fmax(4 * j->u, 0x1p-49 * phase) * j->largest;
}

static void add_unequal(struct pe_comparison *out, const struct pe_judge *j, const struct row *row, size_t t,
                        uint64_t i, size_t c)
{
    double found = row->found[c], expected = row->expected[c], rounded = pe_round_to(j->dtype, expected);
    out->max_ulp = fmax(out->max_ulp, pe_steps_between(j->dtype, found, rounded));
    out->max_error = fmax(out->max_error, fabs(found - rounded));
    if (!pe_is_exact(j, found, expected))
        set_first_bad(&out->first_bad, row, t, i, c, rounded);
    if (!out->is_beyond && is_beyond(j, fabs(found - expected), row->phase[c])) {
        out->is_beyond = true;
        out->beyond_row = i;
    }
}

static void add_row(struct pe_comparison *out, const struct pe_judge *j, const struct row *row, size_t t, uint64_t i)
{
    for (size_t c = 0; c < row->n; c++) {
        bool is_equal = row->found[c] == pe_round_to(j->dtype, row->expected[c]);
        out->n_equal += is_equal;
        if (!is_equal)
            add_unequal(out, j, row, t, i, c);
    }
    out->n += row->n;
}

/* Phases take longer than the comparison, and most rows do not need them. */
static void set_phases(const struct pe_model *model, const struct pe_judge *j, size_t t, uint64_t i, struct row *row)
{
    if (pe_judge_needs_phases(j, row->found, row->expected, row->n))
        pe_model_phases(model, t, i, 0, row->n, row->phase);
    else
        memset(row->phase, 0, row->n * sizeof *row->phase);
}

static enum pe_status compare(struct pe_diagnosis *d, struct pe_model *model, const struct pe_judge *j, struct row *row,
                              struct pe_comparison *out, struct pe_error *err)
{
    const struct pe_evidence *e = &d->evidence;
    struct pe_tally tally;
    pe_tally_init(&tally, j);
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t i = 0; i < e->n_rows; i++) {
            if (i % 64 == 0 && pe_is_cancelled())
                return pe_cancelled(err);
            pe_evidence_read(e, t, i, 0, row->n, row->found);
            pe_model_fill(model, t, i, 0, row->n, row->expected);
            set_phases(model, j, t, i, row);
            pe_tally_add(&tally, row->found, row->expected, row->phase, row->n);
            add_row(out, j, row, t, i);
        }
    out->verdict = pe_tally_verdict(&tally);
    if (tally.has_infinity_elsewhere)
        out->max_error = (double)INFINITY;
    return PE_OK;
}

enum pe_status pe_compare_all(struct pe_diagnosis *d, struct pe_model *model, bool narrow, struct pe_comparison *out,
                              struct pe_error *err)
{
    struct row row;
    struct pe_judge j = pe_judge_of(&d->evidence, narrow);
    *out = (struct pe_comparison){.verdict = PE_NOT_JUDGED};
    if (!row_new(&row, (size_t)d->evidence.row_len))
        return pe_no_memory(err);
    enum pe_status status = pe_model_keep(model, err);
    if (!status)
        status = compare(d, model, &j, &row, out, err);
    free(row.found);
    return status;
}
