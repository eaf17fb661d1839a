/* Faults of size: factors, masks of other values, tables resized otherwise. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The faults ---- */

#define OF_ROTARY (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED))
#define OF_REALS (OF_ROTARY | PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(LADDER))

static bool no_factor(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    if (d->belief.model->columns && d->belief.model->columns[0].ah == 1 && !pe_edit_value(d, edit, "scaling"))
        return false;
    pe_edit_set_real(edit, "attention_factor", 1);
    return true;
}

const struct pe_fault pe_fault_attention_factor_missing = {
    FAULT_TEXT("attention_factor_missing", "size", SIZE, 1, "missing attention factor",
               "Cosines and sines lack the attention factor.",
               "Cosines and sines lack the attention factor {believed}."),
    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .not_of = PE_EVIDENCE_BIT(ANGLES),
    .n_alternatives = 1,
    .apply = no_factor,
    .cures = pe_cures_factor};

/* ---- Factors that are fitted ---- */

/* Sums over numbers that both sides have finite. */
struct products {
    long double found2, both, expected2; /* thousands of terms, and a factor good to the last bit */
    size_t n;
};

static void add_products(struct products *sum, const double *found, const double *expected, const double *use, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(found[i]) || !isfinite(expected[i]) || (use && use[i] == 0))
            continue;
        sum->found2 += (long double)found[i] * (long double)found[i];
        sum->both += (long double)found[i] * (long double)expected[i];
        sum->expected2 += (long double)expected[i] * (long double)expected[i];
        sum->n++;
    }
}

/* Are the numbers so unlike that no factor makes them equal? */
static bool are_unlike(const struct products *s, long double least)
{
    return s->both * s->both < least * s->found2 * s->expected2;
}

/* Of the first look most numbers must be alike, or the others are not worth predicting. */
#define FIRST_ALIKE 0.5L

/* only_rotated: without channels that pass by. */
static bool sum_products(struct pe_diagnosis *d, struct pe_edit *edit, bool only_rotated, struct products *sum)
{
    struct pe_sample *s = &d->sample;
    struct pe_model *m;
    *sum = (struct products){0, 0, 0, 0};
    if (!pe_edit_model(d, edit, &m))
        return false;
    for (size_t i = 0; i < s->n_pieces && (i < s->n_first || sum->n < 4096) && !pe_is_cancelled(); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, s->expected + p->at);
        if (only_rotated)
            pe_rotated_channels(m, p->col0, p->n, s->phase + p->at);
        add_products(sum, s->found + p->at, s->expected + p->at, only_rotated ? s->phase + p->at : NULL, p->n);
        if (i + 1 == s->n_first && are_unlike(sum, FIRST_ALIKE))
            break;
    }
    pe_model_free(m);
    return sum->n > 0 && sum->expected2 > 0 && sum->found2 > 0;
}

/* The factor by which found is larger than expected, and how well it is known, relatively; 1: there is none, or they
 * are not alike. */
struct factor {
    double x, error;
};

static struct factor factor_of(struct pe_diagnosis *d, struct pe_edit *edit, bool only_rotated)
{
    struct products s;
    if (!sum_products(d, edit, only_rotated, &s) || are_unlike(&s, 0.95L))
        return (struct factor){1, 0};
    struct factor f = {(double)(s.both / s.expected2),
                       fmax(2 * pe_evidence_noise(&d->evidence) / sqrt((double)s.n), 0x1p-52)};
    return fabs(f.x - 1) <= 2 * f.error ? (struct factor){1, 0} : f;
}

/* Where all numbers are turned, one factor of all is an attention_factor. */
static bool is_whole(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    int64_t head_dim = pe_edit_integer(d, edit, "head_dim", 0);
    return d->evidence.kind->id == PE_OF_TABLES ||
           (d->evidence.kind->id == PE_OF_ROTATED && pe_edit_integer(d, edit, "rotary_dim", head_dim) == head_dim);
}

