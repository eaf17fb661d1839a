/* Hypotheses: one to three faults applied to one edit; their cost and their order. Here is what makes one explanation
 * better than another, the first criterion that differs deciding:
 *
 * - Fit: one that gives the numbers to their last rounding, or nearly, goes before all that do not.
 * - Cost: the number of faults, where a fitted list of free numbers counts for several. A fit by many free numbers
 *   explains nothing, as a polynomial through all points does not; it is Occam's razor as a count (minimum description
 *   length, Rissanen 1978).
 * - Verdict: exact before equal but for roundings. A fitted value with many digits may have followed the noise, so its
 *   exactness does not count.
 * - Surprise: how unlikely the mistake is for a person who ports a model (faults/list.h has the numbers): an exchanged
 *   layout is common, a base of 10007.3 is not. A mistake in a field that the request states explicitly surprises less
 *   than one in a default.
 * - The order of the table, so that equal candidates have one order on every machine.
 *
 * Several candidates with the same numbers are all reported; search/equivalent.c finds where they would differ. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count(const struct pe_diagnosis *d, const struct pe_fault *f)
{
    return f->count ? f->count(d) : f->n_alternatives;
}

static bool is_fit(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i)
{
    const struct pe_fault *f = pe_fault_row(h->fault[i]);
    if (pe_named_of(d, h, i))
        return true;
    return f->n_fits && h->choice[i] + f->n_fits >= count(d, f);
}

static bool apply_one(struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i, struct pe_edit *edit)
{
    const struct pe_named *named = pe_named_of(d, h, i);
    edit->now = (unsigned char)i;
    if (named)
        return pe_named_apply(d, named, edit) && !edit->failed;
    return pe_fault_apply(d, pe_fault_row(h->fault[i]), h->choice[i], edit) && !edit->failed;
}

/* Fitted values depend on the other faults: those are applied first. */
bool pe_hypothesis_apply(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit)
{
    enum { RANKS = 3 };
    bool applies = true;
    pe_edit_init(edit);
    for (unsigned rank = 0; rank <= RANKS; rank++)
        for (unsigned i = 0; applies && i < h->n; i++)
            if ((is_fit(d, h, i) ? pe_fault_row(h->fault[i])->fit_rank + 1U : 0) == rank)
                applies = apply_one(d, h, i, edit);
    return applies;
}

bool pe_hypothesis_is_fitted(const struct pe_diagnosis *d, const struct pe_hypothesis *h)
{
    for (unsigned i = 0; i < h->n; i++)
        if (is_fit(d, h, i))
            return true;
    return false;
}

bool pe_hypothesis_is_told(const struct pe_diagnosis *d, const struct pe_hypothesis *h, double bits)
{
    unsigned n_numbers = 0;
    for (unsigned i = 0; i < h->n; i++)
        n_numbers += is_fit(d, h, i);
    return (h->n == 0 && d->belief.is_given) || bits > PE_BITS_OF_A_NUMBER * (1.0 + n_numbers);
}

unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h)
{
    unsigned cost = 0;
    for (unsigned i = 0; i < h->n; i++) {
        unsigned of_fit = pe_fault_row(h->fault[i])->fit_cost;
        const struct pe_named *named = pe_named_of(d, h, i);
        cost += named ? named->relation->cost : is_fit(d, h, i) && of_fit ? of_fit : 1;
    }
    return cost;
}

/* ---- Surprise ---- */

static bool has_many_digits(double x)
{
    enum { FEW = 3 };
    char text[32];
    snprintf(text, sizeof text, "%.*e", FEW - 1, x);
    return strtod(text, NULL) != x;
}

static bool is_factor_long(const struct pe_value *scaling)
{
    const struct pe_value *v = pe_field_find(scaling->object.fields, scaling->object.n, "factor");
    return v && v->kind == PE_REAL && has_many_digits(v->real);
}

