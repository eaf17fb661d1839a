/* Ladders that the phases allow.
 *
 * Hundreds of ladders times hundreds of other faults would use up the number of hypotheses that one diagnosis may
 * evaluate. So ladders are chosen by measurement: under the pairing, width and positions of the other faults, the
 * phases of the evidence show how far each pair turns from row to row (faults/steps.c), and only ladders that agree are
 * evaluated.
 *
 * A step is known modulo one turn only, so a single fast pair agrees with many ladders; one that agrees in every pair,
 * within the error of its step, is rare. Where positions are to be fitted too, it agrees if
 * some stride, or some shift of a few rows, explains the phases. Where nothing can be read (several axes, one row)
 * every ladder is allowed, because a measurement may exclude hypotheses but must not invent evidence.
 *
 * A scaling and a base are two mistakes in one ladder, and their pairs would be thousands of plans: they are measured,
 * and tried only where there are no phases. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

/* The evidence as seen under some faults. */
struct view {
    const struct pe_reading *reading; /* NULL: it shows nothing, so every ladder is allowed */
    double stride, relative;
    /* Positions are to be fitted: a multiple of the rows, one for all rows, each for itself. */
    bool is_stride_free, is_still, is_free;
    bool same_ladders; /* single.w are its ladders */
};

/* Faults without those that are fitted: a fit depends on the ladder that is yet to be chosen. */
static struct pe_hypothesis unfitted(const struct pe_single *const *faults, unsigned n)
{
    struct pe_hypothesis h = {.n = 0};
    for (unsigned i = 0; i < n; i++)
        if (!faults[i]->is_fit) {
            h.fault[h.n] = faults[i]->fault;
            h.choice[h.n++] = faults[i]->choice;
        }
    return h;
}

static void see(struct pe_search *s, const struct pe_single *const *faults, unsigned n, const struct pe_model *m,
                struct view *view)
{
    bool is_ladder = s->d->evidence.kind->id == PE_OF_LADDER; /* its frequencies are steps */
    bool is_run = m->plan->seq.n_axes == 1 && (s->d->belief.n > 1 || is_ladder);
    *view = (struct view){.relative = pe_wave_tolerance(m), .same_ladders = true};
    view->reading = is_run ? pe_read_waves(s->d, m) : NULL;
    view->stride = is_run ? pe_model_stride(m) : 1;
    for (unsigned i = 0; i < n; i++) {
        view->same_ladders &= faults[i]->kind != PE_KIND_WIDTH && faults[i]->kind != PE_KIND_SINUSOID;
        view->is_stride_free |= faults[i]->is_fit && pe_fault_row(faults[i]->fault) == &pe_fault_position_stride;
        view->is_still |= faults[i]->is_fit && pe_fault_row(faults[i]->fault) == &pe_fault_positions_constant;
        view->is_free |= faults[i]->is_list;
    }
    view->is_still = view->is_still && view->reading && pe_is_still(view->reading);
}

/* Are the rows of a model equally far apart, and those of the evidence not? Angles of few bits may be uneven. */
static bool is_uneven(const struct view *v, const struct pe_model *m)
{
    const struct pe_positions *p = &m->plan->seq.k[0];
    if (!v->reading || v->is_free || v->relative > 1e-5 || !pe_is_uneven(v->reading))
        return false;
    for (uint64_t i = 1; i < p->n; i++)
        if (pe_position_at(p, i) - pe_position_at(p, i - 1) != v->stride)
            return false;
    return true;
}

static bool look(struct pe_search *s, const struct pe_single *const *faults, unsigned n, struct view *view)
{
    struct pe_hypothesis all = pe_combine(faults, n), h = unfitted(faults, n);
    struct pe_trial t;
    *view = (struct view){.stride = 0};
    if (!pe_search_has_pairs(s, &all))
        return false;
    pe_trial_open(s, &h, &t);
    const struct pe_model *m = t.model;
    if (m)
        see(s, faults, n, m, view);
    bool is_hopeful = m && view->stride != 0 && !is_uneven(view, m);
    pe_trial_close(&t);
    return is_hopeful;
}

#define SCORE_MIN 0.99
enum { FREE_ROWS = 6 };
enum { AGREE_WORK = 32 }; /* of a wave that a ladder has or has not */

