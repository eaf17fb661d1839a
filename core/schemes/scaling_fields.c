/* The fields of an object `scaling`: their rows, and which type uses which. The rules between them are in scaling.c. */
#include "core/schemes/scaling_fields.h"

#include <stdio.h>
#include <string.h>

/* ---- Rows ---- */

static const char *const types[] = {"default", "linear",       "ntk", "dynamic", "yarn", "longrope",
                                    "llama3",  "proportional", "su",  "mrope",   NULL};
static const char *const conventions[] = {"transformers", "vllm", "tgi", "mlx", NULL};
static const char *const lists[] = {"auto", "short", "long", NULL};

#define LENGTH_MAX 0x1p40

/* Bounds that keep every derived attention_factor within the row of that name: m(s, 1000) < 1400. */
#define MSCALE_MAX 1000

#define WORD(field, fallback_, words_, ...)                                                                            \
    {                                                                                                                  \
        .name = #field, .type = PE_T_WORD, .offset = PE_OFFSET(pe_scaling, field, int), .fallback = (fallback_),       \
        .words = (words_), PE_TEXTS(__VA_ARGS__)                                                                       \
    }
#define VALUE(name_, field, ...)                                                                                       \
    {                                                                                                                  \
        .name = name_, .type = PE_T_VALUE, .offset = PE_OFFSET(pe_scaling, field, const struct pe_value *),            \
        PE_TEXTS(__VA_ARGS__)                                                                                          \
    }
#define REAL(field, fallback_, min_, max_, ...) PE_P_REAL(pe_scaling, field, fallback_, min_, max_, __VA_ARGS__)

