/* The keys of a GGUF file, and the divisors of its frequencies, for an architecture of llama.cpp. Writing and reading
 * are in core/models/gguf. */
#include "core/tools/lens.h"

static void export(struct pe_export *e)
{
    struct pe_failure err;
    struct pe_value keys;
    struct pe_gguf_wish wish = e->file;
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(wish.architecture);
    wish.kinds = e->kinds;
    wish.n_kinds = e->n_kinds;
    wish.length = e->length;
    pe_gguf_choose_kinds(&wish);
    if (!wish.full)
        return;
    if (pe_gguf_write(&wish, e->values, &keys, &err)) {
        e->failed = true;
        return;
    }
    e->value.fields = (struct pe_field *)(uintptr_t)keys.object.fields;
    e->value.n = keys.object.n;
    e->layout = row->is_half || pe_config_at(e->config, "mrope_section").kind != PE_NULL ? "half" : "interleaved";
}

static enum pe_status import(struct pe_import *m) { return pe_gguf_read(m->value, m->layer_type, m->out, m->err); }

const struct pe_tool pe_tool_gguf = {
    .name = "gguf",
    .label = "GGUF",
    .source = "llama.cpp 6c8dcaa",
    .info = {.about = {"GGUF", "keys of a GGUF file, and the tensors that divide frequencies"},
             .certainty = "code",
             .form = PE_TARGET_JSON},
    .carries = "head_dim|rotary_dim|rotary_offset|layout|axes",
    .has_kinds = true,
    .export = export,
    .import = import,
};