/* Is there one position for all rows, or one stride, that explains the phases? */
static bool agrees_after_fit(const struct view *v, const double *w)
{
    if (v->is_stride_free) {
        struct pe_solved s = pe_stride_at(v->reading, w);
        return s.score > SCORE_MIN && fabs(s.x - nearbyint(s.x)) < 0.01 + 8 * s.error;
    }
    if (v->is_free) {
        for (size_t i = 0; i < FREE_ROWS && i < v->reading->n; i++)
            if (pe_shift_at(v->reading, w, NULL, i * v->reading->n / FREE_ROWS, 1).score < SCORE_MIN)
                return false;
        return true;
    }
    double *place = calloc(v->reading->n, sizeof *place);
    *v->reading->no_memory |= !place;
    bool fits = place && pe_shift_at(v->reading, w, place, 0, v->reading->n).score > SCORE_MIN;
    free(place);
    return fits;
}

static bool agrees(const struct view *v, const double *w, size_t n_waves)
{
    if (v->reading && v->reading->n_waves == n_waves && (v->is_stride_free || v->is_still || v->is_free))
        return agrees_after_fit(v, w);
    return !v->reading || v->reading->n_waves != n_waves || pe_agrees(v->reading, w, v->stride, v->relative);
}

static bool is_allowed(struct pe_search *s, const struct view *v, const struct pe_single *ladder)
{
    double w[PE_HEAD_DIM_MAX];
    s->d->work += AGREE_WORK * (double)s->n_waves;
    for (size_t k = 0; ladder->w && k < s->n_waves; k++)
        w[k] = (double)ladder->w[k];
    return !ladder->w || !v->same_ladders || agrees(v, w, s->n_waves);
}

/* In another width, the ladder is known only when it is planned. */
static void try_ladder(struct pe_search *s, const struct view *v, const struct pe_hypothesis *h, bool is_planned)
{
    struct pe_trial t;
    double w[PE_HEAD_DIM_MAX];
    if (!pe_search_goes_on(s))
        return;
    pe_trial_open(s, h, &t);
    size_t n = t.model ? pe_wave_count(t.model) : 0;
    bool is_known = is_planned && n > 0 && n <= PE_HEAD_DIM_MAX;
    if (is_known)
        pe_wave_frequencies(t.model, n, w);
    if (t.model && (!is_known || agrees(v, w, n)))
        pe_search_judge(s, h, &t);
    pe_trial_close(&t);
}

/* These faults, and each ladder that agrees with the phases. */
void pe_search_ladders(struct pe_search *s, const struct pe_single **faults, unsigned n)
{
    struct view view;
    if (!pe_search_goes_on(s) || !look(s, faults, n, &view))
        return;
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++) {
        const struct pe_single *ladder = &s->singles[i];
        if (ladder->kind != PE_KIND_LADDER || ladder->is_list || !is_allowed(s, &view, ladder))
            continue;
        faults[n] = ladder;
        struct pe_hypothesis h = pe_combine(faults, n + 1);
        try_ladder(s, &view, &h, !view.same_ladders && !ladder->is_fit);
    }
}

/* ---- A scaling and a base ---- */

static bool is_scaling(const struct pe_single *one)
{
    const struct pe_fault *fault = pe_fault_row(one->fault);
    return (fault == &pe_fault_scaling_missing || fault == &pe_fault_scaling_parameter ||
            fault == &pe_fault_scaling_other) &&
           !one->has_base;
}

static bool is_base(const struct pe_single *one) { return pe_fault_row(one->fault) == &pe_fault_base_other; }

/* Divisors depend on the base only through the lengths of waves: all pairs are tried, of others the plainest. */
static bool is_worth_a_plan(const struct pe_diagnosis *d, const struct pe_single *scaling)
{
    return !scaling->is_fit &&
           (pe_fault_row(scaling->fault) == &pe_fault_scaling_missing || d->evidence.kind == &pe_evidence_rope_freqs);
}

void pe_search_bases(struct pe_search *s)
{
    const struct pe_single *pair[PE_FAULTS_MAX];
    struct view view;
    if (!pe_search_goes_on(s) || !look(s, pair, 0, &view) || (s->ladders && view.reading))
        return; /* phases that are read are measured (named_ladders.c) */
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++)
        for (size_t j = 0; is_scaling(&s->singles[i]) && j < s->n_singles; j++) {
            pair[0] = &s->singles[i];
            pair[1] = &s->singles[j];
            if (!is_base(pair[1]) || !is_worth_a_plan(s->d, pair[0]))
                continue;
            struct pe_hypothesis h = pe_combine(pair, 2);
            try_ladder(s, &view, &h, false);
        }
}