const struct pe_param pe_scaling_params[] = {
    WORD(type, PE_UNSET_WORD, types, "scaling rule", "扩展规则",
         "rule that stretches the context. default: none. linear: w/factor (position interpolation). ntk: base becomes "
         "base·factor^(r/(r-2)), r the rotated channels. dynamic: the same with a factor that grows with the sequence. "
         "yarn: a blend per pair by its turns in the original length, and an attention factor. longrope: a divisor per "
         "pair from two lists (Phi-3). llama3: a blend per pair by wavelength. proportional: the lowest frequencies "
         "become 0 (Gemma 4). su is an old word for longrope, mrope for default with an mrope_section",
         "扩展上下文的规则。default：不扩展。linear：w/factor（位置插值）。ntk：base "
         "变为 base·factor^(r/(r-2))，r 为旋转的通道数。dynamic：同上，"
         "但系数随序列增长。yarn：按每一对在原长度内转过的圈数混合，并带注意力系数。"
         "longrope：每一对的除数取自两个列表（Phi-3）。llama3：按每一对的波长混合。"
         "proportional：最低的频率变为 0（Gemma 4）。su 是 longrope 的旧名，mrope 是带 "
         "mrope_section 的 default",
         .level = PE_BASIC, .group = PE_G_SCALING),
    WORD(rope_type, PE_UNSET_WORD, types, "scaling rule, newer name", "扩展规则（新名）",
         "Hugging Face's newer name for type; both may be given if they name the same rule",
         "transformers 对 type 的新叫法；两者指同一规则时可同时给出", .group = PE_G_SCALING),
    WORD(
        convention, PE_CONVENTION_TRANSFORMERS, conventions, "library convention", "库的约定",
        "which library to follow where they compute differently. linear: tgi ignores it. dynamic: vllm makes one table "
        "for factor·max_position_embeddings at every length. yarn: vllm, tgi and mlx read mscale without "
        "mscale_all_dim (as m(factor, mscale)/m(factor, mscale_all_dim) with 1 and 0 for what is missing), vllm "
        "attn_factor; tgi sets beta_fast 32, beta_slow 1. longrope: mlx always uses the long list, vllm changes lists "
        "one position later, tgi mixes rows of both",
        "各个库算法不同时遵循哪一个。linear：tgi 忽略它。dynamic：vllm "
        "在任何长度下都按 factor·max_position_embeddings 建一张表。yarn：vllm、tgi 和 "
        "mlx 在没有 mscale_all_dim 时也读 mscale（即 m(factor, mscale)/m(factor, "
        "mscale_all_dim)，缺的分别取 1 和 0），vllm 还读 attn_factor；tgi 取 beta_fast "
        "32、beta_slow 1。longrope：mlx 总用长列表，vllm 晚一个位置才切换列表，tgi "
        "混用两者的行",
        .group = PE_G_SCALING),
    REAL(factor, PE_UNSET, PE_SCALING_FACTOR_MIN, PE_SCALING_FACTOR_MAX, "scaling factor", "扩展倍数",
         "how many times longer the context becomes; default of linear, ntk, yarn and longrope: "
         "max_position_embeddings/original_max_position_embeddings if both are given; of proportional: 1",
         "上下文变长的倍数；linear、ntk、yarn 和 longrope 在两个长度都给出时默认 "
         "max_position_embeddings/original_max_position_embeddings；proportional 默认 1",
         .level = PE_BASIC, .group = PE_G_SCALING, .usual = {1, 64}),
    REAL(max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "stretched length", "扩展后长度",
         "a number of positions: for dynamic the length where stretching begins, for other types the stretched length, "
         "used only to derive factor",
         "位置个数：对 dynamic 是开始扩展的长度；对其他规则是扩展后的长度，只用来推出 "
         "factor",
         .group = PE_G_SCALING, .usual = {256, 262144}),
    REAL(original_max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "training length", "训练长度",
         "number of positions that the model was trained on; yarn, longrope and llama3 need it",
         "模型训练时的位置个数；yarn、longrope 和 llama3 需要它", .level = PE_BASIC, .group = PE_G_SCALING,
         .usual = {256, 262144}),
    REAL(seq_len, PE_UNSET, 0, PE_SCALING_SEQ_LEN_MAX, "sequence length", "序列长度",
         "number of positions in the sequence, which decides dynamic's base and longrope's list; default the largest "
         "position + 1",
         "序列的位置个数，决定 dynamic 的 base 和 longrope 的列表；默认最大位置加 1", .group = PE_G_SCALING,
         .usual = {256, 1048576}),
    REAL(beta_fast, 32, 0, 1e9, "fast end of the ramp", "高频端圈数",
         "yarn: pairs that make more turns than this in the original length keep their frequency; 0 means 32",
         "yarn：在原长度内转的圈数多于它的对保持原频率；0 表示 32", .group = PE_G_SCALING, .usual = {1, 64}),
    REAL(beta_slow, 1, 0, 1e9, "slow end of the ramp", "低频端圈数",
         "yarn: pairs that make fewer turns than this in the original length are divided by factor; 0 means 1",
         "yarn：在原长度内转的圈数少于它的对除以 factor；0 表示 1", .group = PE_G_SCALING, .usual = {0.125, 8}),
    REAL(
        mscale, PE_UNSET, 0, MSCALE_MAX, "magnitude factor", "幅度系数",
        "yarn: with mscale_all_dim, both not 0, attention_factor is m(factor, mscale)/m(factor, mscale_all_dim), where "
        "m(s, k) = 0.1·k·ln(s) + 1, and 1 for s up to 1",
        "yarn：与 mscale_all_dim 都不为 0 时，attention_factor 为 m(factor, "
        "mscale)/m(factor, mscale_all_dim)，其中 m(s, k) = 0.1·k·ln(s) + 1，s 不大于 1 "
        "时为 1",
        .group = PE_G_SCALING, .usual = {0.1, 2}),
    REAL(mscale_all_dim, PE_UNSET, 0, MSCALE_MAX, "magnitude factor, all channels", "全通道幅度系数",
         "yarn: see mscale; not 0, it also sets softmax_scale_factor",
         "yarn：见 mscale；不为 0 时还决定 softmax_scale_factor", .group = PE_G_SCALING, .usual = {0.1, 2}),
    VALUE("truncate", truncate_given, "round the ramp", "斜坡取整",
          "yarn, true or false, default true: the ends of the ramp are rounded outwards to whole pairs; gpt-oss: false",
          "yarn，true 或 false，默认 true：斜坡的两端向外取整到整对；gpt-oss 为 false", .group = PE_G_SCALING),
    REAL(extrapolation_factor, 1, 0, 1, "extrapolation weight", "外推权重",
         "yarn: weight of the unstretched frequency in pairs that keep theirs",
         "yarn：保持频率的对中，未扩展频率所占的权重", .group = PE_G_SCALING),
    REAL(low_freq_factor, PE_UNSET, 1e-6, 1e6, "low-frequency limit", "低频界限",
         "llama3: pairs that make fewer turns than this in the original length are divided by factor (Llama 3.1: 1)",
         "llama3：在原长度内转的圈数少于它的对除以 factor（Llama 3.1 为 1）", .group = PE_G_SCALING, .usual = {0.5, 8}),
    REAL(high_freq_factor, PE_UNSET, 1e-6, 1e6, "high-frequency limit", "高频界限",
         "llama3: pairs that make more turns than this in the original length keep their frequency (Llama 3.1: 4)",
         "llama3：在原长度内转的圈数多于它的对保持原频率（Llama 3.1 为 4）", .group = PE_G_SCALING, .usual = {1, 32}),
    PE_P_REALS(pe_scaling, short_factor, 1e-6, 1e9, "short list", "短列表",
               "longrope: divisors of the frequencies for sequences within the original length: [pairs]",
               "longrope：序列不超过原长度时频率的除数：[pairs]", .group = PE_G_SCALING),
    PE_P_REALS(pe_scaling, long_factor, 1e-6, 1e9, "long list", "长列表",
               "longrope: divisors of the frequencies for longer sequences: [pairs]",
               "longrope：序列更长时频率的除数：[pairs]", .group = PE_G_SCALING),
    REAL(short_mscale, PE_UNSET, 1e-3, 1e3, "factor of the short list", "短列表的系数",
         "longrope: attention_factor if the short list is used (Phi-3.5-MoE)",
         "longrope：用短列表时的 attention_factor（Phi-3.5-MoE）", .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(long_mscale, PE_UNSET, 1e-3, 1e3, "factor of the long list", "长列表的系数",
         "longrope: attention_factor if the long list is used (Phi-3.5-MoE)",
         "longrope：用长列表时的 attention_factor（Phi-3.5-MoE）", .group = PE_G_SCALING, .usual = {0.5, 2}),
    WORD(
        list, PE_LIST_AUTO, lists, "choice of the list", "列表选择",
        "longrope: the list for the whole sequence; auto: long where seq_len is above original_max_position_embeddings "
        "(see convention)",
        "longrope：整个序列用的列表；auto：seq_len 大于 "
        "original_max_position_embeddings 时用长列表（见 convention）",
        .group = PE_G_SCALING),
    REAL(partial_rotary_factor, PE_UNSET, 0, 1, "share that keeps a frequency", "保留频率的比例",
         "proportional: share of the head's pairs that keep a frequency, rounded down; the others get 0",
         "proportional：头中保留频率的对所占的比例，向下取整；其余为 0", .group = PE_G_SCALING),
    REAL(attention_factor, PE_UNSET, 1e-6, 1e6, "attention factor", "注意力系数",
         "factor on cos and sin; default of yarn m(factor, 1) (see mscale); of longrope sqrt(1 + "
         "ln(factor)/ln(original_max_position_embeddings)) for a factor above 1; else 1",
         "余弦和正弦的系数；yarn 默认 m(factor, 1)（见 mscale）；longrope 在 factor "
         "大于 1 时默认 sqrt(1 + ln(factor)/ln(original_max_position_embeddings))；"
         "其余默认 1",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(softmax_scale_factor, PE_UNSET, 1e-9, 1e9, "softmax scale factor", "softmax 缩放系数",
         "the factor by which such models also multiply the softmax scale; it is reported but not applied; default for "
         "yarn with mscale_all_dim: m(factor, mscale_all_dim)^2 (DeepSeek-V3: 1.87385)",
         "这类模型还会用它乘 softmax 的缩放；只报告，不应用；yarn 带 mscale_all_dim "
         "时默认 m(factor, mscale_all_dim)^2（DeepSeek-V3 为 1.87385）",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(rope_theta, PE_UNSET, 1e-3, 1e12, "wavelength base", "波长基数", "the base, if a pasted object has it",
         "粘贴的对象中若有，即为 base", .group = PE_G_SCALING, .usual = {100, 1e7}),
    PE_P_REALS(pe_scaling, mrope_section, 0, 65536, "pairs of each axis", "各轴的对数",
               "pairs of each axis (time, height, width), if a pasted object has them",
               "粘贴的对象中若有，即为各轴（时间、高、宽）的对数", .group = PE_G_SCALING),
    VALUE("mrope_interleaved", mrope_interleaved_given, "interleave the axes", "各轴交错",
          "true or false, if a pasted object has it: the axes alternate from pair to pair",
          "true 或 false，粘贴的对象中可能有：各轴逐对交替", .group = PE_G_SCALING),
    REAL(attn_factor, PE_UNSET, 0.01, 100, "attention multiplier", "注意力乘数",
         "yarn with convention vllm: multiplies the derived attention_factor; ignored otherwise, as transformers does",
         "convention 为 vllm 的 yarn：乘到推出的 attention_factor 上；否则忽略，与 "
         "transformers 一致",
         .group = PE_G_SCALING, .usual = {0.5, 2}),
    REAL(llama_4_scaling_beta, PE_UNSET, 0, 1e3, "query scaling of Ministral 3", "Ministral 3 的查询缩放",
         "Ministral 3 also multiplies its queries by 1 + beta·ln(1 + floor(p/original_max_position_embeddings)); not "
         "applied here",
         "Ministral 3 还把查询乘以 1 + beta·ln(1 + "
         "floor(p/original_max_position_embeddings))；此处不应用",
         .group = PE_G_SCALING, .usual = {0, 1}),
    VALUE("finetuned", finetuned, "fine-tuned", "微调标记", "ignored; some pasted objects have it",
          "忽略；有些粘贴的对象中有它", .group = PE_G_SCALING),
    PE_P_END,
};

/* ---- Which type uses which field ---- */

enum { ANY = ~0U >> 1 };

/* Fields that belong to some types. With another type they are refused, unless they have the value that changes
 * nothing (NaN: there is none), or are fields such as lengths that objects often include (quiet). */
static const struct owner {
    const char *name;
    unsigned used, needed;
    double neutral;
    bool quiet;
    const char *instead; /* a field that can replace it where it is required */
} owners[] = {
    {"factor", ANY & ~PE_SCALING_BIT(DEFAULT), PE_SCALING_BIT(LINEAR) | PE_SCALING_BIT(NTK) | PE_SCALING_BIT(YARN), 1,
     false, ", or max_position_embeddings and original_max_position_embeddings, whose ratio it is"},
    {"factor", ANY & ~PE_SCALING_BIT(DEFAULT), PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(LLAMA3), 1, false, ""},
    {"max_position_embeddings", PE_SCALING_BIT(DYNAMIC), PE_SCALING_BIT(DYNAMIC), PE_UNSET, true,
     " (a Hugging Face config has it beside the object)"},
    {"original_max_position_embeddings", PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE) | PE_SCALING_BIT(LLAMA3),
     PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE) | PE_SCALING_BIT(LLAMA3), PE_UNSET, true,
     ", the length the model was trained on (a Hugging Face config may have it beside the object)"},
    {"seq_len", PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"beta_fast", PE_SCALING_BIT(YARN), 0, 32, false, NULL},
    {"beta_slow", PE_SCALING_BIT(YARN), 0, 1, false, NULL},
    {"mscale", PE_SCALING_BIT(YARN), 0, PE_UNSET, false, NULL},
    {"mscale_all_dim", PE_SCALING_BIT(YARN), 0, PE_UNSET, false, NULL},
    {"extrapolation_factor", PE_SCALING_BIT(YARN), 0, 1, false, NULL},
    {"low_freq_factor", PE_SCALING_BIT(LLAMA3), PE_SCALING_BIT(LLAMA3), PE_UNSET, false, " (Llama 3.1: 1)"},
    {"high_freq_factor", PE_SCALING_BIT(LLAMA3), PE_SCALING_BIT(LLAMA3), PE_UNSET, false, " (Llama 3.1: 4)"},
    {"short_factor", PE_SCALING_BIT(LONGROPE), PE_SCALING_BIT(LONGROPE), PE_UNSET, false,
     ": one number per rotated pair"},
    {"long_factor", PE_SCALING_BIT(LONGROPE), PE_SCALING_BIT(LONGROPE), PE_UNSET, false,
     ": one number per rotated pair"},
    {"short_mscale", PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"long_mscale", PE_SCALING_BIT(LONGROPE), 0, PE_UNSET, false, NULL},
    {"list", PE_SCALING_BIT(LONGROPE), 0, PE_LIST_AUTO, false, NULL},
    {"partial_rotary_factor", ANY, PE_SCALING_BIT(PROPORTIONAL), PE_UNSET, false, ""},
    {"attention_factor", PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE), 0, 1, false, NULL},
    {"convention", PE_SCALING_BIT(LINEAR) | PE_SCALING_BIT(DYNAMIC) | PE_SCALING_BIT(YARN) | PE_SCALING_BIT(LONGROPE),
     0, PE_UNSET, true, NULL},
    {"llama_4_scaling_beta", PE_SCALING_BIT(YARN), 0, PE_UNSET, true, NULL},
    {"attn_factor", PE_SCALING_BIT(YARN), 0, PE_UNSET, true, NULL},
};
enum { N_OWNERS = sizeof owners / sizeof *owners };

