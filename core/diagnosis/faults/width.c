/* Faults of width: how many channels are rotated, and which. */
#include "core/diagnosis/diagnosis.h"

/* Channels rotated: the whole head, shares of it, then common widths. */
static const struct {
    int64_t share, width;
} widths[] = {{1, 0}, {2, 0}, {4, 0}, {0, 16}, {0, 32}, {0, 64}};

/* Shares of the rotated channels that the belief leaves to their defaults follow the width. */
static const char *const shares[] = {"axes_dim", "mrope_section", NULL};

static bool set_rotary_dim(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    int64_t head_dim = pe_edit_integer(d, edit, "head_dim", 0), now = pe_edit_integer(d, edit, "rotary_dim", head_dim);
    int64_t wanted = widths[i].share ? head_dim / widths[i].share : widths[i].width;
    if (wanted == now || wanted < 2 || wanted % 2 || wanted > head_dim)
        return false;
    pe_edit_set_integer(edit, "rotary_dim", wanted);
    for (size_t j = 0; shares[j]; j++)
        if (pe_edit_value(d, edit, shares[j]) && !pe_belief_given(d, shares[j]))
            pe_edit_remove(edit, shares[j]);
    if (pe_edit_integer(d, edit, "rotary_offset", 0) + wanted > head_dim)
        pe_edit_set_integer(edit, "rotary_offset", 0);
    return true;
}

const struct pe_fault pe_fault_rotary_dim_other = {
    FAULT_TEXT("rotary_dim_other", "width", WIDTH, 2, "other rotary width",
               "Another number of channels of a head is rotated.",
               "{found} channels of a head are rotated; the configuration says {believed}."),
    .schemes = "rope|xpos", .evidence = PE_EVIDENCE_BIT(ROTATED), .n_alternatives = sizeof widths / sizeof *widths,
    .apply = set_rotary_dim};

static bool set_rotary_offset(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    int64_t head_dim = pe_edit_integer(d, edit, "head_dim", 0);
    int64_t last = head_dim - pe_edit_integer(d, edit, "rotary_dim", head_dim), wanted = i == 0 ? 0 : last;
    if (wanted == pe_edit_integer(d, edit, "rotary_offset", 0))
        return false;
    pe_edit_set_integer(edit, "rotary_offset", wanted);
    return true;
}

const struct pe_fault pe_fault_rotary_offset_other = {
    FAULT_TEXT("rotary_offset_other", "width", WIDTH, 4, "other first channel",
               "The rotated channels begin elsewhere in the head.",
               "The rotated channels begin at channel {found}; the configuration says {believed}."),

    .schemes = "rope|xpos", .evidence = PE_EVIDENCE_BIT(ROTATED), .n_alternatives = 2, .apply = set_rotary_offset};
