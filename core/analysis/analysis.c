/* POST /analyze in the core: plans every configuration, checks every limit, then computes the metrics entry by entry.
 */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

static bool has(const struct pe_analysis *study, size_t entry, size_t m) { return study->metrics[entry] >> m & 1; }

/* ---- Limits ---- */

static bool needs_rows(const struct pe_analysis *study, size_t entry)
{
    for (size_t m = 0; m < pe_n_metrics(); m++)
        if (has(study, entry, m) && pe_metric_get(m)->needs_rows)
            return true;
    return false;
}

static double rows_bytes(const struct pe_analysis *study, size_t entry)
{
    const struct pe_subject *subject = &study->subjects[entry];
    if (!needs_rows(study, entry))
        return 0;
    return ((double)subject->dim + 4) * (double)subject->n_rows * sizeof(double);
}

/* The subject's plan, that of its ladder and that of its rows; and the rows. Metrics count the plans that they make. */
static double rows_work(const struct pe_analysis *study, size_t entry)
{
    const struct pe_subject *subject = &study->subjects[entry];
    bool loads = needs_rows(study, entry);
    double n_plans = 1 + (subject->ladder.n > 0) + loads;
    double numbers = loads ? (double)subject->n_rows * (double)subject->dim : 0;
    return n_plans * pe_planning_work(subject) + pe_numbers_work(subject, numbers) +
           pe_reach_work(subject, pe_positions_last(subject->plan->seq.k) + 1);
}

/* The work of all metrics, and the most memory that one entry needs at a time. */
static void add_costs(const struct pe_analysis *study, size_t entry, struct pe_metric_cost *all)
{
    const struct pe_subject *subject = &study->subjects[entry];
    double scratch = 0;
    for (size_t m = 0; m < pe_n_metrics(); m++) {
        struct pe_metric_cost cost = {0, 0};
        if (!has(study, entry, m))
            continue;
        pe_metric_get(m)->cost(study, subject, &cost);
        all->work += cost.work;
        scratch = fmax(scratch, cost.bytes);
    }
    all->bytes = fmax(all->bytes, scratch + rows_bytes(study, entry));
    all->work += rows_work(study, entry);
}

