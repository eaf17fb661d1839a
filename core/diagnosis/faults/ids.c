/* Faults of the position ids of multimodal sequences. */
#include "core/diagnosis/diagnosis.h"

#define OF_IDS PE_EVIDENCE_BIT(IDS)
/* The ids decide over rotated heads and their tables, too. */
#define OF_SEGMENTS (OF_IDS | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED))

/* ---- The rules of a model ---- */

/* The fields that only some styles use; a field that a style does not use is refused, so it goes with the style. */
static const struct rule {
    const char *name;
    unsigned styles;
} rules[] = {
    {"tokens_per_second", 1U << PE_QWEN2_5_VL | 1U << PE_QWEN2_5_VL_INT_SECONDS},
    {"position_id_per_seconds", 1U << PE_QWEN2_5_OMNI | 1U << PE_QWEN3_OMNI},
    {"seconds_per_chunk", 1U << PE_QWEN2_5_OMNI},
    {"temporal_scale", 1U << PE_VIDEOROPE},
};
enum { N_RULES = sizeof rules / sizeof *rules, N_STYLES = PE_VIDEOROPE + 1 };

static bool position_style_other(struct pe_diagnosis *d, size_t style, struct pe_edit *edit)
{
    const char *word = pe_position_styles[style];
    bool is_usual = style == PE_QWEN2_5_VL && !pe_edit_value(d, edit, "position_style");
    if (!pe_edit_value(d, edit, "segments") || is_usual || pe_edit_is_word(d, edit, "position_style", word))
        return false;
    pe_edit_set_word(edit, "position_style", word);
    for (size_t i = 0; i < N_RULES; i++)
        if (!(rules[i].styles & 1U << style) && pe_edit_value(d, edit, rules[i].name))
            pe_edit_remove(edit, rules[i].name);
    return true;
}
const struct pe_fault pe_fault_position_style_other = {
    FAULT_TEXT("position_style_other", "ids", IDS, 2, "other position_style",
               "The position ids are counted by another model's rules.",
               "The position_style is {found}; the configuration says {believed}."),

    .evidence = OF_SEGMENTS, .n_alternatives = N_STYLES, .apply = position_style_other};

/* ---- Ids of a second ---- */

static bool uses_ids_per_second(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    return pe_edit_is_word(d, edit, "position_style", "qwen2_5_omni") ||
           pe_edit_is_word(d, edit, "position_style", "qwen3_omni");
}

/* 2 in released Qwen2.5-VL checkpoints, 4 in its class default, 25 and 13 in the Omni models. */
static const double rates[] = {2, 4, 1, 25, 13};

static bool tokens_per_second_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    bool is_omni = uses_ids_per_second(d, edit);
    const char *name = is_omni ? "position_id_per_seconds" : "tokens_per_second";
    if (!pe_edit_value(d, edit, "segments") || pe_edit_real(d, edit, name, is_omni ? 25 : 2) == rates[alternative])
        return false;
    pe_edit_set_real(edit, name, rates[alternative]);
    return true;
}
const struct pe_fault pe_fault_tokens_per_second_other = {
    FAULT_TEXT("tokens_per_second_other", "ids", IDS, 2, "other tokens_per_second",
               "A second of video has another number of temporal ids.",
               "A second of video counts as {found} temporal ids; the configuration says {believed}."),

    .evidence = OF_SEGMENTS, .n_alternatives = sizeof rates / sizeof *rates, .apply = tokens_per_second_other};

/* ---- Patches of a token ---- */

static bool merge_size_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    int64_t size = (int64_t)alternative + 1;
    bool is_used = pe_edit_value(d, edit, "segments") || pe_edit_is_word(d, edit, "order", "merge");
    if (!is_used || pe_edit_integer(d, edit, "spatial_merge_size", 2) == size)
        return false;
    pe_edit_set_integer(edit, "spatial_merge_size", size);
    return true;
}
const struct pe_fault pe_fault_merge_size_other = {
    FAULT_TEXT("merge_size_other", "ids", IDS, 2, "other merge size",
               "Another number of patches is merged into a token.",
               "spatial_merge_size is {found}; the configuration says {believed}."),
    .evidence = OF_IDS, .n_alternatives = 2, .apply = merge_size_other};

/* ---- Rows ---- */

static const unsigned char orders[][PE_AXES_MAX] = {{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}};

static bool ids_axes_swapped(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    edit->transforms.n_axes = 3;
    memcpy(edit->transforms.order, orders[alternative], PE_AXES_MAX);
    return d->evidence.n_rows == 3;
}
/* Rows are exchanged in the finished ids, whatever rules gave them. */
const struct pe_fault pe_fault_ids_axes_swapped = {
    FAULT_TEXT("axes_swapped", "ids", AXES, 2, "axes exchanged",
               "The rows of time, height and width have changed places.",
               "The rows of time, height and width stand in another order."),
    .evidence = OF_IDS, .n_alternatives = sizeof orders / sizeof *orders, .apply = ids_axes_swapped,
    .combines_as = PE_KIND_AXES};
