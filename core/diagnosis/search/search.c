/* The search: single faults, then pairs and triples while nothing fits.
 *
 * The problem: hundreds of single mistakes, with all their values, make a hundred thousand pairs and millions of
 * triples, each of which is a plan and a comparison; a client waits a second, and a service cannot give it a minute.
 * The idea is to buy certainty cheaply, in this order:
 *
 * - Level 1 tries every single fault, whole. Its work is known beforehand and refused if it is not allowed. Singles
 *   that give no plan are forgotten, the others are noted with their kind.
 * - Level 2 pairs singles of different kinds, unless something of cost 2 or less has explained the tensor. Level 3
 *   goes on to triples of those kinds that port and copy mistakes are made of: layout, sense, positions, width, size.
 * - Where there are waves, ladders of frequencies (base, scaling) are not combined but measured under the faults of a
 *   level (named.c). Fitted values are solved for, not tried (core/diagnosis/faults/).
 *
 * Most hypotheses end after a look at a few hundred numbers (compare.c). A search that is too long is cut by a number
 * of hypotheses and never by the clock, so the same request has the same answer on every machine.
 *
 * Reiter 1987 (A theory of diagnosis from first principles, Artificial Intelligence 32) has the order: smallest sets of
 * faults first. Which of equal explanations is named first is in hypothesis.c. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>
#include <string.h>

/* All of these, if there is such a hypothesis. */
static void try_hypothesis(struct pe_search *s, const struct pe_hypothesis *h)
{
    struct pe_trial t;
    if (!pe_search_goes_on(s) || !pe_search_has_pairs(s, h))
        return;
    pe_trial_open(s, h, &t);
    if (t.model)
        pe_search_judge(s, h, &t);
    pe_trial_close(&t);
}

/* ---- The levels ---- */

/* ---- Level 1 ---- */

/* Room for ladders that are measured, beside the singles that are counted. */
enum { NAMED_ROOM = 16 };

/* Fits are noted even where they give nothing: under other faults they may. So is everything where the evidence has
 * another shape than the belief, because another fault may mend that. */
static void try_single(struct pe_search *s, size_t fault, size_t choice, bool is_fit)
{
    struct pe_hypothesis h = {.n = 1, .fault = {(uint16_t)fault}, .choice = {(uint16_t)choice}};
    struct pe_trial t;
    if (!pe_search_goes_on(s))
        return;
    pe_trial_open(s, &h, &t);
    if (t.model)
        pe_search_judge(s, &h, &t);
    if (t.model || is_fit || s->d->belief.is_misfit)
        pe_search_note(s, &h, &t);
    pe_trial_close(&t);
}

/* Does the belief explain every number? Then no other positions do, and reading those of all rows is for nothing. */
static bool belief_holds(struct pe_search *s)
{
    struct pe_comparison all;
    struct pe_failure err;
    bool may = pe_fits(s->d->of_belief.score.verdict) && !s->d->as_believed && !s->d->evidence.is_typed;
    enum pe_status status = may ? pe_compare_all(s->d, s->d->belief.model, false, &all, &err) : PE_INVALID;
    s->d->no_memory |= status == PE_NO_MEMORY;
    return !status && pe_fits(all.verdict);
}

static bool reads_positions(const struct pe_fault *f)
{
    return f->kind == PE_KIND_POSITIONS || f->combines_as == PE_KIND_POSITIONS;
}

size_t pe_search_count(const struct pe_diagnosis *d, size_t fault)
{
    const struct pe_fault *f = pe_fault_row(fault);
    return f->count ? f->count(d) : f->n_alternatives;
}

/* Of a few numbers that were typed nothing is read but an offset and factors, and no other shape. */
bool pe_search_tries(const struct pe_diagnosis *d, size_t fault, size_t choice)
{
    const struct pe_fault *f = pe_fault_row(fault);
    if (!d->evidence.is_typed)
        return true;
    if (f->is_of_tensor)
        return false;
    bool is_fit = f->n_fits && choice + f->n_fits >= pe_search_count(d, fault);
    return !is_fit || (f->reads_typed && !d->is_probe);
}

