/* Texts of what may be wrong with biases, buckets and position ids. */
#include "core/diagnosis/texts/texts.h"

/* One sentence for each alternative, in the order of faults/heads.c. */
#define LINEAR                                                                                                         \
    {                                                                                                                  \
        "The slopes grow linearly with the head, as (h+1)·2^(-bias_max/n), instead of being powers, "                 \
        "2^(-bias_max·(h+1)/n).",                                                                                      \
            "斜率随头线性增长，是 (h+1)·2^(-bias_max/n)，而不是幂 2^(-bias_max·(h+1)/n)。"           \
    }
static const struct pe_text of_slopes[] = {
    {"The slopes are those of the paper, 2^(-bias_max·(h+1)/n); the configuration lists others.",
     "斜率与论文一致，是 2^(-bias_max·(h+1)/n)，而配置列出的是别的值。"},
    LINEAR,
    LINEAR,
    LINEAR,
    {"The slopes are 2^(-bias_max·(h+1)/H) for all H heads. As H is not a power of two, the paper takes the last heads "
     "from the list for twice as many.",
     "所有 H 个头的斜率都是 2^(-bias_max·(h+1)/H)。但 H 不是 2 的幂，论文的做法是后面的头取自两倍头数的列表。"},
    {"The heads beyond the power of two have halves of the first slopes instead of the odd terms of the list for twice "
     "as many heads.",
     "超出 2 的幂的那些头用了前几个斜率的一半，而不是两倍头数的列表中的奇数项。"},
    {"Every head has the next head's slope: the slopes are 2^(-bias_max·(h+2)/H), h counted from 0.",
     "每个头用了下一个头的斜率：斜率是 2^(-bias_max·(h+2)/H)，h 从 0 数起。"},
    {"The slopes were rounded to bfloat16.", "斜率被舍入到了 bfloat16。"},
    {"The slopes are not those of the configuration; `found` lists them.",
     "斜率与配置不同，`found` 列出了实际的斜率。"},
};

#define SORTED                                                                                                          \
    {                                                                                                                   \
        "The slopes are right, but sorted. For a number of heads that is not a power of two, the paper's list is not "  \
        "sorted.",                                                                                                      \
            "斜率的值正确，但被排了序。头数不是 2 的幂时，论文中的列表并不是有序的。" \
    }
static const struct pe_text of_slopes_order[] = {
    {"The slopes are right, but the heads have them in reverse order.", "斜率的值正确，但各头的顺序颠倒了。"},
    SORTED,
    SORTED,
};

FAULT_TEXTS(slopes_other, "slopes_other", "bias", "other slopes", "斜率不同", "The heads have other slopes.",
            "各头的斜率不同。", of_slopes);
FAULT_TEXTS(slopes_order, "slopes_order", "bias", "other order of slopes", "斜率顺序不同",
            "The heads have the right slopes in another order.", "斜率的值正确，但分给各头的顺序不同。",
            of_slopes_order);
FAULT_TEXT(bias_max_other, "bias_max_other", "bias", "other bias_max", "bias_max 不同",
           "The slopes are computed with another bias_max.", "计算斜率用的 bias_max 不同。",
           "bias_max is {found}; the configuration says {believed}.", "bias_max 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(form_other, "form_other", "bias", "other form", "form 不同",
           "The bias has another form, e.g. key instead of relative.", "偏置的 form 不同，例如 key 写成了 relative。",
           "The form is {found}; the configuration says {believed}.", "form 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(alignment_other, "alignment_other", "bias", "other alignment", "对齐方式不同",
           "The first query stands at another position relative to the keys.", "首个 query 相对于 key 的位置不同。",
           "The first query is at position {found}; the configuration puts it at {believed}.",
           "首个 query 的位置是 {found}，而配置中是 {believed}。");
#define NOT_HIDDEN                                                                                                     \
    {                                                                                                                  \
        "Keys that the configuration hides have finite numbers instead of -inf.",                                      \
            "配置要屏蔽的 key 处是有限数，而不是 -inf。"                                               \
    }
