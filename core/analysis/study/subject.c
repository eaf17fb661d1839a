/* A subject: one configuration of the request with its plan, and further plans with other fields. */
#include "core/analysis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans with other fields ---- */

/* The fields of a variant: those of the entry that no override replaces, then the overrides. */
struct fields {
    struct pe_field at[PE_FIELDS_MAX];
    size_t n;
};

/* Do two names mean the same row of the scheme's parameters? */
static bool is_same(const struct pe_param *rows, const char *a, const char *b)
{
    const struct pe_param *row = rows ? pe_param_find(rows, a) : NULL;
    return strcmp(a, b) == 0 || (row && pe_param_find(rows, b) == row);
}

/* The fields that give positions, of which a `len` takes the place. */
static bool gives_positions(const char *name)
{
    return pe_is_among("len|offset|positions|grid|lens|segments|tokens|q_len|k_len|q_offset|q_positions|k_positions",
                       name);
}

static bool is_replaced(const struct pe_variant *variant, const struct pe_param *rows, const char *name)
{
    for (size_t i = 0; i < variant->n_overrides; i++) {
        const char *other = variant->overrides[i].name;
        if (is_same(rows, other, name) || (strcmp(other, "len") == 0 && gives_positions(name)))
            return true;
    }
    return false;
}

static void merge(const struct pe_subject *subject, const struct pe_variant *variant, struct fields *out)
{
    const struct pe_param *rows = subject->plan ? pe_plan_scheme(subject->plan)->params : NULL;
    const struct pe_entry *entry = subject->entry;
    out->n = 0;
    for (size_t i = 0; i < entry->n_fields && out->n < PE_FIELDS_MAX; i++)
        if (!is_replaced(variant, rows, entry->fields[i].name))
            out->at[out->n++] = entry->fields[i];
    for (size_t i = 0; i < variant->n_overrides && out->n < PE_FIELDS_MAX; i++)
        if (variant->overrides[i].value.kind != PE_NULL)
            out->at[out->n++] = variant->overrides[i];
}

/* Errors about an entry's own field point into the entry; those about a common field point to the top. */
static void set_pointer(const struct pe_entry *entry, struct pe_error *err)
{
    char inner[PE_POINTER_MAX];
    size_t n = 1 + strcspn(err->pointer + (*err->pointer == '/'), "/");
    bool is_common = false;
    for (size_t i = entry->n_own; i < entry->n_fields && *err->pointer; i++)
        is_common = is_common || (strncmp(entry->fields[i].name, err->pointer + 1, n - 1) == 0 &&
                                  strlen(entry->fields[i].name) == n - 1);
    if (is_common || !*entry->pointer)
        return;
    memcpy(inner, err->pointer, sizeof inner);
    snprintf(err->pointer, sizeof err->pointer, "%s%.*s", entry->pointer,
             (int)(sizeof inner - 1 - strlen(entry->pointer)), inner);
}

/* Memory for planning comes on top of what the study has reserved. */
static enum pe_status admit(void *caller, double bytes, struct pe_error *err)
{
    return pe_study_admit(caller, bytes, err);
}

enum pe_status pe_study_admit(struct pe_analysis *study, double bytes, struct pe_error *err)
{
    const struct pe_analysis_request *request = study->request;
    return request->admit ? request->admit(request->caller, study->bytes + bytes, err) : PE_OK;
}

enum pe_status pe_subject_plan(struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_variant *variant, struct pe_plan **plan, struct pe_error *err)
{
    struct fields *fields = malloc(sizeof *fields);
    if (!fields)
        return pe_no_memory(err);
    merge(subject, variant, fields);
    struct pe_request request = {.operation = variant->operation,
                                 .fields = fields->at,
                                 .n_fields = fields->n,
                                 .dtype = variant->dtype,
                                 .outputs = variant->outputs,
                                 .n_outputs = variant->n_outputs,
                                 .caller_fields = study->request->caller_fields,
                                 .admit = admit,
                                 .caller = study,
                                 .positions_max = variant->positions_max};
    enum pe_status status = pe_plan_new(&request, plan, err);
    free(fields);
    if (status == PE_INVALID || status == PE_TOO_LARGE)
        set_pointer(subject->entry, err);
    return status;
}

/* ---- The subject ---- */

bool pe_has_rows(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0;
}

bool pe_has_ladder(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->ladder.n > 0;
}

static enum pe_family family_of(const struct pe_scheme_info *scheme)
{
    static const char *const names[] = {
        [PE_ABSOLUTE] = "absolute", [PE_ROTARY] = "rotary", [PE_BIAS] = "bias", [PE_RELATIVE] = "relative"};
    for (enum pe_family f = PE_ABSOLUTE; f < PE_RELATIVE; f++)
        if (strcmp(scheme->family, names[f]) == 0)
            return f;
    return PE_RELATIVE;
}

/* Consecutive positions, the same on all axes, queries and keys alike. */
static bool is_run(const struct pe_sequence *seq)
{
    const struct pe_positions *first = &seq->k[0];
    if (seq->n_grid || seq->piece)
        return false;
    for (unsigned axis = 0; axis < seq->n_axes; axis++)
        if (!pe_positions_same(first, &seq->k[axis]) || !pe_positions_same(first, &seq->q[axis]))
            return false;
    for (uint64_t i = 1; i < first->n; i++)
        if (pe_position_at(first, i) != pe_position_at(first, i - 1) + 1)
            return false;
    return true;
}

enum pe_status pe_subject_init(struct pe_analysis *study, size_t i, struct pe_error *err)
{
    struct pe_subject *subject = &study->subjects[i];
    *subject = (struct pe_subject){.index = i, .entry = &study->request->entries[i]};
    struct pe_variant variant = {.operation = PE_ENCODE, .dtype = PE_F64, .positions_max = PE_ANALYSED_POSITIONS_MAX};
    enum pe_status status = pe_subject_plan(study, subject, &variant, &subject->plan, err);
    if (status)
        return status;
    subject->family = family_of(pe_plan_scheme(subject->plan));
    subject->n = subject->plan->seq.k[0].n;
    subject->is_run = is_run(&subject->plan->seq);
    pe_rows_size(subject->plan, &subject->n_rows, &subject->dim);
    return pe_ladder_init(study, subject, err);
}

void pe_subject_drop(struct pe_subject *subject)
{
    pe_rows_drop(&subject->rows);
    free(subject->ladder.w);
    pe_plan_free(subject->plan);
}
