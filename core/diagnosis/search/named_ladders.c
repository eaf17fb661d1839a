/* From measured frequencies to hypotheses.
 *
 * Frequencies are measured at the believed positions, from differences of phases, so that a shift of all rows does not
 * matter; where positions jump, in the longest stretch without a jump. A relation (../naming/frequencies.c) spells
 * fields, and their plan must have the measured frequencies before the hypothesis is tried. If it does not fit alone,
 * positions are measured once more, at the frequencies that are now known: a base, a layout and a stride that are all
 * wrong are found one after another, not together.
 *
 * A scaling that is missing beside another base are two steps: each first step (no scaling; the base of the fastest
 * pairs, which scalings leave alone) is taken, and the relations are asked again. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"
#include "core/schemes/rotary/rotary.h"

#include <stdlib.h>
#include <string.h>

/* ---- What was measured ---- */

/* The longest run of rows whose steps are the usual ones, and equal in the belief. */
static void find_stretch(const struct pe_measured *m, size_t *first, size_t *n)
{
    const double *x = m->believed.x;
    size_t begin = 0;
    *first = *n = 0;
    for (size_t i = 1; i <= m->reading->n; i++) {
        bool goes_on = i < m->reading->n && m->reading->piece[i] == m->reading->piece[begin];
        if (goes_on && i > begin + 1)
            goes_on = fabs(x[i] - x[i - 1] - (x[begin + 1] - x[begin])) < 1e-9;
        if (goes_on)
            continue;
        if (i - begin > *n) {
            *first = begin;
            *n = i - begin;
        }
        begin = i;
    }
}

/* Returns how many pairs turn evenly in these rows. */
static size_t measure_rows(struct pe_diagnosis *d, struct pe_measured *m, size_t first, size_t n)
{
    const struct pe_reading *r = m->reading;
    float *weight = calloc(r->n * r->n_waves + 1, sizeof *weight);
    d->no_memory |= !weight;
    for (size_t k = 0; weight && k < r->n_waves; k++)
        memcpy(weight + k * r->n + first, r->weight + k * r->n + first, n * sizeof *weight);
    const struct pe_sheet sheet = {r->re, r->im, weight, r->n, r->n_waves, m->noise};
    size_t n_even = weight ? pe_measure_frequencies(&sheet, &m->believed, &m->found, &d->work) : 0;
    free(weight);
    return n_even;
}

/* The numbers of a ladder that was sent. */
static bool copy_ladder(struct pe_measured *m)
{
    for (size_t k = 0; k < m->found.n_pairs; k++) {
        bool is_known = isfinite(m->reading->step[k]);
        m->found.w[k] = is_known ? m->reading->step[k] : 0;
        m->found.w_error[k] = is_known ? m->reading->error[k] : (double)INFINITY;
    }
    return true;
}

static bool measure_turns(struct pe_diagnosis *d, struct pe_measured *m)
{
    enum { PAIRS_MIN = 3 };
    size_t first, n, n_even = measure_rows(d, m, 0, m->reading->n);
    if (n_even == m->believed.n_pairs || m->believed.n_axes > 1)
        return n_even == m->believed.n_pairs ||
               n_even >= PAIRS_MIN; /* an axis whose positions are others may have no frequencies */
    find_stretch(m, &first, &n);
    return n > 2 && measure_rows(d, m, first, n) == m->believed.n_pairs;
}

/* A reading at these positions, as one number. */
static uint64_t key_of(const struct pe_measured *m)
{
    const unsigned char *bytes = (const unsigned char *)m->believed.x;
    uint64_t h = m->reading->key ^ m->believed.n_pairs;
    for (size_t i = 0; i < m->believed.n_axes * m->believed.n_rows * sizeof(double); i++)
        h = (h ^ bytes[i]) * 0x100000001b3U;
    return h;
}

