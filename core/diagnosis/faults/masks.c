/* Faults of alignment and masks: which keys a query meets. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

#define OF_BIAS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(MAPS))
#define OF_MAPS (OF_BIAS | PE_EVIDENCE_BIT(BUCKETS))

/* An axis of the tensor [heads, queries, keys] or [queries, keys], counted from its end. */
static size_t axis(const struct pe_diagnosis *d, unsigned from_end)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    return from_end < t->rank ? (size_t)t->shape[t->rank - 1 - from_end] : 1;
}
static size_t k_len(const struct pe_diagnosis *d) { return axis(d, d->evidence.is_turned ? 1 : 0); }
static size_t q_len(const struct pe_diagnosis *d) { return axis(d, d->evidence.is_turned ? 0 : 1); }

/* ---- Alignment of queries and keys ---- */

bool pe_is_run_of_maps(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    static const char *const others[] = {"positions", "grid",        "lens",       "segments",
                                         "tokens",    "q_positions", "k_positions"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (pe_edit_has(d, edit, others[i]))
            return false;
    return true;
}

/* The first query's position, counted from the first key's: by default the last query has the last key's. */
static int64_t usual_q_offset(const struct pe_diagnosis *d) { return (int64_t)k_len(d) - (int64_t)q_len(d); }

static int64_t q_offset(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    return pe_edit_integer(d, edit, "q_offset", usual_q_offset(d));
}

static bool alignment_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (!pe_is_run_of_maps(d, edit))
        return false;
    int64_t now = q_offset(d, edit), usual = usual_q_offset(d);
    const int64_t others[] = {0, usual, now + 1, now - 1};
    if (others[alternative] == now || (alternative == 1 && usual == 0))
        return false;
    pe_edit_set_integer(edit, "q_offset", others[alternative]);
    return true;
}
const struct pe_fault pe_fault_alignment_other = {
    FAULT_TEXT("alignment_other", "bias", BIAS, 2, "other alignment",
               "The first query has another position relative to the keys.",
               "The first query is at position {found}; the configuration puts it at {believed}."),

    .role = PE_ROLE_PLACE_OF_QUERIES,
    .evidence = OF_MAPS,
    .n_alternatives = 4,
    .apply = alignment_other,
    .combines_as = PE_KIND_AXES};

/* ---- Distances ---- */

static bool mirror(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    const struct pe_sequence *seq = &d->belief.plan->seq;
    edit->transforms.mirrored = alternative == 0 ? 1 : -1;
    return alternative == 0 ? seq->q->n <= seq->k->n : seq->k->n <= seq->q->n; /* the other side is long enough */
}

static const char *const without_sign[] = {
    "The distances have lost their sign: rows on both sides of 0 are those of |d|.",
    "The distances have lost their sign: rows on both sides of 0 are those of -|d|.",
};

const struct pe_fault pe_fault_distances_unsigned = {
    FAULT_TEXTS("distances_unsigned", "positions", POSITIONS, 2, "distances without sign",
                "The encoding of distances has the same rows on both sides of 0.", without_sign),
    .pointer = "",
    .schemes = "conformer",
    .evidence = PE_EVIDENCE_BIT(ENCODING),
    .n_alternatives = 2,
    .apply = mirror};

/* ---- Masks ---- */

/* Slopes, the form, the mask and the alignment of one bias may be wrong together, so each of them counts as a kind that
 * biases do not have otherwise. */

static const char *const hiding[] = {"causal", "window", "window_right", "key_mask"};
enum { N_HIDING = sizeof hiding / sizeof *hiding };

static bool hides(const struct pe_diagnosis *d, const struct pe_edit *edit, size_t i)
{
    return i == 0 ? pe_edit_is_true(d, edit, hiding[i], false) : pe_edit_has(d, edit, hiding[i]);
}

static bool stop_hiding(const struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!hides(d, edit, i))
        return false;
    if (i == 0)
        pe_edit_set_boolean(edit, hiding[i], false);
    else
        pe_edit_remove(edit, hiding[i]);
    return true;
}

/* BLOOM's bias of a hidden key is 0: its code adds the mask elsewhere. */
static bool is_zero_where_hidden(struct pe_diagnosis *d, struct pe_edit *edit)
{
    if (!pe_edit_is_word(d, edit, "form", "key_mask") || !pe_edit_has(d, edit, "key_mask"))
        return false;
    edit->transforms.mask_value = 0;
    return true;
}

