/* Mistakes that would not show in a tensor that is as believed.
 *
 * "The tensor is what the configuration gives" means little if the tensor could not have shown the mistake: half and
 * interleaved layouts have the same unexpanded tables, a scaling by length has no effect in a short sequence. So where
 * the belief fits, each single fault is tried once more, and the answer names those that this tensor cannot exclude.
 *
 * An alternative of a fault is hidden if its plan gives the believed numbers here, but another rotation of a vector, or
 * other numbers where the sequence goes on (pe_go_on in equivalent.c), or in a larger map. One that gives the same
 * there too is no mistake at all and counts as no change. A fault is unseen if every alternative that changes anything
 * is hidden; most end at their first alternative, after a few numbers.
 *
 * The list is a lower bound: transforms of the tensor and fitted alternatives are left out, what cannot be known
 * because a sequence does not go on counts as no change, and faults that the limit of work does not reach are not
 * named. */
#include "core/analysis/study/study.h"
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

struct look {
    struct pe_diagnosis *d;
    const struct pe_candidate *belief;
    struct pe_nearness near;
    uint64_t signature;  /* of the belief */
    double *numbers;     /* of a tensor that was printed: the belief's in the sample; owned; NULL: it was not printed */
    struct pe_next next; /* of the fault that is tried */
    double *room;
    enum pe_status status; /* PE_NO_MEMORY */
};

/* ---- Here ---- */

bool pe_are_transformed(const struct pe_transforms *t)
{
    return t->channels.order || t->recipe || t->sinusoid || t->inverted || t->sin_cos_swapped || t->negated ||
           t->transposed || !isnan(t->wrapped_from) || t->scaled != 1 || !isnan(t->mask_value) || t->n_axes ||
           t->scaling_behind || t->bias || t->stage || t->sides[PE_QUERIES] || t->sides[PE_KEYS] || t->is_tiled ||
           t->moved != 0 || t->kernel.kind || t->mirrored || t->turn;
}

/* Do waves, which say every number of the evidence, have the same signature? */
static bool are_same_waves(const struct look *l, const struct pe_model *m)
{
    return m->columns && l->d->evidence.kind->id != PE_OF_ROTATED && pe_model_signature(m) == l->signature;
}

static bool is_equal_in_all(const struct look *l, const struct pe_model *m)
{
    const struct pe_evidence *e = &l->d->evidence;
    const struct pe_extent all = {e->n_tensors, e->n_rows, (size_t)e->row_len};
    if (e->is_typed) /* the sample is all that is known */
        return true;
    return are_same_waves(l, m) || pe_equal_rows(&l->near, l->belief->model, m, &all, l->room);
}

/* Does it give numbers that are printed so, too? Notes the one that would tell it from the belief with most digits to
 * spare. */
static bool is_printed_so(struct look *l, struct pe_candidate *c, const char *code)
{
    const struct pe_sample *s = &l->d->sample;
    struct pe_comparison all;
    struct pe_failure err;
    bool fits = pe_fits(pe_evaluate(l->d, c->model).verdict);
    for (size_t i = 0; fits && i < s->n_pieces; i++)
        for (size_t k = s->pieces[i].at; k < s->pieces[i].at + s->pieces[i].n; k++)
            if (fabs(s->expected[k] - l->numbers[k]) > fabs(l->next.other - l->next.believed))
                l->next = (struct pe_next){
                    code,          s->pieces[i].t, s->pieces[i].row, s->pieces[i].col0 + k - s->pieces[i].at,
                    l->numbers[k], s->expected[k]};
    return fits && !pe_compare_all(l->d, c->model, false, &all, &err) && pe_fits(all.verdict);
}

/* ---- Elsewhere: rotary schemes ---- */

/* A vector whose channels are all different, rotated by a plan at its positions. */
struct rotated {
    const struct pe_plan *plan;
    struct pe_row_rotation turn;
    size_t input;
    double *table, *in, *out;
};

static bool rotated_open(struct rotated *r, const struct pe_plan *plan, const char *input)
{
    struct pe_failure err;
    *r = (struct rotated){.plan = plan, .input = pe_turn_input(plan, input)};
    bool is_open = !pe_turn_init(&r->turn, plan, &err);
    size_t n = r->turn.rotation.head_dim;
    r->table = is_open ? malloc(3 * n * sizeof *r->table) : NULL;
    r->in = r->table ? r->table + n : NULL;
    r->out = r->table ? r->table + 2 * n : NULL;
    for (size_t j = 0; r->table && j < n; j++)
        r->in[j] = 1 + (double)j / (double)n;
    return r->table;
}

static void rotated_drop(struct rotated *r)
{
    pe_rotate_drop(&r->turn);
    free(r->table);
}

