/* Faults of size: factors, and rows or masks of other values. */
#include "core/diagnosis/judge.h"
#include "core/diagnosis/ratio.h"

const struct pe_fault pe_fault_attention_factor_missing = {.n_alternatives = 0};
const struct pe_fault pe_fault_attention_factor_other = {.n_alternatives = 0};

#define OF_REALS                                                                                                       \
    (PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(BIAS))

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

/* Least squares: for numbers whose errors depend on the size of others. */
static double mean_factor(const struct pe_sample *s)
{
    double products = 0, squares = 0;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->found[i]) && isfinite(s->expected[i])) {
            products += s->found[i] * s->expected[i];
            squares += s->expected[i] * s->expected[i];
        }
    return products / squares;
}

/* The shortest factor that explains every number by its own rounding. */
static bool common_factor(const struct pe_diagnosis *d, enum pe_dtype dtype, double *factor)
{
    const struct pe_sample *s = &d->sample;
    struct pe_ratio ratio;
    pe_ratio_init(&ratio);
    return pe_ratio_add(&ratio, s->found, s->expected, s->n, pe_roundoff(dtype)) && pe_ratio_choose(&ratio, factor);
}

static bool scaled(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    double factor;
    if (!predict(d, edit))
        return false;
    if (!common_factor(d, d->evidence.dtype, &factor) &&
        (d->evidence.narrow == PE_DTYPE_NONE || !common_factor(d, d->evidence.narrow, &factor)))
        factor = mean_factor(&d->sample);
    edit->transforms.scaled *= factor;
    return isfinite(factor) && factor != 0 && factor != 1 && fabs(factor) < 1e12;
}
const struct pe_fault pe_fault_scaled = {
    .evidence = OF_REALS, .n_alternatives = 1, .apply = scaled, .n_fits = 1, .fit_rank = 2};

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

static bool zero_row(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    struct pe_model *model;
    struct pe_error err;
    struct row_tally r = {false, false};
    if (pe_model_new(d, edit, &model, &err))
        return false;
    for (uint64_t row = 0; row < n_positions(d) && !(r.is_zero && !r.should_be); row++) {
        if (row % 64 == 0 && pe_is_cancelled())
            break;
        look_at_row(d, model, row, &r);
        edit->transforms.zero_row = (int64_t)row;
    }
    pe_model_free(model);
    return r.is_zero && !r.should_be;
}
const struct pe_fault pe_fault_zero_row = {
    .evidence = OF_REALS, .n_alternatives = 1, .apply = zero_row, .n_fits = 1, .fit_rank = 2};

/* ---- Finite masks ---- */

/* The number that stands where the model has -infinity; it must be the same everywhere. */
static bool mask_value(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    double value = (double)NAN;
    if (!isnan(edit->transforms.mask_value) || !predict(d, edit))
        return false;
    for (size_t i = 0; i < d->sample.n; i++) {
        double found = d->sample.found[i];
        if (!isinf(d->sample.expected[i]))
            continue;
        if (!isfinite(found) || (!isnan(value) && found != value))
            return false;
        value = found;
    }
    edit->transforms.mask_value = value;
    return !isnan(value);
}
const struct pe_fault pe_fault_mask_value = {
    .evidence = PE_EVIDENCE_BIT(BIAS), .n_alternatives = 1, .apply = mask_value, .n_fits = 1, .fit_rank = 2};
