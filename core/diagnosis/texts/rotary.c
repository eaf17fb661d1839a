/* Texts of what may be wrong with pairs, positions and widths. */
#include "core/diagnosis/texts/texts.h"

/* One sentence for each alternative, in the order of faults/layout.c. */
#define HAS_LAYOUT "The tensor has the layout {found}; the configuration says {believed}."
#define HAS_LAYOUT_ZH "张量的 layout 是 {found}，而配置写的是 {believed}。"
static const struct pe_text of_layouts[] = {
    {HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: between them, the rows of w_q and w_k must be "
                "permuted. Keep interleaved, or permute the weights; here one was done without the other.",
     HAS_LAYOUT_ZH "Meta 的代码用 interleaved，transformers 用 half，两者之间必须重排 w_q 和 w_k 的行。"
                   "要么保持 interleaved，要么重排权重；这里只做了其中一半。"},
    {HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: if the weights are Meta's, the permutation of "
                "the rows of w_q and w_k was forgotten.",
     HAS_LAYOUT_ZH "Meta 的代码用 interleaved，transformers 用 half：如果权重来自 Meta，那么漏掉了对 w_q 和 w_k "
                   "各行的重排。"},
    {HAS_LAYOUT " q is in the order of Meta's weights and q_out in that of weights converted for Hugging Face's code.",
     HAS_LAYOUT_ZH "q 是 Meta 权重的通道顺序，q_out 是转换到 transformers 之后的顺序。"},
    {HAS_LAYOUT, HAS_LAYOUT_ZH},
    {HAS_LAYOUT, HAS_LAYOUT_ZH},
};
FAULT_TEXTS(layout_swapped, "layout_swapped", "layout", "other layout", "layout 不同",
            "Channels are paired by another layout, e.g. half instead of interleaved.",
            "通道按另一种 layout 配对，例如 half 写成了 interleaved。", of_layouts);
FAULT_TEXT(sinusoid_layout, "layout_swapped", "sinusoid", "other layout", "layout 不同",
           "Sines and cosines are neighbours instead of halves, or the reverse.",
           "sin 与 cos 本应各占一半却交替排列，或者相反。", HAS_LAYOUT, HAS_LAYOUT_ZH);

#define CONVERSION "the conversion of Meta's weights for Hugging Face's code (interleaved to half)."
#define CONVERSION_ZH "把 Meta 权重转换到 transformers 所做的重排（interleaved 到 half）。"
#define INVERSE " This is the inverse of " CONVERSION
#define INVERSE_ZH "这样做反了：" CONVERSION_ZH
#define FROM " Channel i of a head is channel found[i] of q."
#define FROM_ZH "每个头的第 i 个通道是 q 的第 found[i] 个通道。"
#define FROM_ALL " Channel i, counted through the heads, is channel found[i] of q."
#define FROM_ALL_ZH "跨头连续编号时，第 i 个通道是 q 的第 found[i] 个通道。"
static const struct pe_text of_orders[] = {
    {"The channels of q were permuted twice before they were rotated: weights that already had it got " CONVERSION FROM,
     "q 的通道在旋转之前被重排了两次。已经转换过的权重又做了一遍" CONVERSION_ZH FROM_ZH},
    {"The channels of q were permuted in the wrong direction before they were rotated." INVERSE FROM,
     "q 的通道在旋转之前按相反方向重排了。" INVERSE_ZH FROM_ZH},
    {"The channels of q were permuted before they were rotated, which the configuration does not say, by " CONVERSION
         FROM,
     "q 的通道在旋转之前被重排过，而配置中没有这一步，即" CONVERSION_ZH FROM_ZH},
    {"The channels of q were permuted twice in the wrong direction before they were rotated." INVERSE FROM,
     "q 的通道在旋转之前按相反方向重排了两次。" INVERSE_ZH FROM_ZH},
    {"The channels of q were permuted for {heads} heads before they were rotated, which is not the number of q, as "
     "when "
     "k's rows are converted with the heads of q." FROM_ALL,
     "q 的通道在旋转之前按 {heads} 个头重排了，这不是 q 的头数，例如用 q 的头数去转换 k 的行。" FROM_ALL_ZH},
    {"The channels of q were permuted before they were rotated, in an order that has no name." FROM,
     "q 的通道在旋转之前被重排过，这种顺序没有名字。" FROM_ZH},
    {"The channels were permuted after the rotation: channel i of q_out is channel found[i] of the rotated vector.",
     "通道在旋转之后被重排过：q_out 的第 i 个通道是旋转结果的第 found[i] 个通道。"},
};
FAULT_TEXTS(channels_permuted, "channels_permuted", "layout", "channels permuted", "通道被重排",
            "The channels of a head are in another order, e.g. because the rows of w_q were permuted twice.",
            "头内通道的顺序不同，例如 w_q 的行被重排了两次。", of_orders);
