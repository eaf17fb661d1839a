/* Lengths of training and evaluation, and plans of other lengths. */
#include "core/analysis/study/lengths.h"

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

/* The fields of a sequence that a list of positions replaces. */
static const char *const of_sequence[] = {"len",   "offset", "grid",     "lens",        "segments",   "tokens",
                                          "q_len", "k_len",  "q_offset", "q_positions", "k_positions"};
enum { N_OF_SEQUENCE = sizeof of_sequence / sizeof of_sequence[0] };

/* Returns the number of fields. */
static size_t put_list(const struct pe_run *run, struct pe_field *fields)
{
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {run->n}, .data = run->positions};
    fields[0] = (struct pe_field){"positions", {.kind = PE_ARRAY, .array = list}};
    for (size_t i = 0; i < N_OF_SEQUENCE; i++)
        fields[1 + i] = (struct pe_field){of_sequence[i], {.kind = PE_NULL}};
    return 1 + N_OF_SEQUENCE;
}

static size_t put_run(const struct pe_run *run, struct pe_field *fields)
{
    fields[0] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = (int64_t)run->n}};
    fields[1] = (struct pe_field){"offset", {.kind = PE_INTEGER, .integer = run->offset}};
    return run->offset ? 2 : 1;
}

enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_error *err)
{
    struct pe_field overrides[PE_RUN_OVERRIDES + N_OF_SEQUENCE + 2];
    const struct pe_value *rows = find_rows(subject);
    size_t n = 0;
    for (; n < run->n_overrides; n++)
        overrides[n] = run->overrides[n];
    n += run->positions ? put_list(run, overrides + n) : put_run(run, overrides + n);
    if (rows)
        overrides[n++] = (struct pe_field){"rows", *rows};
    struct pe_variant variant = {PE_ENCODE, PE_F64, overrides, n, run->outputs, run->n_outputs, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}

enum pe_status pe_subject_plan_rows(struct pe_analysis *study, const struct pe_subject *subject,
                                    const struct pe_run *run, struct pe_plan **plan, struct pe_error *err)
{
    static const char *const outputs[][2] = {
        [PE_ABSOLUTE] = {"encoding"}, [PE_ROTARY] = {"cos", "sin"}, [PE_BIAS] = {"bias"}};
    static const struct pe_field fields[] = {
        {"key_mask", {.kind = PE_NULL}}, {"x", {.kind = PE_NULL}}, {"form", {.kind = PE_STRING, .string = "pairs"}}};
    bool is_rotary = subject->family == PE_ROTARY;
    struct pe_run whole = *run;
    whole.overrides = fields;
    whole.n_overrides = is_rotary ? 3 : 2;
    whole.outputs = outputs[subject->family];
    whole.n_outputs = is_rotary ? 2 : 1;
    return pe_subject_plan_run(study, subject, &whole, plan, err);
}
