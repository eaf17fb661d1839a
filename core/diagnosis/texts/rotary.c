/* Texts of what may be wrong with pairs, positions and widths. */
#include "core/diagnosis/texts/texts.h"

/* One sentence for each alternative, in the order of faults/layout.c. */
#define HAS_LAYOUT "The tensor has the layout {found}; the configuration says {believed}."
static const char *const of_layouts[] = {
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: between them, the rows of w_q and w_k must be "
               "permuted. Keep interleaved, or permute the weights; here one was done without the other.",
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: if the weights are Meta's, the permutation of "
               "the rows of w_q and w_k was forgotten.",
    HAS_LAYOUT " q is in the order of Meta's weights and q_out in that of weights converted for Hugging Face's code.",
    HAS_LAYOUT,
    HAS_LAYOUT,
};
FAULT_TEXTS(layout_swapped, "layout_swapped", "layout", "other layout",
            "Channels are paired by another layout, e.g. half instead of interleaved.", of_layouts);
FAULT_TEXT(sinusoid_layout, "layout_swapped", "sinusoid", "other layout",
           "Sines and cosines are neighbours instead of halves, or the reverse.", HAS_LAYOUT);

#define CONVERSION "the conversion of Meta's weights for Hugging Face's code (interleaved to half)."
#define INVERSE " This is the inverse of " CONVERSION
#define FROM " Channel i of a head is channel found[i] of q."
#define FROM_ALL " Channel i, counted through the heads, is channel found[i] of q."
static const char *const of_orders[] = {
    "The channels of q were permuted twice before they were rotated: weights that already had it got " CONVERSION FROM,
    "The channels of q were permuted in the wrong direction before they were rotated." INVERSE FROM,
    "The channels of q were permuted before they were rotated, which the configuration does not say, by " CONVERSION
        FROM,
    "The channels of q were permuted twice in the wrong direction before they were rotated." INVERSE FROM,
    ("The channels of q were permuted for {heads} heads before they were rotated, which is not the number of q, as "
     "when k's rows are converted with the heads of q." FROM_ALL),
    "The channels of q were permuted before they were rotated, in an order that has no name." FROM,
    "The channels were permuted after the rotation: channel i of q_out is channel found[i] of the rotated vector.",
};
FAULT_TEXTS(channels_permuted, "channels_permuted", "layout", "channels permuted",
            "The channels of a head are in another order, e.g. because the rows of w_q were permuted twice.",
            of_orders);
FAULT_TEXT(direction_reversed, "direction_reversed", "sense", "reversed direction",
           "Vectors are rotated the other way, so every sine has the opposite sign, or distances are counted from the "
           "other side.",
           "The direction is {found}; the configuration says {believed}.");
FAULT_TEXT(sin_cos_swapped, "sin_cos_swapped", "sense", "sines and cosines exchanged",
           "Sines stand where cosines belong, and cosines where sines belong.",
           "Sines and cosines have changed places.");
FAULT_TEXT(inverted, "inverted", "sense", "reciprocals", "Every number is the reciprocal of the right one.",
           "Every number is 1/x of the configuration's: timescales instead of frequencies.");
FAULT_TEXT(negated, "negated", "sense", "opposite sign", "Every number has the opposite sign.",
           "All finite numbers have the opposite sign.");
FAULT_TEXT(transposed, "transposed", "sense", "transposed", "The last two axes have changed places.",
           "The last two axes of the tensor have changed places.");
FAULT_TEXT(off_by_one, "off_by_one", "positions", "off by one", "All positions are larger or smaller by one.",
           "The tensor begins at position {found}; the configuration begins at {believed}.");
FAULT_TEXT(offset_other, "offset_other", "positions", "other offset", "The sequence begins at another position.",
           "The tensor begins at position {found}; the configuration begins at {believed}.");
FAULT_TEXT(not_rotated, "not_rotated", "positions", "positions without effect",
           "Every row is computed at position 0, so nothing is rotated.", "Every row is computed at position 0.");