/* Frequencies that did not turn evenly under one fault do not under another that changes no phase and no position. */
static bool measure(struct pe_diagnosis *d, struct pe_measured *m)
{
    struct pe_naming *naming = pe_naming_of(d);
    if (d->evidence.kind->id == PE_OF_LADDER)
        return copy_ladder(m);
    uint64_t key = key_of(m);
    for (size_t i = 0; naming && i < naming->n_uneven && i < PE_UNEVEN_MAX; i++)
        if (naming->uneven[i] == key)
            return false;
    bool is_even = measure_turns(d, m);
    if (naming && !is_even && !pe_is_cancelled())
        naming->uneven[naming->n_uneven++ % PE_UNEVEN_MAX] = key;
    return is_even;
}

/* ---- The ladder of pairs ---- */

/* Expanded tables have each pair twice: the first column of pair c. */
static size_t wave_of(const struct pe_model *m, size_t n_waves, size_t c)
{
    const struct pe_rotary *rotary = m->plan->scheme->rotate ? m->plan->tables : NULL;
    size_t k = 0;
    if (!rotary || n_waves == rotary->n_pairs)
        return c;
    double w = pe_quarter_turns(rotary->inv_freq[c]).hi;
    while (k < n_waves && m->columns[k].fh != w)
        k++;
    return k;
}

static size_t count_pairs(const struct pe_model *m)
{
    return m->plan->scheme->rotate ? ((const struct pe_rotary *)m->plan->tables)->n_pairs : pe_wave_count(m);
}

static void read_ladder(const struct pe_model *m, size_t n, double *w)
{
    const struct pe_rotary *rotary = m->plan->scheme->rotate ? m->plan->tables : NULL;
    if (!rotary)
        pe_wave_frequencies(m, n, w);
    for (size_t c = 0; rotary && c < n; c++)
        w[c] = rotary->inv_freq[c].hi;
}

/* The frequencies under these faults and fields. false: there is no such plan. */
static bool plan_ladder(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_spelling *spelling,
                        size_t n, double *w)
{
    struct pe_edit edit;
    struct pe_model *m = NULL;
    bool is_plan = pe_search_goes_on(s) && pe_hypothesis_apply(s->d, base, &edit);
    if (s->status || s->is_full)
        return false;
    is_plan =
        is_plan && pe_spelling_apply(s->d, spelling, &edit) && pe_edit_model(s->d, &edit, &m) && count_pairs(m) == n;
    if (is_plan)
        read_ladder(m, n, w);
    pe_model_free(m);
    pe_edit_drop(&edit);
    return is_plan;
}

/* The base under the believed scaling, which bends the ladder: several steps, each of a plan. */
static void fit_base(struct pe_search *s, const struct pe_hypothesis *base, struct pe_ladder *l)
{
    enum { STEPS = 5 };
    struct pe_spelling at = {.base = l->base};
    double *w = malloc(l->n * sizeof *w);
    s->d->no_memory |= !w;
    l->fitted = l->base;
    memcpy(w ? w : l->plain, l->believed, l->n * sizeof *w);
    for (int i = 0; w && i < STEPS; i++) {
        double before = l->fitted;
        l->fit_error = pe_ladder_base(l, w, 1, &l->fitted);
        at.base = l->fitted;
        if (!pe_is_base(l->fitted) || fabs(l->fitted / before - 1) < 1e-9 || !plan_ladder(s, base, &at, l->n, w))
            break;
    }
    free(w);
}