/* Is it a factor of another kind, as the softmax scale is, which somebody has folded in? */
static bool is_of_another_kind(const struct pe_diagnosis *d, double factor)
{
    const char *meaning = pe_factor_meaning(d, factor);
    return meaning && !strstr(meaning, "attention_factor");
}

static bool other_factor(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct pe_model *m;
    struct factor f = factor_of(d, edit, d->evidence.kind->id == PE_OF_ROTATED);
    (void)i;
    if (f.x == 1 || f.x <= 0 || (is_whole(d, edit) && is_of_another_kind(d, f.x)) || !pe_edit_model(d, edit, &m))
        return false;
    double now = m->columns ? m->columns[0].ah : 1;
    pe_model_free(m);
    pe_edit_set_real(edit, "attention_factor", pe_shortest_decimal(now * f.x, f.error));
    return true;
}

const struct pe_fault pe_fault_attention_factor_other = {
    FAULT_TEXT("attention_factor_other", "size", SIZE, 5, "other attention factor",
               "Cosines and sines have another attention factor.",
               "Cosines and sines have the attention factor {found}; the configuration gives {believed}."),
    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .not_of = PE_EVIDENCE_BIT(ANGLES),
    .n_alternatives = 1,
    .apply = other_factor,
    .is_factor = true,
    .reads_typed = true,
    .n_fits = 1,
    .fit_rank = 2,
    .cures = pe_cures_factor};

/* Frequencies divided by a whole number are scaled linearly. */
static bool is_scaling(const struct pe_diagnosis *d, double factor)
{
    return d->evidence.kind->id == PE_OF_LADDER && fabs(1 / factor - nearbyint(1 / factor)) < 1e-5 / factor;
}

static bool scale(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct factor f = factor_of(d, edit, false);
    double factor = pe_shortest_decimal(f.x, f.error);
    (void)i;
    bool is_attention_factor = is_whole(d, edit) && !is_of_another_kind(d, factor);
    if (factor == 1 || factor <= 0 || is_attention_factor || is_scaling(d, factor)) /* a sign is the fault `negated` */
        return false;
    edit->transforms.scaled *= factor;
    return true;
}

/* Of any factor; of one that is known. */
static const char *const of_scaled[] = {
    "All finite numbers are {found} times those of the configuration.",
    "All finite numbers are {found} times those of the configuration, which is {meaning}.",
};

const struct pe_fault pe_fault_scaled = {
    FAULT_TEXTS("scaled", "size", SIZE, 3, "scaled", "All numbers are multiplied by one factor.", of_scaled),

    .evidence = OF_REALS,
    .n_alternatives = 1,
    .apply = scale,
    .is_factor = true,
    .reads_typed = true,
    .n_fits = 1,
    .fit_rank = 2,
    .cures = pe_cures_scaled};

/* ---- Masks ---- */

/* The number found where the model has -infinity first. */
static double mask_of(const struct pe_diagnosis *d, const struct pe_model *m)
{
    const struct pe_sample *s = &d->sample;
    for (size_t i = 0; i < s->n_pieces; i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, s->expected + p->at);
        for (size_t j = p->at; j < p->at + p->n; j++)
            if (s->expected[j] == -HUGE_VAL)
                return s->found[j];
    }
    return -HUGE_VAL;
}

static bool set_mask_value(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct pe_model *m;
    (void)i;
    if (!pe_edit_model(d, edit, &m))
        return false;
    edit->transforms.mask_value = mask_of(d, m);
    pe_model_free(m);
    if (isfinite(edit->transforms.mask_value) && edit->transforms.mask_value <= -100)
        return true;
    edit->transforms.mask_value = (double)NAN;
    return false;
}

const struct pe_fault pe_fault_mask_value = {
    FAULT_TEXT("mask_value", "size", SIZE, 3, "finite mask",
               "Hidden keys have a large negative number instead of minus infinity.",
               "Hidden keys have the number {found} instead of -inf."),

    .evidence = PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(MAPS),
    .n_alternatives = 1,
    .apply = set_mask_value,
    .is_of_masks = true,
    .n_fits = 1,
    .fit_rank = 2,
    .cures = pe_cures_mask};