/* Of a list of positions, the step and the first one, if that is not the believed one. */
static bool are_digits_many(const struct pe_diagnosis *d, const struct pe_value *v)
{
    if (v->kind == PE_INTEGER || v->kind == PE_REAL)
        return has_many_digits(v->kind == PE_INTEGER ? (double)v->integer : v->real);
    if (v->kind == PE_OBJECT)
        return is_factor_long(v);
    if (v->kind != PE_ARRAY)
        return false;
    const double *x = v->array.data;
    bool is_list = v->array.rank == 1 && v->array.shape[0] > 1;
    return (is_list && has_many_digits(x[1] - x[0])) || (x[0] != pe_belief_position(d, 0) && has_many_digits(x[0]));
}

/* Lists of free numbers do not count: no person would have typed a rounder one. */
static bool is_fitted_long(const struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_explanation *k,
                           unsigned i)
{
    const struct pe_fault *fault = pe_fault_row(k->h.fault[i]);
    bool is_place = pe_fault_kind_of(k->h.fault[i]) == PE_KIND_POSITIONS;
    if (!is_fit(d, &k->h, i) || fault->fit_cost > 1)
        return false;
    for (size_t j = 0; j < edit->n_fields; j++) {
        const struct pe_value *v = &edit->fields[j].value;
        if (edit->by[j] == i && (is_place || v->kind != PE_ARRAY) && !pe_same(edit->fields[j].name, "len") &&
            are_digits_many(d, v))
            return true;
    }
    return fault->is_factor && has_many_digits(edit->transforms.scaled);
}

/* Positions of the tensor are not part of a model's description; how its sequences are packed is. */
static bool may_be_stated(const char *name)
{
    return !pe_param_find(pe_sequence_params(), name) ||
           pe_is_among("attention_mask|lens|cu_seqlens|shard|segments", name);
}

static bool is_changed(const struct pe_diagnosis *d, const struct pe_field *field)
{
    const struct pe_value *v = &field->value, *believed = pe_edit_value(d, NULL, field->name);
    bool are_numbers = believed && (v->kind == PE_INTEGER || v->kind == PE_REAL);
    if (are_numbers)
        return pe_edit_real(d, NULL, field->name, (double)NAN) != (v->kind == PE_REAL ? v->real : (double)v->integer);
    return !(believed && v->kind == PE_STRING && believed->kind == PE_STRING && pe_same(v->string, believed->string));
}

static bool contradicts(const struct pe_diagnosis *d, const struct pe_edit *edit, unsigned i)
{
    for (size_t j = 0; j < edit->n_fields; j++) {
        const struct pe_field *field = &edit->fields[j];
        if (edit->by[j] == i && may_be_stated(field->name) && pe_belief_states(d, field->name) && is_changed(d, field))
            return true;
    }
    return false;
}

void pe_hypothesis_wonder(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_explanation *k)
{
    enum { OF_DIGITS = 2, OF_A_STATED_FIELD = 2 };
    k->surprise = 0;
    for (unsigned i = 0; i < k->h.n; i++) {
        const struct pe_fault *fault = pe_fault_row(k->h.fault[i]);
        bool is_long = is_fitted_long(d, edit, k, i), is_named = pe_named_of(d, &k->h, i),
             is_own = fault->surprise_of && !is_named;
        k->surprise += pe_fault_surprise(k->h.fault[i]) + (is_own ? fault->surprise_of(d, k->h.choice[i]) : 0);
        k->surprise -= is_named; /* its sentence has more */
        k->surprise += is_long * OF_DIGITS - contradicts(d, edit, i) * OF_A_STATED_FIELD;
        k->follows_noise |= is_long && pe_fault_kind_of(k->h.fault[i]) != PE_KIND_POSITIONS;
    }
}

/* ---- The order of candidates ---- */

static int group(const struct pe_score *s) { return pe_fits(s->verdict) ? 0 : (int)s->verdict; }

static int by_table(const struct pe_hypothesis *a, const struct pe_hypothesis *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++) {
        if (a->fault[i] != b->fault[i])
            return a->fault[i] < b->fault[i] ? -1 : 1;
        if (a->choice[i] != b->choice[i])
            return a->choice[i] < b->choice[i] ? -1 : 1;
    }
    return (int)a->n - (int)b->n;
}