FAULT_TEXT(direction_reversed, "direction_reversed", "sense", "reversed direction", "方向相反",
           "Vectors are rotated the other way, so every sine has the opposite sign, or distances are counted from the "
           "other side.",
           "向量朝相反方向旋转，所有 sin 的符号都反了；或者相对距离从另一侧数起。",
           "The direction is {found}; the configuration says {believed}.",
           "direction 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(sin_cos_swapped, "sin_cos_swapped", "sense", "sines and cosines exchanged", "sin 与 cos 互换",
           "Sines stand where cosines belong, and cosines where sines belong.",
           "该是 cos 的地方是 sin，该是 sin 的地方是 cos。", "Sines and cosines have changed places.",
           "sin 与 cos 的位置互换了。");
FAULT_TEXT(inverted, "inverted", "sense", "reciprocals", "取了倒数", "Every number is the reciprocal of the right one.",
           "每个数都是正确值的倒数。", "Every number is 1/x of the configuration's: timescales instead of frequencies.",
           "每个数都是配置中对应值的倒数：这是时间尺度，不是频率。");
FAULT_TEXT(negated, "negated", "sense", "opposite sign", "符号相反", "Every number has the opposite sign.",
           "每个数的符号都相反。", "All finite numbers have the opposite sign.", "所有有限数的符号都相反。");
FAULT_TEXT(transposed, "transposed", "sense", "transposed", "转置", "The last two axes have changed places.",
           "最后两个轴互换了。", "The last two axes of the tensor have changed places.", "张量的最后两个轴互换了。");
FAULT_TEXT(off_by_one, "off_by_one", "positions", "off by one", "位置差一",
           "All positions are larger or smaller by one.", "所有位置都大 1 或小 1。",
           "The tensor begins at position {found}; the configuration begins at {believed}.",
           "张量从位置 {found} 开始，而配置从 {believed} 开始。");
FAULT_TEXT(offset_other, "offset_other", "positions", "other offset", "起始位置不同",
           "The sequence begins at another position.", "序列从另一个位置开始。",
           "The tensor begins at position {found}; the configuration begins at {believed}.",
           "张量从位置 {found} 开始，而配置从 {believed} 开始。");
FAULT_TEXT(not_rotated, "not_rotated", "positions", "positions without effect", "位置未起作用",
           "Every row is computed at position 0, so nothing is rotated.", "每一行都按位置 0 计算，相当于没有旋转。",
           "Every row is computed at position 0.", "每一行都是按位置 0 算出来的。");
FAULT_TEXT(rotated_twice, "rotated_twice", "positions", "rotated twice", "旋转了两次",
           "Every row is computed at twice its position, as when a rotation is applied two times.",
           "每一行都按两倍的位置计算，相当于旋转了两次。", "Every row is computed at twice its position.",
           "每一行都是按两倍的位置算出来的。");
FAULT_TEXT(positions_reversed, "positions_reversed", "positions", "reversed positions", "位置顺序颠倒",
           "The rows have the positions in reverse order.", "各行的位置顺序是倒过来的。",
           "The positions run in reverse order: the first row has the last position.",
           "位置顺序颠倒：第一行对应的是最后一个位置。");
FAULT_TEXT(position_stride, "position_stride", "positions", "other stride", "位置步长不同",
           "Positions advance by another step than the configuration's.", "相邻两行的位置间隔与配置不同。",
           "Positions advance by another step than in the configuration.", "相邻两行的位置间隔与配置不同。");
FAULT_TEXT(positions_constant, "positions_constant", "positions", "constant position", "位置恒定",
           "All rows are computed at one and the same position.", "所有行都按同一个位置计算。",
           "All rows are computed at one and the same position.", "所有行都是按同一个位置算出来的。");
FAULT_TEXT(position_reset, "position_reset", "positions", "positions restart", "位置中途归零",
           "Positions restart at 0 inside the sequence, as for packed sequences.",
           "位置在序列中途从 0 重新开始，如同打包的多个序列。",
           "Positions restart inside the sequence; in the configuration they run on.",
           "位置在序列中途重新开始，而配置中是连续的。");
FAULT_TEXT(position_no_reset, "position_no_reset", "positions", "positions run on", "位置没有归零",
           "Positions run on through packed sequences instead of restarting in each.",
           "打包的多个序列共用连续的位置，没有在每个序列开头归零。",
           "Positions run on; in the configuration they restart in each packed sequence.",
           "位置一路连续，而配置在每个打包序列的开头归零。");
