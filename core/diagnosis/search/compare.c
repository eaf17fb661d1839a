/* One model beside the evidence: at the sample, for each of thousands of hypotheses; then at every number, for the few
 * best.
 *
 * The problem is time. A wrong configuration is wrong nearly everywhere, so a look at a few hundred numbers refuses
 * nine hypotheses of ten; the sample (evidence/sample.c) is ordered so that this first look has first and last rows,
 * where mistakes show. Only a hypothesis that may still fit, or be near, is compared with the rest of it.
 *
 * A number may be right without being equal. It is exact, or within what right float32 code may lose, which grows with
 * the angle (evidence/judge.c has the bounds). That loss, the phase of a number, takes as long to compute as the
 * number, so it is computed only where the verdict may depend on it.
 *
 * The sample decides which hypotheses are candidates and nothing else: verdicts and errors of an answer are those of
 * all numbers (pe_compare_all). Numbers that were typed are all there is, and each is judged by its own digits. */
#include "core/diagnosis/diagnosis.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The sample ---- */

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
    if (pe_judge_is_relative(j) || j->id == PE_OF_BIAS || j->id == PE_OF_MAPS || j->u == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (fabs(found[i] - expected[i]) > most)
            return false;
    return pe_judge_needs_phases(j, found, expected, n);
}

/* The numbers found; of a tensor that was printed, as near to the prediction as they may be. */
static const double *found_of(const struct pe_sample *s, const struct pe_model *m, struct look look)
{
    if (!pe_is_printed(&m->d->evidence))
        return s->found;
    for (size_t i = look.first; i < look.end; i++) {
        const struct pe_piece *p = &s->pieces[i];
        memcpy(s->settled + p->at, s->found + p->at, p->n * sizeof *s->found);
        pe_printed_settle(&m->d->evidence, p, s->expected + p->at, s->settled + p->at);
    }
    return s->settled;
}

static void add_pieces(const struct pe_sample *s, const struct pe_model *m, struct look look, struct pe_tally *tally)
{
    if (look.first == look.end)
        return;
    const double *found = found_of(s, m, look);
    size_t at = s->pieces[look.first].at, end = s->pieces[look.end - 1].at + s->pieces[look.end - 1].n;
    bool phased = tally->is_rounding && depends_on_phases(&tally->judge, found + at, s->expected + at, end - at);
    if (phased)
        fill_phases(s, m, look);
    pe_tally_add(tally, found + at, s->expected + at, phased ? s->phase + at : NULL, end - at);
}

static bool is_hopeless(const struct pe_tally *t)
{
    return t->has_infinity_elsewhere ||
           (!t->is_rounding && t->sum_error2 > HOPELESS_SHARE * HOPELESS_SHARE * t->sum_found2);
}

/* Numbers that were typed, each by its own digits. */
static void add_typed(struct pe_diagnosis *d, const struct pe_model *model, struct pe_tally *tally)
{
    const struct pe_sample *s = &d->sample;
    for (size_t i = 0; i < s->n_pieces; i++) {
        const struct pe_piece *p = &s->pieces[i];
        tally->judge = pe_typed_judge(&d->evidence, i);
        pe_model_fill(model, p->t, p->row, p->col0, 1, s->expected + i);
        pe_model_phases(model, p->t, p->row, p->col0, 1, s->phase + i);
        pe_tally_add(tally, s->found + i, s->expected + i, s->phase + i, 1);
    }
}

static struct pe_score evaluate_typed(struct pe_diagnosis *d, const struct pe_model *model)
{
    struct pe_tally tally;
    const struct pe_judge judge = pe_judge_of(&d->evidence, false);
    pe_tally_init(&tally, &judge);
    add_typed(d, model, &tally);
    return (struct pe_score){pe_tally_verdict(&tally), tally.max_error, tally.max_error, (double)INFINITY};
}

struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model)
{
    if (d->evidence.is_typed)
        return evaluate_typed(d, model);
    const struct pe_sample *s = &d->sample;
    const struct pe_evidence *e = &d->evidence;
    struct look first = {0, s->n_first}, rest = {s->n_first, s->n_pieces};
    struct pe_tally tally;
    fill(s, model, first);
    bool is_ladder = e->kind->id == PE_OF_LADDER, is_narrow = e->narrow != PE_DTYPE_NONE;
    bool narrow = is_ladder ? pe_model_is_cast(model) : is_narrow && is_wider(e, s->expected, s->n_first_numbers);
    struct pe_judge judge = pe_judge_of(e, narrow);
    pe_tally_init(&tally, &judge);
    add_pieces(s, model, first, &tally);
    struct pe_score score = {.max_error = tally.max_error, .first_error = tally.max_error, .verdict = PE_NO_FIT};
    if (is_hopeless(&tally))
        return score;
    fill(s, model, rest);
    add_pieces(s, model, rest, &tally);
    score.max_error = tally.max_error;
    score.verdict = pe_tally_verdict(&tally);
    score.bits = tally.bits;
    return score;
}