static void level_one(struct pe_search *s)
{
    struct pe_hypothesis belief = {.n = 0};
    struct pe_trial as_is = {.model = s->d->belief.model};
    s->d->of_belief = pe_search_judge(s, &belief, &as_is);
    bool holds = belief_holds(s);
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault *fault = pe_fault_row(i);
        size_t n = pe_search_count(s->d, i);
        for (size_t j = 0; pe_fault_applies(s->d, i) && j < n; j++) {
            bool is_fit = fault->n_fits && j + fault->n_fits >= n;
            if (pe_search_tries(s->d, i, j) && !(holds && is_fit && reads_positions(fault)))
                try_single(s, i, j, is_fit);
        }
    }
}

/* ---- What is measured ---- */

/* Faults under which the rest is measured once more: other pairs, another direction, rounded frequencies; the form and
 * the alignment of a bias; anything that scores do not show by themselves. */
static bool is_base_of_naming(const struct pe_search *s, const struct pe_single *one)
{
    if (pe_is_by_distance(s->d))
        return one->kind == PE_KIND_LAYOUT || one->kind == PE_KIND_SENSE || one->kind == PE_KIND_SINUSOID ||
               one->kind == PE_KIND_AXES;
    if (pe_has_no_waves(s->d))
        return !one->is_fit;
    bool is_rotation = one->kind == PE_KIND_LAYOUT || one->kind == PE_KIND_SENSE || one->kind == PE_KIND_WIDTH ||
                       one->kind == PE_KIND_ARITHMETIC;
    return is_rotation && !one->is_fit;
}

static bool name_under(struct pe_search *s, const struct pe_single *const *faults, unsigned n)
{
    struct pe_hypothesis base = pe_combine(faults, n);
    return pe_search_goes_on(s) && pe_search_has_pairs(s, &base) && pe_name(s, &base);
}

/* Positions and frequencies that are measured and named (../naming), under the belief; then beside each single fault of
 * the rotation, while a list is all that is known. true: they explain the sample. */
static bool measure(struct pe_search *s)
{
    const struct pe_hypothesis belief = {.n = 0};
    if (pe_best_fits(s->d, 1)) {
        pe_name_also(s);
        return false;
    }
    bool is_named = pe_name(s, &belief);
    for (size_t i = 0; !pe_best_fits(s->d, 2) && i < s->n_singles && pe_search_goes_on(s); i++) {
        const struct pe_single *one = &s->singles[i];
        if (is_base_of_naming(s, one))
            is_named |= name_under(s, &one, 1);
    }
    return is_named;
}

/* ---- Levels 2 and 3 ---- */

/* Lists of free numbers explain much alone. Only the slopes of heads are few, so masks and signs are tried with them.
 */
static bool stands_alone(const struct pe_single *one) { return one->is_list && one->kind != PE_KIND_BIAS; }

/* Ladders but a free list of frequencies, and those that were measured. Where there are waves no other is combined. */
static bool is_ladder(const struct pe_single *one)
{
    return one->kind == PE_KIND_LADDER && !one->is_list && one->choice < PE_NAMED;
}

/* Positions of single rows, which are measured under the other mistakes where there are waves (name_under). */
static bool is_measured(const struct pe_search *s, const struct pe_single *one)
{
    const struct pe_fault *fault = pe_fault_row(one->fault);
    return s->has_waves && one->is_fit && fault->fit && !fault->reads_typed;
}

static void pairs(struct pe_search *s, bool with_ladders)
{
    const struct pe_single *pair[PE_FAULTS_MAX];
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++)
        for (size_t j = i + 1; j < s->n_singles && pe_search_goes_on(s); j++) {
            pair[0] = &s->singles[i];
            pair[1] = &s->singles[j];
            bool has_ladder = is_ladder(pair[0]) || is_ladder(pair[1]);
            if (pair[0]->kind == pair[1]->kind || has_ladder != with_ladders || is_measured(s, pair[0]) ||
                is_measured(s, pair[1]) || (stands_alone(pair[0]) && stands_alone(pair[1])))
                continue;
            struct pe_hypothesis h = pe_combine(pair, 2);
            try_hypothesis(s, &h);
        }
}

