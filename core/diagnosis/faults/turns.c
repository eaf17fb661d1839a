/* Faults of what is no rotation: cosines and sines that meet the wrong channels, or are not there. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_imaginary_lost = {
    FAULT_TEXT("imaginary_lost", "sense", SENSE, 3, "sines lost",
               "Only cosines multiply the vectors, or the table of sines is zero: complex numbers have lost their "
               "imaginary part.",
               "The sines are zero: every number is multiplied by its cosine alone, as where complex numbers were cast "
               "to a real dtype and lost their imaginary part."),
    .schemes = "rope|xpos",
    .is_no_rotation = true,
    .evidence = PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED),
    .not_of = PE_EVIDENCE_BIT(ANGLES),
    PE_TRANSFORMS({PE_TO_TURN, PE_TURN_COSINES}),
    .cures = pe_cures_rotation};

const struct pe_fault pe_fault_sign_lost = {
    FAULT_TEXT("sign_lost", "sense", SENSE, 3, "sign lost",
               "The sine is added to both channels of a pair, so that nothing is rotated.",
               "The minus of the rotation is lost: both channels of a pair add the other one times the sine; the first "
               "must subtract it."),
    .schemes = "rope|xpos",
    .is_no_rotation = true,
    .evidence = PE_EVIDENCE_BIT(ROTATED),
    PE_TRANSFORMS({PE_TO_TURN, PE_TURN_UNSIGNED}),
    .cures = pe_cures_rotation};

static const char *const paired[] = {"half", "interleaved"};

static bool take_other_table(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!pe_edit_is_word(d, edit, "layout", paired[i]))
        return false;
    edit->transforms.turn = PE_TURN_OTHER_TABLE;
    return true;
}

/* In the order of `paired`. */
static const char *const of_tables[] = {
    "The table of cosines and sines repeats each column for neighbours, but the rotation pairs halves: channel j is "
    "multiplied by column j/2 in place of j modulo half of the width. Repeat the whole table (torch.cat) instead.",
    "The table of cosines and sines is repeated for halves, but the rotation pairs neighbours: channel j is multiplied "
    "by column j modulo half of the width in place of j/2. Repeat each column (repeat_interleave) instead.",
};

const struct pe_fault pe_fault_table_layout_other = {
    FAULT_TEXTS("table_layout_other", "sense", SENSE, 2, "table of the other layout",
                "Cosines and sines are repeated for one layout and multiplied as for the other, so that nothing is "
                "rotated.",
                of_tables),
    .schemes = "rope|xpos",
    .is_no_rotation = true,
    .evidence = PE_EVIDENCE_BIT(ROTATED),
    .n_alternatives = 2,
    .apply = take_other_table,
    .cures = pe_cures_rotation};
