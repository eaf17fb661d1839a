/* Texts of what may be wrong with frequencies, arithmetic, axes and sinusoids. */
#include "core/diagnosis/texts/texts.h"

FAULT_TEXT(scaling_missing, "scaling_missing", "ladder", "missing scaling", "The frequencies are not scaled.",
           "The frequencies are not scaled, although the configuration has a scaling.");
FAULT_TEXT(ladder_width, "ladder_width", "ladder", "exponent over head_dim",
           "The exponents of the frequencies are divided by head_dim instead of by rotary_dim.",
           "The exponents of the frequencies are divided by head_dim instead of by rotary_dim.");
FAULT_TEXT(ladder_from_one, "ladder_from_one", "ladder", "frequencies counted from one",
           "Pair c has the frequency of pair c + 1: the exponents begin at 1 instead of 0.",
           "Each pair has the frequency of the next one: pairs are counted from 1 instead of 0.");
FAULT_TEXT(ladder_reversed, "ladder_reversed", "ladder", "reversed frequencies",
           "The frequencies are in reverse order: the slowest pair comes first.",
           "The frequencies are in reverse order: the slowest pair comes first.");
FAULT_TEXT(scaling_parameter, "scaling_parameter", "ladder", "other scaling parameter",
           "The scaling is of the configuration's type, with another parameter.",
           "A parameter of the scaling is {found}; the configuration says {believed}.");
FAULT_TEXT(scaling_other, "scaling_other", "ladder", "other scaling", "The frequencies are scaled by another rule.",
           "The frequencies are scaled by another rule than the configuration's.");
FAULT_TEXT(base_other, "base_other", "ladder", "other base", "The frequencies have another base.",
           "The base is {found}; the configuration says {believed}.");
/* Explained by it; beside a configuration that is exact; beside float32 angles of other steps. */
static const char *const of_angles_f32[] = {
    "Your angles are computed in float32, as in most code; \"arith\":\"float32\" gives such angles.",
    "Your angles are computed in float32, as in most code: the largest difference is {largest}, in row {row}. "
    "\"arith\":\"float32\" gives such angles.",
    "Your angles are computed in float32 by other steps than \"arith\":\"float32\": the largest difference is "
    "{largest}, "
    "in row {row}, which is what right code may lose.",
};
FAULT_TEXTS(angles_f32, "angles_f32", "arithmetic", "float32 angles",
            "Angles are computed in float32, so their error grows with the position.", of_angles_f32);
FAULT_TEXT(inv_freq_bf16, "inv_freq_bf16", "arithmetic", "bfloat16 frequencies",
           "The frequencies are rounded to bfloat16 before angles are computed.",
           "The frequencies were rounded to bfloat16.");
FAULT_TEXT(inv_freq_f16, "inv_freq_f16", "arithmetic", "float16 frequencies",
           "The frequencies are rounded to float16 before angles are computed.",
           "The frequencies were rounded to float16.");
FAULT_TEXT(angles_bf16, "angles_bf16", "arithmetic", "bfloat16 angles",
           "Positions, frequencies and angles are rounded to bfloat16.",
           "Positions, frequencies and angles were rounded to bfloat16.");
FAULT_TEXT(angles_wrapped, "angles_wrapped", "arithmetic", "angles modulo 2π", "Angles are reduced by whole turns.",
           "The angles are reduced modulo 2π, so they no longer grow with the position.");
FAULT_TEXT(table_dtype, "table_dtype", "arithmetic", "table of lower precision",
           "The numbers are those of the configuration, rounded to a smaller dtype.",
           "The numbers were rounded to {found}; apart from that they are right.");
FAULT_TEXT(
    tensor_layout_other, "tensor_layout_other", "axes", "other order of axes",
    "The tensor has batch, heads, positions and channels in another order, so other rows are rotated together.",
    "The axes of the tensor have the order {found} (b batch, h heads, n positions, d channels); the configuration "
    "says {believed}.");
