/* Which layers of a model have the positions of one kind: those of the kind, and of kinds whose positions are the same,
 * whatever their masks and names are. So two files are compared layer by layer, though they name their kinds
 * differently. */
#include "core/models/gguf/gguf.h"
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One model ---- */

struct work {
    struct pe_hf_marks marks;
    struct pe_gguf_outline outline;
    struct pe_model_fields named, other;
};

static enum pe_status read_kind(const struct pe_value *config, const struct pe_value *keys,
                                const struct pe_hf_asked *asked, struct pe_model_fields *out)
{
    struct pe_failure ignored;
    return config ? pe_hf_config_read(config, asked, out, &ignored)
                  : pe_gguf_read(keys, asked->layer_type, out, &ignored);
}

/* A decoder's layers are not an encoder's. */
static bool are_told_apart(const struct pe_hf_layers *layers, const char *kind)
{
    return !layers->are_stacks && pe_hf_layers_known(layers, kind);
}

static enum pe_status mark_layers(const struct pe_value *config, const struct pe_value *keys,
                                  const struct pe_hf_asked *asked, struct work *work, struct pe_layer_marks *out)
{
    struct pe_failure ignored;
    struct pe_hf_asked other = *asked;
    bool has[PE_HF_KINDS_MAX] = {false};
    enum pe_status status = config ? pe_hf_config_read_marked(config, asked, &work->named, &work->marks, &ignored)
                                   : pe_gguf_outline(keys, &work->outline, &ignored);
    const struct pe_hf_layers *layers = config ? &work->marks.layers : &work->outline.layers;
    if (!status && !config)
        status = read_kind(config, keys, asked, &work->named);
    if (status || !are_told_apart(layers, asked->layer_type))
        return status;
    for (size_t k = 0; !status && k < layers->n_kinds; k++) {
        other.layer_type = layers->kinds[k];
        status = read_kind(config, keys, &other, &work->other);
        struct pe_value x = {.kind = PE_OBJECT, .object = {work->named.fields, work->named.n}};
        struct pe_value y = {.kind = PE_OBJECT, .object = {work->other.fields, work->other.n}};
        has[k] = pe_value_same(&x, &y);
    }
    out->n = status ? 0 : layers->n;
    for (size_t l = 0; l < out->n; l++) {
        unsigned k = layers->kind_of[l];
        out->of[l] = k >= PE_HF_KINDS_MAX ? PE_LAYER_NO_ATTENTION : has[k] ? PE_LAYER_OF_KIND : PE_LAYER_OTHER;
    }
    return status;
}

bool pe_model_layers(const struct pe_field *fields, size_t n, struct pe_layer_marks *out)
{
    const struct pe_value *config = pe_field_find(fields, n, "hf_config"), *keys = pe_field_find(fields, n, "gguf");
    struct pe_hf_asked asked = pe_hf_asked_of(fields, n);
    out->n = 0;
    if (!config && !keys)
        return true;
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return false;
    enum pe_status status = mark_layers(config, keys, &asked, work, out);
    bool has_memory = status != PE_NO_MEMORY && !work->marks.no_memory;
    free(work->marks.read);
    free(work);
    return has_memory;
}

/* ---- Two of them ---- */

static void print_kind(const struct pe_layer_marks *marks, const struct pe_layer_marks *beside, size_t end, char *out,
                       size_t room)
{
    int64_t indices[PE_HF_LAYERS_MAX];
    size_t n = 0;
    for (size_t l = 0; l < end; l++)
        if (marks->of[l] == PE_LAYER_OF_KIND && beside->of[l] != PE_LAYER_NO_ATTENTION)
            indices[n++] = (int64_t)l;
    pe_layers_print(indices, n, out, room);
}

void pe_layers_compare(const struct pe_layer_marks *found, const struct pe_layer_marks *taken,
                       struct pe_layers_apart *out)
{
    size_t end = found->n < taken->n ? found->n : taken->n;
    *out = (struct pe_layers_apart){.n = 0};
    for (size_t l = 0; l < end; l++) {
        bool has_both = found->of[l] != PE_LAYER_NO_ATTENTION && taken->of[l] != PE_LAYER_NO_ATTENTION;
        out->of += has_both;
        out->n += has_both && found->of[l] != taken->of[l];
    }
    print_kind(found, taken, end, out->found, sizeof out->found);
    print_kind(taken, found, end, out->taken, sizeof out->taken);
}

void pe_layers_name(const char *ranges, enum pe_lang lang, char out[PE_LAYERS_TEXT])
{
    if (*ranges)
        snprintf(out, PE_LAYERS_TEXT, pe_text_in(lang, "layers %.64s"), ranges);
    else
        snprintf(out, PE_LAYERS_TEXT, "%s", pe_text_in(lang, "no layers"));
}