static enum pe_status check_tensors(const struct pe_analysis *study, struct pe_failure *err)
{
    double bytes = pe_study_tensor_bytes(study);
    if (bytes <= (double)PE_ANALYSIS_TENSORS_MAX)
        return PE_OK;
    pe_fail(err, study->request->outputs ? "/outputs" : "",
            "the tensors of the analysis have %.0f bytes; allowed: at most %llu", bytes, PE_ANALYSIS_TENSORS_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status check_limits(struct pe_analysis *study, struct pe_failure *err)
{
    enum { ANSWER_BYTES = 1 << 16 };
    struct pe_metric_cost all = {0, 0};
    for (size_t i = 0; i < study->n_subjects; i++)
        add_costs(study, i, &all);
    if (all.work > study->request->max_work) {
        pe_fail(err, "", "the analysis takes %.3g multiply-adds; allowed: at most %.3g", all.work,
                study->request->max_work);
        err->status = PE_TOO_LARGE;
        return pe_advise(err, PE_RAISE_ANALYSIS, NULL);
    }
    study->bytes = all.bytes + pe_study_tensor_bytes(study) + ANSWER_BYTES;
    enum pe_status status = check_tensors(study, err);
    return status ? status : pe_study_admit(study, 0, err);
}

/* ---- Opening ---- */

static enum pe_status open_all(struct pe_analysis *study, struct pe_failure *err)
{
    enum pe_status status = pe_study_read(study, err);
    for (; !status && study->n_subjects < study->request->n_entries; study->n_subjects++)
        status = pe_subject_init(study, study->n_subjects, err);
    if (!status)
        status = pe_study_choose(study, err);
    if (!status)
        status = pe_study_check(study, err);
    if (!status)
        status = pe_study_tensors(study, err);
    if (!status)
        status = check_limits(study, err);
    if (status)
        return status;
    study->configs = pe_values_new();
    if (!study->configs)
        return pe_no_memory(err);
    struct pe_node *list = pe_put_list(pe_values_root(study->configs), "configs");
    for (size_t i = 0; i < study->n_subjects; i++)
        pe_put_value(list, NULL, pe_plan_config(study->subjects[i].plan));
    const struct pe_value *done = pe_values_done(study->configs);
    study->config_list = done ? &done->object.fields[0].value : NULL;
    return done ? PE_OK : pe_no_memory(err);
}

enum pe_status pe_analysis_open(const struct pe_analysis_request *request, struct pe_analysis **out,
                                struct pe_failure *err)
{
    struct pe_analysis *study = calloc(1, sizeof *study);
    if (!study)
        return pe_no_memory(err);
    study->request = request;
    enum pe_status status = open_all(study, err);
    if (status)
        pe_analysis_free(study);
    else
        *out = study;
    return status;
}

/* ---- Computing ---- */

static void report(const struct pe_analysis *study, const char *metric)
{
    if (study->request->step)
        study->request->step(study->request->caller, metric);
}

/* What every metric states; further members depend on the metric. */
static const struct pe_member frequencies[] = {
    {.name = "max_rel", .types = "number", .summary = "the largest difference, as a share of the first"},
    {.name = "pair", .types = "integer"},
    {.name = NULL},
};

static const struct pe_member layers_apart[] = {
    {.name = "found", .types = "string", .summary = "layers of the kind in the first configuration, as ranges"},
    {.name = "taken", .types = "string", .summary = "in this one"},
    {.name = "differ", .types = "integer", .summary = "layers that have the kind in one of the two only"},
    {.name = "of", .types = "integer", .summary = "layers that were compared"},
    {.name = NULL},
};

static const char *const verdicts[] = {"same", "rounding", "differs", NULL};

const struct pe_member pe_result_members[] = {
    {.name = "value", .summary = "the headline; null: there is none"},
    {.name = "witness", .summary = "where it is, in rows or distances; null: nowhere"},
    {.name = "permutation",
     .types = "string|null",
     .summary = "difference: the converter's order of rows that was undone, half_to_interleaved; null: none",
     .is_optional = true},
    {.name = "frequencies",
     .types = "object|null",
     .summary = "difference: how far they are apart; null: they are not as many, or there are none",
     .members = frequencies,
     .is_optional = true},
    {.name = "verdict",
     .types = "string",
     .summary = "difference: all numbers are equal; frequencies and factors are within 2^-22; neither",
     .words = verdicts,
     .is_optional = true},
    {.name = "length",
     .types = "integer|null",
     .summary = "difference: a scaling depends on the length of the sequence, and the verdict is about sequences as "
                "long as this one; null: about all",
     .is_optional = true},
    {.name = "reasons",
     .types = "array",
     .summary = "difference: fields that are unequal and matter",
     .items = "string",
     .is_optional = true},
    {.name = "layers",
     .types = "object",
     .summary = "difference: which layers have the kind, if other layers have it in the first configuration",
     .members = layers_apart,
     .is_optional = true},
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};

/* A bias whose masks hide every key has no rows. */
static enum pe_status put_nothing(const struct pe_analysis *study, struct pe_node *out)
{
    static const char detail[] = "No query sees a key, so there are no rows.";
    pe_put_null(out, "value");
    pe_put_null(out, "witness");
    pe_put_detail(out, study->request->lang, detail);
    return PE_OK;
}

static enum pe_status compute_metric(struct pe_analysis *study, size_t entry, size_t m, struct pe_node *result,
                                     struct pe_failure *err)
{
    if (pe_metric_get(m)->needs_rows && study->subjects[entry].rows.n == 0)
        return put_nothing(study, pe_put_object(result, pe_metric_get(m)->info.name));
    report(study, pe_metric_get(m)->info.name);
    enum pe_status status = pe_metric_get(m)->compute(study, &study->subjects[entry],
                                                      pe_put_object(result, pe_metric_get(m)->info.name), err);
    report(study, NULL);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

static enum pe_status load(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err)
{
    enum pe_status status = pe_subject_load(study, subject, err);
    if (status)
        return status;
    subject->n_rows = subject->rows.n;
    pe_study_reshape(study, subject);
    return PE_OK;
}

static enum pe_status compute_entry(struct pe_analysis *study, size_t entry, struct pe_node *result,
                                    struct pe_failure *err)
{
    struct pe_subject *subject = &study->subjects[entry];
    enum pe_status status = needs_rows(study, entry) ? load(study, subject, err) : PE_OK;
    for (size_t m = 0; !status && m < pe_n_metrics(); m++)
        if (has(study, entry, m))
            status = compute_metric(study, entry, m, result, err);
    pe_rows_drop(&subject->rows);
    return status;
}

const struct pe_member pe_analysis_members[] = {
    {.name = "configs", .types = "array", .items = "object"},
    {.name = "results", .types = "array", .items = "object", .list = PE_METRICS},
    {.name = "tensors", .types = "object", .list = PE_TENSORS}, /* which the caller prints */
    {.name = NULL},
};

enum pe_status pe_analysis_compute(struct pe_analysis *study, struct pe_failure *err)
{
    study->values = pe_values_new();
    enum pe_status status = study->values ? pe_study_allocate(study, err) : pe_no_memory(err);
    if (status)
        return status;
    struct pe_node *root = pe_values_root(study->values);
    pe_put_value(root, "configs", study->config_list);
    struct pe_node *results = pe_put_list(root, "results");
    status = PE_OK;
    for (size_t i = 0; !status && i < study->n_subjects; i++)
        status = compute_entry(study, i, pe_put_object(results, NULL), err);
    if (status)
        return status;
    study->answer = pe_values_done(study->values);
    pe_study_answer_tensors(study);
    return study->answer ? PE_OK : pe_no_memory(err);
}

enum pe_status pe_analysis_new(const struct pe_analysis_request *request, struct pe_analysis **analysis,
                               struct pe_failure *err)
{
    struct pe_analysis *study;
    enum pe_status status = pe_analysis_open(request, &study, err);
    if (status)
        return status;
    status = pe_analysis_compute(study, err);
    if (status)
        pe_analysis_free(study);
    else
        *analysis = study;
    return status;
}

void pe_analysis_settle(struct pe_analysis *study)
{
    for (size_t i = 0; i < PE_ENTRIES_MAX; i++) {
        pe_subject_drop(&study->subjects[i]);
        study->subjects[i] = (struct pe_subject){0};
    }
    pe_values_free(study->values);
    pe_values_free(study->configs);
    study->values = study->configs = NULL;
    study->answer = study->config_list = NULL;
}

void pe_analysis_free(struct pe_analysis *study)
{
    if (!study)
        return;
    pe_analysis_settle(study);
    pe_study_drop_tensors(study);
    free(study);
}

/* ---- The answer ---- */

const struct pe_value *pe_analysis_answer(const struct pe_analysis *study) { return study->answer; }

const struct pe_value *pe_analysis_configs(const struct pe_analysis *study) { return study->config_list; }

bool pe_analysis_is_of_kernels(const struct pe_analysis *study)
{
    for (size_t i = 0; i < study->n_subjects; i++)
        for (size_t m = 0; m < pe_n_metrics(); m++)
            if (has(study, i, m) && pe_metric_get(m)->is_of_kernels)
                return true;
    return false;
}

size_t pe_analysis_n_tensors(const struct pe_analysis *study) { return study->n_tensors; }

const struct pe_named_tensor *pe_analysis_tensor(const struct pe_analysis *study, size_t i)
{
    return &study->answered[i];
}
