/* Texts of what may be wrong with biases, buckets and position ids. */
#include "core/diagnosis/texts/texts.h"

/* One sentence for each alternative, in the order of faults/heads.c. */
#define LINEAR                                                                                                         \
    "The slopes grow linearly with the head, as (h+1)·2^(-bias_max/n), instead of being powers, "                     \
    "2^(-bias_max·(h+1)/n)."
static const char *const of_slopes[] = {
    "The slopes are those of the paper, 2^(-bias_max·(h+1)/n); the configuration lists others.",
    LINEAR,
    LINEAR,
    LINEAR,
    "The slopes are 2^(-bias_max·(h+1)/H) for all H heads. As H is not a power of two, the paper takes the last heads "
    "from the list for twice as many.",
    "The heads beyond the power of two have halves of the first slopes instead of the odd terms of the list for twice "
    "as many heads.",
    "Every head has the next head's slope: the slopes are 2^(-bias_max·(h+2)/H), h counted from 0.",
    "The slopes were rounded to bfloat16.",
    "The slopes are not those of the configuration; `found` lists them.",
};

#define SORTED                                                                                                         \
    "The slopes are right, but sorted. For a number of heads that is not a power of two, the paper's list is not "     \
    "sorted."
static const char *const of_slopes_order[] = {
    "The slopes are right, but the heads have them in reverse order.",
    SORTED,
    SORTED,
};

FAULT_TEXTS(slopes_other, "slopes_other", "bias", "other slopes", "The heads have other slopes.", of_slopes);
FAULT_TEXTS(slopes_order, "slopes_order", "bias", "other order of slopes",
            "The heads have the right slopes in another order.", of_slopes_order);
FAULT_TEXT(bias_max_other, "bias_max_other", "bias", "other bias_max", "The slopes are computed with another bias_max.",
           "bias_max is {found}; the configuration says {believed}.");
FAULT_TEXT(form_other, "form_other", "bias", "other form", "The bias has another form, e.g. key instead of relative.",
           "The form is {found}; the configuration says {believed}.");
FAULT_TEXT(alignment_other, "alignment_other", "bias", "other alignment",
           "The first query stands at another position relative to the keys.",
           "The first query is at position {found}; the configuration puts it at {believed}.");
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
FAULT_TEXTS(mask_missing, "mask_missing", "bias", "missing mask", "Keys that the configuration hides are visible.",
            not_hidden);
static const char *const hidden[] = {
    "Keys after the query are -inf; the configuration does not hide them.",
    "Keys outside a window are -inf; the configuration has no window.",
    "Some keys are -inf for every query; the configuration has no mask of keys.",
    ("Some keys have the bias 0 and are not counted, as padding has in BLOOM's code; the configuration has no mask of "
     "keys."),
};
FAULT_TEXTS(mask_extra, "mask_extra", "bias", "additional mask", "Keys are hidden that the configuration shows.",
            hidden);
FAULT_TEXT(window_other, "window_other", "bias", "other window", "The window of visible keys has another size.",
           "The window is {found}; the configuration says {believed}.");
FAULT_TEXT(bidirectional_other, "bidirectional_other", "bias", "other bidirectional",
           "Buckets are computed for an encoder instead of a decoder, or the other way round.",
           "bidirectional is {found}; the configuration says {believed}.");
FAULT_TEXT(max_distance_other, "max_distance_other", "bias", "other max_distance", "Buckets end at another distance.",
           "max_distance is {found}; the configuration says {believed}.");
FAULT_TEXT(kind_other, "kind_other", "bias", "other kind", "KERPLE's bias is of the other kind: log or power.",
           "The kind is {found}; the configuration says {believed}.");
FAULT_TEXT(position_style_other, "position_style_other", "ids", "other position_style",
           "The position ids are counted by another model's rules.",
           "The position_style is {found}; the configuration says {believed}.");
FAULT_TEXT(tokens_per_second_other, "tokens_per_second_other", "ids", "other tokens_per_second",
           "A second of video has another number of temporal ids.",
           "A second of video counts as {found} temporal ids; the configuration says {believed}.");
FAULT_TEXT(merge_size_other, "merge_size_other", "ids", "other merge size",
           "Another number of patches is merged into a token.",
           "spatial_merge_size is {found}; the configuration says {believed}.");
FAULT_TEXT(ids_axes_swapped, "axes_swapped", "ids", "axes exchanged",
           "The rows of time, height and width have changed places.",
           "The rows of time, height and width stand in another order.");
FAULT_TEXT(ids_axes_missing, "axes_missing", "ids", "axes forgotten",
           "The positions are on several axes; the configuration has one.",
           "The positions are on several axes; the configuration has one.");