static int verdict(const struct pe_explanation *k)
{
    return k->follows_noise && pe_fits(k->score.verdict) ? PE_ROUNDING : (int)k->score.verdict;
}

int pe_explanation_compare(const struct pe_explanation *a, const struct pe_explanation *b)
{
    int by_group = group(&a->score) - group(&b->score), by_cost = (int)a->cost - (int)b->cost;
    int by_verdict = verdict(a) - verdict(b), table = by_table(&a->h, &b->h);
    int by_surprise = pe_fits(a->score.verdict) ? a->surprise - b->surprise : 0;
    if (by_group || by_cost || by_verdict || by_surprise || table)
        return by_group ? by_group : by_cost ? by_cost : by_verdict ? by_verdict : by_surprise ? by_surprise : table;
    return a->score.max_error < b->score.max_error ? -1 : a->score.max_error > b->score.max_error;
}

/* ---- The best ones ---- */

/* Keeps the best hypotheses while the search runs: a short sorted list (hypothesis.c has the order), the best of each
 * kind, and the nearest, for an answer that explains nothing.
 *
 * Many hypotheses give the same plan, e.g. a base doubled or a scaling by NTK. A signature of the plan finds them
 * without comparing numbers, and only the best of them stays, unless both fit by faults that have nothing in common:
 * then the reader should see both, since the tensor cannot decide between them. */

static bool share_a_fault(const struct pe_hypothesis *a, const struct pe_hypothesis *b)
{
    for (unsigned i = 0; i < a->n; i++)
        for (unsigned j = 0; j < b->n; j++)
            if (a->fault[i] == b->fault[j])
                return true;
    return false;
}

/* Is b another way to the numbers of a that is worth an answer? Only where they fit, and only by other faults: beside
 * the same second mistake, a scaling that changes nothing explains no more than one that is missing. The belief needs
 * no other way. */
static bool is_another_way(const struct pe_explanation *a, const struct pe_explanation *b)
{
    return a->h.n > 0 && !share_a_fault(&a->h, &b->h) && pe_fits(a->score.verdict) && pe_fits(b->score.verdict);
}

static void insert(struct pe_diagnosis *d, const struct pe_explanation *k)
{
    size_t i = d->n_best;
    for (size_t j = 0; j < d->n_best; j++)
        if (d->best[j].signature == k->signature && !is_another_way(&d->best[j], k)) {
            if (pe_explanation_compare(k, &d->best[j]) >= 0)
                return;
            memmove(&d->best[j], &d->best[j + 1], (d->n_best - j - 1) * sizeof *d->best);
            d->n_best--;
            break;
        }
    for (i = d->n_best; i > 0 && pe_explanation_compare(k, &d->best[i - 1]) < 0; i--)
        ;
    if (i == PE_BEST_MAX)
        return;
    size_t moved = d->n_best - i - (d->n_best == PE_BEST_MAX);
    memmove(&d->best[i + 1], &d->best[i], moved * sizeof *d->best);
    d->best[i] = *k;
    d->n_best += d->n_best < PE_BEST_MAX;
}

void pe_best_keep(struct pe_diagnosis *d, struct pe_explanation *k, const struct pe_model *model)
{
    struct pe_explanation *of_kind = k->h.n == 1 ? &d->of_kind[pe_fault_kind_of(k->h.fault[0])] : NULL;
    if (of_kind && (of_kind->score.verdict == PE_NOT_JUDGED || k->score.verdict < of_kind->score.verdict ||
                    (k->score.verdict == of_kind->score.verdict && k->score.max_error < of_kind->score.max_error)))
        *of_kind = *k;
    if (d->nearest.score.verdict == PE_NOT_JUDGED || k->score.max_error < d->nearest.score.max_error)
        d->nearest = *k;
    bool is_full = d->n_best == PE_BEST_MAX;
    if (is_full && pe_explanation_compare(k, &d->best[PE_BEST_MAX - 1]) >= 0)
        return;
    k->signature = pe_model_signature(model);
    insert(d, k);
}

bool pe_best_fits(const struct pe_diagnosis *d, unsigned cost)
{
    return d->n_best && pe_fits(d->best[0].score.verdict) && d->best[0].cost <= cost;
}

