/* The keys of a GGUF file, and the divisors of its frequencies, for an architecture of llama.cpp. Writing and reading
 * are in core/models/gguf. */
#include "core/models/targets/targets.h"

static void gguf_say(struct pe_saying *s)
{
    struct pe_failure err;
    struct pe_value keys;
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(s->architecture);
    struct pe_gguf_wish wish = {.architecture = s->architecture,
                                .kinds = s->kinds,
                                .n_kinds = s->n_kinds,
                                .length = s->length,
                                .window = s->window};
    pe_gguf_choose_kinds(&wish);
    if (!wish.full)
        return;
    if (pe_gguf_write(&wish, s->values, &keys, &err)) {
        s->failed = true;
        return;
    }
    s->value.fields = (struct pe_field *)(uintptr_t)keys.object.fields;
    s->value.n = keys.object.n;
    s->layout = row->is_half || pe_config_at(s->config, "mrope_section").kind != PE_NULL ? "half" : "interleaved";
}

static enum pe_status gguf_read(const struct pe_hearing *h, const void *told)
{
    (void)told;
    return pe_gguf_read(h->value, h->layer_type, h->out, h->err);
}

const struct pe_target pe_target_gguf = {
    .info = {.name = "gguf",
             .about = {"GGUF", "keys of a GGUF file, and the tensors that divide frequencies"},
             .certainty = "code",
             .source = "llama.cpp 6c8dcaa",
             .form = PE_TARGET_JSON},
    .label = "GGUF",
    .carries = "head_dim|rotary_dim|rotary_offset|layout|axes",
    .has_kinds = true,
    .say = gguf_say,
    .read = gguf_read,
};
