/* The rotary family: shared by rope and its variants. Every variant is one object, a table of pairs of channels: the
 * axis of each pair, its frequency, a coordinate rule, a pairing layout and a factor on cos and sin:
 *
 *     angle[n, c] = direction · coords[n, axis[c]] · inv_freq[c],   c = 0 … C-1,  C = rotary_dim/2
 *     y1 = x1·cos - x2·sin,   y2 = x2·cos + x1·sin       (counter-clockwise; RoFormer, arXiv 2104.09864, equation 34)
 *
 * A scheme of the family puts struct pe_rotary_fields first in its config struct, PE_ROTARY_PARAMS among its rows,
 * PE_ROTARY_OUTPUTS among its outputs, and keeps a struct pe_rotary in its plan's tables. */
#ifndef PE_ROTARY_H
#define PE_ROTARY_H

#include "core/scheme.h"
#include "core/schemes/scalings/scaling.h"
#include "core/sequence/coords/coords.h"

/* ---- The parameters ---- */

enum pe_rotary_layout {
    PE_LAYOUT_INTERLEAVED,
    PE_LAYOUT_HALF,
    PE_LAYOUT_HALF_PER_AXIS,
    PE_LAYOUT_INTERLEAVED_TO_HALF,
    PE_LAYOUT_VJEPA2
};
enum pe_rotary_form { PE_FORM_PAIRS, PE_FORM_EXPANDED, PE_FORM_CONCAT, PE_FORM_COMPLEX, PE_FORM_MATRIX };
enum pe_rotary_channels {
    PE_PIXTRAL,
    PE_MROPE,
    PE_MROPE_INTERLEAVED,
    PE_CHANNELS_VIDEOROPE,
    PE_DINOV3,
    PE_IMROPE,
    PE_ALTERNATING,
    PE_OPENPANGU,
    PE_XDROPE
};
enum pe_rotary_ladder { PE_LADDER_SHARED, PE_LADDER_OWN };
extern const char *const pe_rotary_layouts[], *const pe_rotary_forms[], *const pe_rotary_channel_words[],
                                                                            *const pe_rotary_ladders[];

struct pe_rotary_fields {
    struct pe_scaling scaling; /* must be first: the offsets of its rows count from here */
    int64_t head_dim, rotary_dim;
    double partial_rotary_factor;
    int64_t rotary_offset;
    double base;
    int layout;
    int64_t direction;
    struct pe_reals inv_freq;
    /* Fields of several axes. Schemes without rows for them leave channels unset and the lists empty. */
    struct pe_reals axes_dim;
    int channels;
    struct pe_reals mrope_section, axis_order, channel_axis;
    int ladder;
    struct pe_reals axis_base;
    const struct pe_value *axis_scaling;
    struct pe_coord_fields at;
    double max_freq;
    double attention_factor;
    int form, arith;
};
_Static_assert(offsetof(struct pe_rotary_fields, scaling) == 0, "the rows of scaling count from the config");

#define PE_R_ROW(name_, TYPE, CTYPE, ...)                                                                              \
    {                                                                                                                  \
        .name = #name_, .type = PE_T_##TYPE, .offset = PE_OFFSET(pe_rotary_fields, name_, CTYPE), __VA_ARGS__          \
    }

/* Rows of every scheme of the family, in two parts, and arith behind them; rope has the rows for several axes between
 * them. */
