/* Explanations with the same numbers: here, in the tensor sent, or everywhere, also where its sequence goes on.
 *
 * Two configurations may agree on every number that was sent and still be different models: a scaling that begins at
 * position 8192, seen in 4096 rows. The answer must not choose for the reader. So candidates that fit are compared with
 * each other at rows 0 to 31 and at powers of two up to 2^20, on the sequence continued by its own rule; those that
 * agree there too are one explanation with several names, and of the others the answer states where they part.
 *
 * Equal means: after rounding to the tensor's dtype, or, where a value of either was fitted, as near as a fitted base
 * may be off (tolerance). Equal signatures save the comparison. A sequence goes on if its positions are a progression,
 * measured ones within 1e-6; grids, packed texts and masks do not, and maps are compared at far queries in its place.
 * What cannot be continued counts as different everywhere, so that nothing is joined without evidence. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Equal numbers ---- */

#define FITTED_SHARE 0x1p-18

static bool needs_phases(const struct pe_nearness *near) { return near->is_rounded || near->is_fitted; }

static double tolerance(const struct pe_nearness *near, double x, double phase)
{
    const struct pe_judge *j = &near->judge;
    double roundings = j->id == PE_OF_ROTATED ? 12 : 4, of_rounding = pe_rounding_tolerance(j, x, phase);
    if (!near->is_fitted || j->id == PE_OF_BIAS || j->id == PE_OF_MAPS)
        return needs_phases(near) ? of_rounding : 0;
    return fmax(of_rounding, (roundings * j->u + fmin(FITTED_SHARE * phase, 0.125)) * j->largest);
}

/* phase may be NULL: exact numbers have no need of it. */
static bool are_equal(const struct pe_nearness *near, const double *a, const double *b, const double *phase, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double found = pe_round_to(near->judge.dtype, a[i]);
        if (pe_is_exact(&near->judge, found, b[i], phase ? phase[i] : 0))
            continue;
        if (!isfinite(a[i]) || !isfinite(b[i]) ||
            !(fabs(a[i] - b[i]) <= tolerance(near, a[i], needs_phases(near) && phase ? phase[i] : 0)))
            return false;
    }
    return true;
}

double *pe_equal_room(const struct pe_diagnosis *d)
{
    uint64_t n = d->evidence.row_len;
    return malloc(4 * (size_t)(n < PE_NEAR_ROWS ? PE_NEAR_ROWS : n) * sizeof(double));
}

/* A stretch of a row. room: [3, p->n]. */
static bool are_equal_in(const struct pe_nearness *near, const struct pe_model *a, const struct pe_model *b,
                         const struct pe_piece *p, double *room)
{
    double *x = room, *y = room + p->n, *phase = room + 2 * p->n;
    pe_model_fill(a, p->t, p->row, p->col0, p->n, x);
    pe_model_fill(b, p->t, p->row, p->col0, p->n, y);
    bool are_exact = are_equal(&(struct pe_nearness){.judge = near->judge}, x, y, NULL, p->n);
    if (are_exact || !needs_phases(near))
        return are_exact;
    pe_model_phases(b, p->t, p->row, p->col0, p->n, phase);
    return are_equal(near, x, y, phase, p->n);
}

bool pe_equal_in_sample(struct pe_diagnosis *d, const struct pe_nearness *near, const struct pe_model *a,
                        const struct pe_model *b, double *room)
{
    bool equal = true;
    struct pe_nearness own = *near;
    for (size_t i = 0; equal && i < d->sample.n_pieces && !pe_is_cancelled(); i++) {
        if (d->evidence.is_typed) /* as near as the digits that were typed tell */
            own.judge = pe_typed_judge(&d->evidence, i);
        equal = are_equal_in(&own, a, b, &d->sample.pieces[i], room);
    }
    return equal;
}

bool pe_equal_rows(const struct pe_nearness *near, const struct pe_model *a, const struct pe_model *b,
                   const struct pe_extent *rows, double *room)
{
    const struct pe_evidence *e = &a->d->evidence;         /* has fewer rows than a sequence that goes on */
    bool equal = true, is_map = e->kind->id == PE_OF_MAPS; /* a row of it takes a millisecond */
    for (size_t t = 0; t < rows->n_tensors; t++)
        for (uint64_t i = 0; equal && i < rows->n_rows && !((is_map || i % 64 == 0) && pe_is_cancelled()); i++)
            equal = (i < e->n_rows && pe_evidence_is_padding(e, i)) ||
                    are_equal_in(near, a, b, &(struct pe_piece){.t = t, .row = i, .n = rows->row_len}, room);
    return equal;
}

