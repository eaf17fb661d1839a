/* From measured lists to hypotheses: the relation of each axis, alike ones together, tried as one hypothesis.
 *
 * Nothing short may be explained by chance: the numbers of the tensor must carry more bits than the relation takes from
 * them. A phase that is known within e carries log2(pi/e) bits; each free number costs 20, and 20 are left over. Two
 * pairs of bfloat16 would fit any offset.
 *
 * A relation only proposes. The request that it spells is planned and compared with the evidence like any other
 * hypothesis. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>
#include <string.h>

static uint16_t index_of(const struct pe_fault *fault)
{
    const struct pe_fault *row = fault->role        ? pe_fault_of(fault->role)
                                 : fault->info.code ? fault
                                                    : pe_fault_that_is(*fault->transforms);
    size_t i = 0;
    while (pe_fault_row(i) != row)
        i++;
    return (uint16_t)i;
}

/* ---- What was measured ---- */

bool pe_names_waves(const struct pe_diagnosis *d)
{
    enum pe_evidence_id id = d->evidence.kind->id;
    return !d->evidence.is_typed && (id == PE_OF_TABLES || id == PE_OF_ROTATED || id == PE_OF_ANGLES ||
                                     id == PE_OF_LADDER || id == PE_OF_ENCODING); /* of sines */
}

/* Roundings of z: of a quotient of rotated numbers some more than of a table's. */
static double noise_of(const struct pe_diagnosis *d, const struct pe_reading *r)
{
    return (d->evidence.kind->id == PE_OF_ROTATED ? 5 : 3) * r->noise;
}

/* A ladder has no rows: its profile is that of one. */
static bool open_waves(struct pe_diagnosis *d, const struct pe_model *model, struct pe_measured *m)
{
    const struct pe_reading *r = m->reading = pe_read_waves(d, model);
    size_t n = model->plan->seq.k[0].n;
    if (!r || !pe_profile_believe(&m->believed, model, d->evidence.kind->id == PE_OF_LADDER ? n : r->n))
        return false;
    d->no_memory |= !pe_profile_new(&m->found, m->believed.n_axes, m->believed.n_rows, r->n_waves);
    m->noise = noise_of(d, r);
    return !d->no_memory && m->believed.n_pairs == r->n_waves;
}

static bool measure_waves(struct pe_diagnosis *d, struct pe_measured *m)
{
    const struct pe_reading *r = m->reading;
    const struct pe_sheet sheet = {r->re, r->im, r->weight, r->n, r->n_waves, m->noise};
    return d->evidence.kind->id != PE_OF_LADDER &&
           pe_measure_coordinates(&sheet, &m->believed, &m->found, &d->work) == r->n;
}

/* Position ids are the coordinates themselves. */
static bool measure_ids(struct pe_diagnosis *d, const struct pe_model *model, struct pe_measured *m)
{
    const struct pe_sequence *seq = &model->plan->seq;
    size_t n = (size_t)d->evidence.row_len;
    if (!model->has_shape || d->evidence.n_rows != seq->n_axes || seq->k[0].n != n)
        return false;
    d->no_memory |= !pe_profile_new(&m->believed, seq->n_axes, n, 0) || !pe_profile_new(&m->found, seq->n_axes, n, 0);
    for (unsigned a = 0; !d->no_memory && a < seq->n_axes; a++) {
        pe_evidence_read(&d->evidence, 0, a, 0, n, m->found.x + a * n);
        for (size_t i = 0; i < n; i++) {
            m->believed.x[a * n + i] = pe_coordinate(model->plan, a, i);
            m->found.x_error[a * n + i] = 1e-9;
        }
    }
    m->noise = 0x1p-24;
    return !d->no_memory;
}

/* Do the numbers of these axes carry more than a relation takes from them? */
static bool has_bits(const struct pe_measured *m, unsigned axes, unsigned numbers)
{
    double bits = m->found.n_pairs ? 0 : (double)INFINITY; /* of ids: they are the list */
    for (size_t k = 0; k < m->found.n_pairs; k++)
        for (size_t i = 0; axes & 1U << m->believed.axis[k] && i < m->found.n_rows; i++) {
            size_t at = m->believed.axis[k] * m->found.n_rows + i;
            double angle = fabs(m->found.x[at] * m->believed.w[k]);
            if (isfinite(m->found.x_error[at]))
                bits += fmax(0, log2(3.14159 / (3 * m->noise + angle * 0x1p-21)));
        }
    return bits > PE_BITS_OF_A_NUMBER * (1.0 + numbers);
}