#define PE_ROTARY_PARAMS                                                                                               \
    PE_P_INT(pe_rotary_fields, head_dim, 64, 2, PE_HEAD_DIM_MAX, "head width", "channels of one head; even",           \
             .group = PE_G_SIZE, .usual = {8, 256}),                                                                   \
        PE_P_INT(pe_rotary_fields, rotary_dim, PE_UNSET, 2, PE_HEAD_DIM_MAX, "rotated channels",                       \
                 "channels that are rotated; even; default head_dim", .group = PE_G_SIZE, .usual = {2, 256}),          \
        PE_R_ROW(partial_rotary_factor, REAL, double, .fallback = PE_UNSET, .min = 0, .max = 1,                        \
                 .excludes = "rotary_dim",                                                                             \
                 .about = {"rotated share", "rotary_dim as a share of head_dim, rounded down"}, .group = PE_G_SIZE),   \
        PE_P_INT(pe_rotary_fields, rotary_offset, 0, 0, PE_HEAD_DIM_MAX, "first rotated channel",                      \
                 "first rotated channel; DeepSeek rotates its last 64 of 192: 128", .level = PE_MORE,                  \
                 .group = PE_G_SIZE, .usual = {0, 128}),                                                               \
        PE_R_ROW(base, REAL, double, .alias = "rope_theta", .fallback = 10000, .min = 1e-3, .max = 1e12,               \
                 .about = {"wavelength base", "wavelength base; not 1; default 100 for channels dinov3"},              \
                 .group = PE_G_FREQUENCIES, .usual = {100, 1e7}),                                                      \
        PE_P_WORD(pe_rotary_fields, layout, pe_rotary_layouts, "pairing of channels",                                  \
                  "interleaved: neighbours are a pair (paper, Meta, GPT-J); half: first half with second "             \
                  "half (transformers, GPT-NeoX); half_per_axis: half inside each axis's block; "                      \
                  "interleaved_to_half: reads neighbours, writes halves (DeepSeek in transformers); "                  \
                  "vjepa2: V-JEPA 2's published code, whose bug makes it no rotation",                                 \
                  .level = PE_BASIC, .group = PE_G_LAYOUT),                                                            \
        PE_P_INT(pe_rotary_fields, direction, 1, -1, 1, "direction",                                                   \
                 "1: counter-clockwise, as in every library; -1: the inverse rotation", .group = PE_G_LAYOUT),         \
        PE_R_ROW(inv_freq, REALS, struct pe_reals, .min = -1e6, .max = 1e6, .excludes = "base|scaling",                \
                 .about = {"frequencies", "explicit frequencies, radians per position: [rotary_dim/2]"},               \
                 .group = PE_G_FREQUENCIES)

#define PE_ROTARY_PARAMS_LAST                                                                                           \
    {.name = "scaling",                                                                                                 \
     .alias = "rope_scaling|rope_parameters",                                                                           \
     .type = PE_T_OBJECT,                                                                                               \
     .fields = pe_scaling_params,                                                                                       \
     .about = {"context scaling",                                                                                       \
               "how frequencies change for longer contexts; a Hugging Face rope_scaling or rope_parameters "            \
               "object is accepted unchanged"},                                                                         \
     .level = PE_BASIC,                                                                                                 \
     .group = PE_G_SCALING},                                                                                            \
        PE_P_REAL(pe_rotary_fields, attention_factor, PE_UNSET, 1e-6, 1e6, "attention factor",                          \
                  "factor on cos and sin; default the scaling's, else 1", .group = PE_G_SCALING, .usual = {0.5, 2}),    \
        PE_P_WORD(pe_rotary_fields, form, pe_rotary_forms, "form of the table",                                         \
                  "pairs: cos, sin per pair; expanded: per channel; concat: cos_sin; complex: freqs_cis; matrix: 2×2 " \
                  "rotations",                                                                                          \
                  .group = PE_G_LAYOUT)

/* The lines that every scheme of the family has. */
#define PE_ROTARY_FORMULA                                                                                              \
    {"r = rotary_dim",                                                                                                 \
     "the channels of a head that are rotated; where axes have ladders of their own, those of the axis"},              \
        {"w_c = { inv_freq[c] if inv_freq is given; base^(-2*c/r) }",                                                  \
         "the frequency of pair c in radians per position: each pair turns more slowly than the one before"},          \
        {"w'_c = w_c", "the frequency that is used; a scaling replaces this line"},                                    \
        {"theta = direction*p*w'_c", "the angle of pair c at position p"},                                             \
        {"a = 1", "the scaling's own factor; a scaling may replace this line"},                                        \
        {"A = { attention_factor if attention_factor is given; a }", "the factor on cosine and sine"},                 \
        {"cos[p, c] = A*cos(theta)", "the table of cosines"},                                                          \
    {                                                                                                                  \
        "sin[p, c] = A*sin(theta)", "the table of sines"                                                               \
    }