static void rotated_at(struct rotated *r, uint64_t i)
{
    pe_rotate_table(&r->turn, r->plan, r->plan->seq.k, r->input, i, 1, r->table);
    pe_rotate_row(&r->turn, r->table, PE_F64, r->in, PE_F64, r->out);
}

static bool differ_at(struct rotated *a, struct rotated *b, uint64_t i)
{
    rotated_at(a, i);
    rotated_at(b, i);
    for (size_t j = 0; j < a->turn.rotation.head_dim; j++)
        if (fabs(a->out[j] - b->out[j]) > 0x1p-24)
            return true;
    return false;
}

/* Plans of as many positions each. Rows that go on are few; of a sequence that does not, the first suffice. */
static bool rotate_differently(struct look *l, const struct pe_plan *a, const struct pe_plan *b)
{
    enum { ROWS = 64 };
    const char *input = l->d->evidence.kind->is_key ? "k" : "q";
    uint64_t n = a->seq.k->n < ROWS ? a->seq.k->n : ROWS;
    struct rotated x, y;
    bool is_open = rotated_open(&x, a, input), differs = false;
    is_open &= rotated_open(&y, b, input);
    if (!is_open)
        l->status = PE_NO_MEMORY;
    else if (x.turn.rotation.head_dim != y.turn.rotation.head_dim || a->seq.k->n != b->seq.k->n)
        differs = true;
    for (uint64_t i = 0; is_open && !differs && i < n && !pe_is_cancelled(); i++)
        differs = differ_at(&x, &y, i);
    rotated_drop(&x);
    rotated_drop(&y);
    return differs;
}

/* Models of rows that go on. */
static bool scale_differently(const struct pe_model *a, const struct pe_model *b)
{
    for (uint64_t i = 0; i < a->plan->seq.k->n && i < b->plan->seq.k->n; i++)
        if (pe_model_query_factor(a, i) != pe_model_query_factor(b, i))
            return true;
    return false;
}

/* ---- Elsewhere: maps and encodings ---- */

/* The map of so many queries and as many keys. */
static void open_square(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_trial *on)
{
    struct pe_failure err;
    *on = (struct pe_trial){.edit = c->edit};
    on->edit.n_owned = 0;
    pe_edit_remove_sequence(d, &on->edit);
    pe_edit_set_integer(&on->edit, "len", PE_NEAR_ROWS);
    if (pe_model_new(d, &on->edit, &on->model, &err))
        on->model = NULL;
}

/* Far queries, as many heads as there is room for. */
static bool differ_beyond(const struct pe_model *a, const struct pe_model *b)
{
    enum { MOST = 1024 };
    double x[MOST], y[MOST];
    size_t n = a->d->evidence.kind->fill_beyond(a, MOST, x), m = b->d->evidence.kind->fill_beyond(b, MOST, y);
    for (size_t i = 0; i < n && n == m; i++)
        if (x[i] != y[i] && !(fabs(x[i] - y[i]) <= 0x1p-24 * fabs(x[i])))
            return true;
    return false;
}

/* A table by distance (Transformer-XL) has a row for each of a million: its first ones suffice. */
static bool differ_onward(const struct look *l, const struct pe_model *a, const struct pe_model *b)
{
    enum { ROWS = 64, ROWS_OF_HEADS = 4096 };
    const struct pe_output *x = pe_plan_output(a->plan, 0), *y = pe_plan_output(b->plan, 0);
    uint64_t most = l->d->evidence.kind->fill_beyond ? ROWS_OF_HEADS : ROWS, n = x->n_rows < most ? x->n_rows : most;
    const struct pe_extent all = {l->d->evidence.n_tensors, n, (size_t)x->row_len};
    const struct pe_nearness exact = {.judge = l->near.judge};
    bool is_ladder = l->d->evidence.kind->id == PE_OF_LADDER; /* an encoding has more columns than frequencies */
    return !is_ladder && x->n_rows == y->n_rows && x->row_len == y->row_len &&
           !pe_equal_rows(&exact, a, b, &all, l->room);
}

/* ---- An alternative ---- */

/* Does it give anything else than the belief? What cannot be known, because a sequence does not go on, counts as no. */
static bool gives_another(struct look *l, const struct pe_candidate *c)
{
    struct pe_trial x, y;
    bool is_map = l->d->evidence.kind->fill_beyond, is_rotary = l->belief->model->plan->scheme->rotate;
    void (*open)(struct pe_diagnosis *, const struct pe_candidate *, struct pe_trial *) =
        is_map ? open_square : pe_go_on;
    open(l->d, l->belief, &x);
    open(l->d, c, &y);
    bool goes_on = x.model && y.model, differs;
    if (is_rotary)
        differs = rotate_differently(l, goes_on ? x.model->plan : l->belief->model->plan,
                                     goes_on ? y.model->plan : c->model->plan) ||
                  (goes_on && scale_differently(x.model, y.model));
    else
        differs =
            (goes_on && differ_onward(l, x.model, y.model)) || (is_map && differ_beyond(l->belief->model, c->model));
    pe_trial_close(&x);
    pe_trial_close(&y);
    return differs;
}

