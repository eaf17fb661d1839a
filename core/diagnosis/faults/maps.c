/* Sizes measured on maps of queries and keys (biases). */
#include "core/diagnosis/diagnosis.h"

/* The sample as the edit predicts it: in sample.expected. */
static bool predict(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_sample *s = &d->sample;
    struct pe_model *model;
    struct pe_error err;
    enum pe_status status = pe_model_new(d, edit, &model, &err);
    d->no_memory |= status == PE_NO_MEMORY;
    if (status)
        return false;
    for (size_t i = 0; i < s->n_pieces && !pe_is_cancelled(); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(model, p->t, p->row, p->col0, p->n, s->expected + p->at);
    }
    pe_model_free(model);
    return true;
}

/* ---- One factor ---- */

/* The shortest factor that explains every number by its own rounding. A mean would be too coarse in f64. */
static bool common_factor(const struct pe_diagnosis *d, enum pe_dtype dtype, double *factor)
{
    const struct pe_sample *s = &d->sample;
    struct pe_ratio ratio;
    pe_ratio_init(&ratio);
    return pe_ratio_add(&ratio, s->found, s->expected, s->n, pe_roundoff(dtype)) && pe_ratio_choose(&ratio, factor);
}

double pe_map_factor(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    double factor = 1;
    bool is_narrow = d->evidence.narrow != PE_DTYPE_NONE;
    if (!predict(d, edit))
        return 1;
    if (!common_factor(d, d->evidence.dtype, &factor) && is_narrow)
        common_factor(d, d->evidence.narrow, &factor);
    return isfinite(factor) && factor != 0 ? factor : 1;
}

/* ---- A row of zeros ---- */

static uint64_t n_queries(const struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    return t->rank > 1 ? t->shape[t->rank - 2] : 1;
}

enum { COLUMNS = 64 };

static bool are_zero(const double *found, size_t n)
{
    for (size_t j = 0; j < n; j++)
        if (found[j] != 0)
            return false;
    return true;
}

/* A mask may be missing too, so hidden keys do not count, unless all are hidden. */
static bool should_be_zero(const double *expected, size_t n)
{
    size_t n_finite = 0;
    for (size_t j = 0; j < n; j++) {
        n_finite += !isinf(expected[j]);
        if (!isinf(expected[j]) && expected[j] != 0)
            return false;
    }
    return n_finite > 0;
}

/* Is the row of this query zero in every head, where the model has something else? */
static bool is_odd_row(const struct pe_diagnosis *d, const struct pe_model *model, uint64_t query)
{
    const struct pe_evidence *e = &d->evidence;
    double found[COLUMNS], expected[COLUMNS];
    size_t n = e->row_len < COLUMNS ? (size_t)e->row_len : COLUMNS;
    bool should_be = true;
    for (uint64_t row = query; row < e->n_rows; row += n_queries(d)) {
        pe_evidence_read(e, 0, row, 0, n, found);
        if (!are_zero(found, n))
            return false;
        pe_model_fill(model, 0, row, 0, n, expected);
        should_be = should_be && should_be_zero(expected, n);
    }
    return !should_be;
}

int64_t pe_map_zero_row(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    struct pe_model *model;
    struct pe_error err;
    int64_t found = -1;
    enum pe_status status = pe_model_new(d, edit, &model, &err);
    d->no_memory |= status == PE_NO_MEMORY;
    if (status)
        return -1;
    for (uint64_t query = 0; query < n_queries(d) && found < 0 && !pe_is_cancelled(); query++)
        found = is_odd_row(d, model, query) ? (int64_t)query : -1;
    pe_model_free(model);
    return found;
}
