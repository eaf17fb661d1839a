/* Texts of what may be wrong with pairs, positions and widths. */
#include "core/diagnosis/texts/texts.h"

FAULT_TEXT(layout_swapped, "layout_swapped", "layout", "other layout", "layout 不同",
           "Channels are paired by another layout, e.g. half instead of interleaved.",
           "通道按另一种 layout 配对，例如 half 写成了 interleaved。",
           "The tensor has the layout {found}; the configuration says {believed}.",
           "张量的 layout 是 {found}，而配置写的是 {believed}。");
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
FAULT_TEXT(scaled, "scaled", "size", "scaled", "整体缩放", "All numbers are multiplied by one factor.",
           "所有数都乘了同一个系数。", "All finite numbers are {found} times those of the configuration.",
           "所有有限数都是配置结果的 {found} 倍。");
FAULT_TEXT(zero_row, "zero_row", "size", "row of zeros", "全零行", "One row is zero.", "有一行全是 0。",
           "Row {found} (counted from 0) is zero.", "第 {found} 行（从 0 数起）全是 0。");
FAULT_TEXT(mask_value, "mask_value", "size", "finite mask", "掩码为有限数",
           "Hidden keys have a large negative number instead of minus infinity.",
           "被屏蔽的键是绝对值很大的负数，而不是负无穷。", "Hidden keys have the number {found} instead of -inf.",
           "被屏蔽的键是 {found}，而不是 -inf。");