/* Exponents of the ladder without a scaling; NaN where no base gives it. */
static bool find_exponents(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_edit *edit,
                           struct pe_ladder *l)
{
    const struct pe_diagnosis *d = s->d;
    bool is_list = pe_edit_has(d, edit, "inv_freq");
    struct pe_spelling plain = {.base = (double)NAN, .type = pe_edit_has(d, edit, "scaling") ? "" : NULL};
    l->base = pe_edit_real(d, edit, "base", pe_edit_real(d, edit, "temperature", (double)NAN));
    if (is_list)
        plain.base = l->base = 10000;
    if (!pe_is_base(l->base) || !plan_ladder(s, base, &plain, l->n, l->plain))
        return false;
    for (size_t c = 0; c < l->n; c++)
        l->top = fmax(l->top, l->plain[c]);
    for (size_t c = 0; c < l->n; c++)
        l->exponent[c] = l->plain[c] > 0 ? -log(l->plain[c] / l->top) / log(l->base) : (double)NAN;
    size_t second = 1;
    while (second < l->n && !(l->exponent[second] > 1e-6))
        second++;
    double width = second < l->n ? 2 / l->exponent[second] : (double)NAN;
    l->width = fabs(width - nearbyint(width)) < 1e-6 * width ? nearbyint(width) : width;
    l->plain_fitted = l->base;
    l->plain_error = pe_ladder_base(l, l->plain, 1, &l->plain_fitted);
    if (is_list)
        l->base = (double)NAN;
    return true;
}

static double length_of(const struct pe_diagnosis *d, const struct pe_reading *r)
{
    double sum = 0;
    if (d->evidence.kind->id != PE_OF_TABLES && d->evidence.kind->id != PE_OF_ROTATED)
        return (double)NAN;
    for (size_t i = 0; i < r->n; i++)
        sum += hypot((double)r->re[i], (double)r->im[i]);
    return sum / (double)r->n;
}

/* Owned by the ladder's first list. false: no memory. */
static bool open_ladder(struct pe_search *s, const struct pe_model *under, const struct pe_measured *m,
                        struct pe_ladder *l)
{
    size_t n = count_pairs(under);
    *l = (struct pe_ladder){.d = s->d, .n = n, .length = length_of(s->d, m->reading)};
    l->found = calloc(5 * n + 1, sizeof *l->found);
    s->d->no_memory |= !l->found;
    if (!l->found || n > PE_WAVES_READ)
        return false;
    l->error = l->found + n;
    l->believed = l->error + n;
    l->plain = l->believed + n;
    l->exponent = l->plain + n;
    size_t n_back = 0, n_forth = 0;
    for (size_t c = 0; c < n; c++) {
        size_t k = wave_of(under, m->found.n_pairs, c);
        bool is_known = k < m->found.n_pairs;
        l->found[c] = is_known ? m->found.w[k] : 0;
        l->error[c] = is_known ? m->found.w_error[k] : (double)INFINITY;
        n_back += isfinite(l->error[c]) && l->found[c] < -3 * l->error[c];
        n_forth += isfinite(l->error[c]) && l->found[c] > 3 * l->error[c];
    }
    for (size_t c = 0; n_back > n_forth && c < n; c++) /* positions that run backwards */
        l->found[c] = -l->found[c];
    return true;
}

/* Divides the frequencies of each axis by what its fastest pair is too fast: positions that are multiplied. false: no
 * axis is. */
static bool divide_by_fastest(const struct pe_model *under, const struct pe_measured *m, struct pe_ladder *l)
{
    bool any = false;
    for (unsigned a = 0; a < m->believed.n_axes; a++) {
        size_t fastest = l->n;
        double most = 0;
        for (size_t c = 0; c < l->n; c++) {
            size_t k = wave_of(under, m->found.n_pairs, c);
            if (k < m->found.n_pairs && m->found.axis[k] == a && pe_ladder_error(l, c) < 1e-2 &&
                (fastest == l->n || m->believed.w[k] > most)) {
                fastest = c;
                most = m->believed.w[k];
            }
        }
        double by = fastest < l->n ? l->found[fastest] / most : 1;
        if (!(by > 0) || fabs(by - 1) < 1e-5)
            continue;
        any = true;
        for (size_t c = 0; c < l->n; c++) {
            size_t k = wave_of(under, m->found.n_pairs, c);
            if (k < m->found.n_pairs && m->found.axis[k] == a) {
                l->found[c] /= by;
                l->error[c] /= by;
            }
        }
    }
    return any;
}

/* ---- Hypotheses ---- */

struct naming {
    struct pe_search *s;
    const struct pe_model *under;
    struct pe_measured *m;
    struct pe_ladder *l;
    double *w; /* [n] */
};

