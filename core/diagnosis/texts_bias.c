/* Texts of what may be wrong with biases, buckets and position ids. */
#include "core/diagnosis/texts.h"

static const struct pe_text of_slopes[] = {
    [PE_SAY_SLOPES_FIT] = {"The slopes are not those of the configuration; `found` lists them.",
                           "斜率与配置不同，`found` 列出了实际的斜率。"},
    [PE_SAY_SLOPES_LINEAR] = {"The slopes grow linearly with the head, (h+1)·2^(-bias_max/n), instead of being powers, "
                              "2^(-bias_max·(h+1)/n).",
                              "斜率随头线性增长，是 (h+1)·2^(-bias_max/n)，而不是幂 2^(-bias_max·(h+1)/n)。"},
    [PE_SAY_SLOPES_PLAIN] =
        {"The slopes are 2^(-bias_max·(h+1)/H) for all heads; with a number of heads that is not a "
         "power of two, the paper takes the rest from the list for twice as many.",
         "所有头的斜率都是 2^(-bias_max·(h+1)/H)；头数不是 2 的幂时，论文的做法是从两倍头数的列表中补足其余的头。"},
    [PE_SAY_SLOPES_HALVED] = {"The heads beyond the power of two have halves of the first slopes instead of the odd "
                              "terms of the list for twice as many heads.",
                              "超出 2 的幂的那些头用了前几个斜率的一半，而不是两倍头数的列表中的奇数项。"},
    [PE_SAY_SLOPES_BF16] = {"The slopes were rounded to bfloat16.", "斜率被舍入到了 bfloat16。"},
};

static const struct pe_text of_slopes_order[] = {
    [PE_SAY_SLOPES_REVERSED] = {"The slopes are right, but the heads have them in reverse order.",
                                "斜率的值正确，但各头的顺序颠倒了。"},
    [PE_SAY_SLOPES_SORTED] =
        {"The slopes are right, but sorted; in the paper the list of a number of heads that is not "
         "a power of two is not sorted.",
         "斜率的值正确，但被排了序；头数不是 2 的幂时，论文中的列表并不是有序的。"},
};

const struct pe_fault_text pe_texts_of_bias[] = {
    PE_FAULT_TEXTS("slopes_other", "other slopes", "斜率不同", "The heads have other slopes.", "各头的斜率不同。",
                   of_slopes),
    PE_FAULT_TEXTS("slopes_order", "other order of slopes", "斜率顺序不同",
                   "The heads have the right slopes in another order.", "斜率的值正确，但分给各头的顺序不同。",
                   of_slopes_order),
    PE_FAULT_TEXT("bias_max_other", "other bias_max", "bias_max 不同", "The slopes are computed with another bias_max.",
                  "计算斜率用的 bias_max 不同。", "bias_max is {found}; the configuration says {believed}.",
                  "bias_max 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("form_other", "other form", "form 不同", "The bias has another form, e.g. key instead of relative.",
                  "偏置的 form 不同，例如 key 写成了 relative。",
                  "The form is {found}; the configuration says {believed}.",
                  "form 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("alignment_other", "other alignment", "对齐方式不同",
                  "The first query stands at another position relative to the keys.",
                  "首个 query 相对于 key 的位置不同。",
                  "The first query is at position {found}; the configuration puts it at {believed}.",
                  "首个 query 的位置是 {found}，而配置中是 {believed}。"),
    PE_FAULT_TEXT("mask_missing", "missing mask", "缺少掩码", "Keys that the configuration hides are visible.",
                  "配置要屏蔽的 key 没有被屏蔽。",
                  "Keys that the configuration hides have finite numbers instead of -inf.",
                  "配置要屏蔽的 key 处是有限数，而不是 -inf。"),
    PE_FAULT_TEXT("mask_extra", "additional mask", "多了掩码", "Keys are hidden that the configuration shows.",
                  "配置中可见的 key 被屏蔽了。", "Keys after the query are -inf; the configuration does not hide them.",
                  "query 之后的 key 是 -inf，而配置没有屏蔽它们。"),
    PE_FAULT_TEXT("window_other", "other window", "window 不同", "The window of visible keys has another size.",
                  "可见 key 的窗口大小不同。", "The window is {found}; the configuration says {believed}.",
                  "window 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("bidirectional_other", "other bidirectional", "bidirectional 不同",
                  "Buckets are computed for an encoder instead of a decoder, or the other way round.",
                  "分桶方式是编码器的而不是解码器的，或者相反。",
                  "bidirectional is {found}; the configuration says {believed}.",
                  "bidirectional 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("max_distance_other", "other max_distance", "max_distance 不同", "Buckets end at another distance.",
                  "分桶截止的距离不同。", "max_distance is {found}; the configuration says {believed}.",
                  "max_distance 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("kind_other", "other kind", "kind 不同", "KERPLE's bias is of the other kind: log or power.",
                  "KERPLE 偏置用了另一种 kind：log 或 power。",
                  "The kind is {found}; the configuration says {believed}.",
                  "kind 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("parameter_other", "other parameter", "参数不同", "A parameter of the bias has another value.",
                  "偏置的某个参数取了别的值。", "The parameter is {found}; the configuration says {believed}.",
                  "该参数是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("position_style_other", "other position_style", "position_style 不同",
                  "The position ids are counted by another model's rules.", "位置编号按另一种模型的规则计算。",
                  "The position_style is {found}; the configuration says {believed}.",
                  "position_style 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("tokens_per_second_other", "other tokens_per_second", "tokens_per_second 不同",
                  "A second of video has another number of temporal ids.", "每秒视频对应的时间编号数不同。",
                  "tokens_per_second is {found}; the configuration says {believed}.",
                  "tokens_per_second 是 {found}，而配置写的是 {believed}。"),
    PE_FAULT_TEXT("merge_size_other", "other merge size", "合并尺寸不同",
                  "Another number of patches is merged into a token.", "每个 token 合并的 patch 数不同。",
                  "spatial_merge_size is {found}; the configuration says {believed}.",
                  "spatial_merge_size 是 {found}，而配置写的是 {believed}。"),
    {.code = NULL},
};