/* One reason to hide keys is missing, or all of them; or their mask is counted, but not added. */
static bool mask_missing(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (alternative < N_HIDING)
        return stop_hiding(d, alternative, edit);
    if (alternative > N_HIDING)
        return is_zero_where_hidden(d, edit);
    size_t n = 0;
    for (size_t i = 0; i < N_HIDING; i++)
        n += stop_hiding(d, i, edit);
    return n > 1;
}
#define NOT_HIDDEN "Keys that the configuration hides have finite numbers instead of -inf."
static const char *const not_hidden[] = {
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    ("Keys that the configuration hides have the bias 0 instead of -inf, as in BLOOM's code, which adds its mask "
     "elsewhere."),
};

const struct pe_fault pe_fault_mask_missing = {FAULT_TEXTS("mask_missing", "bias", BIAS, 1, "missing mask",
                                                           "Keys that the configuration hides are visible.",
                                                           not_hidden),

                                               .evidence = OF_BIAS,
                                               .n_alternatives = N_HIDING + 2,
                                               .apply = mask_missing,
                                               .is_of_masks = true,
                                               .combines_as = PE_KIND_IDS};

/* What the tensor's own infinities say of query i and key j. A transposed tensor has a row for each key. */
static bool is_hidden(const struct pe_diagnosis *d, uint64_t i, uint64_t j)
{
    bool is_turned = d->evidence.is_turned;
    double x;
    pe_evidence_read(&d->evidence, 0, is_turned ? j : i, is_turned ? i : j, 1, &x);
    return isinf(x) || (d->evidence.kind == &pe_evidence_probs && x == 0);
}

/* Probabilities show by zeros what is hidden. */
static bool hides_some(const struct pe_diagnosis *d)
{
    return d->evidence.has_infinity || d->evidence.kind == &pe_evidence_probs;
}

/* The distance from query i to the first hidden key before it (step -1, from the query's own on) or after it (1); 0:
 * all are seen. */
static int64_t first_hidden(const struct pe_diagnosis *d, const struct pe_edit *edit, uint64_t i, int64_t step)
{
    int64_t own = q_offset(d, edit) + (int64_t)i;
    for (int64_t by = step > 0, j = own + by; j >= 0 || step > 0; by++, j += step) {
        if (j >= (int64_t)k_len(d) && step > 0)
            return 0;
        if (j >= 0 && j < (int64_t)k_len(d) && is_hidden(d, i, (uint64_t)j))
            return by;
    }
    return 0;
}

/* The window that the last query has to its left; to the right, what the first query sees unless the window or a
 * causal mask implies it. */
static bool read_window(struct pe_diagnosis *d, struct pe_edit *edit)
{
    if (!hides_some(d) || !pe_is_run_of_maps(d, edit))
        return false;
    int64_t window = first_hidden(d, edit, q_len(d) - 1, -1), right = first_hidden(d, edit, 0, 1);
    if (window < 1 || window == pe_edit_integer(d, edit, "window", 0))
        return false;
    pe_edit_set_integer(edit, "window", window);
    if (!pe_edit_is_true(d, edit, "causal", false) && right != window)
        pe_edit_set_integer(edit, "window_right", right ? right - 1 : (int64_t)k_len(d));
    return true;
}

/* Keys that no query sees, but the belief's mask shows. */
static bool read_key_mask(struct pe_diagnosis *d, struct pe_edit *edit)
{
    size_t n = k_len(d), last = q_len(d) - 1, n_hidden = 0;
    bool may_hide = hides_some(d) && !pe_edit_has(d, edit, "key_mask");
    double *mask = may_hide ? pe_edit_room(edit, n * sizeof *mask) : NULL;
    if (!mask)
        return false;
    for (size_t j = 0; j < n; j++) {
        mask[j] = !(is_hidden(d, last, j) && is_hidden(d, 0, j));
        n_hidden += mask[j] == 0;
    }
    if (n_hidden > 0 && n_hidden < n)
        pe_edit_set_reals(edit, "key_mask", mask, n);
    return n_hidden > 0 && n_hidden < n;
}

/* The same as BLOOM has them, whose bias is 0 there, and also at the first key that is seen: the last of the zeros that
 * a row begins with. */
