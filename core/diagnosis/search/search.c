/* The search: single faults, then pairs and triples while nothing fits.
 *
 * Hundreds of ladders times hundreds of other faults would use up the number of hypotheses that one diagnosis may
 * evaluate. So ladders are chosen by measurement: under the pairing, width and positions of the other faults, the
 * phases of the evidence tell how far each pair turns from row to row (core/diagnosis/measure/measure.h), and only ladders that
 * agree are evaluated. All other faults are combined as they come. */
#include "core/diagnosis/measure/measure.h"
#include "core/diagnosis/faults/scalings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A single fault that made sense at level 1. */
struct single {
    uint16_t fault, choice;
    unsigned char kind;
    bool is_fit, is_list; /* is_list: a fit of free numbers */
    float *w;             /* a ladder: its frequencies [n_waves]; NULL: not known */
};

struct search {
    struct pe_diagnosis *d;
    struct pe_error *err;
    struct single *singles;
    size_t n_singles, room;
    size_t n_waves; /* of the belief */
    float *ladders; /* what single.w point to */
    size_t n_ladders;
    enum pe_status status; /* PE_CANCELLED, PE_NO_MEMORY */
    bool is_full;          /* no hypotheses are left */
};

static bool goes_on(struct search *s)
{
    if (s->status || s->is_full)
        return false;
    if (pe_is_cancelled()) {
        pe_fail(s->err, "", "given up: nobody waits for the answer any more");
        s->status = s->err->status = PE_CANCELLED;
    }
    s->is_full = s->d->searched >= PE_HYPOTHESES_MAX;
    return !s->status && !s->is_full;
}

/* ---- Keeping the best ---- */

static void insert(struct pe_diagnosis *d, const struct pe_kept *k)
{
    size_t i = d->n_best;
    for (size_t j = 0; j < d->n_best; j++)
        if (d->best[j].signature == k->signature) {
            if (pe_kept_compare(k, &d->best[j]) >= 0)
                return;
            memmove(&d->best[j], &d->best[j + 1], (d->n_best - j - 1) * sizeof *d->best);
            d->n_best--;
            break;
        }
    for (i = d->n_best; i > 0 && pe_kept_compare(k, &d->best[i - 1]) < 0; i--)
        ;
    if (i == PE_BEST_MAX)
        return;
    size_t moved = d->n_best - i - (d->n_best == PE_BEST_MAX);
    memmove(&d->best[i + 1], &d->best[i], moved * sizeof *d->best);
    d->best[i] = *k;
    d->n_best += d->n_best < PE_BEST_MAX;
}

static void keep(struct pe_diagnosis *d, struct pe_kept *k, const struct pe_model *model)
{
    struct pe_kept *of_kind = k->h.n == 1 ? &d->of_kind[pe_fault_kind_of(k->h.fault[0])] : NULL;
    if (of_kind && (of_kind->score.verdict == PE_NOT_JUDGED || k->score.verdict < of_kind->score.verdict ||
                    (k->score.verdict == of_kind->score.verdict && k->score.max_error < of_kind->score.max_error)))
        *of_kind = *k;
    if (d->nearest.score.verdict == PE_NOT_JUDGED || k->score.max_error < d->nearest.score.max_error)
        d->nearest = *k;
    bool is_full = d->n_best == PE_BEST_MAX;
    if (is_full && pe_kept_compare(k, &d->best[PE_BEST_MAX - 1]) >= 0)
        return;
    k->signature = pe_model_signature(model);
    insert(d, k);
}

static bool has_fit(const struct pe_diagnosis *d, unsigned cost)
{
    return d->n_best && pe_fits(d->best[0].score.verdict) && d->best[0].cost <= cost;
}

/* ---- One hypothesis ---- */

static struct pe_kept judge(struct search *s, const struct pe_hypothesis *h, const struct pe_model *model)
{
    struct pe_kept k = {.h = *h, .cost = pe_hypothesis_cost(s->d, h)};
    k.score = pe_evaluate(s->d, model);
    s->d->searched++;
    keep(s->d, &k, model);
    return k;
}

/* A hypothesis as an edit and its model. */
struct trial {
    struct pe_edit edit;
    struct pe_model *model; /* NULL: it is no hypothesis */
};

