/* Which layers have a kind's positions: of the config, and of the file that a tool makes of it. */
#include "core/dialects/dialects.h"

#include <stdio.h>
#include <string.h>

enum pe_status pe_dialect_list_layers(struct pe_explain *ex, const struct pe_hf_layers *layers,
                                      struct pe_dialect_kind *kind)
{
    if (ex->is_other_size || !pe_hf_layers_known(layers, kind->layer_type))
        return PE_OK;
    kind->layers = pe_values_room(ex->values, (PE_HF_LAYERS_MAX + 1) * sizeof *kind->layers);
    if (!kind->layers)
        return pe_no_memory(ex->err);
    kind->n_layers = pe_hf_layers_of(layers, kind->layer_type, kind->layers);
    return PE_OK;
}

static int64_t size_of(const struct pe_hf_place *place, const char *names)
{
    struct pe_failure ignored;
    int64_t x = 0;
    return pe_hf_integer(place, names, &x, &ignored) ? 0 : x;
}

void pe_dialect_sizes(const struct pe_explain *ex, struct pe_gguf_wish *wish)
{
    const struct pe_value of_preset =
        ex->preset ? pe_object(ex->preset->config.fields, ex->preset->config.n) : pe_null();
    const struct pe_hf_place place = ex->hf ? ex->language.place : (struct pe_hf_place){.object = &of_preset};
    if (place.object->kind != PE_OBJECT)
        return;
    wish->window = (double)size_of(&place, "sliding_window");
    wish->width = size_of(&place, PE_HF_WIDTH);
    wish->heads = size_of(&place, PE_HF_HEADS);
    wish->depth = size_of(&place, "num_hidden_layers");
}

static bool is_still(const struct pe_reading *reading)
{
    return pe_same(pe_config_word(reading->config, "scheme"), "none");
}

enum pe_status pe_dialect_compare_layers(struct pe_explain *ex, struct pe_dialect_reader *tool, size_t k,
                                         const struct pe_field *model, const char *name)
{
    struct pe_layer_marks marks[2];
    struct pe_layers_apart apart;
    const struct pe_reading *ours = &ex->kinds[k].own, *theirs = &tool->readings[k];
    if (ex->is_other_size || !ours->config || !theirs->config || (ex->kinds[k].layers && !ex->kinds[k].n_layers))
        return PE_OK;
    const struct pe_field sides[2][2] = {
        {{"hf_config", *ex->hf}, {"layer_type", {.kind = PE_STRING, .string = ex->kinds[k].layer_type}}},
        {*model, {"layer_type", {.kind = PE_STRING, .string = name}}},
    };
    for (size_t side = 0; side < 2; side++)
        if (!pe_model_layers(sides[side], 2, &marks[side]))
            return pe_no_memory(ex->err);
    if (is_still(ours) != is_still(theirs)) /* no layer of the tool is like ours */
        memset(marks[1].of, PE_LAYER_OTHER, marks[1].n);
    pe_layers_compare(&marks[0], &marks[1], &apart);
    if (!apart.n)
        return PE_OK;
    tool->layers[k] = (struct pe_other_layers){.n = apart.n,
                                               .of = apart.of,
                                               .found = pe_values_room(ex->values, sizeof apart.found),
                                               .taken = pe_values_room(ex->values, sizeof apart.taken)};
    if (!tool->layers[k].found || !tool->layers[k].taken)
        return pe_no_memory(ex->err);
    memcpy(tool->layers[k].found, apart.found, sizeof apart.found);
    memcpy(tool->layers[k].taken, apart.taken, sizeof apart.taken);
    return PE_OK;
}

enum pe_status pe_dialect_other_kinds(struct pe_explain *ex, const struct pe_dialect_reader *tool,
                                      struct pe_dialect_kind *others, size_t *n)
{
    const struct pe_hf_layers *layers = &ex->marks->layers;
    struct pe_field model = {"hf_config", tool->view.config};
    *n = 0;
    for (size_t k = 0; ex->layer_type && k < layers->n_kinds; k++) {
        if (pe_same(layers->kinds[k], ex->layer_type))
            continue;
        struct pe_dialect_kind *kind = &others[*n];
        *kind = (struct pe_dialect_kind){.part = "text"};
        snprintf(kind->layer_type, sizeof kind->layer_type, "%s", layers->kinds[k]);
        if (pe_dialect_list_layers(ex, layers, kind) || pe_dialect_read(ex, &model, kind->layer_type, &kind->own))
            return ex->err->status;
        ++*n;
    }
    return PE_OK;
}