static bool read_padding(struct pe_diagnosis *d, struct pe_edit *edit)
{
    size_t n = k_len(d), n_hidden = 0;
    bool may_hide = !d->evidence.is_turned && !pe_edit_has(d, edit, "key_mask") &&
                    (pe_edit_is_word(d, edit, "form", "key") || pe_edit_is_word(d, edit, "form", "key_mask"));
    double *mask = may_hide ? pe_edit_room(edit, n * sizeof *mask) : NULL;
    if (!mask)
        return false;
    pe_evidence_read(&d->evidence, 0, 0, 0, n, mask);
    size_t first = 0;
    while (first < n && mask[first] == 0)
        first++;
    for (size_t j = 0; j < n; j++) {
        mask[j] = mask[j] != 0 || j + 1 == first;
        n_hidden += mask[j] == 0;
    }
    bool is_padded = first > 0 && n_hidden > 0 && n_hidden + 1 < n;
    if (is_padded) {
        pe_edit_set_reals(edit, "key_mask", mask, n);
        pe_edit_set_word(edit, "form", "key_mask");
        edit->transforms.mask_value = 0;
    }
    return is_padded;
}

static bool mask_extra(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (alternative == 1)
        return !pe_edit_has(d, edit, "window") && read_window(d, edit);
    if (alternative == 2)
        return read_key_mask(d, edit);
    if (alternative == 3)
        return read_padding(d, edit);
    if (pe_edit_is_true(d, edit, "causal", false))
        return false;
    pe_edit_set_boolean(edit, "causal", true);
    return true;
}
static const char *const hidden[] = {
    "Keys after the query are -inf; the configuration does not hide them.",
    "Keys outside a window are -inf; the configuration has no window.",
    "Some keys are -inf for every query; the configuration has no mask of keys.",
    ("Some keys have the bias 0 and are not counted, as padding has in BLOOM's code; the configuration has no mask of "
     "keys."),
};

const struct pe_fault pe_fault_mask_extra = {FAULT_TEXTS("mask_extra", "bias", BIAS, 2, "additional mask",
                                                         "Keys are hidden that the configuration shows.", hidden),
                                             .evidence = OF_BIAS,
                                             .n_alternatives = 4,
                                             .apply = mask_extra,
                                             .is_of_masks = true,
                                             .n_fits = 2,
                                             .fit_rank = 2,
                                             .fit_cost = 3,
                                             .combines_as = PE_KIND_IDS};

/* The triangle of the other side: a query sees itself and the keys after it. */
static bool mirror_mask(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    if (!hides_some(d) || !pe_edit_is_true(d, edit, "causal", false) || pe_edit_has(d, edit, "window"))
        return false;
    pe_edit_set_boolean(edit, "causal", false);
    pe_edit_set_integer(edit, "window", 1);
    pe_edit_set_integer(edit, "window_right", (int64_t)k_len(d));
    return true;
}

const struct pe_fault pe_fault_mask_mirrored = {
    FAULT_TEXT("mask_mirrored", "bias", BIAS, 5, "mask of the other side",
               "The mask hides the keys before each query in place of those after it.",
               "The keys before each query are hidden; the configuration is causal and hides those after it: the "
               "triangle of the mask is transposed."),
    .pointer = "/causal",
    .evidence = OF_BIAS,
    .n_alternatives = 1,
    .apply = mirror_mask,
    .is_of_masks = true,
    .combines_as = PE_KIND_IDS};

static bool change_window(struct pe_diagnosis *d, const char *name, int64_t by, int64_t least, struct pe_edit *edit)
{
    int64_t now = pe_edit_integer(d, edit, name, least - 1);
    if (now < least || now + by < least)
        return false;
    pe_edit_set_integer(edit, name, now + by);
    return true;
}

static bool window_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    int64_t by = alternative % 2 ? 1 : -1;
    if (alternative < 2)
        return change_window(d, "window", by, 1, edit);
    if (alternative < 4)
        return change_window(d, "window_right", by, 0, edit);
    return pe_edit_has(d, edit, "window") && read_window(d, edit);
}
const struct pe_fault pe_fault_window_other = {FAULT_TEXT("window_other", "bias", BIAS, 3, "other window",
                                                          "The window of visible keys has another size.",
                                                          "The window is {found}; the configuration has {believed}."),

                                               .evidence = OF_BIAS,
                                               .n_alternatives = 5,
                                               .apply = window_other,
                                               .is_of_masks = true,
                                               .combines_as = PE_KIND_IDS};