/* ---- All numbers ---- */

/* A row of each tensor. */
static bool rows_new(struct pe_row *rows, size_t n_tensors, size_t n)
{
    double *room = malloc(3 * (n_tensors * n + 1) * sizeof *room);
    for (size_t t = 0; room && t < n_tensors; t++, room += 3 * n)
        rows[t] = (struct pe_row){room, room + n, room + 2 * n, n};
    return room;
}

/* ---- Figures of a row ---- */

struct figures {
    uint64_t n_equal;
    double max_error, max_ulp; /* from the rounded numbers */
    double largest_gap;        /* from the unrounded ones */
};

/* f32 without a branch or a call, because most tensors are f32 and have millions of numbers. */
static struct figures figures_f32(const struct pe_row *row)
{
    uint64_t n_equal = 0;
    int64_t steps = 0;
    double error = 0, gap = 0;
    for (size_t c = 0; c < row->n; c++) {
        float found = (float)row->found[c], rounded = (float)row->expected[c];
        int64_t apart = pe_steps_f32(found, rounded);
        double e = fabs(row->found[c] - (double)rounded), g = fabs(row->found[c] - row->expected[c]);
        n_equal += found == rounded;
        steps = apart > steps ? apart : steps;
        error = e > error ? e : error;
        gap = g > gap ? g : gap;
    }
    return (struct figures){n_equal, error, (double)steps, gap};
}

static struct figures figures_of(const struct pe_judge *j, const struct pe_row *row)
{
    struct figures f = {0, 0, 0, 0};
    if (j->dtype == PE_F32)
        return figures_f32(row);
    for (size_t c = 0; c < row->n; c++) {
        double rounded = pe_round_to(j->dtype, row->expected[c]), found = row->found[c];
        f.n_equal += found == rounded;
        f.max_error = fmax(f.max_error, fabs(found - rounded));
        f.max_ulp = fmax(f.max_ulp, pe_steps_between(j->dtype, found, rounded));
        f.largest_gap = fmax(f.largest_gap, fabs(found - row->expected[c]));
    }
    return f;
}

static void find_first_bad(struct pe_comparison *out, const struct pe_judge *j, const struct pe_row *row, size_t t,
                           uint64_t i)
{
    for (size_t c = 0; c < row->n && !(out->first_bad.is_any && out->first_bad.t <= t); c++)
        if (!pe_is_exact(j, row->found[c], row->expected[c], row->phase[c]))
            out->first_bad = (struct pe_misfit){true, t, i, c, row->found[c], pe_round_to(j->dtype, row->expected[c])};
}

/* The number of the row whose error is so large. */
static void find_worst(struct pe_comparison *out, const struct pe_judge *j, const struct pe_row *row, size_t t,
                       uint64_t i, double error)
{
    for (size_t c = 0; c < row->n; c++) {
        double rounded = pe_round_to(j->dtype, row->expected[c]);
        if (fabs(row->found[c] - rounded) == error)
            out->worst = (struct pe_misfit){true, t, i, c, row->found[c], rounded};
    }
}

/* More than the rounding of products and sums explains. In f64, angles cost a few units of their size too. */
static void find_beyond(struct pe_comparison *out, const struct pe_judge *j, const struct pe_row *row, uint64_t i)
{
    for (size_t c = 0; c < row->n && !out->is_beyond; c++) {
        double least = fmax((j->id == PE_OF_ROTATED ? 12 : 4) * j->u, 0x1p-27 * row->phase[c]) * j->largest;
        out->is_beyond = fabs(row->found[c] - row->expected[c]) > least;
        out->beyond_row = i;
        out->beyond_col = c;
    }
}

/* May a number of the row be outside `exact`? */
static bool is_suspect(const struct pe_judge *j, const struct figures *f, size_t n)
{
    if (j->u == 0)
        return f->n_equal < n;
    return f->max_ulp > 1;
}

static void add_row(struct pe_comparison *out, const struct pe_judge *j, const struct pe_row *row, size_t t, uint64_t i)
{
    struct figures f = figures_of(j, row);
    out->n += row->n;
    out->n_equal += f.n_equal;
    if (f.max_error > out->max_error)
        find_worst(out, j, row, t, i, f.max_error);
    out->max_error = fmax(out->max_error, f.max_error);
    out->max_ulp = fmax(out->max_ulp, f.max_ulp);
    if (!(out->first_bad.is_any && out->first_bad.t <= t) && is_suspect(j, &f, row->n))
        find_first_bad(out, j, row, t, i);
    if (!out->is_beyond && !pe_judge_is_relative(j) && f.largest_gap > 4 * j->u * j->largest)
        find_beyond(out, j, row, i);
}

