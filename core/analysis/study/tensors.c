/* The tensors of an answer: which are asked for, their shapes, their memory. */
#include "core/analysis/study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which ---- */

static bool is_wanted(const struct pe_analysis *study, const struct pe_output_row *row)
{
    const struct pe_analysis_request *request = study->request;
    for (size_t i = 0; request->outputs && i < request->n_outputs; i++)
        if (strcmp(request->outputs[i], row->name) == 0)
            return true;
    return !request->outputs && !row->on_request;
}

static size_t count_rows(const struct pe_output_row *rows)
{
    size_t n = 0;
    while (rows && rows[n].name)
        n++;
    return n;
}

static void set_shape(const struct pe_analysis *study, struct pe_study_tensor *t)
{
    const struct pe_subject *subject = &study->subjects[t->entry];
    t->rank = 1;
    t->shape[0] = subject->n_rows;
    if (t->metric->shape)
        t->metric->shape(study, subject, (size_t)(t->row - t->metric->info.tensors), &t->rank, t->shape);
}

static size_t count(const struct pe_study_tensor *t)
{
    size_t n = 1;
    for (unsigned axis = 0; axis < t->rank; axis++)
        n *= (size_t)t->shape[axis];
    return n;
}

static void add_of_metric(struct pe_analysis *study, size_t entry, size_t m, const char *name)
{
    const struct pe_metric *metric = pe_metric_get(m);
    if (!(study->metrics[entry] >> m & 1))
        return;
    for (size_t i = 0; i < count_rows(metric->info.tensors); i++)
        if (name ? strcmp(metric->info.tensors[i].name, name) == 0 : is_wanted(study, &metric->info.tensors[i])) {
            struct pe_study_tensor *t = &study->tensors[study->n_tensors++];
            *t = (struct pe_study_tensor){.row = &metric->info.tensors[i], .metric = metric, .entry = entry};
            snprintf(t->name, sizeof t->name, "%s.%zu", t->row->name, entry);
            set_shape(study, t);
            study->n_tensors -= count(t) == 0; /* the metric has no such tensor for this configuration */
        }
}

static size_t count_all(void)
{
    size_t n = 0;
    for (size_t m = 0; m < pe_n_metrics(); m++)
        n += count_rows(pe_metric_at(m)->tensors);
    return n;
}

/* "step, similarity": the tensors of the metrics computed here. */
static void join_tensors(const struct pe_analysis *study, char *out, size_t room)
{
    uint32_t all = 0;
    size_t n = 0;
    for (size_t e = 0; e < study->n_subjects; e++)
        all |= study->metrics[e];
    *out = '\0';
    for (size_t m = 0; m < pe_n_metrics(); m++)
        for (size_t t = 0; all >> m & 1 && t < count_rows(pe_metric_at(m)->tensors) && n < room; t++)
            n += (size_t)snprintf(out + n, room - n, "%s%s", n ? ", " : "", pe_metric_at(m)->tensors[t].name);
}

static enum pe_status unknown_output(const struct pe_analysis *study, size_t i, struct pe_failure *err)
{
    const char *names[64], *name = study->request->outputs[i];
    char pointer[32], list[PE_DETAIL_MAX / 2];
    size_t n = 0;
    for (size_t m = 0; m < pe_n_metrics(); m++)
        for (size_t t = 0; t < count_rows(pe_metric_at(m)->tensors) && n < 63; t++)
            names[n++] = pe_metric_at(m)->tensors[t].name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    snprintf(pointer, sizeof pointer, "/outputs/%zu", i);
    join_tensors(study, list, sizeof list);
    if (nearest && strcmp(nearest, name) == 0)
        return pe_fail(err, pointer, "the metrics computed here have no tensor \"%s\"; they have: %s", name,
                       *list ? list : pe_text("none"));
    if (nearest)
        return pe_fail(err, pointer, "unknown tensor \"%.64s\"; nearest: \"%s\"", name, nearest);
    pe_fail(err, pointer, "unknown tensor \"%.64s\"", name);
    return pe_advise(err, PE_LIST_TENSORS, NULL);
}

/* In the order of outputs if the request lists them, else entry by entry. */
enum pe_status pe_study_tensors(struct pe_analysis *study, struct pe_failure *err)
{
    const struct pe_analysis_request *request = study->request;
    study->tensors = calloc(study->n_subjects * count_all() + 1, sizeof *study->tensors);
    if (!study->tensors)
        return pe_no_memory(err);
    for (size_t e = 0; !request->outputs && e < study->n_subjects; e++)
        for (size_t m = 0; m < pe_n_metrics(); m++)
            add_of_metric(study, e, m, NULL);
    for (size_t i = 0; request->outputs && i < request->n_outputs; i++) {
        size_t before = study->n_tensors;
        for (size_t e = 0; e < study->n_subjects; e++)
            for (size_t m = 0; m < pe_n_metrics(); m++)
                add_of_metric(study, e, m, request->outputs[i]);
        if (study->n_tensors == before)
            return unknown_output(study, i, err);
    }
    return PE_OK;
}

/* ---- Memory ---- */

double pe_study_tensor_bytes(const struct pe_analysis *study)
{
    double bytes = 0;
    for (size_t i = 0; i < study->n_tensors; i++)
        bytes += (double)count(&study->tensors[i]) * sizeof(double);
    return bytes;
}

enum pe_status pe_study_allocate(struct pe_analysis *study, struct pe_failure *err)
{
    study->answered = calloc(study->n_tensors + 1, sizeof *study->answered);
    if (!study->answered)
        return pe_no_memory(err);
    for (size_t i = 0; i < study->n_tensors; i++) {
        struct pe_study_tensor *t = &study->tensors[i];
        t->data = calloc(count(t) + 1, sizeof *t->data);
        if (!t->data)
            return pe_no_memory(err);
    }
    return PE_OK;
}

/* The number of a bias's rows is known only once it is computed, because a query may not see every key: the tensors may
 * become shorter than their memory. */
void pe_study_reshape(struct pe_analysis *study, const struct pe_subject *subject)
{
    for (size_t i = 0; i < study->n_tensors; i++)
        if (study->tensors[i].entry == subject->index)
            set_shape(study, &study->tensors[i]);
}

void pe_study_answer_tensors(struct pe_analysis *study)
{
    for (size_t i = 0; i < study->n_tensors; i++) {
        const struct pe_study_tensor *t = &study->tensors[i];
        struct pe_tensor tensor = {.dtype = PE_F64, .rank = t->rank, .data = t->data};
        memcpy(tensor.shape, t->shape, sizeof t->shape);
        study->answered[i] = (struct pe_named_tensor){t->name, tensor};
    }
}

void pe_study_drop_tensors(struct pe_analysis *study)
{
    for (size_t i = 0; i < study->n_tensors; i++)
        free(study->tensors[i].data);
    free(study->tensors);
    free(study->answered);
}
