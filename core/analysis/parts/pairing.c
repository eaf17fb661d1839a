/* The columns of a sinusoid that its similarity compares. */
#include "core/analysis/parts/pairing.h"

#include <stdlib.h>
#include <string.h>

enum pairing { PAIRED, SIN, COS, MISMATCHED }; /* in the order of the field's words */

/* A sinusoid on one axis with a cosine for every sine. */
static bool has_pairs(const struct pe_subject *subject)
{
    return strcmp(pe_plan_scheme(subject->plan)->name, "sinusoidal") == 0 && subject->plan->seq.n_axes == 1 &&
           subject->is_run && subject->dim % 2 == 0;
}

bool pe_pairing_is_other(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return study->fields.pairing != PAIRED && has_pairs(subject);
}

/* ---- Rules ---- */

static enum pe_status plan_other(struct pe_analysis *study, const struct pe_subject *subject, struct pe_plan **plan,
                                 struct pe_error *err)
{
    static const char *const outputs[] = {"encoding"};
    struct pe_field base = {"base", {.kind = PE_REAL, .real = study->fields.other_base}};
    struct pe_variant variant = {PE_ENCODE, PE_F64, &base, 1, outputs, 1, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}

/* Can the sinusoid have this base? */
static enum pe_status check_other(const struct pe_analysis *study, const struct pe_subject *subject,
                                  struct pe_error *err)
{
    struct pe_analysis copy = *study; /* planning changes nothing of it */
    struct pe_plan *plan;
    enum pe_status status = plan_other(&copy, subject, &plan, err);
    if (status == PE_OK)
        pe_plan_free(plan);
    if (status != PE_INVALID)
        return status;
    struct pe_error inner = *err;
    return pe_fail(err, "/other_base", "other_base does not fit: %.400s", inner.detail);
}

enum pe_status pe_pairing_check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_error *err)
{
    bool has_base = !isnan(study->fields.other_base), is_mismatched = study->fields.pairing == MISMATCHED;
    bool is_used = study->fields.pairing == PAIRED;
    for (size_t i = 0; i < study->n_subjects; i++)
        is_used = is_used || pe_pairing_is_other(study, &study->subjects[i]);
    if (!is_used)
        return pe_fail(err, "/pairing",
                       "pairing is for sinusoidal encodings of one axis with an even dim at consecutive positions");
    if (is_mismatched && !has_base)
        return pe_fail(err, "/other_base", "other_base is missing: pairing mismatched takes cosines of that base");
    if (has_base && !is_mismatched)
        return pe_fail(err, "/other_base", "other_base is used only by pairing mismatched");
    return is_mismatched && has_pairs(subject) ? check_other(study, subject, err) : PE_OK;
}

/* ---- Rows ---- */

static bool is_sine(const struct pe_wave *column) { return column->quarter % 2 == 0; }

/* Keeps the sines or the cosines. */
static enum pe_status keep(const struct pe_subject *subject, const struct pe_wave *columns, bool sines,
                           struct pe_rows *rows, struct pe_error *err)
{
    const struct pe_rows *all = &subject->rows;
    *rows = (struct pe_rows){.n = all->n, .largest = all->largest};
    for (size_t c = 0; c < all->dim; c++)
        rows->dim += is_sine(&columns[c]) == sines;
    double *at = rows->at = malloc((all->n * rows->dim + 1) * sizeof *at);
    if (!at)
        return pe_no_memory(err);
    for (size_t i = 0; i < all->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < all->dim; c++)
            if (is_sine(&columns[c]) == sines)
                *at++ = all->at[i * all->dim + c];
    return PE_OK;
}

/* The rows of the other base, with the subject's sines in their place. */
static enum pe_status mismatch(struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_wave *columns, struct pe_rows *rows, struct pe_error *err)
{
    struct pe_plan *plan;
    enum pe_status status = plan_other(study, subject, &plan, err);
    if (status)
        return status;
    status = pe_rows_init(rows, plan, err);
    pe_plan_free(plan);
    for (size_t i = 0; !status && i < rows->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < rows->dim; c++)
            if (is_sine(&columns[c]))
                rows->at[i * rows->dim + c] = subject->rows.at[i * rows->dim + c];
    return status;
}

enum pe_status pe_pairing_rows(struct pe_analysis *study, const struct pe_subject *subject, struct pe_rows *rows,
                               struct pe_error *err)
{
    struct pe_wave *columns = calloc(subject->dim, sizeof *columns);
    if (!columns)
        return pe_no_memory(err);
    subject->plan->scheme->columns(subject->plan, 0, columns);
    enum pe_status status = study->fields.pairing == MISMATCHED
                                ? mismatch(study, subject, columns, rows, err)
                                : keep(subject, columns, study->fields.pairing == SIN, rows, err);
    free(columns);
    return status;
}
