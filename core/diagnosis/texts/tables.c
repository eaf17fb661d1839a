/* Texts of what may be wrong with frequencies, arithmetic, axes and sinusoids. */
#include "core/diagnosis/texts/texts.h"

FAULT_TEXT(scaling_missing, "scaling_missing", "ladder", "missing scaling", "缺少 scaling",
           "The frequencies are not scaled.", "频率没有经过 scaling。",
           "The frequencies are not scaled, although the configuration has a scaling.",
           "频率没有经过 scaling，而配置中有 scaling。");
FAULT_TEXT(ladder_width, "ladder_width", "ladder", "exponent over head_dim", "指数按 head_dim 计算",
           "The exponents of the frequencies are divided by head_dim instead of by rotary_dim.",
           "频率的指数除以 head_dim，而不是 rotary_dim。",
           "The exponents of the frequencies are divided by head_dim instead of by rotary_dim.",
           "频率的指数除以了 head_dim，本应除以 rotary_dim。");
FAULT_TEXT(ladder_from_one, "ladder_from_one", "ladder", "frequencies counted from one", "频率从 1 数起",
           "Pair c has the frequency of pair c + 1: the exponents begin at 1 instead of 0.",
           "第 c 对用的是第 c + 1 对的频率：指数从 1 数起，而不是从 0。",
           "Each pair has the frequency of the next one: pairs are counted from 1 instead of 0.",
           "每一对都用了下一对的频率：编号从 1 数起，而不是从 0。");
FAULT_TEXT(ladder_reversed, "ladder_reversed", "ladder", "reversed frequencies", "频率顺序颠倒",
           "The frequencies are in reverse order: the slowest pair comes first.", "频率顺序颠倒：最慢的一对排在最前。",
           "The frequencies are in reverse order: the slowest pair comes first.", "频率顺序颠倒：最慢的一对排在最前。");
FAULT_TEXT(scaling_parameter, "scaling_parameter", "ladder", "other scaling parameter", "scaling 参数不同",
           "The scaling is of the configuration's type, with another parameter.",
           "scaling 的类型与配置相同，但某个参数不同。",
           "A parameter of the scaling is {found}; the configuration says {believed}.",
           "scaling 的一个参数是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(scaling_other, "scaling_other", "ladder", "other scaling", "scaling 不同",
           "The frequencies are scaled by another rule.", "频率按另一种规则缩放。",
           "The frequencies are scaled by another rule than the configuration's.", "频率的缩放规则与配置不同。");
FAULT_TEXT(base_other, "base_other", "ladder", "other base", "base 不同", "The frequencies have another base.",
           "频率的 base 不同。", "The base is {found}; the configuration says {believed}.",
           "base 是 {found}，而配置写的是 {believed}。");
/* Explained by it; beside a configuration that is exact; beside float32 angles of other steps. */
static const struct pe_text of_angles_f32[] = {
    {"Your angles are computed in float32, as in most code; \"arith\":\"float32\" gives such angles.",
     "角度是用 float32 计算的，大多数代码都这样；\"arith\":\"float32\" 可得到这样的角度。"},
    {"Your angles are computed in float32, as in most code: the largest difference is {largest}, in row {row}. "
     "\"arith\":\"float32\" gives such angles.",
     "角度是用 float32 计算的，大多数代码都这样：最大差异为 {largest}，在第 {row} 行（从 0 数起）。"
     "\"arith\":\"float32\" 可得到这样的角度。"},
    {"Your angles are computed in float32 by other steps than \"arith\":\"float32\": the largest difference is "
     "{largest}, "
     "in row {row}, which is what right code may lose.",
     "角度是用 float32 计算的，但步骤与 \"arith\":\"float32\" 不同：最大差异为 {largest}，在第 {row} 行（从 0 数起），"
     "属于正确代码应有的误差。"},
};
FAULT_TEXTS(angles_f32, "angles_f32", "arithmetic", "float32 angles", "float32 角度",
            "Angles are computed in float32, so their error grows with the position.",
            "角度用 float32 计算，误差随位置增大。", of_angles_f32);
FAULT_TEXT(inv_freq_bf16, "inv_freq_bf16", "arithmetic", "bfloat16 frequencies", "bfloat16 频率",
           "The frequencies are rounded to bfloat16 before angles are computed.", "频率先舍入到 bfloat16，再计算角度。",
           "The frequencies were rounded to bfloat16.", "频率被舍入到了 bfloat16。");
