/* TransformerEngine: RotaryPositionEmbedding. Positions are divided by a factor that is an integer. Source:
 * TransformerEngine, pytorch/attention/rope.py, as stored. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {{.word = "RotaryPositionEmbedding"}, {.word = NULL}};

static const struct pe_lens lenses[] = {
    {"class", PE_LENS_KIND},
    {"dim", "head_dim", PE_LENS_WIDTH},
    {"rotary_percent", "share", PE_LENS_SHARE},
    {"seq_len_interpolation_factor", "scaling.factor", PE_WHOLE, .type = PE_T_INT, .max = PE_SCALING_FACTOR_MAX,
     .otherwise = 1, .when = "linear", .is_rule = true, .is_null = true},
    {"rotary_base", "base", PE_LENS_BASE, .otherwise = 10000},
    {"interleaved", "layout", PE_NEIGHBOURS, PE_LENS_FLAG},
    PE_LENS_END,
};

const struct pe_tool pe_tool_transformer_engine = {
    .name = "transformer_engine",
    .label = "TransformerEngine",
    .source = "transformer_engine",
    .info = {.about = {"TransformerEngine", "a call of TransformerEngine"},
             .certainty = "code",
             .form = PE_TARGET_PYTHON},
    .lenses = lenses,
    .forms = forms,
    .carries = "head_dim|share|layout",
};