/* Comparing one with all numbers takes long. What does not fit is only answered where nothing does. */
void pe_best_trim(struct pe_diagnosis *d)
{
    enum { ANSWERED = 5 };
    size_t n = 0;
    while (n < d->n_best && pe_fits(d->best[n].score.verdict))
        n++;
    if (n == 0)
        n = d->n_best < ANSWERED ? d->n_best : ANSWERED;
    d->n_best = n;
}

/* ---- Signatures ---- */

/* Signatures: two models with the same one give the same numbers at every position. */

/* FNV-1a, over doubles rounded to floats, so that two ways to the same number agree. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3U;
    return h;
}

static uint64_t hash(uint64_t h, double x)
{
    float f = (float)(x + 0.0); /* -0 becomes 0 */
    return hash_bytes(h, &f, sizeof f);
}

static uint64_t hash_transforms(uint64_t h, const struct pe_transforms *t)
{
    const double parts[] = {t->recipe,
                            (double)t->sinusoid,
                            t->sin_cos_swapped,
                            t->negated,
                            t->transposed,
                            t->scaled,
                            t->n_axes,
                            t->inverted,
                            t->bias,
                            (double)t->stage,
                            t->sides[0],
                            t->sides[1],
                            t->is_tiled,
                            t->moved,
                            t->kernel.kind,
                            t->kernel.rule,
                            t->kernel.is_wide,
                            t->kernel.a,
                            t->kernel.offset,
                            t->kernel.by_column,
                            t->kernel.table_by_column,
                            t->mirrored,
                            t->turn};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        h = hash(h, parts[i]);
    if (!isnan(t->mask_value))
        h = hash(h, t->mask_value);
    if (!isnan(t->wrapped_from))
        h = hash(h, t->wrapped_from);
    if (t->scaling_behind)
        h = hash(hash(h, (double)t->switched_at), t->is_growing);
    return hash_bytes(h, t->order, t->n_axes);
}

/* Attention factors do not show in angles and frequencies. */
static uint64_t hash_columns(uint64_t h, const struct pe_model *m)
{
    enum pe_evidence_id id = m->d->evidence.kind->id;
    bool has_factor = id != PE_OF_ANGLES && id != PE_OF_LADDER;
    for (size_t c = 0; c < m->n_columns; c++) {
        const struct pe_wave *w = &m->columns[c];
        h = hash(hash(hash(hash(h, w->fh), has_factor ? w->ah : 1), w->quarter), w->axis);
    }
    h = hash(hash(h, (double)m->axes.n), (double)m->axes.row_step);
    for (unsigned a = 0; a < m->plan->seq.n_axes; a++)
        for (uint64_t i = 0; i < m->plan->seq.k[a].n; i++)
            h = hash(h, pe_position_at(&m->plan->seq.k[a], i));
    return h;
}

/* The numbers of the sample, where there are no waves, and where they do not show everything (xPos, channels). */
static uint64_t hash_sample(uint64_t h, const struct pe_model *m)
{
    const struct pe_sample *s = &m->d->sample;
    for (size_t i = 0; m->has_shape && i < s->n_pieces && (!m->columns || i < s->n_first); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, s->expected + p->at);
        for (size_t j = 0; j < p->n; j++)
            h = hash(h, s->expected[p->at + j] + 4 * m->d->evidence.largest);
    }
    return h;
}

/* Maps of queries and keys may agree where the evidence is, and differ farther away. */
static uint64_t hash_beyond(uint64_t h, const struct pe_model *m)
{
    enum { MOST = 1024 };
    double x[MOST];
    const struct pe_evidence_kind *kind = m->d->evidence.kind;
    size_t n = kind->fill_beyond ? kind->fill_beyond(m, MOST, x) : 0;
    for (size_t i = 0; i < n; i++)
        h = hash(h, x[i]);
    return h;
}

uint64_t pe_model_signature(const struct pe_model *m)
{
    uint64_t h = hash_transforms(0xcbf29ce484222325U, &m->transforms);
    return hash_beyond(hash_sample(hash_columns(h, m), m), m);
}
