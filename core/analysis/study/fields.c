/* The fields of an analysis: rows, rules, and which metrics are asked for. */
#include "core/analysis/study/study.h"

#include <stdio.h>
#include <string.h>

static const char *const pairings[] = {"paired", "sin", "cos", "mismatched", "repeated", "flipped", "shifted", NULL};

static const struct pe_param rows[] = {
    PE_P_VALUE(pe_analysis_fields, metrics, "metrics", "names of metrics, each once; default all that apply"),
    PE_P_REALS(pe_analysis_fields, k, 1, PE_ANALYSED_POSITIONS_MAX, "shifts",
               "shift: the distances, integers below the number of positions; default [1]"),
    PE_P_INT(pe_analysis_fields, train_len, PE_UNSET, 1, PE_POSITION_MAX, "training length",
             "length in training; default the original length of the scaling, else the number of positions"),
    PE_P_INT(pe_analysis_fields, eval_len, PE_UNSET, 1, PE_POSITION_MAX, "evaluation length",
             "extrapolation: length in evaluation, at least train_len; default twice train_len"),
    PE_P_INT(pe_analysis_fields, seed, 0, 0, 0x1p53, "seed", "extrapolation: seed of the queries and keys"),
    PE_P_REAL(pe_analysis_fields, tolerance, 1e-6, 0, 1e300, "tolerance",
              "difference: `first` is the first row beyond it"),
    PE_P_VALUE(pe_analysis_fields, recipes, "recipes",
               "precision: names of recipes f32, f32_bf16, bf16_inv_freq, f16_inv_freq, bf16, ggml (of rope as ggml "
               "computes it); "
               "default all that apply"),
    PE_P_VALUE(
        pe_analysis_fields, dtypes, "stored dtypes",
        "norms, collisions: element types of the stored numbers, of f64, f32, f16, bf16, f8_e4m3, f8_e5m2; default "
        "f64, f32, f16, bf16 for norms and f32, f16, bf16 for collisions"),
    PE_P_WORD(
        pe_analysis_fields, pairing, pairings, "columns compared",
        "similarity of sinusoids: paired: all columns; sin, cos: those columns; mismatched: cosines of other_base; "
        "cosines of other pairs: repeated (the first half of the frequencies twice), flipped (the last pair's first, "
        "which changes no product), shifted (those of the next pair; the last keeps its own)"),
    PE_P_REAL(pe_analysis_fields, other_base, PE_UNSET, 1e-3, 1e12, "other base",
              "similarity: wavelength base of the cosines under pairing mismatched"),
    PE_P_END,
};

const struct pe_param *pe_analysis_params(void) { return rows; }

/* ---- Which metrics ---- */

static size_t find_metric(const char *name)
{
    size_t m = 0;
    while (m < pe_n_metrics() && strcmp(pe_metric_at(m)->name, name) != 0)
        m++;
    return m;
}

static enum pe_status unknown_metric(const char *name, const char *pointer, struct pe_failure *err)
{
    const char *names[32];
    size_t n = pe_n_metrics();
    for (size_t m = 0; m < n; m++)
        names[m] = pe_metric_at(m)->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(err, pointer, "unknown metric \"%.64s\"; nearest: \"%s\"", name, nearest);
    pe_fail(err, pointer, "unknown metric \"%.64s\"", name);
    return pe_advise(err, PE_LIST_METRICS, NULL);
}

/* Adds metric m to every entry that it applies to. */
static bool add_metric(struct pe_analysis *study, size_t m)
{
    bool is_used = false;
    for (size_t i = 0; i < study->n_subjects; i++) {
        if (!pe_metric_get(m)->applies(study, &study->subjects[i]))
            continue;
        study->metrics[i] |= UINT32_C(1) << m;
        is_used = true;
    }
    return is_used;
}

