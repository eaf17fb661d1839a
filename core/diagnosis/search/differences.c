/* A belief that no few mistakes mend, beside a configuration that gives the tensor and was found without it: what
 * differs, field by field.
 *
 * Both are requests with every parameter, so no search is needed: each field of the one found that the believed one has
 * otherwise is a finding, by the code of the fault that changes this field alone. Of the sequence its first position
 * counts; what no field states (tensors exchanged, other signs) is a fault of the candidate itself. */
#include "core/diagnosis/diagnosis.h"

#include <string.h>

/* Fields whose faults have a name of their own; a scaling that is not there is missing. */
static const struct {
    const char *field, *code;
} codes[] = {{"base", "base_other"},
             {"layout", "layout_swapped"},
             {"direction", "direction_reversed"},
             {"rotary_dim", "rotary_dim_other"},
             {"rotary_offset", "rotary_offset_other"},
             {"scaling", "scaling_other"},
             {"attention_factor", "attention_factor_other"},
             {"scheme", "scheme_other"},
             {"tensor_layout", "tensor_layout_other"},
             {"scale_base", "scale_base_other"},
             {"center", "center_other"},
             {"style", "style_other"},
             {"offset", "offset_other"},
             {"positions", "positions_other"}};

static const struct pe_fault *fault_of(const char *code)
{
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (pe_same(pe_fault_at(i)->code, code))
            return pe_fault_row(i);
    return NULL;
}

static const char *code_of(const char *field, const struct pe_value *found)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (pe_same(codes[i].field, field))
            return pe_same(pe_config_word(found, "type"), "default") ? "scaling_missing" : codes[i].code;
    return "parameter_other";
}

/* It states how the numbers are written, or follows from the rest. */
static bool is_of_answer(const char *field)
{
    return pe_is_among("form|arith|channels_first|tensor_layout|len|attention_scaling", field);
}

static void put_difference(struct pe_diagnosis *d, const char *field, const struct pe_value *found,
                           const struct pe_value *believed, struct pe_node *list)
{
    const struct pe_fault *fault = fault_of(code_of(field, found));
    char pointer[PE_POINTER_MAX];
    struct pe_node *node = pe_put_object(list, NULL);
    pe_pointer_join(pointer, sizeof pointer, "", field);
    pe_put_string(node, "code", fault->info.code);
    pe_put_string(node, "pointer", pointer);
    pe_answer_value(node, "found", found);
    pe_answer_value(node, "believed", believed);
    pe_put_null(node, "meaning");
    pe_answer_sentence(d, node, &fault->info, fault->info.details[fault->info.n_details - 1], field);
    pe_answer_cure(d, fault, NULL, node);
}

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    return object->kind == PE_OBJECT ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
}

/* The first position, where the sequence is a run. */
static void put_sequence(struct pe_diagnosis *d, const struct pe_value *sequence, struct pe_node *list)
{
    const struct pe_value none = pe_integer(0), *offset = member(sequence, "offset"),
                          *believed = pe_belief_given(d, "offset"), *positions = member(sequence, "positions");
    offset = offset ? offset : &none;
    believed = believed ? believed : &none;
    if (positions && !pe_belief_given(d, "positions"))
        put_difference(d, "positions", positions, NULL, list);
    else if (!positions && !pe_value_same(offset, believed))
        put_difference(d, "offset", pe_values_keep(d->values, *offset), pe_values_keep(d->values, *believed), list);
}

/* Codes of faults that set no field. */
static void put_transforms(struct pe_diagnosis *d, const struct pe_value *candidate, struct pe_node *list)
{
    const struct pe_value *faults = member(candidate, "codes"), *transforms = member(candidate, "transforms");
    for (size_t i = 0; transforms->list.n && i < faults->list.n; i++) {
        const struct pe_fault *fault = fault_of(faults->list.items[i].string);
        bool is_transform = false;
        for (size_t k = 0; k < transforms->list.n; k++)
            is_transform |= pe_same(member(&transforms->list.items[k], "name")->string, fault->info.code);
        if (!is_transform)
            continue;
        struct pe_node *node = pe_put_object(list, NULL);
        char pointer[PE_POINTER_MAX];
        pe_pointer_join(pointer, sizeof pointer, "", pe_evidence_name(&d->evidence, d->evidence.n_tensors - 1));
        pe_put_string(node, "code", fault->info.code);
        pe_put_string(node, "pointer", pointer);
        pe_put_null(node, "found");
        pe_put_null(node, "believed");
        pe_put_null(node, "meaning");
        pe_answer_sentence(d, node, &fault->info, fault->info.details[0], "");
        pe_answer_cure(d, fault, NULL, node);
    }
}

void pe_answer_differences(struct pe_diagnosis *d, const struct pe_value *candidate, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    const struct pe_value *config = member(candidate, "config"), *believed = pe_plan_config(d->belief.plan);
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        const struct pe_value null = pe_null(), *other = member(believed, f->name);
        if (!is_of_answer(f->name) && !pe_value_same(&f->value, other ? other : &null))
            put_difference(d, f->name, &f->value, other, list);
    }
    put_sequence(d, member(candidate, "sequence"), list);
    put_transforms(d, candidate, list);
}