FAULT_TEXT(inv_freq_f16, "inv_freq_f16", "arithmetic", "float16 frequencies", "float16 频率",
           "The frequencies are rounded to float16 before angles are computed.", "频率先舍入到 float16，再计算角度。",
           "The frequencies were rounded to float16.", "频率被舍入到了 float16。");
FAULT_TEXT(angles_bf16, "angles_bf16", "arithmetic", "bfloat16 angles", "bfloat16 角度",
           "Positions, frequencies and angles are rounded to bfloat16.", "位置、频率和角度都舍入到 bfloat16。",
           "Positions, frequencies and angles were rounded to bfloat16.", "位置、频率和角度都被舍入到了 bfloat16。");
FAULT_TEXT(angles_wrapped, "angles_wrapped", "arithmetic", "angles modulo 2π", "角度对 2π 取模",
           "Angles are reduced by whole turns.", "角度减去了整圈。",
           "The angles are reduced modulo 2π, so they no longer grow with the position.",
           "角度对 2π 取了模，不再随位置增长。");
FAULT_TEXT(table_dtype, "table_dtype", "arithmetic", "table of lower precision", "表的精度较低",
           "The numbers are those of the configuration, rounded to a smaller dtype.",
           "数值与配置一致，只是舍入到了精度更低的 dtype。",
           "The numbers were rounded to {found}; apart from that they are right.",
           "数值被舍入到了 {found}，除此之外是正确的。");
FAULT_TEXT(
    tensor_layout_other, "tensor_layout_other", "axes", "other order of axes", "轴的顺序不同",
    "The tensor has batch, heads, positions and channels in another order, so other rows are rotated together.",
    "张量的 batch、头、位置、通道各轴顺序不同，因此按同一位置旋转的行也不同。",
    "The axes of the tensor have the order {found} (b batch, h heads, n positions, d channels); the configuration "
    "says {believed}.",
    "张量各轴的顺序是 {found}（b 为 batch，h 为头，n 为位置，d 为通道），而配置写的是 {believed}。");
#define SIDES                                                                                                                 \
    {                                                                                                                         \
        "The sides of the grid have changed places, as width for height.", "网格的边互换了，例如宽当成了高。" \
    }
#define COLUMNS                                                                                                        \
    {                                                                                                                  \
        "The tokens of the grid are ordered column by column; the configuration orders them row by row.",              \
            "网格中的 token 按列排列，而配置按行排列。"                                               \
    }
#define EXCHANGED                                                                                                      \
    {                                                                                                                  \
        "Two axes of the positions have changed places.", "位置的两个坐标轴互换了。"                       \
    }
/* Five permutations of three axes each: faults/axes.c. */
static const struct pe_text of_axes[] = {SIDES,     SIDES,     SIDES,     SIDES,     SIDES,
                                         COLUMNS,   COLUMNS,   COLUMNS,   COLUMNS,   COLUMNS,
                                         EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED};
FAULT_TEXTS(axes_swapped, "axes_swapped", "axes", "axes exchanged", "坐标轴互换",
            "Two axes of the positions have changed places.", "位置的两个坐标轴互换了。", of_axes);
FAULT_TEXT(section_order, "section_order", "axes", "other order of sections", "section 顺序不同",
           "The sections of the axes stand in another order.", "各轴的 section 排列顺序不同。",
           "The sections are {found}; the configuration says {believed}.",
           "section 是 {found}，而配置写的是 {believed}。");
#define RULE                                                                                                           \
    {                                                                                                                  \
        "The channels are {found}; the configuration says {believed}.",                                                \
            "channels 是 {found}，而配置写的是 {believed}。"                                                  \
    }
#define SHARED                                                                                                         \
    {                                                                                                                  \
        "The axes share the channels of a head by another rule: channels {found}.",                                    \
            "各轴按另一种规则分配头内的通道：channels {found}。"                                      \
    }
static const struct pe_text of_channels[] = {
    RULE,
    RULE,
    SHARED,
    SHARED,
    SHARED,
    {"Each axis has a block of channels with frequencies of its own; in the configuration the axes share one list.",
     "每个轴各占一块通道，各有自己的频率；而配置中各轴共用一张频率表。"},
};
FAULT_TEXTS(channels_other, "channels_other", "axes", "other channels", "channels 不同",
            "The axes share the channels of a head by another rule.", "各轴按另一种规则分配头内的通道。", of_channels);
