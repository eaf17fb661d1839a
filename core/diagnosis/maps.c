/* Sizes measured on maps of queries and keys (biases). */
#include "core/diagnosis/maps.h"
#include "core/diagnosis/judge.h"
#include "core/diagnosis/ratio.h"

/* The sample as the edit predicts it: in sample.expected. */
static bool predict(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_sample *s = &d->sample;
    struct pe_model *model;
    struct pe_error err;
    if (pe_model_new(d, edit, &model, &err))
        return false;
    for (size_t i = 0; i < s->n_pieces; i++) {
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

struct row_tally {
    bool is_zero, should_be;
};

static uint64_t n_positions(const struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    return t->rank > 1 ? t->shape[t->rank - 2] : 1;
}

enum { COLUMNS = 64 };

/* Is the row zero in every head and tensor, where the model has something else? */
static void look_at_row(const struct pe_diagnosis *d, const struct pe_model *model, uint64_t row, struct row_tally *r)
{
    const struct pe_evidence *e = &d->evidence;
    double found[COLUMNS], expected[COLUMNS];
    size_t n = e->row_len < COLUMNS ? (size_t)e->row_len : COLUMNS;
    *r = (struct row_tally){.is_zero = true, .should_be = true};
    for (size_t t = 0; t < e->n_tensors && r->is_zero; t++)
        for (uint64_t i = row; i < e->n_rows && r->is_zero; i += n_positions(d)) {
            pe_evidence_read(e, t, i, 0, n, found);
            for (size_t j = 0; j < n; j++)
                r->is_zero = r->is_zero && found[j] == 0;
            if (r->is_zero)
                pe_model_fill(model, t, i, 0, n, expected);
            for (size_t j = 0; r->is_zero && j < n; j++)
                r->should_be = r->should_be && expected[j] == 0;
        }
}

int64_t pe_map_zero_row(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    struct pe_model *model;
    struct pe_error err;
    struct row_tally r;
    int64_t found = -1;
    if (pe_model_new(d, edit, &model, &err))
        return -1;
    for (uint64_t row = 0; row < n_positions(d) && found < 0; row++) {
        if (row % 64 == 0 && pe_is_cancelled())
            break;
        look_at_row(d, model, row, &r);
        found = r.is_zero && !r.should_be ? (int64_t)row : -1;
    }
    pe_model_free(model);
    return found;
}