/* The factor of transforms that change a finished tensor. */
static double factor_of(const struct pe_model *m) { return (m->transforms.negated ? -1 : 1) * m->transforms.scaled; }

/* ---- Where the sequence goes on ---- */

/* Rows 0 … 31, then powers of two up to 2^20. */
enum { LAST_POWER = 20, N_ROWS = PE_NEAR_ROWS + LAST_POWER - 4 };

static double row_number(size_t i) { return i < PE_NEAR_ROWS ? (double)i : ldexp(1, (int)(i - PE_NEAR_ROWS) + 5); }

/* From one position to the next of a single row: as a run goes on, and as the rules for all rows change it. NaN: a list
 * of one number does not go on. */
static double step_of_one(const struct pe_diagnosis *d, const struct pe_candidate *c)
{
    for (unsigned i = 0; i < c->explanation.h.n; i++) {
        const struct pe_fault *fault = pe_fault_row(c->explanation.h.fault[i]);
        if (fault == &pe_fault_not_rotated || fault == &pe_fault_positions_constant)
            return 0;
        if (fault == &pe_fault_rotated_twice)
            return 2;
        if (fault == &pe_fault_position_stride)
            return pe_stride_of(c->explanation.h.choice[i]);
    }
    return pe_edit_has(d, &c->edit, "len") ? 1 : (double)NAN;
}

/* Positions of an axis at the rows; false: they are no progression. Positions that were measured are no exact one. */
static bool extend(const struct pe_diagnosis *d, const struct pe_candidate *c, unsigned axis, double *out)
{
    const struct pe_plan *plan = c->model->plan;
    uint64_t n = plan->seq.k[axis].n;
    double first = pe_coordinate(plan, axis, 0), last = pe_coordinate(plan, axis, n - 1);
    double step = n > 1 ? (last - first) / (double)(n - 1) : step_of_one(d, c);
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs(pe_coordinate(plan, axis, i) - first - step * (double)i) <= 1e-6 * (1 + fabs(last - first))))
            return false;
    for (size_t i = 0; i < N_ROWS; i++)
        out[i] = first + step * row_number(i);
    return true;
}

static bool set_rows(const struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_edit *edit)
{
    unsigned axes = c->model->plan->seq.n_axes;
    double *x = pe_edit_room(edit, axes * N_ROWS * sizeof *x);
    struct pe_tensor t = {.dtype = PE_F64, .rank = axes > 1 ? 2 : 1, .shape = {N_ROWS}, .data = x};
    if (axes > 1) {
        t.shape[0] = axes;
        t.shape[1] = N_ROWS;
    }
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "positions", (struct pe_value){.kind = PE_ARRAY, .array = t});
    for (unsigned a = 0; x && a < axes; a++)
        if (!extend(d, c, a, x + a * N_ROWS))
            return false;
    return x;
}

/* Sequences of images, of packed texts and of masks do not go on. */
static bool goes_on(const struct pe_diagnosis *d, const struct pe_candidate *c)
{
    static const char *const sequences[] = {"grid",   "grid_coords",    "lens",       "segments", "tokens",
                                            "coords", "attention_mask", "cu_seqlens", "shard"};
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        if (pe_edit_has(d, &c->edit, sequences[i]))
            return false;
    return c->model->plan->seq.k[0].n > 0;
}

void pe_go_on(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_trial *on)
{
    struct pe_failure err;
    on->edit = c->edit;
    on->edit.n_owned = 0;
    on->edit.transforms.transposed = false;
    on->edit.transforms.scaling_behind = NULL;
    on->model = NULL;
    if (goes_on(d, c) && set_rows(d, c, &on->edit) && pe_model_new(d, &on->edit, &on->model, &err))
        on->model = NULL;
    d->no_memory |= on->edit.failed;
}

/* A model at one row: of a rotated tensor, a query whose channels are all different. room: [row_len]. */
static void fill_onward(const struct pe_model *m, size_t t, size_t row, double *out, double *phase, double *room)
{
    size_t n = (size_t)m->d->evidence.row_len;
    if (m->d->evidence.kind->id == PE_OF_ROTATED) {
        for (size_t j = 0; j < n; j++)
            room[j] = 1 + (double)j / (double)n;
        pe_rotated_at(m, row, room, out, phase);
        *m->work += (double)n * m->number_work;
        for (size_t j = 0; j < n; j++)
            out[j] *= factor_of(m);
    } else {
        pe_model_fill(m, t, row, 0, n, out);
        pe_model_phases(m, t, row, 0, n, phase);
    }
}