/* ---- Relations of the axes ---- */

static double largest_error(const double *error, size_t n)
{
    double most = 1e-9;
    for (size_t i = 0; i < n; i++)
        if (isfinite(error[i]))
            most = fmax(most, error[i]);
    return most;
}

struct pe_named *pe_named_new(struct pe_diagnosis *d, size_t n_numbers)
{
    if (!pe_naming_of(d) || d->no_memory || d->naming->n == PE_NAMED_MAX)
        return NULL;
    struct pe_named *named = &d->naming->list[d->naming->n];
    *named = (struct pe_named){.predicted = malloc(n_numbers * sizeof(double))};
    d->no_memory |= !named->predicted;
    d->naming->n += named->predicted != NULL;
    return named->predicted ? named : NULL;
}

/* What the pairs of one axis have between them; NaN: not one ratio. */
static double rung_of(const struct pe_profile *p, unsigned axis)
{
    double before = 0, rung = (double)NAN;
    for (size_t k = 0; k < p->n_pairs; k++) {
        if (p->axis[k] != axis)
            continue;
        double here = p->w[k] != 0 ? before / p->w[k] : 0;
        if (before != 0 && !isnan(rung) && fabs(here - rung) > 1e-9 * rung)
            return (double)NAN;
        rung = before != 0 ? here : rung;
        before = p->w[k];
    }
    return rung;
}

static struct pe_lists lists_of(const struct pe_measured *m, unsigned axis)
{
    size_t n = m->found.n_rows;
    return (struct pe_lists){m->found.x + axis * n,
                             m->found.x_error + axis * n,
                             m->believed.x + axis * n,
                             n,
                             axis,
                             m->found.n_axes,
                             m->believed.x,
                             largest_error(m->found.x_error + axis * n, n),
                             rung_of(&m->believed, axis)};
}

/* The relation of one axis; false: it is as believed. */
static bool relate_axis(const struct pe_measured *m, unsigned axis, double *predicted, struct pe_named *named)
{
    const struct pe_lists lists = lists_of(m, axis);
    *named = (struct pe_named){.axes = 1U << axis};
    named->relation = pe_relate(&lists, predicted, &named->related);
    return named->relation;
}

/* Is it one mistake in both? The same rule without a number, with the same one, or with the same difference. */
static bool is_alike(const struct pe_named *a, const struct pe_named *b)
{
    const struct pe_related *x = &a->related, *y = &b->related;
    return a->relation == b->relation && (x->numbers == 0 || x->found == y->found ||
                                          fabs((x->found - x->believed) - (y->found - y->believed)) < 1e-9);
}

/* One relation that holds, alike, on each of these axes. false: there is none that costs less than `below`; one of all
 * axes may cost as much. Writes the axes' lists into named->predicted. */
static bool relate_together(const struct pe_measured *m, unsigned axes, unsigned below, struct pe_named *named)
{
    size_t n = m->found.n_rows;
    bool are_all = axes == (1U << m->found.n_axes) - 1;
    for (const struct pe_relation *row = pe_coordinate_relations; row != pe_listed(); row++) {
        unsigned n_alike = 0, of_axes = 0;
        struct pe_named first = {0};
        bool is_cheap = pe_relation_is_of_all(row) ? are_all : row->cost < below;
        for (unsigned a = 0; is_cheap && n_alike == of_axes && a < m->found.n_axes; a++) {
            const struct pe_lists lists = lists_of(m, a);
            struct pe_named one = {.relation = row, .axes = 1U << a};
            if (!(axes & 1U << a))
                continue;
            of_axes++;
            n_alike +=
                row->test(&lists, named->predicted + a * n, &one.related) && (of_axes == 1 || is_alike(&first, &one));
            first = of_axes == 1 ? one : first;
        }
        if (!is_cheap || n_alike < of_axes)
            continue;
        named->relation = row;
        named->related = first.related;
        named->axes = axes;
        return true;
    }
    return false;
}

/* Several relations, or one of all axes: is there one for all? A list of rows that moved is one mistake in the
 * rows, not one in each axis. */