/* Do the phases carry more bits than so many numbers take? Those of a ladder that was sent are its numbers'. */
static bool tells(const struct naming *n, unsigned numbers)
{
    const struct pe_profile *p = &n->m->found, *believed = &n->m->believed;
    const struct pe_reading *r = n->m->reading;
    bool is_list = n->s->d->evidence.kind->id == PE_OF_LADDER;
    double bits = 0;
    for (size_t k = 0; k < p->n_pairs; k++)
        for (size_t i = 0; !is_list && isfinite(p->w_error[k]) && i < r->n; i++) {
            double angle = fabs(believed->x[believed->axis[k] * r->n + i] * p->w[k]);
            if (r->weight[k * r->n + i] > 0)
                bits += fmax(0, log2(PI / (3 * n->m->noise + angle * 0x1p-21)));
        }
    for (size_t c = 0; is_list && c < n->l->n; c++)
        bits += fmax(0, -log2(pe_ladder_error(n->l, c)));
    return bits > PE_BITS_OF_A_NUMBER * (1.0 + numbers);
}

/* Alone, then with the positions that are measured at its frequencies. */
static bool try_one(const struct naming *n, const struct pe_hypothesis *base, struct pe_named *named)
{
    struct pe_hypothesis h = pe_named_with(n->s->d, base, &named, 1);
    bool fits = pe_named_try(n->s, &h);
    return fits || (n->s->d->evidence.kind->id != PE_OF_LADDER && h.n < PE_FAULTS_MAX && pe_name(n->s, &h));
}

static struct pe_named *keep(const struct naming *n, const struct pe_hypothesis *base,
                             const struct pe_frequency_relation *row, struct pe_related related)
{
    unsigned numbers = related.numbers + pe_named_numbers(n->s->d, base);
    struct pe_named *named = tells(n, numbers) ? pe_named_new(n->s->d, n->l->n) : NULL;
    if (!named)
        return NULL;
    named->relation = &row->said;
    named->is_ladder = true;
    named->is_list = row->list;
    named->related = related;
    named->n_pairs = n->l->n;
    return named;
}

static bool try_list(const struct naming *n, const struct pe_hypothesis *base, const struct pe_frequency_relation *row)
{
    const struct pe_rotary *rotary = n->under->plan->scheme->rotate ? n->under->plan->tables : NULL;
    struct pe_related related;
    if (!rotary || !row->list(n->l, n->w, &related) || !pe_ladder_holds(n->l, n->w))
        return false;
    struct pe_named *named = keep(n, base, row, related);
    if (!named)
        return false;
    memcpy(named->predicted, n->w, n->l->n * sizeof *n->w);
    named->attention_factor = rotary->attention_factor.hi;
    return try_one(n, base, named);
}

static struct pe_named *keep_spelling(const struct naming *n, const struct pe_hypothesis *base,
                                      const struct pe_frequency_relation *row, const struct pe_spelling *spelling)
{
    struct pe_named *named = keep(n, base, row, spelling->related);
    if (named)
        named->spelling = *spelling;
    return named;
}

static bool try_spellings(const struct naming *n, const struct pe_hypothesis *base,
                          const struct pe_frequency_relation *row)
{
    struct pe_spellings all = {.n = 0};
    bool fits = false;
    row->spell(n->l, &all);
    for (size_t i = 0; i < all.n && !fits; i++) {
        if (!plan_ladder(n->s, base, &all.list[i], n->l->n, n->w) || !pe_ladder_holds(n->l, n->w))
            continue;
        struct pe_named *named = keep_spelling(n, base, row, &all.list[i]);
        fits = named && try_one(n, base, named);
    }
    return fits;
}

/* Which relations are asked: all; none that is a list of free numbers, where frequencies are known but for a factor;
 * none that is a list, beside a first step. */
enum asked { ALL, NO_FREE_LISTS, NO_LISTS };

/* Every row, in order. Under the belief alone all that fit are other readings of each other; lists of free numbers are
 * none. */