FAULT_TEXT(offsets_by_row, "offsets_by_row", "positions", "positions by batch row", "各行起始位置不同",
           "Each row of the batch begins at a position of its own, as with left padding or caches of several lengths.",
           "batch 中每一行从各自的位置开始，例如左侧填充，或各行缓存长度不同。",
           "The rows of the batch begin at different positions; in the configuration they have the same.",
           "batch 各行的起始位置不同，而配置中它们相同。");
FAULT_TEXT(positions_other, "positions_other", "positions", "other positions", "位置列表不同",
           "The positions of the rows, fitted one by one, are not the configuration's.", "逐行拟合出的位置与配置不同。",
           "The rows have other positions than in the configuration.", "各行的位置与配置不同。");
FAULT_TEXT(rotary_dim_other, "rotary_dim_other", "width", "other rotary width", "旋转通道数不同",
           "Another number of channels of a head is rotated.", "每个头中参与旋转的通道数不同。",
           "{found} channels of a head are rotated; the configuration says {believed}.",
           "每个头旋转 {found} 个通道，而配置写的是 {believed} 个。");
FAULT_TEXT(rotary_offset_other, "rotary_offset_other", "width", "other first channel", "起始通道不同",
           "The rotated channels begin elsewhere in the head.", "旋转的通道从头内的另一处开始。",
           "The rotated channels begin at channel {found}; the configuration says {believed}.",
           "旋转的通道从第 {found} 号开始，而配置写的是第 {believed} 号。");
FAULT_TEXT(attention_factor_missing, "attention_factor_missing", "size", "missing attention factor",
           "缺少 attention_factor", "Cosines and sines lack the attention factor.",
           "cos 和 sin 没有乘 attention_factor。", "Cosines and sines lack the attention factor {believed}.",
           "cos 和 sin 没有乘 attention_factor {believed}。");
FAULT_TEXT(attention_factor_other, "attention_factor_other", "size", "other attention factor", "attention_factor 不同",
           "Cosines and sines have another attention factor.", "cos 和 sin 乘的 attention_factor 不同。",
           "Cosines and sines have the attention factor {found}; the configuration gives {believed}.",
           "cos 和 sin 乘的 attention_factor 是 {found}，而配置给出 {believed}。");
/* Of any factor; of one that is known. */
static const struct pe_text of_scaled[] = {
    {"All finite numbers are {found} times those of the configuration.", "所有有限数都是配置结果的 {found} 倍。"},
    {"All finite numbers are {found} times those of the configuration, which is {meaning}.",
     "所有有限数都是配置结果的 {found} 倍，即 {meaning}。"},
};
FAULT_TEXTS(scaled, "scaled", "size", "scaled", "整体缩放", "All numbers are multiplied by one factor.",
            "所有数都乘了同一个系数。", of_scaled);
FAULT_TEXT(scheme_other, "scheme_other", "size", "other scheme", "scheme 不同",
           "The tensor is of another scheme, e.g. RoPE where xPos is believed.",
           "张量属于另一种 scheme，例如以为是 xPos，实际是 RoPE。",
           "The scheme is {found}; the configuration says {believed}. xPos is RoPE with a scale that changes with the "
           "position.",
           "scheme 是 {found}，而配置写的是 {believed}。xPos 是在 RoPE 上乘以随位置变化的缩放。");
FAULT_TEXT(scale_base_other, "scale_base_other", "size", "other scale_base", "scale_base 不同",
           "The scale of xPos changes over another number of positions.", "xPos 的缩放经过不同数目的位置才变化一次。",
           "scale_base is {found}; the configuration says {believed}.",
           "scale_base 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(center_other, "center_other", "size", "other centre", "center 不同",
           "The scale of xPos is 1 at another position.", "xPos 的缩放在另一个位置等于 1。",
           "The scale of xPos is 1 at the position {found}; the configuration says {believed}.",
           "xPos 的缩放在 center {found} 处等于 1，而配置写的是 {believed}。");
FAULT_TEXT(zero_row, "zero_row", "size", "row of zeros", "全零行", "One row is zero.", "有一行全是 0。",
           "Row {found} (counted from 0) is zero.", "第 {found} 行（从 0 数起）全是 0。");
FAULT_TEXT(mask_value, "mask_value", "size", "finite mask", "掩码为有限数",
           "Hidden keys have a large negative number instead of minus infinity.",
           "被屏蔽的键是绝对值很大的负数，而不是负无穷。", "Hidden keys have the number {found} instead of -inf.",
           "被屏蔽的键是 {found}，而不是 -inf。");