static size_t join_alike(struct pe_diagnosis *d, const struct pe_measured *m, struct pe_named **parts, size_t n_parts)
{
    unsigned axes = 0, cost = 0;
    size_t n = m->found.n_axes * m->found.n_rows;
    for (size_t i = 0; i < n_parts; i++) {
        axes |= parts[i]->axes;
        cost += parts[i]->relation->cost;
    }
    if (n_parts == 0 || m->found.n_axes == 1 || (n_parts == 1 && axes != (1U << m->found.n_axes) - 1))
        return n_parts;
    struct pe_named *named = pe_named_new(d, n);
    if (!named)
        return n_parts;
    double *predicted = named->predicted;
    memcpy(predicted, m->believed.x, n * sizeof *predicted);
    d->work += 64.0 * (double)n;
    if (!relate_together(m, axes, cost, named)) {
        free(predicted);
        d->naming->n--;
        return n_parts;
    }
    named->n_axes = m->found.n_axes;
    for (unsigned a = 0; a < m->found.n_axes; a++) /* other relations were tried in their room */
        if (!(axes & 1U << a))
            memcpy(predicted + a * m->found.n_rows, m->believed.x + a * m->found.n_rows,
                   m->found.n_rows * sizeof *predicted);
    parts[0] = named;
    return 1;
}

/* Gathers the relations of all axes, alike ones as one. Returns their number, 0 also without memory. */
static size_t relate_axes(struct pe_diagnosis *d, const struct pe_measured *m, struct pe_named **parts)
{
    size_t n_parts = 0, n = m->found.n_rows;
    double *predicted = malloc(n * sizeof *predicted);
    d->no_memory |= !predicted;
    for (unsigned a = 0; predicted && a < m->found.n_axes; a++) {
        struct pe_named one;
        size_t i = 0;
        d->work += 64 * (double)n;
        if (!relate_axis(m, a, predicted, &one))
            continue;
        while (i < n_parts && !is_alike(parts[i], &one))
            i++;
        if (i == n_parts) {
            struct pe_named *named = pe_named_new(d, m->found.n_axes * n);
            if (!named)
                break;
            named->n_axes = m->found.n_axes;
            memcpy(named->predicted, m->believed.x, m->found.n_axes * n * sizeof(double));
            named->relation = one.relation;
            named->related = one.related;
            parts[n_parts++] = named;
        }
        parts[i]->axes |= one.axes;
        memcpy(parts[i]->predicted + a * n, predicted, n * sizeof *predicted);
    }
    free(predicted);
    n_parts = join_alike(d, m, parts, n_parts);
    return d->no_memory ? 0 : n_parts;
}

/* The first row that differs on one of the axes. */
static struct pe_related first_of(const struct pe_named *all, const double *believed, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t a = 0; a < all->n_axes; a++)
            if (all->predicted[a * n_rows + i] != believed[a * n_rows + i])
                return (struct pe_related){all->predicted[a * n_rows + i], believed[a * n_rows + i], i,
                                           (unsigned)n_rows};
    return all->related;
}

/* Several relations as one list. */
static void join_parts(struct pe_named **parts, size_t n_parts, const struct pe_measured *m)
{
    size_t n_rows = m->found.n_rows;
    for (size_t i = 1; i < n_parts; i++)
        for (unsigned a = 0; a < parts[0]->n_axes; a++)
            if (parts[i]->axes & 1U << a)
                memcpy(parts[0]->predicted + a * n_rows, parts[i]->predicted + a * n_rows, n_rows * sizeof(double));
    for (size_t i = 1; i < n_parts; i++)
        parts[0]->axes |= parts[i]->axes;
    parts[0]->relation = pe_listed();
    parts[0]->related = first_of(parts[0], m->believed.x, n_rows);
}

/* ---- The hypothesis ---- */

/* Of base and these parts, at most PE_FAULTS_MAX together. */
static struct pe_hypothesis with_parts(const struct pe_hypothesis *base, const struct pe_part *parts, size_t n)
{
    struct pe_single singles[PE_FAULTS_MAX];
    const struct pe_single *all[PE_FAULTS_MAX];
    unsigned n_all = 0;
    for (unsigned i = 0; i < base->n; i++)
        singles[n_all++] = (struct pe_single){.fault = base->fault[i], .choice = base->choice[i]};
    for (size_t i = 0; i < n; i++)
        singles[n_all++] = (struct pe_single){.fault = index_of(parts[i].fault), .choice = parts[i].choice};
    for (unsigned i = 0; i < n_all; i++)
        all[i] = &singles[i];
    return pe_combine(all, n_all);
}

struct pe_hypothesis pe_named_with(const struct pe_diagnosis *d, const struct pe_hypothesis *base,
                                   struct pe_named *const *parts, size_t n)
{
    struct pe_part all[PE_FAULTS_MAX];
    for (size_t i = 0; i < n; i++)
        all[i] =
            (struct pe_part){parts[i]->relation->fault, (uint16_t)(PE_NAMED + (size_t)(parts[i] - d->naming->list))};
    return with_parts(base, all, n);
}