/* ---- The outputs ---- */

enum pe_rotary_output {
    PE_COS,
    PE_SIN,
    PE_COS_EXPANDED,
    PE_SIN_EXPANDED,
    PE_COS_SIN,
    PE_FREQS_CIS,
    PE_MATRIX,
    PE_INV_FREQ,
    PE_POSITIONS,
    PE_ROPE_DELTA,
    PE_N_ROTARY_OUTPUTS
};

#define PE_ROTARY_OUTPUTS                                                                                              \
    [PE_COS] = PE_OUTPUT("cos", "n,rotary_dim/2", 1, PE_DTYPE_NONE, false, "form=pairs", "cosines",                    \
                         "cosine of each pair's angle"),                                                               \
    [PE_SIN] = PE_OUTPUT("sin", "n,rotary_dim/2", 1, PE_DTYPE_NONE, false, "form=pairs", "sines",                      \
                         "sine of each pair's angle"),                                                                 \
    [PE_COS_EXPANDED] = PE_OUTPUT("cos", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=expanded", "cosines",          \
                                  "cosine for each channel, in the order of the layout"),                              \
    [PE_SIN_EXPANDED] = PE_OUTPUT("sin", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=expanded", "sines",            \
                                  "sine for each channel, in the order of the layout"),                                \
    [PE_COS_SIN] = PE_OUTPUT("cos_sin", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=concat", "cosines and sines",   \
                             "cosines of all pairs, then sines"),                                                      \
    [PE_FREQS_CIS] = PE_OUTPUT("freqs_cis", "n,rotary_dim/2,2", 2, PE_DTYPE_NONE, false, "form=complex",               \
                               "complex numbers", "complex e^(i·angle): cos, sin"),                                    \
    [PE_MATRIX] = PE_OUTPUT("matrix", "n,rotary_dim/2,2,2", 3, PE_DTYPE_NONE, false, "form=matrix",                    \
                            "rotation matrices", "[[cos, -sin], [sin, cos]] of each pair"),                            \
    [PE_INV_FREQ] = PE_OUTPUT("inv_freq", "rotary_dim/2", 1, PE_F64, true, NULL, "frequencies",                        \
                              "angular frequency of each pair, radians per unit of its coordinate"),                   \
    [PE_POSITIONS] = PE_OUTPUT("positions", "axes,n", 1, PE_I64, true, NULL, "positions",                              \
                               "the coordinates used; f64 where one is fractional"),                                   \
    [PE_ROPE_DELTA] = PE_OUTPUT("rope_delta", "", 1, PE_I64, true, NULL, "position delta",                             \
                                "1 + the largest position - n: a decoder adds it to its cache position")

/* ---- What the fields resolve to: all that the tables are computed from ---- */

struct pe_rotary_resolved {
    const struct pe_rotary_fields *given; /* for fields that need no resolving */
    struct pe_scaling_use use;
    struct pe_scaling_resolved scaling; /* without inv_freq */
    double attention_factor;
    size_t n_pairs;
    int channels; /* unset: a list of axes (channel_axis), or a block of channels for each axis */
    enum pe_rotary_ladder ladder;
    struct pe_coord_fields at; /* coords: unset without a grid */
    unsigned n_axes;
    size_t pairs[PE_AXES_MAX];   /* of each section, if channels has sections; or of each axis's block */
    unsigned n_widths;           /* the first so many of them are shown */
    unsigned order[PE_AXES_MAX]; /* of the blocks */
    /* With ladders of their own: the base and the scaling of each axis. */
    double axis_base[PE_AXES_MAX];
    struct pe_scaling_resolved axis_scaling[PE_AXES_MAX];
};

/* A word of channels: a name for a list of axes. */
struct pe_rotary_channel_word {
    unsigned n_axes;      /* 0: as many as its sections, or as the sequence has */
    unsigned least, most; /* numbers in mrope_section; 0: the word has no sections */
    bool needs_sections;
    bool is_loose;       /* its sections may leave pairs */
    bool has_own_ladder; /* its frequencies are a rule of its own */
};
const struct pe_rotary_channel_word *pe_rotary_channel_word(int channels);

/* mrope_section, which a pasted object may have. */
const struct pe_reals *pe_rotary_sections(const struct pe_rotary_fields *given);

/* The first given field that is about ladders of axes; NULL: none. */
const char *pe_rotary_ladder_field(const struct pe_rotary_fields *given);

/* The steps of pe_rotary_resolve. Which axes: channels, n_axes and the base's default; *width is what the axes' own
 * widths add up to, unset if they have none. share: of the head, NAN if it is not given. */
enum pe_status pe_rotary_resolve_axes(struct pe_plan *plan, double share, struct pe_rotary_resolved *now,
                                      int64_t *width, struct pe_failure *err);
/* Then, once the width and the scaling are known: the pairs of each axis, and the ladders. */
enum pe_status pe_rotary_resolve_pairs(struct pe_rotary_resolved *now, struct pe_failure *err);

/* The axis of each pair, [n_pairs]; -1: it does not turn. */
void pe_rotary_axes(const struct pe_rotary_resolved *now, signed char *axis);

/* ---- The tables; plan->tables of the schemes of the family ---- */

struct pe_rotary {
    size_t head_dim, rotary_offset, n_pairs;
    enum pe_rotary_layout layout;
    enum pe_rotary_form form;
    int direction; /* 1 or -1 */
    bool float32;  /* inv_freq has the frameworks' float32 values (arith ggml: angles at position 1) */
    struct pe_dd attention_factor;
    size_t n_blocks; /* blocks of consecutive pairs: one for each axis if axes have blocks of channels; else 1 */
    size_t block_pairs[PE_AXES_MAX];
    struct pe_coords at;
    int64_t widths[PE_AXES_MAX]; /* axes_dim or mrope_section as shown; the config's list points here */
    void *extra;                 /* a scheme's own; owned, freed with free */
    struct pe_ggml_steps *steps; /* [n_pairs], arith ggml only */
    unsigned char *axis;         /* [n_pairs] */
    struct pe_dd *inv_freq;      /* [n_pairs], radians per unit of coordinate */
};

void pe_rotary_cost(const struct pe_plan *plan, struct pe_cost *cost);
enum pe_status pe_rotary_plan(struct pe_plan *plan, struct pe_failure *err);
void pe_rotary_drop(struct pe_plan *plan);
const struct pe_coords *pe_rotary_coords(const struct pe_plan *plan); /* the schemes' coords */

/* The steps of the plan. The first reads plan->config, and gives a sequence of one axis as many as channels or axes_dim
 * need; the second allocates plan->tables, and writes the coordinates of the sequence. */
enum pe_status pe_rotary_resolve(struct pe_plan *plan, struct pe_rotary_resolved *resolved, struct pe_failure *err);
enum pe_status pe_rotary_tables(const struct pe_rotary_resolved *resolved, struct pe_plan *plan,
                                struct pe_failure *err);

/* Of a built plan: what its config resolves to under `arith: ggml`. False: ggml computes no such table. */
bool pe_rotary_resolve_ggml(const struct pe_plan *plan, struct pe_rotary_resolved *now);
void pe_rotary_steps(const struct pe_rotary_resolved *now, struct pe_ggml_steps *steps); /* [n_pairs] */

bool pe_rotary_columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns);
void pe_rotary_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                    void *dst);
enum pe_dtype pe_rotary_dtype(const struct pe_plan *plan, size_t id, enum pe_dtype usual);
void pe_rotary_rotate(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns);

/* Of a built plan: the field that gives a scaling, of the request or of the model it names, if the scaling depends on
 * the length of the sequence and states none. NULL: there is none; other schemes, too. */
const struct pe_field *pe_rotary_lengthless(const struct pe_plan *plan);

extern const struct pe_attend pe_rotary_attend; /* the default of softmax_scale */
extern const struct pe_input_row pe_rotary_inputs[];

#endif