static void open_trial(struct search *s, const struct pe_hypothesis *h, struct trial *t)
{
    struct pe_error error;
    t->model = NULL;
    bool applies = pe_hypothesis_apply(s->d, h, &t->edit);
    if (t->edit.failed || s->d->no_memory)
        s->status = pe_no_memory(s->err);
    if (!applies || s->status)
        return;
    if (!pe_model_new(s->d, &t->edit, &t->model, &error)) {
        if (t->model->has_shape)
            return;
        pe_model_free(t->model);
        t->model = NULL;
        return;
    }
    if (error.status != PE_INVALID && error.status != PE_TOO_LARGE) {
        *s->err = error;
        s->status = error.status;
    }
}

static void close_trial(struct trial *t)
{
    pe_model_free(t->model);
    pe_edit_drop(&t->edit);
}

static void try(struct search *s, const struct pe_hypothesis *h)
{
    struct trial t;
    if (!goes_on(s))
        return;
    open_trial(s, h, &t);
    if (t.model)
        judge(s, h, t.model);
    close_trial(&t);
}

/* ---- Level 1 ---- */

static void note(struct search *s, const struct pe_hypothesis *h, const struct pe_model *model)
{
    const struct pe_fault *fault = pe_fault_row(h->fault[0]);
    size_t count = fault->count ? fault->count(s->d) : fault->n_alternatives;
    struct single *one = &s->singles[s->n_singles];
    *one = (struct single){.fault = h->fault[0], .choice = h->choice[0]};
    one->kind = (unsigned char)(fault->combines_as ? fault->combines_as : pe_fault_kind_of(h->fault[0]));
    one->is_fit = fault->n_fits && h->choice[0] + fault->n_fits >= count;
    one->is_list = one->is_fit && fault->fit_cost > 1;
    if (one->kind == PE_KIND_LADDER && !one->is_fit && s->ladders && model && pe_wave_count(model) == s->n_waves) {
        double w[PE_HEAD_DIM_MAX];
        one->w = s->ladders + s->n_ladders++ * s->n_waves;
        pe_wave_frequencies(model, s->n_waves, w);
        for (size_t k = 0; k < s->n_waves; k++)
            one->w[k] = (float)w[k];
    }
    s->n_singles++;
}

/* Fits are noted even where they give nothing: under other faults they may. So is everything where the evidence has
 * another shape than the belief, because another fault may mend that. */
static void try_single(struct search *s, size_t fault, size_t choice, bool is_fit)
{
    struct pe_hypothesis h = {.n = 1, .fault = {(uint16_t)fault}, .choice = {(uint16_t)choice}};
    struct trial t;
    if (!goes_on(s))
        return;
    open_trial(s, &h, &t);
    if (t.model)
        judge(s, &h, t.model);
    if (t.model || is_fit || s->d->belief.is_misfit)
        note(s, &h, t.model);
    close_trial(&t);
}

static void level_one(struct search *s)
{
    struct pe_hypothesis belief = {.n = 0};
    s->d->of_belief = judge(s, &belief, s->d->belief.model);
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault *fault = pe_fault_row(i);
        size_t n = fault->count ? fault->count(s->d) : fault->n_alternatives;
        for (size_t j = 0; pe_fault_applies(s->d, i) && j < n; j++)
            try_single(s, i, j, fault->n_fits && j + fault->n_fits >= n);
    }
}

/* ---- Ladders that the phases allow ---- */

/* The evidence as seen under some faults. */
struct view {
    const struct pe_reading *reading; /* NULL: it tells nothing, so every ladder is allowed */
    double stride, relative;
    /* Positions are to be fitted: a multiple of the rows, one for all rows, each for itself. */
    bool is_stride_free, is_still, is_free;
    bool same_ladders; /* single.w are its ladders */
};

/* Faults without those that are fitted: a fit depends on the ladder that is yet to be chosen. */
static struct pe_hypothesis unfitted(const struct single *const *faults, unsigned n)
{
    struct pe_hypothesis h = {.n = 0};
    for (unsigned i = 0; i < n; i++)
        if (!faults[i]->is_fit) {
            h.fault[h.n] = faults[i]->fault;
            h.choice[h.n++] = faults[i]->choice;
        }
    return h;
}