/* A ladder that has a name. */
static bool is_tried_ladder(const struct pe_single *one) { return !one->is_fit && is_ladder(one); }

/* Few rows do not show the slow pairs: there positions are measured under each ladder that has a name. */
static bool has_few_rows(const struct pe_search *s)
{
    enum { FEW = 64 };
    return pe_names_waves(s->d) && s->d->belief.n <= FEW;
}

static enum pe_role role_of(const struct pe_single *one) { return pe_fault_row(one->fault)->role; }

/* Two ladders of which one is the base, as they differ in divisors of frequencies: those depend on the base only
 * through the lengths of waves. */
static bool are_base_and_scaling(const struct pe_single *a, const struct pe_single *b)
{
    return is_tried_ladder(a) && !a->has_base && role_of(a) != PE_ROLE_BASE && role_of(b) == PE_ROLE_BASE;
}

static bool are_rounding_and_ladder(const struct pe_single *a, const struct pe_single *b)
{
    return a->kind == PE_KIND_ARITHMETIC && role_of(a) != PE_ROLE_NARROW_ANGLES && is_tried_ladder(b);
}

/* Frequencies that were rounded are not measured: each ladder whose steps agree is tried beside each rounding. */
static void try_ladders(struct pe_search *s, bool (*are)(const struct pe_single *, const struct pe_single *))
{
    const struct pe_single *pair[PE_FAULTS_MAX];
    for (size_t i = 0; i < s->n_singles; i++)
        for (size_t j = 0; j < s->n_singles && pe_search_goes_on(s); j++) {
            struct pe_trial t;
            pair[0] = &s->singles[i];
            pair[1] = &s->singles[j];
            if (!are(pair[0], pair[1]))
                continue;
            struct pe_hypothesis h = pe_combine(pair, 2);
            if (!pe_search_has_pairs(s, &h))
                continue;
            pe_trial_open(s, &h, &t);
            const struct pe_reading *r = t.model ? pe_read_waves(s->d, t.model) : NULL;
            if (t.model && (!r || t.model->plan->seq.n_axes > 1 || pe_turns_agree(t.model, r)))
                pe_search_judge(s, &h, &t);
            pe_trial_close(&t);
        }
}

/* Is it a fault that positions and frequencies may be measured under? */
static bool is_form(const struct pe_single *one) { return !one->is_fit && one->kind != PE_KIND_LADDER; }

static void level_two(struct pe_search *s)
{
    pairs(s, false);
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++) {
        const struct pe_single *one = &s->singles[i];
        bool is_other = is_form(one) && !is_base_of_naming(s, one) && !pe_fault_row(one->fault)->n_maps;
        if ((is_other && pe_names_waves(s->d)) || (is_tried_ladder(one) && has_few_rows(s)))
            name_under(s, &one, 1);
    }
    if (pe_names_waves(s->d))
        try_ladders(s, are_rounding_and_ladder);
    else
        pairs(s, true);
    if (s->d->evidence.kind == &pe_evidence_rope_freqs)
        try_ladders(s, are_base_and_scaling);
}

/* Layout, sense, positions, width, size. */
static bool is_early(const struct pe_single *one) { return one->kind <= PE_KIND_SIZE && !one->is_list; }

/* Under a form, and each ladder beside it. */
static void name_forms(struct pe_search *s)
{
    const struct pe_single *pair[PE_FAULTS_MAX];
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++)
        for (size_t j = 0; j < s->n_singles && pe_search_goes_on(s); j++) {
            pair[0] = &s->singles[i];
            pair[1] = &s->singles[j];
            if (is_early(pair[0]) && is_form(pair[0]) && pair[0]->kind != PE_KIND_POSITIONS && is_tried_ladder(pair[1]))
                name_under(s, pair, 2);
        }
}

