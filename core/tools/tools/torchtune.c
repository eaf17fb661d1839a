/* torchtune: a class for neighbours, one for Llama 3.1's rule, one for Qwen2's halves; each turns the whole head.
 * Source: torchtune bd2a0fc7c314, modules/position_embeddings.py, models/llama3_1, models/qwen2. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {
    {.word = "RotaryPositionalEmbeddings", .layout = "interleaved", .base = 10000},
    {.word = "Llama3ScaledRoPE", .rule = "llama3", .decides = true, .layout = "interleaved", .base = 500000},
    {.word = "Qwen2RotaryPositionalEmbeddings", .layout = "half", .base = 1000000},
    {.word = NULL},
};

#define OF_LLAMA3 .is_short = true, .when = "llama3", .only_with = "class=Llama3ScaledRoPE"

static const struct pe_lens lenses[] = {
    {"class", PE_LENS_KIND},
    {"dim", "head_dim", PE_LENS_WIDTH},
    {"max_seq_len", "length", PE_LENS_LENGTH, .otherwise = 4096, .direction = PE_EXPORT_ONLY},
    {"base", "base", PE_LENS_BASE, .otherwise = PE_UNSET, .is_short = true},
    {"scale_factor", "scaling.factor", PE_LENS_FACTOR, .otherwise = 8, OF_LLAMA3},
    {"low_freq_factor", "scaling.low_freq_factor", PE_LENS_FACTOR, .otherwise = 1, OF_LLAMA3},
    {"high_freq_factor", "scaling.high_freq_factor", PE_LENS_FACTOR, .otherwise = 4, OF_LLAMA3},
    {"old_context_len", "scaling.original_max_position_embeddings", PE_LENS_LENGTH, .min = 1, .otherwise = 8192,
     OF_LLAMA3},
    PE_LENS_END,
};

/* A base of Qwen2's class is a float. */
static void export(struct pe_export *e)
{
    for (size_t i = 0; i < e->value.n && pe_same(e->layout, "half"); i++)
        if (pe_same(e->value.fields[i].name, "base"))
            e->value.fields[i].value = pe_real(pe_value_number(&e->value.fields[i].value));
}

const struct pe_tool pe_tool_torchtune = {
    .name = "torchtune",
    .label = "torchtune",
    .source = "torchtune bd2a0fc",
    .info = {.about = {"torchtune", "a call of torchtune"},
             .certainty = "code",
             .form = PE_TARGET_PYTHON,
             .width = {"dim", "embed_dim", "num_heads"}},
    .lenses = lenses,
    .forms = forms,
    .carries = "head_dim|rotary_dim|rotary_offset|layout",
    .export = export,
};