static void see(struct search *s, const struct single *const *faults, unsigned n, const struct pe_model *m,
                struct view *view)
{
    bool is_run = m->plan->seq.n_axes == 1 && s->d->belief.n > 1;
    *view = (struct view){.relative = pe_recipe_tolerance(m), .same_ladders = true};
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

static bool look(struct search *s, const struct single *const *faults, unsigned n, struct view *view)
{
    struct pe_hypothesis h = unfitted(faults, n);
    struct trial t;
    open_trial(s, &h, &t);
    const struct pe_model *m = t.model;
    *view = (struct view){.stride = 0};
    if (m)
        see(s, faults, n, m, view);
    close_trial(&t);
    return m && view->stride != 0;
}

#define SCORE_MIN 0.99
enum { FREE_ROWS = 6 };

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

static bool is_allowed(struct search *s, const struct view *v, const struct single *ladder)
{
    double w[PE_HEAD_DIM_MAX];
    for (size_t k = 0; ladder->w && k < s->n_waves; k++)
        w[k] = (double)ladder->w[k];
    return !ladder->w || !v->same_ladders || agrees(v, w, s->n_waves);
}

/* In another width, the ladder is known only when it is planned. */
static void try_ladder(struct search *s, const struct view *v, const struct pe_hypothesis *h, bool is_planned)
{
    struct trial t;
    double w[PE_HEAD_DIM_MAX];
    if (!goes_on(s))
        return;
    open_trial(s, h, &t);
    size_t n = t.model ? pe_wave_count(t.model) : 0;
    if (is_planned && n && n <= PE_HEAD_DIM_MAX)
        pe_wave_frequencies(t.model, n, w);
    if (t.model && (!is_planned || agrees(v, w, n)))
        judge(s, h, t.model);
    close_trial(&t);
}

/* ---- Combinations ---- */

static int by_fault(const void *a, const void *b)
{
    const struct single *x = *(const struct single *const *)a, *y = *(const struct single *const *)b;
    return (int)x->fault - (int)y->fault;
}

static struct pe_hypothesis combine(const struct single *const *faults, unsigned n)
{
    struct pe_hypothesis h = {.n = n};
    const struct single *sorted[PE_FAULTS_MAX];
    memcpy(sorted, faults, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_fault);
    for (unsigned i = 0; i < n; i++) {
        h.fault[i] = sorted[i]->fault;
        h.choice[i] = sorted[i]->choice;
    }
    return h;
}

/* These faults, and each ladder that agrees with the phases. */
static void with_ladders(struct search *s, const struct single **faults, unsigned n)
{
    struct view view;
    if (!goes_on(s) || !look(s, faults, n, &view))
        return;
    for (size_t i = 0; i < s->n_singles && goes_on(s); i++) {
        const struct single *ladder = &s->singles[i];
        if (ladder->kind != PE_KIND_LADDER || ladder->is_list || !is_allowed(s, &view, ladder))
            continue;
        faults[n] = ladder;
        struct pe_hypothesis h = combine(faults, n + 1);
        try_ladder(s, &view, &h, !view.same_ladders && !ladder->is_fit);
    }
}

/* Lists of free numbers explain much alone. Only the slopes of heads are few, so masks and signs are tried with them.
 */
static bool stands_alone(const struct single *one) { return one->is_list && one->kind != PE_KIND_BIAS; }

/* Ladders but a free list of frequencies, which is measured itself. */
static bool needs_measure(const struct single *one) { return one->kind == PE_KIND_LADDER && !one->is_list; }

static void level_two(struct search *s)
{
    const struct single *pair[PE_FAULTS_MAX];
    for (size_t i = 0; i < s->n_singles && goes_on(s); i++)
        for (size_t j = i + 1; j < s->n_singles && goes_on(s); j++) {
            pair[0] = &s->singles[i];
            pair[1] = &s->singles[j];
            if (pair[0]->kind == pair[1]->kind || needs_measure(pair[0]) || needs_measure(pair[1]) ||
                (stands_alone(pair[0]) && stands_alone(pair[1])))
                continue;
            struct pe_hypothesis h = combine(pair, 2);
            try(s, &h);
        }
    for (size_t i = 0; i < s->n_singles && goes_on(s); i++)
        if (s->singles[i].kind != PE_KIND_LADDER) {
            pair[0] = &s->singles[i];
            with_ladders(s, pair, 1);
        }
}

/* Layout, sense, positions, width, size. */
static bool is_early(const struct single *one) { return one->kind <= PE_KIND_SIZE && !one->is_list; }

static void third(struct search *s, const struct single **faults, size_t from)
{
    for (size_t k = from; k < s->n_singles && goes_on(s); k++) {
        faults[2] = &s->singles[k];
        bool is_own = faults[2]->kind != faults[0]->kind && faults[2]->kind != faults[1]->kind;
        if (!is_own || faults[2]->is_list || faults[2]->kind == PE_KIND_LADDER)
            continue;
        struct pe_hypothesis h = combine(faults, 3);
        try(s, &h);
    }
}

static void early_pairs(struct search *s, bool then_ladders)
{
    const struct single *faults[PE_FAULTS_MAX + 1];
    for (size_t i = 0; i < s->n_singles && goes_on(s); i++)
        for (size_t j = i + 1; j < s->n_singles && goes_on(s); j++) {
            faults[0] = &s->singles[i];
            faults[1] = &s->singles[j];
            if (!is_early(faults[0]) || !is_early(faults[1]) || faults[0]->kind == faults[1]->kind)
                continue;
            if (then_ladders)
                with_ladders(s, faults, 2);
            else
                third(s, faults, j + 1);
        }
}

static void level_three(struct search *s)
{
    early_pairs(s, true);
    early_pairs(s, false);
}

/* ---- All levels ---- */

static size_t count_singles(const struct pe_diagnosis *d)
{
    size_t n = 0;
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (pe_fault_applies(d, i))
            n += pe_fault_row(i)->count ? pe_fault_row(i)->count(d) : pe_fault_row(i)->n_alternatives;
    return n;
}

static enum pe_status check_work(const struct pe_diagnosis *d, size_t n_singles, struct pe_error *err)
{
    double work = (double)n_singles * (double)d->sample.n;
    if (work <= d->request->max_work)
        return PE_OK;
    pe_fail(err, "", "the diagnosis needs about %.0f multiply-adds; allowed: %.0f (--max-analysis)", work,
            d->request->max_work);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status open_search(struct search *s, struct pe_diagnosis *d)
{
    enum pe_status status = pe_scalings_open(d, s->err);
    s->room = count_singles(d);
    s->n_waves = pe_wave_count(d->belief.model) <= PE_HEAD_DIM_MAX ? pe_wave_count(d->belief.model) : 0;
    double bytes = (double)s->room * (double)(sizeof *s->singles + s->n_waves * sizeof *s->ladders);
    if (!status)
        status = check_work(d, s->room, s->err);
    if (!status)
        status = pe_diagnosis_admit(d, bytes, s->err);
    if (status)
        return status;
    s->singles = calloc(s->room + 1, sizeof *s->singles);
    s->ladders = s->n_waves ? malloc(s->room * s->n_waves * sizeof *s->ladders) : NULL;
    return s->singles && (s->ladders || !s->n_waves) ? PE_OK : pe_no_memory(s->err);
}

/* Comparing one with all numbers takes long. What does not fit is only answered where nothing does. */
static void trim(struct pe_diagnosis *d)
{
    enum { ANSWERED = 5 };
    size_t n = 0;
    while (n < d->n_best && pe_fits(d->best[n].score.verdict))
        n++;
    if (n == 0)
        n = d->n_best < ANSWERED ? d->n_best : ANSWERED;
    d->n_best = n;
}

static void run(struct search *s)
{
    level_one(s);
    if (!has_fit(s->d, 2))
        level_two(s);
    if (!has_fit(s->d, PE_FAULTS_MAX))
        level_three(s);
    s->d->used_all = s->is_full;
    trim(s->d);
}

enum pe_status pe_search(struct pe_diagnosis *d, struct pe_error *err)
{
    struct search s = {.d = d, .err = err};
    d->nearest.score.verdict = PE_NOT_JUDGED;
    for (size_t i = 0; i < PE_N_FAULT_KINDS; i++)
        d->of_kind[i].score.verdict = PE_NOT_JUDGED;
    s.status = open_search(&s, d);
    if (!s.status)
        run(&s);
    free(s.singles);
    free(s.ladders);
    return s.status;
}
