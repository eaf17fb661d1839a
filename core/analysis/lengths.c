/* Lengths of training and evaluation, and plans of other lengths. */
#include "core/analysis/lengths.h"

#include <string.h>

double pe_train_len(const struct pe_analysis *study, const struct pe_subject *subject)
{
    if (study->fields.train_len != PE_UNSET_INT)
        return (double)study->fields.train_len;
    bool is_scaled = subject->ladder.n > 0 && !isnan(subject->ladder.orig_len);
    return is_scaled ? subject->ladder.orig_len : (double)subject->n;
}

double pe_eval_len(const struct pe_analysis *study, const struct pe_subject *subject)
{
    if (study->fields.eval_len != PE_UNSET_INT)
        return (double)study->fields.eval_len;
    return 2 * floor(pe_train_len(study, subject));
}

void pe_put_length(struct pe_node *node, const char *name, double length)
{
    if (length == floor(length) && fabs(length) < 0x1p53)
        pe_put_integer(node, name, (int64_t)length);
    else
        pe_put_real(node, name, length);
}

/* The number of rows that the subject's own table was resolved to; NULL: it has no such field. */
static const struct pe_value *find_rows(const struct pe_subject *subject)
{
    const struct pe_value *config = pe_plan_config(subject->plan);
    if (strcmp(pe_plan_scheme(subject->plan)->name, "learned") != 0)
        return NULL;
    for (size_t i = 0; i < config->object.n; i++)
        if (strcmp(config->object.fields[i].name, "rows") == 0)
            return &config->object.fields[i].value;
    return NULL;
}

enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_error *err)
{
    struct pe_field overrides[PE_RUN_OVERRIDES + 3];
    const struct pe_value *rows = find_rows(subject);
    size_t n = run->n_overrides;
    memcpy(overrides, run->overrides ? run->overrides : overrides, n * sizeof *overrides);
    overrides[n++] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = (int64_t)run->n}};
    if (run->offset)
        overrides[n++] = (struct pe_field){"offset", {.kind = PE_INTEGER, .integer = run->offset}};
    if (rows)
        overrides[n++] = (struct pe_field){"rows", *rows};
    struct pe_variant variant = {PE_ENCODE, PE_F64, overrides, n, run->outputs, run->n_outputs, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}