/* room: [4, row_len]. */
static bool are_equal_at(const struct pe_nearness *near, const struct pe_model *a, const struct pe_model *b, size_t t,
                         size_t row, double *room)
{
    size_t n = (size_t)a->d->evidence.row_len;
    double *x = room, *y = room + n, *phase = room + 2 * n;
    fill_onward(a, t, row, x, phase, room + 3 * n);
    fill_onward(b, t, row, y, phase, room + 3 * n);
    return are_equal(near, x, y, phase, n);
}

static bool are_equal_onward(struct pe_diagnosis *d, const struct pe_nearness *near, const struct pe_candidate *a,
                             const struct pe_candidate *b, double *room)
{
    struct pe_trial x, y;
    pe_go_on(d, a, &x);
    pe_go_on(d, b, &y);
    bool equal = x.model && y.model;
    for (size_t t = 0; equal && t < d->evidence.n_tensors; t++)
        for (size_t row = 0; equal && row < N_ROWS && !pe_is_cancelled(); row++)
            equal = are_equal_at(near, x.model, y.model, t, row, room);
    pe_trial_close(&x);
    pe_trial_close(&y);
    return equal;
}

/* Maps, at queries far away; no other transform changes what is there. */
static bool are_equal_beyond(struct pe_diagnosis *d, const struct pe_nearness *near, const struct pe_candidate *a,
                             const struct pe_candidate *b)
{
    enum { MOST = 1024 };
    double x[MOST], y[MOST];
    const struct pe_evidence_kind *kind = d->evidence.kind;
    size_t n = kind->fill_beyond(a->model, MOST, x), m = kind->fill_beyond(b->model, MOST, y);
    for (size_t i = 0; i < n && n == m; i++) {
        x[i] *= factor_of(a->model);
        y[i] *= factor_of(b->model);
    }
    return n > 0 && n == m && are_equal(near, x, y, NULL, n);
}

static bool are_equal_everywhere(struct pe_diagnosis *d, const struct pe_nearness *near, const struct pe_candidate *a,
                                 const struct pe_candidate *b, double *room)
{
    const struct pe_transforms *x = &a->edit.transforms, *y = &b->edit.transforms;
    bool is_map = d->evidence.kind->fill_beyond;
    if (d->evidence.kind->id == PE_OF_IDS || x->transposed != y->transposed || x->scaling_behind || y->scaling_behind ||
        a->model->plan->seq.n_axes != b->model->plan->seq.n_axes)
        return false;
    return is_map ? are_equal_beyond(d, near, a, b) : are_equal_onward(d, near, a, b, room);
}

/* Of equal signatures: one row does not show how its sequence goes on. */
static bool go_on_alike(const struct pe_diagnosis *d, const struct pe_candidate *a, const struct pe_candidate *b)
{
    return a->model->plan->seq.k[0].n > 1 || d->evidence.kind->fill_beyond || step_of_one(d, a) == step_of_one(d, b);
}

/* ---- Candidates ---- */

static enum pe_likeness compare(struct pe_diagnosis *d, const struct pe_candidate *a, const struct pe_candidate *b,
                                double *room)
{
    struct pe_nearness near = {.judge = pe_judge_of(&d->evidence, a->is_narrow)};
    near.is_fitted = pe_hypothesis_is_fitted(d, &a->explanation.h) || pe_hypothesis_is_fitted(d, &b->explanation.h);
    if (a->explanation.signature == b->explanation.signature && go_on_alike(d, a, b))
        return PE_ALIKE;
    if (!pe_equal_in_sample(d, &near, a->model, b->model, room))
        return PE_UNLIKE;
    return are_equal_everywhere(d, &near, a, b, room) ? PE_ALIKE : PE_ALIKE_HERE;
}

/* With each candidate before it that is one of its own. */
static void place(struct pe_diagnosis *d, struct pe_answer *a, size_t i, double *room)
{
    struct pe_candidate *c = &a->candidates[i];
    for (size_t j = 0; j < i && c->likeness != PE_ALIKE && pe_fits(c->all.verdict); j++) {
        const struct pe_candidate *head = &a->candidates[j];
        enum pe_likeness likeness = head->likeness == PE_ALIKE ? PE_UNLIKE : compare(d, head, c, room);
        if (likeness == PE_ALIKE || (likeness == PE_ALIKE_HERE && j == 0)) {
            c->likeness = likeness;
            c->head = j;
        }
    }
}

