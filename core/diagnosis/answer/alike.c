/* Presets of public models that give the same tensor as a candidate. */
#include "core/diagnosis/answer/answer.h"

#include <string.h>

/* Makes a plan of one layer type of a preset. PE_INVALID: it cannot be planned without weights. */
static enum pe_status plan_layer(const struct pe_preset *preset, const struct pe_preset_layer *layer,
                                 struct pe_plan **plan, struct pe_error *err)
{
    const struct pe_field fields[] = {{"preset", {.kind = PE_STRING, .string = preset->name}},
                                      {"len", {.kind = PE_INTEGER, .integer = 1}},
                                      {"layer_type", {.kind = PE_STRING, .string = layer->layer_type}}};
    const struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = layer->layer_type ? 3 : 2, .dtype = PE_F64};
    enum pe_status status = pe_plan_new(&request, plan, err);
    return status == PE_INVALID || status == PE_TOO_LARGE ? PE_OK : status;
}

/* Says it only how the numbers are written: the form of rotary tables, and the arithmetic? (ALiBi's form is a formula.)
 */
static bool is_of_answer(const struct pe_candidate *c, const char *name)
{
    return pe_is_among("scheme|arith|channels_first", name) ||
           (strcmp(name, "form") == 0 && strcmp(c->model->plan->scheme->info.name, "alibi") != 0);
}

/* The candidate with every parameter of the preset; its own form of the answer stays. */
static void set_config(struct pe_edit *edit, const struct pe_candidate *c, const struct pe_value *config)
{
    edit->transforms = c->edit.transforms;
    for (size_t i = 0; i < c->edit.n_fields; i++)
        if (pe_param_find(pe_sequence_params(), c->edit.fields[i].name) ||
            pe_is_among("tensor_layout|positions_layout", c->edit.fields[i].name))
            pe_edit_set(edit, c->edit.fields[i].name, c->edit.fields[i].value);
    for (size_t i = 0; i < config->object.n; i++)
        if (!is_of_answer(c, config->object.fields[i].name))
            pe_edit_set(edit, config->object.fields[i].name, config->object.fields[i].value);
}

static enum pe_status is_alike(struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_plan *plan,
                               bool *alike, struct pe_error *err)
{
    struct pe_edit edit;
    struct pe_model *model = NULL;
    pe_edit_init(&edit);
    set_config(&edit, c, pe_plan_config(plan));
    enum pe_status status = edit.failed ? pe_no_memory(err) : pe_model_new(d, &edit, &model, err);
    *alike = !status && model->has_shape && pe_model_signature(model) == pe_model_signature(c->model);
    pe_model_free(model);
    pe_edit_drop(&edit);
    return status == PE_NO_MEMORY || status == PE_CANCELLED ? status : PE_OK;
}

/* Does the layer have the candidate's scheme, and its width where it states one? Most presets end here. */
static bool may_be(const struct pe_preset_layer *layer, const struct pe_candidate *c)
{
    const char *scheme = c->model->plan->scheme->info.name;
    for (size_t i = 0; i < layer->n_fields; i++)
        if (strcmp(layer->fields[i].name, "scheme") == 0)
            return strcmp(layer->fields[i].value.string, scheme) == 0;
    return false;
}

enum pe_status pe_answer_presets(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list,
                                 struct pe_error *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; i < pe_n_presets() && pe_fits(c->all.verdict); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        bool alike = false;
        for (size_t l = 0; !status && !alike && l < preset->n_layers; l++) {
            struct pe_plan *plan = NULL;
            if (may_be(&preset->layers[l], c))
                status = plan_layer(preset, &preset->layers[l], &plan, err);
            if (plan)
                status = is_alike(d, c, plan, &alike, err);
            pe_plan_free(plan);
        }
        if (alike)
            pe_put_string(list, NULL, preset->name);
        if (status)
            return status;
    }
    return PE_OK;
}