/* Phases take longer than the comparison, and most rows do not need them. */
static void set_phases(const struct pe_model *model, const struct pe_judge *j, size_t t, uint64_t i, struct pe_row *row)
{
    if (pe_judge_needs_phases(j, row->found, row->expected, row->n))
        pe_model_phases(model, t, i, 0, row->n, row->phase);
    else
        memset(row->phase, 0, row->n * sizeof *row->phase);
}

/* One row of every tensor. The first number that differs is that of the first tensor that has one. */
static void compare_row(struct pe_diagnosis *d, struct pe_model *model, uint64_t i, struct pe_row *rows,
                        struct pe_tally *tally, struct pe_own *own, struct pe_comparison *out)
{
    const struct pe_judge *j = &tally->judge;
    for (size_t t = 0; t < d->evidence.n_tensors; t++) {
        struct pe_row *row = &rows[t];
        pe_evidence_read(&d->evidence, t, i, 0, row->n, row->found);
        pe_model_fill(model, t, i, 0, row->n, row->expected);
        if (pe_is_printed(&d->evidence))
            out->n_left_out +=
                pe_printed_settle(&d->evidence, &(struct pe_piece){t, i, 0, row->n, 0}, row->expected, row->found);
        set_phases(model, j, t, i, row);
        pe_tally_add(tally, row->found, row->expected, row->phase, row->n);
        add_row(out, j, row, t, i);
    }
    if (tally->is_rounding && !pe_is_printed(&d->evidence)) /* else digits hide how far off each is beside the others */
        pe_own_add(own, i, rows);
}

static enum pe_status compare(struct pe_diagnosis *d, struct pe_model *model, const struct pe_judge *j,
                              struct pe_row *rows, struct pe_comparison *out, struct pe_failure *err)
{
    bool is_map = d->evidence.kind->id == PE_OF_MAPS; /* a row of it takes a millisecond */
    struct pe_tally tally;
    struct pe_own *own = pe_own_new(model, j);
    enum pe_status status = own ? PE_OK : pe_no_memory(err);
    pe_tally_init(&tally, j);
    for (uint64_t i = 0; !status && i < d->evidence.n_rows; i++) {
        if ((is_map || i % 64 == 0) && pe_is_cancelled())
            status = pe_cancelled(err);
        else if (!pe_evidence_is_padding(&d->evidence, i))
            compare_row(d, model, i, rows, &tally, own, out);
    }
    out->verdict = d->evidence.aside && out->n == 0 ? PE_NO_FIT : pe_tally_verdict(&tally);
    out->bits = tally.bits;
    if (tally.has_infinity_elsewhere)
        out->max_error = (double)INFINITY;
    if (!status)
        pe_own_end(own, out);
    free(own);
    out->n -= out->n_left_out; /* counted as equal so far */
    out->n_equal -= out->n_left_out;
    return status;
}

/* Its numbers are counted, not numbered by row and column. Steps of a dtype mean nothing. */
static enum pe_status compare_typed(struct pe_diagnosis *d, const struct pe_model *model, struct pe_comparison *out)
{
    struct pe_tally tally;
    const struct pe_judge judge = pe_judge_of(&d->evidence, false);
    const struct pe_sample *s = &d->sample;
    pe_tally_init(&tally, &judge);
    add_typed(d, model, &tally);
    out->n = s->n;
    out->verdict = pe_tally_verdict(&tally);
    out->max_error = tally.has_infinity_elsewhere ? (double)INFINITY : tally.max_error;
    out->max_ulp = (double)NAN;
    for (size_t i = 0; i < s->n; i++) {
        struct pe_judge j = pe_typed_judge(&d->evidence, i);
        const struct pe_misfit one = {true, s->pieces[i].t, i, 0, s->found[i], pe_round_to(PE_F32, s->expected[i])};
        bool is_exact = pe_is_exact(&j, s->found[i], s->expected[i], s->phase[i]);
        out->n_equal += is_exact;
        if (!is_exact && !out->first_bad.is_any)
            out->first_bad = one;
        if (fabs(s->found[i] - s->expected[i]) == tally.max_error)
            out->worst = one;
    }
    return PE_OK;
}