static const struct pe_text not_hidden[] = {
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    NOT_HIDDEN,
    {"Keys that the configuration hides have the bias 0 instead of -inf, as in BLOOM's code, which adds its mask "
     "elsewhere.",
     "配置要屏蔽的 key 处偏置是 0，而不是 -inf。BLOOM 的代码就是这样，掩码另外加上。"},
};
FAULT_TEXTS(mask_missing, "mask_missing", "bias", "missing mask", "缺少掩码",
            "Keys that the configuration hides are visible.", "配置要屏蔽的 key 没有被屏蔽。", not_hidden);
static const struct pe_text hidden[] = {
    {"Keys after the query are -inf; the configuration does not hide them.",
     "query 之后的 key 是 -inf，而配置没有屏蔽它们。"},
    {"Keys outside a window are -inf; the configuration has no window.",
     "窗口之外的 key 是 -inf，而配置没有设置窗口。"},
    {"Some keys are -inf for every query; the configuration has no mask of keys.",
     "有些 key 对所有 query 都是 -inf，而配置没有 key 掩码。"},
    {"Some keys have the bias 0 and are not counted, as padding has in BLOOM's code; the configuration has no mask of "
     "keys.",
     "有些 key 的偏置是 0，也不计入编号，与 BLOOM 代码中的填充一样，而配置没有 key 掩码。"},
};
FAULT_TEXTS(mask_extra, "mask_extra", "bias", "additional mask", "多了掩码",
            "Keys are hidden that the configuration shows.", "配置中可见的 key 被屏蔽了。", hidden);
FAULT_TEXT(window_other, "window_other", "bias", "other window", "window 不同",
           "The window of visible keys has another size.", "可见 key 的窗口大小不同。",
           "The window is {found}; the configuration says {believed}.", "window 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(bidirectional_other, "bidirectional_other", "bias", "other bidirectional", "bidirectional 不同",
           "Buckets are computed for an encoder instead of a decoder, or the other way round.",
           "分桶方式是编码器的而不是解码器的，或者相反。",
           "bidirectional is {found}; the configuration says {believed}.",
           "bidirectional 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(max_distance_other, "max_distance_other", "bias", "other max_distance", "max_distance 不同",
           "Buckets end at another distance.", "分桶截止的距离不同。",
           "max_distance is {found}; the configuration says {believed}.",
           "max_distance 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(kind_other, "kind_other", "bias", "other kind", "kind 不同",
           "KERPLE's bias is of the other kind: log or power.", "KERPLE 偏置用了另一种 kind：log 或 power。",
           "The kind is {found}; the configuration says {believed}.", "kind 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(position_style_other, "position_style_other", "ids", "other position_style", "position_style 不同",
           "The position ids are counted by another model's rules.", "位置编号按另一种模型的规则计算。",
           "The position_style is {found}; the configuration says {believed}.",
           "position_style 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(tokens_per_second_other, "tokens_per_second_other", "ids", "other tokens_per_second",
           "tokens_per_second 不同", "A second of video has another number of temporal ids.",
           "每秒视频对应的时间编号数不同。",
           "A second of video counts as {found} temporal ids; the configuration says {believed}.",
           "每秒视频对应 {found} 个时间编号，而配置写的是 {believed}。");
FAULT_TEXT(merge_size_other, "merge_size_other", "ids", "other merge size", "合并尺寸不同",
           "Another number of patches is merged into a token.", "每个 token 合并的 patch 数不同。",
           "spatial_merge_size is {found}; the configuration says {believed}.",
           "spatial_merge_size 是 {found}，而配置写的是 {believed}。");
FAULT_TEXT(ids_axes_swapped, "axes_swapped", "ids", "axes exchanged", "坐标轴互换",
           "The rows of time, height and width have changed places.", "时间、高度、宽度三行的次序互换了。",
           "The rows of time, height and width stand in another order.", "时间、高度、宽度三行的次序与配置不同。");
FAULT_TEXT(ids_axes_missing, "axes_missing", "ids", "axes forgotten", "遗漏坐标轴",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。",
           "The positions are on several axes; the configuration has one.",
           "位置分布在多个坐标轴上，而配置只有一个轴。");