bool pe_named_try(struct pe_search *s, const struct pe_hypothesis *h)
{
    struct pe_trial t;
    bool fits = false;
    if (!pe_search_goes_on(s))
        return false;
    pe_trial_open(s, h, &t);
    if (t.model)
        fits = pe_fits(pe_search_judge(s, h, &t).score.verdict);
    if (t.model && !fits && h->n == 1 && pe_fault_kind_of(h->fault[0]) == PE_KIND_LADDER)
        pe_search_note(s, h, &t); /* the deeper levels combine it with other faults */
    pe_trial_close(&t);
    return fits;
}

/* Several rules that have no name are one finding. */
static bool are_lists(struct pe_named *const *parts, size_t n)
{
    size_t n_lists = 0;
    for (size_t i = 0; i < n; i++)
        n_lists += parts[i]->relation->fault->is_free_list;
    return n_lists > 1;
}

unsigned pe_named_numbers(const struct pe_diagnosis *d, const struct pe_hypothesis *h)
{
    unsigned n = 0;
    for (unsigned i = 0; i < h->n; i++)
        n += pe_named_of(d, h, i) ? pe_named_of(d, h, i)->related.numbers : 0;
    return n;
}

/* A list of all axes without a rule has its sign too: the believed direction and the negative list give the same. */
static bool is_sign_of_list(const struct pe_hypothesis *base, const struct pe_named *part)
{
    bool reverses = false;
    for (unsigned i = 0; i < base->n; i++)
        reverses |= pe_fault_row(base->fault[i])->role == PE_ROLE_DIRECTION;
    return reverses && part->relation == pe_listed() && part->axes == (1U << part->n_axes) - 1;
}

static bool name_coordinates(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_measured *m)
{
    struct pe_named *parts[PE_AXES_MAX];
    size_t n = relate_axes(s->d, m, parts);
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!has_bits(m, parts[i]->axes, parts[i]->related.numbers + pe_named_numbers(s->d, base)))
            return false;
    if (base->n + n > PE_FAULTS_MAX || are_lists(parts, n)) {
        join_parts(parts, n, m);
        n = 1;
    }
    if (base->n + n > PE_FAULTS_MAX || (n == 1 && is_sign_of_list(base, parts[0])))
        return false;
    struct pe_hypothesis h = pe_named_with(s->d, base, parts, n);
    return pe_named_try(s, &h);
}

/* Are its frequencies known, or rounded ones? */
static bool has_ladder(const struct pe_hypothesis *h)
{
    bool has = false;
    for (unsigned i = 0; i < h->n; i++) {
        enum pe_fault_kind kind = pe_fault_kind_of(h->fault[i]);
        has |= kind == PE_KIND_LADDER || kind == PE_KIND_ARITHMETIC;
    }
    return has;
}

bool pe_turns_agree(const struct pe_model *model, const struct pe_reading *r)
{
    double w[PE_WAVES_READ], stride = pe_model_stride(model);
    if (r->n_waves > PE_WAVES_READ || r->n_waves != pe_wave_count(model) || stride == 0)
        return false;
    pe_wave_frequencies(model, r->n_waves, w);
    *r->work += 32 * (double)r->n_waves;
    return pe_agrees(r, w, stride, pe_wave_tolerance(model));
}

/* Positions first: where they follow a rule, frequencies are not asked for. */
static bool name_waves(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_model *model,
                       struct pe_measured *m)
{
    enum pe_recipe recipe = model->transforms.recipe;
    if ((recipe && !pe_recipe_is_of_frequencies(recipe)) || !open_waves(s->d, model, m))
        return false;
    bool fits = measure_waves(s->d, m) && name_coordinates(s, base, m);
    if (has_ladder(base) || base->n == PE_FAULTS_MAX || (fits && pe_best_fits(s->d, 2)))
        return fits;
    return pe_name_ladders(s, base, model, m) || fits;
}

/* ---- What is no rotation ---- */

static bool try_all(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_part *parts, size_t n)
{
    if (base->n + n > PE_FAULTS_MAX)
        return false;
    struct pe_hypothesis h = with_parts(base, parts, n);
    return pe_named_try(s, &h);
}

