/* Faults of sense: the direction of rotation, exchanged tensors or axes, signs. */
#include "core/diagnosis/diagnosis.h"

static bool reverse_direction(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    if (d->evidence.kind->id != PE_OF_BUCKETS)
        pe_edit_set_integer(edit, "direction", -pe_edit_integer(d, edit, "direction", 1));
    else if (pe_edit_is_word(d, edit, "direction", "query_minus_key"))
        pe_edit_set_word(edit, "direction", "key_minus_query");
    else
        pe_edit_set_word(edit, "direction", "query_minus_key");
    return true;
}

const struct pe_fault pe_fault_direction_reversed = {
    FAULT_TEXT(
        "direction_reversed", "sense", SENSE, 2, "reversed direction",
        "Vectors are rotated the other way, so every sine has the opposite sign, or distances are counted from the "
        "other side.",
        "The direction is {found}; the configuration has {believed}."),
    .schemes = "rope|xpos|shaw",
    .evidence = PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(BUCKETS) | PE_EVIDENCE_BIT(MAPS),
    .n_alternatives = 1,
    .apply = reverse_direction,
    .role = PE_ROLE_DIRECTION,
    .cures = pe_cures_direction};

/* A sinusoidal encoding has a parameter for it. */
static bool swap_sin_cos(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    const struct pe_value *flip = pe_edit_value(d, edit, "flip_sin_to_cos");
    if (d->evidence.kind->id != PE_OF_ENCODING)
        edit->transforms.sin_cos_swapped = !edit->transforms.sin_cos_swapped;
    else if (flip && flip->kind == PE_BOOLEAN)
        pe_edit_set_boolean(edit, "flip_sin_to_cos", !flip->boolean);
    else
        return false;
    return true;
}

const struct pe_fault pe_fault_sin_cos_swapped = {
    FAULT_TEXT("sin_cos_swapped", "sense", SENSE, 2, "sines and cosines exchanged",
               "Sines are in place of cosines, and cosines in place of sines.", "Sines and cosines are exchanged."),
    .schemes = "rope|xpos|sinusoidal",
    .evidence = PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING),
    .not_of = PE_EVIDENCE_BIT(ANGLES),
    .n_alternatives = 1,
    .apply = swap_sin_cos,
    .cures = pe_cures_exchanged};

#define REAL_EVIDENCE                                                                                                  \
    (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(BIAS))

const struct pe_fault pe_fault_negated = {
    FAULT_TEXT("negated", "sense", SENSE, 4, "opposite sign", "Every number has the opposite sign.",
               "All finite numbers have the opposite sign."),
    .evidence = REAL_EVIDENCE, PE_TRANSFORMS({PE_TO_NEGATED, true}), .cures = pe_cures_negated};

static bool transpose(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    const struct pe_tensor *t = &d->evidence.tensors[0];
    bool is_square =
        t->rank >= 2 && t->shape[t->rank - 2] == t->shape[t->rank - 1] && d->evidence.row_len == t->shape[t->rank - 1];
    if (!is_square && !d->evidence.is_turned)
        return false;
    edit->transforms.transposed = !edit->transforms.transposed;
    return true;
}

const struct pe_fault pe_fault_transposed = {FAULT_TEXT("transposed", "sense", SENSE, 3, "transposed",
                                                        "The last two axes have changed places.",
                                                        "The last two axes of the tensor have changed places."),

                                             .is_of_tensor = true,
                                             .evidence = REAL_EVIDENCE | PE_EVIDENCE_BIT(BUCKETS),
                                             .n_alternatives = 1,
                                             .apply = transpose,
                                             .cures = pe_cures_transposed};
