/* x-transformers: RotaryEmbedding of the rotated channels, neighbours paired. Positions are divided by
 * interpolation_factor, and the base grows by base_rescale_factor^(r/(r - 2)). Source: x-transformers 9252ed7838. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {{.word = "RotaryEmbedding"}, {.word = NULL}};

static const struct pe_lens lenses[] = {
    {"class", PE_LENS_KIND},
    {"dim", "rotary_dim", PE_LENS_WIDTH},
    {"base", "base", PE_LENS_BASE, .otherwise = 10000},
    {"interpolation_factor", "scaling.factor", PE_LENS_FACTOR_OF, .when = "linear"},
    {"base_rescale_factor", "scaling.factor", PE_LENS_FACTOR_OF, .when = "ntk"},
    PE_LENS_END,
};

const struct pe_tool pe_tool_x_transformers = {
    .name = "x_transformers",
    .label = "x-transformers",
    .source = "x-transformers 9252ed7",
    .info = {.about = {"x-transformers", "a call of x-transformers"}, .certainty = "code", .form = PE_TARGET_PYTHON},
    .lenses = lenses,
    .forms = forms,
    .carries = "rotary_dim",
    .layout = "interleaved",
};