/* If masks differ as well, each mistake of masks is tried beside the parts. */
static bool try_masks(struct pe_search *s, const struct pe_hypothesis *base, struct pe_part *parts, size_t n)
{
    for (size_t i = 0; n < PE_PARTS_MAX && i < s->n_singles; i++) {
        const struct pe_single *one = &s->singles[i];
        parts[n] = (struct pe_part){pe_fault_row(one->fault), one->choice};
        if (parts[n].fault->is_of_masks && try_all(s, base, parts, n + 1))
            return true;
    }
    return false;
}

static bool name_without_waves(struct pe_search *s, const struct pe_hypothesis *base)
{
    struct pe_part parts[PE_PARTS_MAX];
    struct pe_trial t;
    size_t n = 0;
    if (!pe_search_goes_on(s))
        return false;
    pe_trial_open(s, base, &t);
    if (t.model)
        n = pe_relate_without_waves(s->d, &t.edit, base->n == 0, parts);
    pe_trial_close(&t);
    if (s->d->no_memory)
        s->status = pe_no_memory(s->err);
    return n > 0 && (try_all(s, base, parts, n) || try_masks(s, base, parts, n));
}

/* ---- All evidence ---- */

bool pe_name(struct pe_search *s, const struct pe_hypothesis *base)
{
    struct pe_measured m;
    struct pe_trial t;
    bool fits = false;
    memset(&m, 0, sizeof m);
    bool are_ids = s->d->evidence.kind->id == PE_OF_IDS && !s->d->evidence.is_typed;
    if (pe_has_no_waves(s->d))
        return name_without_waves(s, base);
    if (!(pe_names_waves(s->d) || are_ids) || !pe_search_goes_on(s))
        return false;
    pe_trial_open(s, base, &t);
    if (t.model)
        fits = are_ids ? measure_ids(s->d, t.model, &m) && name_coordinates(s, base, &m)
                       : name_waves(s, base, t.model, &m);
    pe_trial_close(&t);
    pe_profile_drop(&m.believed);
    pe_profile_drop(&m.found);
    if (s->d->no_memory)
        s->status = pe_no_memory(s->err);
    return fits;
}

/* The other rules that give the positions of one axis and are not tried alone; with the numbers of the rule before it
 * one is the same in other words. */
static void name_other_rules(struct pe_search *s, const struct pe_measured *m)
{
    const struct pe_lists lists = lists_of(m, 0);
    const struct pe_hypothesis belief = {.n = 0};
    struct pe_related related, before = {.found = (double)NAN};
    double *predicted = malloc(lists.n * sizeof *predicted);
    s->d->no_memory |= !predicted;
    for (const struct pe_relation *row = pe_coordinate_relations; predicted && row != pe_listed(); row++) {
        if (row->cost > 1 || !row->test(&lists, predicted, &related) || !has_bits(m, 1, related.numbers))
            continue;
        bool is_same = related.found == before.found && related.believed == before.believed;
        bool is_tried = row->fault->n_alternatives > 0;
        struct pe_named *named = is_same || is_tried ? NULL : pe_named_new(s->d, lists.n);
        before = related;
        if (!named)
            continue;
        named->relation = row;
        named->related = related;
        named->axes = named->n_axes = 1;
        memcpy(named->predicted, predicted, lists.n * sizeof *predicted);
        struct pe_hypothesis h = pe_named_with(s->d, &belief, &named, 1);
        pe_named_try(s, &h);
    }
    free(predicted);
}

void pe_name_also(struct pe_search *s)
{
    const struct pe_hypothesis *best = &s->d->best[0].h, belief = {.n = 0};
    const struct pe_model *model = s->d->belief.model;
    struct pe_measured m;
    memset(&m, 0, sizeof m);
    if (pe_has_no_waves(s->d) && s->d->evidence.kind->id != PE_OF_ENCODING && s->d->belief.is_given)
        name_without_waves(s, &belief);
    enum pe_fault_kind kind = best->n == 1 ? pe_fault_kind_of(best->fault[0]) : PE_KIND_FINDING;
    if ((kind == PE_KIND_LADDER || kind == PE_KIND_SINUSOID) && pe_names_waves(s->d) && !model->is_misfit &&
        open_waves(s->d, model, &m))
        pe_name_ladders(s, &belief, model, &m);
    if (kind == PE_KIND_POSITIONS && pe_names_waves(s->d) && !model->is_misfit && model->plan->seq.n_axes == 1 &&
        open_waves(s->d, model, &m) && measure_waves(s->d, &m))
        name_other_rules(s, &m);
    pe_profile_drop(&m.believed);
    pe_profile_drop(&m.found);
    if (s->d->no_memory)
        s->status = pe_no_memory(s->err);
}