static bool try_rows(const struct naming *n, const struct pe_hypothesis *base, enum asked asked)
{
    enum { OF_FREE_NUMBERS = 3 };
    bool fits = false;
    for (size_t i = 0; i < pe_n_frequency_relations && !n->s->status && !n->s->is_full; i++) {
        const struct pe_frequency_relation *row = &pe_frequency_relations[i];
        bool is_free = row->said.cost >= OF_FREE_NUMBERS, is_done = fits && (is_free || base->n > 0);
        if (!is_done && (row->spell || asked == ALL || (asked == NO_FREE_LISTS && !is_free)))
            fits |= row->spell ? try_spellings(n, base, row) : try_list(n, base, row);
    }
    return fits;
}

/* What is believed of the ladder under these faults, whose edit stays open. false: it is no ladder. */
static bool set_ladder(const struct naming *n, const struct pe_hypothesis *base, struct pe_edit *edit)
{
    struct pe_spelling nothing = {.base = (double)NAN};
    n->l->edit = edit;
    n->l->top = 0;
    n->l->fitted = n->l->plain_fitted = (double)NAN;
    if (!pe_hypothesis_apply(n->s->d, base, edit) || !plan_ladder(n->s, base, &nothing, n->l->n, n->l->believed))
        return false;
    if (find_exponents(n->s, base, edit, n->l)) {
        fit_base(n->s, base, n->l);
        return true;
    }
    for (size_t c = 0; c < n->l->n; c++)
        n->l->exponent[c] = n->l->plain[c] = (double)NAN;
    return true;
}

static bool try_under(const struct naming *n, const struct pe_hypothesis *base, enum asked asked);

/* Steps that leave a part of the ladder to another relation. */
static bool try_steps(const struct naming *n, const struct pe_hypothesis *base)
{
    struct pe_spellings all[PE_STEPS_MAX];
    const struct pe_frequency_relation *rows[PE_STEPS_MAX];
    size_t n_steps = 0;
    bool fits = false;
    for (size_t i = 0; i < pe_n_frequency_relations && n_steps < PE_STEPS_MAX; i++)
        if (pe_frequency_relations[i].first) {
            all[n_steps].n = 0;
            rows[n_steps] = &pe_frequency_relations[i];
            pe_frequency_relations[i].first(n->l, &all[n_steps++]);
        }
    for (size_t i = 0; i < n_steps; i++)
        for (size_t j = 0; j < all[i].n && !fits; j++) {
            struct pe_named *named = keep_spelling(n, base, rows[i], &all[i].list[j]);
            struct pe_hypothesis h;
            if (!named)
                return false;
            h = pe_named_with(n->s->d, base, &named, 1);
            fits = try_under(n, &h, NO_LISTS);
        }
    return fits;
}

static bool try_under(const struct naming *n, const struct pe_hypothesis *base, enum asked asked)
{
    struct pe_edit edit;
    pe_edit_init(&edit);
    bool fits = base->n < PE_FAULTS_MAX && set_ladder(n, base, &edit) && try_rows(n, base, asked);
    if (!pe_best_fits(n->s->d, 2) && asked != NO_LISTS && base->n + 1 < PE_FAULTS_MAX)
        fits |= try_steps(n, base);
    pe_edit_drop(&edit);
    return fits;
}

bool pe_name_ladders(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_model *under,
                     struct pe_measured *m)
{
    struct pe_ladder l = {.n = 0};
    bool fits = false;
    if (measure(s->d, m) && open_ladder(s, under, m, &l)) {
        double *w = malloc(l.n * sizeof *w);
        const struct naming n = {s, under, m, &l, w};
        s->d->no_memory |= !w;
        fits = w && try_under(&n, base, ALL);
        if (w && !pe_best_fits(s->d, 2) && divide_by_fastest(under, m, &l))
            fits |= try_under(&n, base, NO_FREE_LISTS);
        free(w);
    }
    free(l.found);
    return fits;
}