const char *pe_scaling_type_name(int type) { return types[type == PE_UNSET_WORD ? 0 : type]; }

/* "yarn", "yarn and longrope", "linear, ntk and yarn" from bits. */
static const char *type_names(unsigned used, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (int t = 0; t < PE_SCALING_SU && at < room; t++) {
        if (!(used & 1U << t))
            continue;
        unsigned later = used & ((1U << PE_SCALING_SU) - 1) & ~((2U << t) - 1);
        const char *next = !later ? "" : later & (later - 1) ? ", " : " and ";
        at += (size_t)snprintf(out + at, room - at, "%s%s", pe_scaling_type_name(t), next);
    }
    return out;
}

void pe_scaling_at(char pointer[PE_POINTER_MAX], const char *name)
{
    pe_pointer_join(pointer, PE_POINTER_MAX, "/scaling", name);
}

static bool is_set(const struct pe_param *row, const void *field)
{
    switch (row->type) {
    case PE_T_REAL: return !isnan(*(const double *)field);
    case PE_T_REALS: return ((const struct pe_reals *)field)->n > 0;
    case PE_T_WORD: return *(const int *)field != PE_UNSET_WORD;
    case PE_T_VALUE: return *(const struct pe_value *const *)field != NULL;
    case PE_T_INT:
    case PE_T_BOOL:
    case PE_T_OBJECT: break; /* no such rows */
    }
    return false;
}