/* Each early fault after the first two, and every late one; or every ladder. */
static void third(struct pe_search *s, const struct pe_single **faults, size_t from, bool with_ladders)
{
    for (size_t k = 0; k < s->n_singles && pe_search_goes_on(s); k++) {
        faults[2] = &s->singles[k];
        if (k < from && is_early(faults[2]))
            continue;
        bool is_own = faults[2]->kind != faults[0]->kind && faults[2]->kind != faults[1]->kind;
        if (!is_own || faults[2]->is_list || is_measured(s, faults[2]) || is_ladder(faults[2]) != with_ladders)
            continue;
        struct pe_hypothesis h = pe_combine(faults, 3);
        try_hypothesis(s, &h);
    }
}

static void level_three(struct pe_search *s, bool with_ladders)
{
    const struct pe_single *faults[PE_FAULTS_MAX];
    for (size_t i = 0; i < s->n_singles && pe_search_goes_on(s); i++)
        for (size_t j = i + 1; j < s->n_singles && pe_search_goes_on(s); j++) {
            faults[0] = &s->singles[i];
            faults[1] = &s->singles[j];
            if (!is_early(faults[0]) || !is_early(faults[1]) || faults[0]->kind == faults[1]->kind ||
                is_measured(s, faults[0]) || is_measured(s, faults[1]))
                continue;
            if (!with_ladders || !pe_names_waves(s->d))
                third(s, faults, j + 1, with_ladders);
            else if (is_form(faults[0]) && is_form(faults[1]))
                name_under(s, faults, 2);
        }
}

/* ---- All levels ---- */

bool pe_is_too_little(const struct pe_diagnosis *d)
{
    return !d->belief.is_given && pe_evidence_informative(&d->evidence) < PE_INFORMATIVE_MIN;
}

static size_t count_singles(const struct pe_diagnosis *d)
{
    size_t n = 0;
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (pe_fault_applies(d, i))
            n += pe_fault_row(i)->count ? pe_fault_row(i)->count(d) : pe_fault_row(i)->n_alternatives;
    return n;
}

/* Biases of all distances, where a model keeps them. */
static double kept_work(const struct pe_model *m)
{
    const struct pe_output *o = pe_plan_output(m->plan, 0);
    bool is_kept = m->d->evidence.kind->id == PE_OF_BIAS && m->state;
    double n = is_kept ? (double)o->shape[0] * (double)(o->shape[1] + o->shape[2]) : 0;
    return n * fmax(pe_plan_each(m->plan), m->plan->distance_work);
}

/* A hypothesis: its plan, and the sample. */
static double work_of_one(const struct pe_diagnosis *d)
{
    const struct pe_model *m = d->belief.model;
    return pe_model_plan_work(m) + kept_work(m) + (double)d->sample.n * m->number_work;
}

/* The answer compares the best with all numbers, the belief twice (measure/parts.c), each with another one on the
 * sample and where its sequence goes on, and plans two candidates at a hundred positions to decide between them. */
static double work_of_answer(const struct pe_diagnosis *d)
{
    enum { DECIDING = 208, GOING_ON = 2 * PE_BEST_MAX };
    const struct pe_model *m = d->belief.model;
    double all = (double)d->evidence.n_tensors * (double)d->evidence.n_rows * (double)d->evidence.row_len;
    double numbers = (PE_BEST_MAX + 2) * all + GOING_ON * (double)d->sample.n;
    return numbers * m->number_work + (DECIDING + GOING_ON) * PE_WORK_OF_A_NS * m->plan->cost.ns +
           pe_arithmetic_work(d);
}

