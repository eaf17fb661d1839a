/* exllamav2: fields of its config object, on top of what it reads from the model's config.json: a linear factor, and
 * the alpha of ntk, whose exponent is that of the whole head. Source: exllamav2 config.py, as stored. */
#include "core/tools/lens.h"

static const struct pe_lens lenses[] = {
    {"rotary_embedding_base", "base", PE_LENS_BASE, .otherwise = 10000},
    {"scale_pos_emb", "scaling.factor", PE_LENS_FACTOR_OF, .when = "linear"},
    {"scale_alpha_value", "scaling.factor", PE_LENS_FACTOR_OF, .when = "ntk"},
    PE_LENS_END,
};

static void export(struct pe_export *e)
{
    if (!pe_same(e->rule, "ntk") || e->rotary_dim == e->head_dim || !e->value.fields)
        return;
    e->value.fields[0].value = pe_real(pe_export_base(e));
    e->value.fields[2].value = pe_real(1);
}

const struct pe_tool pe_tool_exllamav2 = {
    .name = "exllamav2",
    .label = "exllamav2",
    .source = "exllamav2 config.py",
    .info = {.about = {"exllamav2", "fields of exllamav2's config object"},
             .certainty = "code",
             .form = PE_TARGET_LINES,
             .called = "config",
             .takes = PE_TAKES_OPTIONS},
    .lenses = lenses,
    .is_beside_a_model = true,
    .export = export,
};