#define SIDES "The sides of the grid have changed places, as width for height."
#define COLUMNS "The tokens of the grid are ordered column by column; the configuration orders them row by row."
#define EXCHANGED "Two axes of the positions have changed places."
/* Five permutations of three axes each: faults/axes.c. */
static const char *const of_axes[] = {SIDES,   SIDES,   SIDES,     SIDES,     SIDES,     COLUMNS,   COLUMNS,  COLUMNS,
                                      COLUMNS, COLUMNS, EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED};
FAULT_TEXTS(axes_swapped, "axes_swapped", "axes", "axes exchanged", "Two axes of the positions have changed places.",
            of_axes);
FAULT_TEXT(section_order, "section_order", "axes", "other order of sections",
           "The sections of the axes stand in another order.",
           "The sections are {found}; the configuration says {believed}.");
#define RULE "The channels are {found}; the configuration says {believed}."
#define SHARED "The axes share the channels of a head by another rule: channels {found}."
static const char *const of_channels[] = {
    RULE,
    RULE,
    SHARED,
    SHARED,
    SHARED,
    "Each axis has a block of channels with frequencies of its own; in the configuration the axes share one list.",
};
FAULT_TEXTS(channels_other, "channels_other", "axes", "other channels",
            "The axes share the channels of a head by another rule.", of_channels);
FAULT_TEXT(freq_shift_other, "freq_shift_other", "sinusoid", "other freq_shift",
           "The exponents of the frequencies have another divisor.",
           "freq_shift is {found}; the configuration says {believed}.");
FAULT_TEXT(odd_other, "odd_other", "sinusoid", "other last column",
           "The last column of an odd width is computed by another rule.",
           "odd is {found}; the configuration says {believed}.");
FAULT_TEXT(style_other, "style_other", "sinusoid", "other style", "Several axes are combined in another style.",
           "The style is {found}; the configuration says {believed}.");
FAULT_TEXT(exponent_per_column, "exponent_per_column", "sinusoid", "exponent per column",
           "Column j has the frequency base^(-j/d), so a sine and its cosine differ in frequency.",
           "Each column has a frequency of its own, base^(-j/d) for column j.");
FAULT_TEXT(exponent_doubled, "exponent_doubled", "sinusoid", "doubled exponent",
           "Column j has the frequency base^(-2j/d): the column is taken for the pair.",
           "Column j has the frequency base^(-2j/d): the column is taken for the pair.");
FAULT_TEXT(sine_only, "sine_only", "sinusoid", "sines only", "Cosine columns have the sine of the same angle.",
           "Every cosine column has the sine of the same angle.");
FAULT_TEXT(
    inv_freq_other, "inv_freq_other", "ladder", "other frequencies",
    "The frequencies, fitted pair by pair, follow no rule that was tried.",
    "The frequencies follow no rule that was tried; `found` lists them. Nearest is {nearest.name}: {nearest.pairs} "
    "of {nearest.of} pairs have another frequency, by a factor of at most {nearest.largest}.");
FAULT_TEXT(sinusoid_from_one, "ladder_from_one", "sinusoid", "frequencies counted from one",
           "Pair c has the frequency of pair c + 1: the exponents begin at 1 instead of 0.",
           "Each pair has the frequency of the next one: pairs are counted from 1 instead of 0.");
FAULT_TEXT(coords_other, "coords_other", "axes", "other coordinates",
           "The coordinates on a grid are counted by another rule, as resized to the training grid.",
           "{pointer} is {found}; the configuration says {believed}.");
FAULT_TEXT(order_other, "order_other", "axes", "other order of patches",
           "The patches of a grid are in another order: row by row, or block after block that are merged.",
           "{pointer} is {found}; the configuration says {believed}.");
FAULT_TEXT(parameter_other, "parameter_other", "parameter", "other parameter", "A parameter has another value.",
           "{pointer} is {found}; the configuration says {believed}.");
FAULT_TEXT(axes_missing, "axes_missing", "axes", "axes forgotten",
           "The positions are on several axes; the configuration has one.",
           "The positions are on several axes; the configuration has one.");
FAULT_TEXT(sinusoid_axes_missing, "axes_missing", "sinusoid", "axes forgotten",
           "The positions are on several axes; the configuration has one.",
           "The positions are on several axes; the configuration has one.");