/* Those of their own first, each part in its order. */
static enum pe_status sort(struct pe_answer *a)
{
    struct pe_candidate *sorted = malloc((a->n + 1) * sizeof *sorted);
    size_t place_of[PE_BEST_MAX], n = 0;
    if (!sorted)
        return PE_NO_MEMORY;
    for (int joined = 0; joined < 2; joined++)
        for (size_t i = 0; i < a->n; i++)
            if ((a->candidates[i].likeness == PE_ALIKE) == joined) {
                place_of[i] = n;
                sorted[n++] = a->candidates[i];
            }
    for (size_t i = 0; i < n; i++)
        sorted[i].head = place_of[sorted[i].head];
    memcpy(a->candidates, sorted, n * sizeof *sorted);
    for (a->n_own = 0; a->n_own < n && a->candidates[a->n_own].likeness != PE_ALIKE; a->n_own++)
        ;
    free(sorted);
    return PE_OK;
}

enum pe_status pe_answer_join(struct pe_diagnosis *d, struct pe_answer *a, struct pe_failure *err)
{
    double *room = pe_equal_room(d);
    if (!room)
        return pe_no_memory(err);
    for (size_t i = 1; i < a->n; i++)
        place(d, a, i, room);
    free(room);
    if (pe_is_cancelled())
        return pe_cancelled(err);
    return sort(a) || d->no_memory ? pe_no_memory(err) : PE_OK;
}

/* ---- What a candidate lists ---- */

/* Lists of free numbers fit anything: only positions that are a progression are an explanation. */
static bool is_free_list(const struct pe_diagnosis *d, const struct pe_candidate *c)
{
    double rows[N_ROWS];
    bool is_free = false;
    for (unsigned i = 0; i < c->explanation.h.n; i++) {
        const struct pe_fault *fault = pe_fault_row(c->explanation.h.fault[i]);
        is_free |= fault == &pe_fault_inv_freq_other;
        is_free |= fault == &pe_fault_positions_other && (c->model->plan->seq.k[0].n < 2 || !extend(d, c, 0, rows));
    }
    return is_free;
}

bool pe_answer_lists(const struct pe_diagnosis *d, const struct pe_answer *a, size_t head, size_t i)
{
    enum { DEARER = 2 };
    const struct pe_candidate *c = &a->candidates[i], *first = &a->candidates[head];
    return c->likeness != PE_UNLIKE && c->head == head && first->explanation.h.n > 0 &&
           c->explanation.cost <= first->explanation.cost + DEARER && !is_free_list(d, c);
}

/* ---- The position that decides ---- */

/* Is the first candidate the only explanation? Another one that fits the tensor as well may differ at positions that
 * the tensor does not have; then the first such position is named. */

/* Positions 0 … 63, then powers of two up to 2^40. */
enum { NEAR_POSITIONS = 64, LAST_DECIDING = 40 };

static uint64_t next_position(uint64_t p)
{
    return p < NEAR_POSITIONS - 1 ? p + 1 : p == NEAR_POSITIONS - 1 ? NEAR_POSITIONS : 2 * p;
}

/* ---- One candidate at one position ---- */

static void set_list(struct pe_edit *edit, const char *name, uint64_t position)
{
    double x = (double)position;
    pe_edit_set_reals(edit, name, &x, 1);
}

/* The candidate's configuration at one position; of a bias: a query there and a key at 0. */
static enum pe_status model_at(struct pe_diagnosis *d, const struct pe_candidate *c, uint64_t position,
                               struct pe_edit *edit, struct pe_model **model, struct pe_failure *err)
{
    bool is_pair = d->evidence.kind->id == PE_OF_BIAS || d->evidence.kind->id == PE_OF_BUCKETS;
    if (!pe_hypothesis_apply(d, &c->explanation.h, edit))
        return pe_no_memory(err);
    pe_edit_remove_sequence(d, edit);
    set_list(edit, is_pair ? "q_positions" : "positions", position);
    if (is_pair)
        set_list(edit, "k_positions", 0);
    return edit->failed ? pe_no_memory(err) : pe_model_new(d, edit, model, err);
}