FAULT_TEXT(freq_shift_other, "freq_shift_other", "sinusoid", "other freq_shift", "freq_shift 不同",
           "The exponents of the frequencies have another divisor.", "频率指数的除数不同。",
           "freq_shift is {found}; the configuration says {believed}.",
           "freq_shift 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(odd_other, "odd_other", "sinusoid", "other last column", "末列处理不同",
           "The last column of an odd width is computed by another rule.", "宽度为奇数时，最后一列的处理规则不同。",
           "odd is {found}; the configuration says {believed}.", "odd 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(style_other, "style_other", "sinusoid", "other style", "style 不同",
           "Several axes are combined in another style.", "多个轴按另一种 style 组合。",
           "The style is {found}; the configuration says {believed}.", "style 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(exponent_per_column, "exponent_per_column", "sinusoid", "exponent per column", "指数逐列变化",
           "Column j has the frequency base^(-j/d), so a sine and its cosine differ in frequency.",
           "第 j 列的频率是 base^(-j/d)，因此一对 sin 与 cos 的频率不同。",
           "Each column has a frequency of its own, base^(-j/d) for column j.",
           "每一列都有各自的频率：第 j 列是 base^(-j/d)。");
FAULT_TEXT(exponent_doubled, "exponent_doubled", "sinusoid", "doubled exponent", "指数翻倍",
           "Column j has the frequency base^(-2j/d): the column is taken for the pair.",
           "第 j 列的频率是 base^(-2j/d)：把列号当成了对号。",
           "Column j has the frequency base^(-2j/d): the column is taken for the pair.",
           "第 j 列的频率是 base^(-2j/d)：把列号当成了对号。");
FAULT_TEXT(sine_only, "sine_only", "sinusoid", "sines only", "只有 sin",
           "Cosine columns have the sine of the same angle.", "cos 列填的是同一角度的 sin。",
           "Every cosine column has the sine of the same angle.", "所有 cos 列填的都是同一角度的 sin。");
FAULT_TEXT(
    inv_freq_other, "inv_freq_other", "ladder", "other frequencies", "频率不同",
    "The frequencies, fitted pair by pair, follow no rule that was tried.", "逐对拟合出的频率不符合任何试过的规则。",
    "The frequencies follow no rule that was tried; `found` lists them. Nearest is {nearest.name}: {nearest.pairs} "
    "of {nearest.of} pairs have another frequency, by a factor of at most {nearest.largest}.",
    "频率不符合任何试过的规则，`found` 列出了实际的频率。最接近的是 {nearest.name}：{nearest.of} 对中有 "
    "{nearest.pairs} 对的频率不同，最多相差 {nearest.largest} 倍。");
FAULT_TEXT(sinusoid_from_one, "ladder_from_one", "sinusoid", "frequencies counted from one", "频率从 1 数起",
           "Pair c has the frequency of pair c + 1: the exponents begin at 1 instead of 0.",
           "第 c 对用的是第 c + 1 对的频率：指数从 1 数起，而不是从 0。",
           "Each pair has the frequency of the next one: pairs are counted from 1 instead of 0.",
           "每一对都用了下一对的频率：编号从 1 数起，而不是从 0。");
FAULT_TEXT(coords_other, "coords_other", "axes", "other coordinates", "坐标规则不同",
           "The coordinates on a grid are counted by another rule, as resized to the training grid.",
           "网格上的坐标按另一种规则计算，例如缩放到训练时的网格。",
           "{pointer} is {found}; the configuration says {believed}.",
           "{pointer} 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(order_other, "order_other", "axes", "other order of patches", "图像块顺序不同",
           "The patches of a grid are in another order: row by row, or block after block that are merged.",
           "网格中图像块的顺序不同：逐行，或按要合并的块逐块排列。",
           "{pointer} is {found}; the configuration says {believed}.",
           "{pointer} 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(parameter_other, "parameter_other", "parameter", "other parameter", "参数不同",
           "A parameter has another value.", "某个参数取了别的值。",
           "{pointer} is {found}; the configuration says {believed}.",
           "{pointer} 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(axes_missing, "axes_missing", "axes", "axes forgotten", "遗漏坐标轴",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。");
FAULT_TEXT(sinusoid_axes_missing, "axes_missing", "sinusoid", "axes forgotten", "遗漏坐标轴",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。");