enum outcome { NO_CHANGE, SHOWS, HIDDEN };

/* is_known: another alternative is hidden already, so it does not matter where else this one differs. */
static enum outcome outcome_of(struct look *l, struct pe_candidate *c, const char *code, bool is_known)
{
    if (l->numbers && c->model->has_shape && is_printed_so(l, c, code))
        return is_known || gives_another(l, c) ? HIDDEN : NO_CHANGE;
    if (l->numbers || !c->model->has_shape || !pe_equal_in_sample(l->d, &l->near, l->belief->model, c->model, l->room))
        return SHOWS;
    if (!is_known && !gives_another(l, c)) /* so few rows that they are looked at before all numbers are */
        return NO_CHANGE;
    return is_equal_in_all(l, c->model) ? HIDDEN : SHOWS;
}

static enum outcome try_one(struct look *l, size_t fault, size_t choice, bool is_known)
{
    struct pe_candidate c = {.explanation.h = {.n = 1, .fault = {(uint16_t)fault}, .choice = {(uint16_t)choice}}};
    struct pe_failure err;
    enum outcome outcome = NO_CHANGE;
    bool applies = pe_hypothesis_apply(l->d, &c.explanation.h, &c.edit) && !pe_are_transformed(&c.edit.transforms);
    enum pe_status status = applies ? pe_model_new(l->d, &c.edit, &c.model, &err) : PE_INVALID;
    if (c.edit.failed || status == PE_NO_MEMORY)
        l->status = PE_NO_MEMORY;
    else if (!status)
        outcome = outcome_of(l, &c, pe_fault_at(fault)->code, is_known);
    pe_model_free(c.model);
    pe_edit_drop(&c.edit);
    return outcome;
}

/* ---- All faults ---- */

/* Work may end before all faults were looked at: those that follow are not named. */
static bool goes_on(struct look *l)
{
    const struct pe_evidence *e = &l->d->evidence;
    double all = 2 * (double)e->n_tensors * (double)e->n_rows * (double)e->row_len * l->belief->model->number_work;
    bool has_work = l->d->work + all <= l->d->request->max_work;
    l->d->used_all |= !has_work;
    return has_work && !l->status && !pe_is_cancelled();
}

static bool is_unseen(struct look *l, size_t i)
{
    const struct pe_fault *f = pe_fault_row(i);
    size_t n = f->n_alternatives ? f->n_alternatives : f->count ? f->count(l->d) : 0;
    enum outcome all = NO_CHANGE;
    bool is_tried =
        !f->is_of_tensor && (!f->schemes || pe_is_among(f->schemes, l->d->belief.inheritance->scheme->info.name));
    l->next = (struct pe_next){.code = NULL};
    for (size_t j = 0; is_tried && j + f->n_fits < n && all != SHOWS && goes_on(l); j++) {
        enum outcome one = try_one(l, i, j, all == HIDDEN);
        all = one == NO_CHANGE ? all : one;
    }
    return all == HIDDEN;
}

enum pe_status pe_answer_unseen(struct pe_diagnosis *d, struct pe_answer *a, struct pe_node *list,
                                struct pe_failure *err)
{
    struct look l = {.d = d, .belief = &a->belief};
    bool is_printed = pe_is_printed(&d->evidence);
    size_t n = 0;
    if (!a->belief.model || !pe_fits(a->belief.all.verdict))
        return PE_OK;
    l.near = (struct pe_nearness){.judge = pe_judge_of(&d->evidence, a->belief.is_narrow),
                                  .is_rounded = a->belief.all.verdict == PE_ROUNDING};
    l.signature = pe_model_signature(a->belief.model);
    l.room = pe_equal_room(d);
    l.numbers = is_printed ? malloc((d->sample.n + 1) * sizeof *l.numbers) : NULL;
    l.status = l.room && (l.numbers || !is_printed) ? PE_OK : PE_NO_MEMORY;
    if (l.numbers)
        pe_sample_fill(&d->sample, a->belief.model, l.numbers);
    for (size_t i = 0; i < pe_n_faults() && n < PE_UNSEEN_MAX && goes_on(&l); i++)
        if (is_unseen(&l, i) && goes_on(&l)) {
            pe_put_string(list, NULL, pe_fault_at(i)->code);
            a->next = fabs(l.next.other - l.next.believed) > fabs(a->next.other - a->next.believed) ? l.next : a->next;
            n++;
        }
    free(l.room);
    free(l.numbers);
    if (l.status || d->no_memory)
        return pe_no_memory(err);
    return pe_is_cancelled() ? pe_cancelled(err) : PE_OK;
}
