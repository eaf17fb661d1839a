/* RoPE, rotary position embedding (Su et al. 2021, arXiv 2104.09864): pairs of channels are rotated by an angle that
 * grows with the position, so that the score of a query and a key depends on their distance only.
 *
 *     inv_freq[c] = base^(-2c/rotary_dim),   c = 0 … rotary_dim/2 - 1
 *     angle[p, c] = direction · p · inv_freq[c]
 *
 * The exponent's denominator is rotary_dim, not head_dim: partial rotary (GPT-NeoX, GPT-J, Phi) has its own
 * frequencies. With several axes, each pair uses one of them (core/schemes/rotary/rotary_resolve.c). */
#include "core/schemes/rotary/rotary.h"

static const char *const ariths[] = {
    [PE_ARITH_EXACT] = "exact", [PE_ARITH_FLOAT32] = "float32", [PE_ARITH_GGML] = "ggml", NULL};

static const struct pe_param params[] = {
    PE_ROTARY_PARAMS,
    PE_R_ROW(axes_dim, REALS, struct pe_reals, .min = 0, .max = PE_HEAD_DIM_MAX, .excludes = "channels|channel_axis",
             .about = {"width of each axis",
                       "for several axes, each with its own list of frequencies: the channels of each axis; default "
                       "equal parts, and the first axis gets the rest"},
             .group = PE_G_AXES),
    PE_R_ROW(channels, WORD, int, .fallback = PE_UNSET_WORD, .words = pe_rotary_channel_words,
             .excludes = "channel_axis",
             .about = {"channels of several axes",
                       "for several axes that share one list of frequencies: mrope (Qwen2-VL), mrope_interleaved "
                       "(Qwen3-VL), imrope (Qwen3-VL in llama.cpp), videorope, pixtral, dinov3, alternating "
                       "(HunyuanImage 3), openpangu, xdrope (HunyuanVL)"},
             .group = PE_G_AXES),
    PE_R_ROW(channel_axis, REALS, struct pe_reals, .min = -1, .max = PE_AXES_MAX - 1,
             .excludes = "mrope_section|axis_order",
             .about = {"axis of each pair", "which axis each pair of channels looks at: [rotary_dim/2]; -1: angle 0"},
             .level = PE_MORE, .group = PE_G_AXES),
    PE_R_ROW(ladder, WORD, int, .fallback = PE_UNSET_WORD, .words = pe_rotary_ladders, .excludes = "inv_freq",
             .about = {"frequencies of several axes",
                       "shared: pair c has base^(-2c/rotary_dim), whichever its axis; own: the k-th of an axis's m "
                       "pairs has base^(-2k/(2m)); default own with a block of channels for each axis, else shared"},
             .level = PE_MORE, .group = PE_G_AXES),
    PE_R_ROW(axis_base, REALS, struct pe_reals, .min = 1e-3, .max = 1e12, .excludes = "base|inv_freq",
             .about = {"base of each axis", "with ladder own: the wavelength base of each axis; default base"},
             .level = PE_MORE, .group = PE_G_AXES),
    PE_R_ROW(axis_scaling, VALUE, const struct pe_value *, .excludes = "scaling|inv_freq",
             .about = {"scaling of each axis",
                       "with ladder own: a scaling object or null for each axis, of type default, linear or ntk"},
             .level = PE_MORE, .group = PE_G_AXES),
    PE_R_ROW(mrope_section, REALS, struct pe_reals, .min = 0, .max = PE_HEAD_DIM_MAX,
             .when = "channels=mrope|mrope_interleaved|videorope|imrope|openpangu|xdrope|",
             .about = {"pairs of each axis",
                       "number of pairs for time, height, width; default 3/8 each for height and width, the rest for "
                       "time; mrope_interleaved also gives time the pairs that the sections leave; imrope: a third "
                       "each by default, and the pairs that they leave, or a fourth number, are not rotated; "
                       "openpangu: two or three numbers; xdrope: three or four"},
             .group = PE_G_AXES),
    PE_R_ROW(
        axis_order, REALS, struct pe_reals, .min = 0, .max = PE_AXES_MAX - 1,
        .about = {"axis order", "order of the axes' blocks in the head; default 0, 1, …; Llama 4's vision tower: 1, 0"},
        .group = PE_G_AXES),
    PE_COORD_PARAMS(pe_rotary_fields),
    PE_R_ROW(max_freq, REAL, double, .fallback = 10, .min = 1e-6, .max = 1e6, .when = "coords=pixel",
             .about = {"highest frequency", "frequencies are pi·linspace(1, max_freq/2)"}, .level = PE_MORE,
             .group = PE_G_FREQUENCIES, .usual = {1, 100}),
    PE_ROTARY_PARAMS_LAST,
    PE_P_WORD(pe_rotary_fields, arith, ariths, "arithmetic",
              "exact: angles in double or better, rounded once; float32: every step rounded to f32, as frameworks "
              "compute it; ggml: in the steps of ggml's CPU code, each pair's angle the one before it times a constant",
              .group = PE_G_NUMBERS),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {PE_ROTARY_OUTPUTS, {.name = NULL}};

static const struct pe_formula_line formula[] = {
    PE_ROTARY_FORMULA,
    {"y_1 = x_1*cos[p, c] - x_2*sin[p, c]", "a pair of a query or key, rotated by its angle"},
    {"y_2 = x_2*cos[p, c] + x_1*sin[p, c]",
     "the same for its second channel: a score then depends on the distance only"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_rope = {
    .info =
        {
            .name = "rope",
            .family = "rotary",
            .about = {"rotary encoding (RoPE)",
                      "rotates pairs of channels of queries and keys by angles that grow with the position"},
            .paper = "Su et al. 2021, arXiv 2104.09864 (RoFormer)",
            .formula = formula,
            .example = "{\"scheme\":\"rope\",\"len\":8,\"head_dim\":16}",
            .picture = "len=128&head_dim=128&outputs=cos",
            .worked = "head_dim=8&position=3&pair=1",
            .traps = "The paper and Meta's code pair neighbours, transformers pairs the first half with the "
                     "second (`layout`). A wrong layout keeps shapes and norms, so nothing fails, but scores "
                     "are wrong. The exponent's divisor is `rotary_dim`, which is not `head_dim` where only a "
                     "part of the head is rotated. Angles computed in float32 or bfloat16 lose digits as the "
                     "position grows.",
            .params = params,
            .outputs = outputs,
            .inputs = pe_rotary_inputs,
        },
    .config_bytes = sizeof(struct pe_rotary_fields),
    .has_axes = true,
    .cost = pe_rotary_cost,
    .plan = pe_rotary_plan,
    .drop = pe_rotary_drop,
    .columns = pe_rotary_columns,
    .fill = pe_rotary_fill,
    .dtype = pe_rotary_dtype,
    .coords = pe_rotary_coords,
    .rotate = pe_rotary_rotate,
    .attend = &pe_rotary_attend,
    .derive = pe_rotary_derive,
};
