/* Faults of layout: which channels are a pair. */
#include "core/diagnosis/diagnosis.h"

static const char *const layouts[] = {"interleaved", "half", "interleaved_to_half", "half_per_axis", "vjepa2"};

static bool swap_layout(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!pe_edit_value(d, edit, "layout") || pe_edit_is_word(d, edit, "layout", layouts[i]) ||
        pe_edit_is_word(d, edit, "form", "pairs"))
        return false;
    pe_edit_set_word(edit, "layout", layouts[i]);
    return true;
}

/* Sinusoidal encodings have the first two. */
const struct pe_fault pe_fault_layout_swapped = {
    .schemes = "rope|xpos|sinusoidal", .n_alternatives = sizeof layouts / sizeof *layouts, .apply = swap_layout};
