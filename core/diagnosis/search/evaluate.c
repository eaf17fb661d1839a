/* One hypothesis against the sample: a first look at a few hundred numbers, and the rest only if it may still fit or be
 * near.
 *
 * A wrong configuration is wrong nearly everywhere, so a small look refuses nine hypotheses of ten; the sample
 * (evidence/evidence.c) is ordered so that the look has first and last rows, where mistakes show. A verdict of "fits
 * but for roundings" needs the phases too, since a table computed in float32 is wrong in proportion to its angles; they
 * cost as much as the numbers, so they are computed only where the verdict may depend on them. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

/* Beyond this share, numbers of the first look are so wrong that the whole tensor is not near either. */
#define HOPELESS_SHARE (4 * PE_NEAR_SHARE)

struct look {
    size_t first, end; /* pieces */
};

static void fill(const struct pe_sample *s, const struct pe_model *m, struct look look)
{
    for (size_t i = look.first; i < look.end && !pe_is_cancelled(); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, s->expected + p->at);
    }
}

static void fill_phases(const struct pe_sample *s, const struct pe_model *m, struct look look)
{
    for (size_t i = look.first; i < look.end && !pe_is_cancelled(); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_phases(m, p->t, p->row, p->col0, p->n, s->phase + p->at);
    }
}

/* Do the predicted numbers need more bits than the narrow dtype that all numbers found fit? Then the numbers found are
 * rounded ones (table_dtype). */
static bool is_wider(const struct pe_evidence *e, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = pe_round_to(e->dtype, expected[i]);
        if (isfinite(x) && pe_round_to(e->narrow, x) != x)
            return true;
    }
    return false;
}

/* Does the verdict depend on phases? Not if some number is beyond all tolerance, or all are near. */
static bool depends_on_phases(const struct pe_judge *j, const double *found, const double *expected, size_t n)
{
    double most = pe_rounding_most(j);
    if (pe_judge_is_relative(j) || j->id == PE_OF_BIAS || j->u == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (fabs(found[i] - expected[i]) > most)
            return false;
    return pe_judge_needs_phases(j, found, expected, n);
}

static void add(const struct pe_sample *s, const struct pe_model *m, struct look look, struct pe_tally *tally)
{
    if (look.first == look.end)
        return;
    size_t at = s->pieces[look.first].at, end = s->pieces[look.end - 1].at + s->pieces[look.end - 1].n;
    bool phased = tally->is_rounding && depends_on_phases(&tally->judge, s->found + at, s->expected + at, end - at);
    if (phased)
        fill_phases(s, m, look);
    pe_tally_add(tally, s->found + at, s->expected + at, phased ? s->phase + at : NULL, end - at);
}

static bool is_hopeless(const struct pe_tally *t)
{
    return t->has_infinity_elsewhere ||
           (!t->is_rounding && t->sum_error2 > HOPELESS_SHARE * HOPELESS_SHARE * t->sum_found2);
}

struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model)
{
    const struct pe_sample *s = &d->sample;
    const struct pe_evidence *e = &d->evidence;
    struct look first = {0, s->n_first}, rest = {s->n_first, s->n_pieces};
    struct pe_tally tally;
    fill(s, model, first);
    bool is_ladder = e->kind->id == PE_OF_LADDER, is_narrow = e->narrow != PE_DTYPE_NONE;
    bool narrow = is_ladder ? pe_model_is_cast(model) : is_narrow && is_wider(e, s->expected, s->n_first_numbers);
    struct pe_judge judge = pe_judge_of(e, narrow);
    pe_tally_init(&tally, &judge);
    add(s, model, first, &tally);
    struct pe_score score = {.max_error = tally.max_error, .first_error = tally.max_error, .verdict = PE_NO_FIT};
    if (is_hopeless(&tally))
        return score;
    fill(s, model, rest);
    add(s, model, rest, &tally);
    score.max_error = tally.max_error;
    score.verdict = pe_tally_verdict(&tally);
    return score;
}