enum { NUMBERS_MAX = 4096 };

/* The first row of every tensor, and every head of a bias, as many numbers as there is room for. */
static size_t fill(const struct pe_diagnosis *d, const struct pe_model *model, double *out)
{
    const struct pe_evidence *e = &d->evidence;
    bool is_bias = e->kind->id == PE_OF_BIAS;
    uint64_t n_rows = is_bias ? e->tensors[0].shape[0] : 1;
    size_t row_len = is_bias || e->kind->id == PE_OF_BUCKETS ? 1 : (size_t)e->row_len, n = 0;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t i = 0; i < n_rows && n + row_len <= NUMBERS_MAX; i++, n += row_len)
            pe_model_fill(model, t, i, 0, row_len, out + n);
    return n;
}

/* Writes the numbers at a position; *n = 0: the configuration has none there. */
static enum pe_status numbers_at(struct pe_diagnosis *d, const struct pe_candidate *c, uint64_t position, double *out,
                                 size_t *n, struct pe_failure *err)
{
    struct pe_edit edit;
    struct pe_model *model = NULL;
    enum pe_status status = model_at(d, c, position, &edit, &model, err);
    *n = status ? 0 : fill(d, model, out);
    pe_model_free(model);
    pe_edit_drop(&edit);
    return status == PE_NO_MEMORY || status == PE_CANCELLED ? status : PE_OK;
}

/* ---- Two candidates ---- */

static bool is_apart(const struct pe_judge *j, const double *a, const double *b, size_t n)
{
    double least = j->u > 0 ? 16 * j->u * j->largest : 0.5;
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(fabs(a[i] - b[i]) < least))
            return true;
    return false;
}

/* The first position where the two differ; UINT64_MAX: none. */
static enum pe_status find_position(struct pe_diagnosis *d, const struct pe_candidate *a, const struct pe_candidate *b,
                                    uint64_t *position, struct pe_failure *err)
{
    static _Thread_local double x[NUMBERS_MAX], y[NUMBERS_MAX];
    struct pe_judge j = pe_judge_of(&d->evidence, a->is_narrow);
    for (uint64_t p = 0; p <= UINT64_C(1) << LAST_DECIDING; p = next_position(p)) {
        size_t n, m;
        enum pe_status status = pe_is_cancelled() ? pe_cancelled(err) : numbers_at(d, a, p, x, &n, err);
        if (!status)
            status = numbers_at(d, b, p, y, &m, err);
        if (status)
            return status;
        if (n != m || n == 0)
            break; /* one of them has no such position */
        if (is_apart(&j, x, y, n)) {
            *position = p;
            return PE_OK;
        }
    }
    *position = UINT64_MAX;
    return PE_OK;
}

/* Faults of arithmetic and of positions are excluded: the former differ by roundings everywhere, the latter have no
 * meaning at another position. */
static bool is_comparable(const struct pe_candidate *c)
{
    bool fine = !c->edit.transforms.transposed && !c->edit.transforms.scaling_behind;
    for (unsigned i = 0; i < c->explanation.h.n; i++) {
        enum pe_fault_kind kind = pe_fault_kind_of(c->explanation.h.fault[i]);
        fine = fine && kind != PE_KIND_ARITHMETIC && kind != PE_KIND_POSITIONS;
    }
    return fine;
}

enum pe_status pe_answer_decide(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_undecided *out,
                                struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    *out = (struct pe_undecided){0, 0};
    if (a->n == 0 || !pe_fits(a->candidates[0].all.verdict) || !is_comparable(&a->candidates[0]) ||
        d->evidence.kind->id == PE_OF_IDS || d->evidence.kind->id == PE_OF_LADDER ||
        d->evidence.kind->id == PE_OF_MAPS) /* its q and k have as many positions as they have */
        return PE_OK;
    for (size_t i = 1; !status && !out->rival && i < a->n_shown; i++) {
        const struct pe_candidate *rival = &a->candidates[i];
        uint64_t position = UINT64_MAX;
        bool is_fitted =
            pe_hypothesis_is_fitted(d, &rival->explanation.h); /* known to the precision of these numbers only */
        if (rival->all.verdict > a->candidates[0].all.verdict || !is_comparable(rival) || is_fitted)
            continue;
        status = find_position(d, &a->candidates[0], rival, &position, err);
        if (!status && position != UINT64_MAX)
            *out = (struct pe_undecided){i, position};
    }
    return status;
}