FAULT_TEXT(rotated_twice, "rotated_twice", "positions", "rotated twice",
           "Every row is computed at twice its position, as when a rotation is applied two times.",
           "Every row is computed at twice its position.");
FAULT_TEXT(positions_reversed, "positions_reversed", "positions", "reversed positions",
           "The rows have the positions in reverse order.",
           "The positions run in reverse order: the first row has the last position.");
FAULT_TEXT(position_stride, "position_stride", "positions", "other stride",
           "Positions advance by another step than the configuration's.",
           "Positions advance by another step than in the configuration.");
FAULT_TEXT(positions_constant, "positions_constant", "positions", "constant position",
           "All rows are computed at one and the same position.",
           "All rows are computed at one and the same position.");
FAULT_TEXT(position_reset, "position_reset", "positions", "positions restart",
           "Positions restart at 0 inside the sequence, as for packed sequences.",
           "Positions restart inside the sequence; in the configuration they run on.");
FAULT_TEXT(position_no_reset, "position_no_reset", "positions", "positions run on",
           "Positions run on through packed sequences instead of restarting in each.",
           "Positions run on; in the configuration they restart in each packed sequence.");
FAULT_TEXT(offsets_by_row, "offsets_by_row", "positions", "positions by batch row",
           "Each row of the batch begins at a position of its own, as with left padding or caches of several lengths.",
           "The rows of the batch begin at different positions; in the configuration they have the same.");
FAULT_TEXT(positions_other, "positions_other", "positions", "other positions",
           "The positions of the rows, fitted one by one, are not the configuration's.",
           "The rows have other positions than in the configuration.");
FAULT_TEXT(rotary_dim_other, "rotary_dim_other", "width", "other rotary width",
           "Another number of channels of a head is rotated.",
           "{found} channels of a head are rotated; the configuration says {believed}.");
FAULT_TEXT(rotary_offset_other, "rotary_offset_other", "width", "other first channel",
           "The rotated channels begin elsewhere in the head.",
           "The rotated channels begin at channel {found}; the configuration says {believed}.");
FAULT_TEXT(attention_factor_missing, "attention_factor_missing", "size", "missing attention factor",
           "Cosines and sines lack the attention factor.", "Cosines and sines lack the attention factor {believed}.");
FAULT_TEXT(attention_factor_other, "attention_factor_other", "size", "other attention factor",
           "Cosines and sines have another attention factor.",
           "Cosines and sines have the attention factor {found}; the configuration gives {believed}.");
/* Of any factor; of one that is known. */
static const char *const of_scaled[] = {
    "All finite numbers are {found} times those of the configuration.",
    "All finite numbers are {found} times those of the configuration, which is {meaning}.",
};
FAULT_TEXTS(scaled, "scaled", "size", "scaled", "All numbers are multiplied by one factor.", of_scaled);
FAULT_TEXT(scheme_other, "scheme_other", "size", "other scheme",
           "The tensor is of another scheme, e.g. RoPE where xPos is believed.",
           "The scheme is {found}; the configuration says {believed}. xPos is RoPE with a scale that changes with the "
           "position.");
FAULT_TEXT(scale_base_other, "scale_base_other", "size", "other scale_base",
           "The scale of xPos changes over another number of positions.",
           "scale_base is {found}; the configuration says {believed}.");
FAULT_TEXT(center_other, "center_other", "size", "other centre", "The scale of xPos is 1 at another position.",
           "The scale of xPos is 1 at the position {found}; the configuration says {believed}.");
FAULT_TEXT(zero_row, "zero_row", "size", "row of zeros", "One row is zero.", "Row {found} (counted from 0) is zero.");
FAULT_TEXT(mask_value, "mask_value", "size", "finite mask",
           "Hidden keys have a large negative number instead of minus infinity.",
           "Hidden keys have the number {found} instead of -inf.");