enum pe_status pe_compare_all(struct pe_diagnosis *d, struct pe_model *model, bool narrow, struct pe_comparison *out,
                              struct pe_failure *err)
{
    struct pe_row rows[PE_EVIDENCE_TENSORS_MAX];
    struct pe_judge j = pe_judge_of(&d->evidence, narrow);
    *out = (struct pe_comparison){.verdict = PE_NOT_JUDGED, .bits = (double)INFINITY};
    if (d->evidence.is_typed)
        return compare_typed(d, model, out);
    if (!rows_new(rows, d->evidence.n_tensors, (size_t)d->evidence.row_len))
        return pe_no_memory(err);
    double kept = pe_model_kept_bytes(model) + pe_own_bytes(&d->evidence);
    enum pe_status status = pe_diagnosis_admit(d, kept, err);
    if (!status)
        status = pe_model_keep(model, err);
    if (!status)
        status = compare(d, model, &j, rows, out, err);
    pe_model_forget(model);
    d->bytes -= kept;
    free(rows[0].found);
    return status;
}

/* ---- The candidates ---- */

void pe_candidate_drop(struct pe_candidate *c)
{
    pe_model_free(c->model);
    pe_edit_drop(&c->edit);
}

/* In the dtype that the numbers have, or in the narrower one that they fit. A fit by chance is none. */
static enum pe_status compare_in(struct pe_diagnosis *d, struct pe_candidate *c, bool narrow, struct pe_comparison *all,
                                 struct pe_failure *err)
{
    enum pe_status status = pe_compare_all(d, c->model, narrow, all, err);
    if (!status && pe_fits(all->verdict) && !pe_hypothesis_is_told(d, &c->explanation.h, all->bits))
        all->verdict = PE_NEAR;
    return status;
}

/* Judged as its dtype; or as bf16 or f16 where the numbers have no more bits, if only that fits. */
static enum pe_status compare_candidate(struct pe_diagnosis *d, struct pe_candidate *c, struct pe_failure *err)
{
    bool is_ladder = d->evidence.kind->id == PE_OF_LADDER;
    enum pe_status status = compare_in(d, c, pe_model_is_cast(c->model), &c->all, err);
    if (status || is_ladder || d->evidence.narrow == PE_DTYPE_NONE || pe_fits(c->all.verdict))
        return status;
    struct pe_comparison narrow;
    status = compare_in(d, c, true, &narrow, err);
    if (!status && pe_fits(narrow.verdict)) {
        c->all = narrow;
        c->is_narrow = true;
    }
    return status;
}

/* same: an earlier one with the same numbers; NULL: there is none. */
static enum pe_status candidate_init(struct pe_diagnosis *d, struct pe_candidate *c,
                                     const struct pe_explanation *explanation, const struct pe_candidate *same,
                                     struct pe_failure *err)
{
    *c = (struct pe_candidate){.explanation = *explanation};
    bool is_one = pe_hypothesis_apply(d, &explanation->h, &c->edit);
    enum pe_status status = is_one ? pe_model_new(d, &c->edit, &c->model, err) : pe_no_memory(err);
    if (!status && same) {
        c->all = same->all;
        c->is_narrow = same->is_narrow;
    } else if (!status) {
        status = compare_candidate(d, c, err);
    }
    c->explanation.score.verdict = c->all.verdict;
    c->explanation.score.max_error = c->all.max_error;
    return status;
}

int pe_candidate_order(const void *a, const void *b)
{
    return pe_explanation_compare(&((const struct pe_candidate *)a)->explanation,
                                  &((const struct pe_candidate *)b)->explanation);
}

/* A hypothesis that did not fit the sample cannot fit all numbers: those are compared only if too few fit. Beside a
 * belief that gives every number only what does so too is worth a look. */
static bool is_worth_it(const struct pe_answer *a, const struct pe_explanation *explanation)
{
    bool is_right = a->n > 0 && a->candidates[0].explanation.h.n == 0 && a->candidates[0].all.verdict == PE_EXACT;
    if (is_right && explanation->score.verdict == PE_ROUNDING)
        return false;
    return pe_fits(explanation->score.verdict) || a->n < PE_CANDIDATES_MAX;
}

static enum pe_status add_candidate(struct pe_diagnosis *d, struct pe_answer *a,
                                    const struct pe_explanation *explanation, struct pe_failure *err)
{
    const struct pe_candidate *same = explanation->h.n == 0 && a->belief.model ? &a->belief : NULL;
    for (size_t i = 0; i < a->n && !same; i++)
        if (a->candidates[i].explanation.signature == explanation->signature)
            same = &a->candidates[i];
    return candidate_init(d, &a->candidates[a->n++], explanation, same, err);
}

enum pe_status pe_answer_compare(struct pe_diagnosis *d, struct pe_answer *a, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    struct pe_explanation belief = {.cost = 0};
    if (d->belief.is_given)
        status = candidate_init(d, &a->belief, &belief, NULL, err);
    for (size_t i = 0; !status && i < d->n_best; i++)
        if (is_worth_it(a, &d->best[i]))
            status = add_candidate(d, a, &d->best[i], err);
    qsort(a->candidates, a->n, sizeof a->candidates[0], pe_candidate_order);
    return status;
}