static enum pe_status add_named(struct pe_analysis *study, const struct pe_value *item, size_t i, uint32_t *named,
                                struct pe_failure *err)
{
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/metrics/%zu", i);
    if (item->kind != PE_STRING)
        return pe_fail(err, pointer, "metrics must be a list of names, for instance [\"unique\",\"bounds\"]");
    size_t m = find_metric(item->string);
    if (m == pe_n_metrics())
        return unknown_metric(item->string, pointer, err);
    if (*named >> m & 1)
        return pe_fail(err, pointer, "metrics names \"%s\" twice", item->string);
    *named |= UINT32_C(1) << m;
    if (add_metric(study, m))
        return PE_OK;
    return pe_fail(err, pointer, "%s applies to none of the configurations; it applies to %s", item->string,
                   pe_text(pe_metric_at(m)->applies_to));
}

enum pe_status pe_study_choose(struct pe_analysis *study, struct pe_failure *err)
{
    const struct pe_value *metrics = study->fields.metrics;
    uint32_t named = 0;
    enum pe_status status = PE_OK;
    if (!metrics) {
        for (size_t m = 0; m < pe_n_metrics(); m++)
            add_metric(study, m);
        return PE_OK;
    }
    if (metrics->kind != PE_LIST || metrics->list.n == 0)
        return pe_fail(err, "/metrics", "metrics must be a list of names, for instance [\"unique\",\"bounds\"]");
    for (size_t i = 0; !status && i < metrics->list.n; i++)
        status = add_named(study, &metrics->list.items[i], i, &named, err);
    return status;
}

/* ---- Fields that no chosen metric uses ---- */

static uint32_t chosen(const struct pe_analysis *study)
{
    uint32_t all = 0;
    for (size_t i = 0; i < study->n_subjects; i++)
        all |= study->metrics[i];
    return all;
}

static enum pe_status unused(const char *name, struct pe_failure *err)
{
    char users[PE_DETAIL_MAX / 2] = "";
    for (size_t m = 0; m < pe_n_metrics(); m++)
        if (pe_is_among(pe_metric_at(m)->params, name))
            snprintf(users + strlen(users), sizeof users - strlen(users), "%s%s", *users ? ", " : "",
                     pe_metric_at(m)->name);
    return pe_fail_at(err, "", name, "%s is used by %s, and no such metric is computed here", name, users);
}

/* Whether a configuration has a field of that name too, as a scheme with seeded weights has `seed`. */
static bool is_of_entry(const struct pe_analysis *study, const char *name)
{
    for (size_t i = 0; i < study->n_subjects; i++) {
        const struct pe_entry *entry = study->subjects[i].entry;
        if (pe_request_has(&(struct pe_request){.fields = entry->fields, .n_fields = entry->n_fields}, name))
            return true;
    }
    return false;
}

static enum pe_status check_used(const struct pe_analysis *study, struct pe_failure *err)
{
    uint32_t all = chosen(study);
    for (size_t i = 0; i < study->request->n_fields; i++) {
        const char *name = study->request->fields[i].name;
        bool is_used = strcmp(name, "metrics") == 0 || is_of_entry(study, name);
        for (size_t m = 0; m < pe_n_metrics() && !is_used; m++)
            is_used = (all >> m & 1) && pe_is_among(pe_metric_at(m)->params, name);
        if (!is_used)
            return unused(name, err);
    }
    return PE_OK;
}

/* ---- The whole ---- */

enum pe_status pe_study_read(struct pe_analysis *study, struct pe_failure *err)
{
    const struct pe_analysis_request *request = study->request;
    bool taken[PE_FIELDS_MAX] = {false};
    return pe_params_read(rows, &study->fields, request->fields, request->n_fields, taken, "", err);
}

enum pe_status pe_study_check(const struct pe_analysis *study, struct pe_failure *err)
{
    enum pe_status status = check_used(study, err);
    for (size_t i = 0; !status && i < study->n_subjects; i++)
        for (size_t m = 0; !status && m < pe_n_metrics(); m++)
            if ((study->metrics[i] >> m & 1) && pe_metric_get(m)->check)
                status = pe_metric_get(m)->check(study, &study->subjects[i], err);
    return status;
}
