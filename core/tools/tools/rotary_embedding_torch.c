/* rotary-embedding-torch: RotaryEmbedding of the rotated channels, neighbours paired; custom_freqs are any frequencies,
 * stored as f32. Source: rotary-embedding-torch 8bb4643d1c. */
#include "core/tools/lens.h"

static const struct pe_form forms[] = {{.word = "RotaryEmbedding"}, {.word = NULL}};

static const struct pe_lens lenses[] = {
    {"class", PE_LENS_KIND},
    {"dim", "rotary_dim", PE_LENS_WIDTH},
    {"theta", "base", PE_LENS_BASE, .otherwise = 10000},
    {"interpolate_factor", "scaling.factor", PE_LENS_FACTOR_OF, .when = "linear"},
    {"theta_rescale_factor", "scaling.factor", PE_LENS_FACTOR_OF, .when = "ntk"},
    {"custom_freqs", "inv_freq", .type = PE_T_REALS, .min = -1e6, .max = 1e6},
    PE_LENS_END,
};

/* Frequencies that no factor states. */
static void export_freqs(struct pe_export *e)
{
    bool is_plain = pe_is_among("default|linear|ntk", e->rule) && pe_config_at(e->config, "inv_freq").kind == PE_NULL &&
                    pe_config_at(e->config, "scaling.divisors").kind == PE_NULL;
    double *w = is_plain ? NULL : pe_values_room(e->values, (e->kind.n + 1) * sizeof *w);
    e->failed |= !is_plain && !w;
    for (size_t c = 0; w && c < e->kind.n; c++)
        w[c] = (double)(float)e->kind.w[c];
    if (w)
        pe_word_put(&e->value, "custom_freqs", pe_list_of(w, e->kind.n));
}

static enum pe_status check(const struct pe_import *m)
{
    if (!pe_import_member(m, "custom_freqs")->reals.n || pe_import_number(m, "interpolate_factor") == 1)
        return PE_OK;
    return pe_import_wrong(m, "interpolate_factor", "interpolate_factor beside custom_freqs; divide these instead");
}

/* They stand for a base and its factors. */
static enum pe_status import_freqs(struct pe_import *m)
{
    const struct pe_reals *given = &pe_import_member(m, "custom_freqs")->reals;
    const struct pe_value *dim = pe_field_find(m->out->fields, m->out->n, "rotary_dim");
    if (!given->n)
        return PE_OK;
    m->out->n = dim != NULL; /* the first */
    m->n_scaling = 0;
    pe_hf_put(m->out, "inv_freq", (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = given->array});
    return PE_OK;
}

const struct pe_tool pe_tool_rotary_embedding_torch = {
    .name = "rotary_embedding_torch",
    .label = "rotary-embedding-torch",
    .source = "rotary-embedding-torch 8bb4643",
    .info = {.about = {"rotary-embedding-torch", "a call of rotary-embedding-torch"},
             .certainty = "code",
             .form = PE_TARGET_PYTHON},
    .lenses = lenses,
    .forms = forms,
    .carries = "rotary_dim",
    .layout = "interleaved",
    .export = export_freqs,
    .check = check,
    .import = import_freqs,
};
