/* Is the first candidate the only explanation? Another one that fits the tensor as well may differ at positions that
 * the tensor does not have; then the first such position is named. */
#include "core/diagnosis/diagnosis.h"

#include <string.h>

/* Positions 0 … 63, then powers of two up to 2^40. */
enum { NEAR_POSITIONS = 64, LAST_POWER = 40 };

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
                               struct pe_edit *edit, struct pe_model **model, struct pe_error *err)
{
    bool is_pair = d->evidence.kind->id == PE_OF_BIAS || d->evidence.kind->id == PE_OF_BUCKETS;
    if (!pe_hypothesis_apply(d, &c->kept.h, edit))
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
                                 size_t *n, struct pe_error *err)
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
                                    uint64_t *position, struct pe_error *err)
{
    static _Thread_local double x[NUMBERS_MAX], y[NUMBERS_MAX];
    struct pe_judge j = pe_judge_of(&d->evidence, a->is_narrow);
    for (uint64_t p = 0; p <= UINT64_C(1) << LAST_POWER; p = next_position(p)) {
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
    bool fine = !c->edit.transforms.transposed && c->edit.transforms.zero_row < 0;
    for (unsigned i = 0; i < c->kept.h.n; i++) {
        enum pe_fault_kind kind = pe_fault_kind_of(c->kept.h.fault[i]);
        fine = fine && kind != PE_KIND_ARITHMETIC && kind != PE_KIND_POSITIONS;
    }
    return fine;
}

enum pe_status pe_answer_decide(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_undecided *out,
                                struct pe_error *err)
{
    enum pe_status status = PE_OK;
    *out = (struct pe_undecided){0, 0};
    if (a->n == 0 || !pe_fits(a->candidates[0].all.verdict) || !is_comparable(&a->candidates[0]) ||
        d->evidence.kind->id == PE_OF_IDS || d->evidence.kind->id == PE_OF_LADDER)
        return PE_OK;
    for (size_t i = 1; !status && !out->rival && i < a->n_shown; i++) {
        const struct pe_candidate *rival = &a->candidates[i];
        uint64_t position = UINT64_MAX;
        bool is_fitted = pe_hypothesis_is_fitted(d, &rival->kept.h); /* known to the precision of these numbers only */
        if (rival->all.verdict > a->candidates[0].all.verdict || !is_comparable(rival) || is_fitted)
            continue;
        status = find_position(d, &a->candidates[0], rival, &position, err);
        if (!status && position != UINT64_MAX)
            *out = (struct pe_undecided){i, position};
    }
    return status;
}
