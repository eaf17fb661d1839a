/* The fault of caches of two ladders: rows before some row have the frequencies of one length, the rest those of
 * another
 * (../evidence/model.c). */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <string.h>

/* ---- The row where it changes ---- */

/* Is the row of position number i what the model predicts? Of rotated keys, in their first head. */
static bool fits_row(const struct pe_model *m, const struct pe_judge *judge, uint64_t i)
{
    const struct pe_evidence *e = &m->d->evidence;
    double found[PE_HEAD_DIM_MAX], expected[PE_HEAD_DIM_MAX], phase[PE_HEAD_DIM_MAX];
    size_t n = (size_t)e->row_len;
    uint64_t row = e->kind->id == PE_OF_ROTATED ? pe_model_row(m, 0, i) : i;
    for (size_t t = 0; t < e->n_tensors; t++) {
        pe_evidence_read(e, t, row, 0, n, found);
        pe_model_fill(m, t, row, 0, n, expected);
        pe_model_phases(m, t, row, 0, n, phase);
        for (size_t j = 0; j < n; j++)
            if (!pe_is_exact(judge, found[j], expected[j], phase[j]) &&
                !(fabs(found[j] - expected[j]) <= pe_rounding_tolerance(judge, found[j], phase[j])))
                return false;
    }
    return true;
}

/* So many leading rows fit the scaling. */
static uint64_t count_fitting(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_model *m;
    struct pe_judge judge = pe_judge_of(&d->evidence, d->evidence.narrow != PE_DTYPE_NONE);
    uint64_t x = 0;
    if (!pe_edit_model(d, edit, &m))
        return 0;
    while (m->has_shape && x < m->plan->seq.k->n && fits_row(m, &judge, x) && !(x % 64 == 63 && pe_is_cancelled()))
        x++;
    pe_model_free(m);
    return x;
}

/* ---- The fault ---- */

/* The rule that depends on the length; NULL: it does not. */
static const struct pe_scaling_rule *rule_of(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_value *type = pe_edit_value(d, edit, "scaling.type");
    const struct pe_scaling_rule *rule = type && type->kind == PE_STRING ? pe_scaling_find(type->string) : NULL;
    return pe_scaling_depends_on_length(rule) ? rule : NULL;
}

/* Up to this length a scaling has one ladder, behind it another. */
static double original_length(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    char path[64] = "scaling.";
    strncat(path, rule_of(d, edit)->border, sizeof path - sizeof "scaling.");
    return pe_edit_real(d, edit, path, (double)NAN);
}

/* The length of the other ladder: the believed one, or that of the whole sequence; of two lists any beyond the original
 * length. */
static double long_length(const struct pe_diagnosis *d, const struct pe_edit *edit, double original)
{
    const struct pe_positions *k = d->belief.plan->seq.k;
    double believed = pe_edit_real(d, edit, "scaling.seq_len", 0), whole = pe_positions_last(k) + 1;
    if (!rule_of(d, edit)->grows)
        return 2 * original;
    return believed > original ? believed : whole;
}

/* The first row at or behind the original length. */
static uint64_t first_beyond(const struct pe_diagnosis *d, double original)
{
    const struct pe_positions *k = d->belief.plan->seq.k;
    uint64_t i = 0;
    while (i < k->n && pe_position_at(k, i) < original)
        i++;
    return i;
}

static bool set_pieces(struct pe_edit *edit, const struct pe_value *before, const struct pe_value *behind)
{
    if (!before || !behind)
        return false;
    pe_edit_set(edit, "scaling", *before);
    edit->transforms.scaling_behind = behind;
    return true;
}

enum { SHORT_FIRST, LONG_FIRST, GROWING, N_ORDERS };

/* Only of what a cache holds. */
static size_t count_orders(const struct pe_diagnosis *d)
{
    bool is_cached = d->evidence.kind->id != PE_OF_ROTATED || d->evidence.kind->is_key;
    bool is_plain = !d->evidence.is_typed && !d->evidence.padding && !d->belief.positions && !d->belief.is_misfit;
    return is_cached && is_plain && rule_of(d, NULL) ? N_ORDERS : 0;
}

static bool switch_scaling(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct pe_scaling_rule *rule = rule_of(d, edit);
    double original = rule ? original_length(d, edit) : (double)NAN;
    if (!isfinite(original) || (i == GROWING && !rule->grows) || edit->transforms.transposed)
        return false;
    double lengths[] = {original, long_length(d, edit, original)};
    if (!(lengths[1] > original))
        return false;
    bool is_long_first = i == LONG_FIRST;
    const struct pe_value *before = pe_scaling_of_length(d, edit, lengths[is_long_first]),
                          *behind = pe_scaling_of_length(d, edit, lengths[!is_long_first]);
    if (!set_pieces(edit, before, behind))
        return false;
    edit->transforms.scaling_behind = NULL; /* the leading rows are measured under the first alone */
    uint64_t x = i == GROWING ? first_beyond(d, original) : count_fitting(d, edit), n = d->belief.n;
    edit->transforms.scaling_behind = behind;
    edit->transforms.switched_at = (int64_t)x;
    edit->transforms.is_growing = i == GROWING;
    return x > 0 && x < n;
}

static const char *const of_orders[] = {
    "The rows before row {found.row} have the frequencies of a short sequence, the rest those of a long one: a cache "
    "kept what was computed before the scaling changed.",
    "The rows before row {found.row} have the frequencies of a long sequence, the rest those of a short one.",
    "From row {found.row} on, each row has the frequencies of the sequence up to it: they were computed one by one, as "
    "the sequence grew.",
};

const struct pe_fault pe_fault_scaling_switch = {
    FAULT_TEXTS("scaling_switch", "ladder", LADDER, 4, "two scalings in one cache",
                "Some rows have the frequencies of a short sequence, the others those of a long one.", of_orders),
    .pointer = "scaling",
    .schemes = "rope|xpos",
    .evidence = PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED),
    .not_of = PE_EVIDENCE_BIT(ANGLES) | PE_EVIDENCE_BIT(LADDER) | PE_EVIDENCE_BIT(MAPS),
    .count = count_orders,
    .apply = switch_scaling,
    .n_fits = N_ORDERS,
    .fit_rank = 0,
    .fit_cost = 2};