static bool is_neutral(const struct pe_param *row, const void *field, double neutral)
{
    return (row->type == PE_T_REAL && *(const double *)field == neutral) ||
           (row->type == PE_T_WORD && *(const int *)field == neutral);
}

static void unset(const struct pe_param *row, void *field)
{
    if (row->type == PE_T_REAL)
        *(double *)field = PE_UNSET;
    else if (row->type == PE_T_WORD)
        *(int *)field = PE_UNSET_WORD;
}

static enum pe_status fail_unused(const struct owner *o, const struct pe_param *row, const void *field, int type,
                                  struct pe_error *err)
{
    char pointer[PE_POINTER_MAX], found[32] = "given", used[96];
    pe_scaling_at(pointer, o->name);
    if (row->type == PE_T_REAL)
        snprintf(found, sizeof found, "%.10g", *(const double *)field);
    return pe_fail(err, pointer, "%s is %s, but type is \"%s\"; %s is used by type %s only", o->name, found,
                   pe_scaling_type_name(type), o->name, type_names(o->used, used, sizeof used));
}

/* The owner's row. Owners are in nearly the same order as the rows, so the search starts at the previous result. */
static const struct pe_param *row_of(const struct owner *o, const struct pe_param *from)
{
    for (; from->name; from++)
        if (pe_same(from->name, o->name))
            return from;
    return pe_param_find(pe_scaling_params, o->name);
}

static enum pe_status apply_owner(struct pe_scaling *s, const struct owner *o, const struct pe_param *row,
                                  struct pe_error *err)
{
    void *field = (char *)s + row->offset;
    char pointer[PE_POINTER_MAX];
    if (!(o->used & 1U << s->type)) {
        if (is_set(row, field) && !o->quiet && !is_neutral(row, field, o->neutral))
            return fail_unused(o, row, field, s->type, err);
        unset(row, field);
    } else if (o->needed & 1U << s->type && !is_set(row, field)) {
        pe_scaling_at(pointer, o->name);
        return pe_fail(err, pointer, "%s is missing; type \"%s\" needs it%s", o->name, pe_scaling_type_name(s->type),
                       o->instead);
    }
    return PE_OK;
}

enum pe_status pe_scaling_check_fields(struct pe_scaling *s, struct pe_error *err)
{
    const struct pe_param *row = pe_scaling_params;
    for (size_t i = 0; i < N_OWNERS; i++)
        if (apply_owner(s, &owners[i], row = row_of(&owners[i], row), err))
            return err->status;
    return PE_OK;
}