/* Level 1 is tried whole, so its work must be allowed; deeper levels take what is left. */
static enum pe_status check_work(struct pe_search *s)
{
    const struct pe_diagnosis *d = s->d;
    double one = work_of_one(d),
           least = (double)s->room * one + pe_reading_work((double)d->belief.n, (double)pe_wave_count(d->belief.model));
    s->reserved = work_of_answer(d);
    least += s->reserved;
    if (least <= d->request->max_work)
        return PE_OK;
    pe_fail(s->err, "",
            "the diagnosis needs about %.0f multiply-adds for single mistakes, and at most about %.0f for several at a "
            "time; allowed: %.0f",
            least, least + (double)pe_search_hypotheses_max(d) * one, d->request->max_work);
    s->err->status = PE_TOO_LARGE;
    return pe_advise(s->err, PE_RAISE_DIAGNOSIS, NULL);
}

static enum pe_status open_search(struct pe_search *s, struct pe_diagnosis *d)
{
    enum pe_status status = pe_scalings_open(d, s->err);
    pe_layers_open(d);
    s->room = count_singles(d) + NAMED_ROOM;
    if (!status)
        status = check_work(s);
    if (!status)
        status = pe_diagnosis_admit(d, (double)s->room * (double)sizeof *s->singles, s->err);
    if (status)
        return status;
    s->singles = calloc(s->room, sizeof *s->singles);
    s->paired = calloc(PE_PAIRED_MAX, sizeof *s->paired);
    return s->singles && s->paired ? PE_OK : pe_no_memory(s->err);
}

/* Is half of the tensor or more as believed, by whole rows? Then no mistake of all rows explains the rest. Masks and
 * forms of biases keep many rows. */
static bool is_partly_believed(struct pe_search *s)
{
    struct pe_diagnosis *d = s->d;
    const struct pe_evidence *e = &d->evidence;
    unsigned kinds =
        PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ANGLES) | PE_EVIDENCE_BIT(ENCODING);
    uint64_t n_aside = 0;
    if (!(kinds >> e->kind->id & 1) || pe_best_fits(d, PE_FAULTS_MAX) || !pe_parts_measure(d) || !pe_parts_tell(d))
        return false;
    for (uint64_t i = 0; i < e->n_rows; i++)
        n_aside += pe_evidence_is_padding(e, i);
    return d->parts->axis == PE_N_PART_AXES || 2 * d->parts->n_fit >= e->n_rows - n_aside;
}

static void run(struct pe_search *s)
{
    level_one(s);
    s->is_deep = true;
    for (int with_ladders = 0; s->d->evidence.is_typed && with_ladders < 2; with_ladders++)
        if (!pe_best_fits(s->d, 2))
            pairs(s, with_ladders);
    if (s->d->evidence.is_typed) {
        pe_best_trim(s->d);
        return;
    }
    s->has_waves = !pe_best_fits(s->d, 1) && pe_names_waves(s->d) && pe_read_waves(s->d, s->d->belief.model);
    bool is_named = measure(s), is_several = s->d->belief.model->plan->seq.n_axes > 1;
    if (s->d->as_believed || is_partly_believed(s)) { /* of a rest, single mistakes */
        pe_best_trim(s->d);
        return;
    }
    if (!(is_named && is_several) && !pe_best_fits(s->d, 2))
        level_two(s);
    if (!(is_named && is_several) && !pe_best_fits(s->d, PE_FAULTS_MAX) && has_few_rows(s))
        name_forms(s);
    if (!(is_named && is_several) && !pe_best_fits(s->d, PE_FAULTS_MAX))
        for (int without = 0; without < 2; without++)
            level_three(s, !without);
    pe_best_trim(s->d);
}

enum pe_status pe_search(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_search s = {.d = d, .err = err};
    d->nearest.score.verdict = PE_NOT_JUDGED;
    for (size_t i = 0; i < PE_N_FAULT_KINDS; i++)
        d->of_kind[i].score.verdict = PE_NOT_JUDGED;
    s.status = open_search(&s, d);
    if (!s.status && !pe_is_too_little(d))
        run(&s);
    free(s.singles);
    free(s.paired);
    return s.status;
}
