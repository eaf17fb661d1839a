/* The fault of another kind of layers: the numbers are those of a kind that the model has and the request does not
 * name. Its fields are what the model gives for that kind. */
#include "core/diagnosis/diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char layer_type[] = "layer_type";

/* The fields of the belief as asked, of another kind (NULL: of none that is named). Returns their number. */
static size_t ask_for(const struct pe_diagnosis *d, const char *kind, struct pe_field *fields)
{
    size_t n = 0;
    for (size_t i = 0; i < d->belief.n_asked && n < PE_FIELDS_MAX - 1; i++)
        if (!pe_same(d->belief.asked[i].name, layer_type))
            fields[n++] = d->belief.asked[i];
    if (kind)
        fields[n++] = (struct pe_field){layer_type, {.kind = PE_STRING, .string = kind}};
    return n;
}

static enum pe_status inherit(const struct pe_diagnosis *d, const char *kind, struct pe_inheritance *in,
                              struct pe_failure *err)
{
    struct pe_field fields[PE_FIELDS_MAX];
    size_t n = ask_for(d, kind, fields);
    return pe_inherit(
        in, &(struct pe_request){.operation = d->evidence.kind->operation, .fields = fields, .n_fields = n}, err);
}

/* Without a kind a model of several is refused, with their names; a preset takes the first. */
void pe_layers_open(struct pe_diagnosis *d)
{
    struct pe_failure err = {.status = PE_OK};
    const struct pe_preset *preset = d->belief.inheritance->preset;
    size_t n = 0;
    for (size_t i = 0; preset && i < preset->n_layers; i++)
        if (preset->layers[i].layer_type && n < sizeof d->layer_types)
            n += (size_t)snprintf(d->layer_types + n, sizeof d->layer_types - n, "%s%s", n ? "|" : "",
                                  preset->layers[i].layer_type);
    struct pe_inheritance *in =
        pe_field_find(d->belief.asked, d->belief.n_asked, layer_type) && !preset ? malloc(sizeof *in) : NULL;
    if (in && inherit(d, NULL, in, &err))
        memcpy(d->layer_types, err.layer_types, sizeof d->layer_types);
    free(in);
}

/* Kind number i of those that the model has; false: there are no more. */
static bool kind_at(const struct pe_diagnosis *d, size_t i, char *name, size_t size)
{
    const char *p = d->layer_types;
    while (*p && i--) {
        p += strcspn(p, "|");
        p += *p == '|';
    }
    snprintf(name, size, "%.*s", (int)strcspn(p, "|"), p);
    return *name;
}

const char *pe_layers_believed(const struct pe_diagnosis *d, char *name, size_t size)
{
    const struct pe_value *asked = pe_field_find(d->belief.asked, d->belief.n_asked, layer_type);
    if (asked && asked->kind == PE_STRING)
        return asked->string;
    return kind_at(d, 0, name, size) ? name : NULL;
}

static size_t count_kinds(const struct pe_diagnosis *d)
{
    size_t n = *d->layer_types != '\0';
    for (const char *p = d->layer_types; *p; p++)
        n += *p == '|';
    return n;
}

/* What the model gives, in place of what it gave for the believed kind. */
static void set_inherited(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_inheritance *now)
{
    const struct pe_inheritance *believed = d->belief.inheritance;
    for (size_t i = believed->n_own; i < believed->n_own + believed->n_inherited; i++)
        if (!pe_field_find(now->fields, now->n, believed->fields[i].name)) {
            pe_edit_remove(edit, believed->fields[i].name);
            if (pe_same(believed->fields[i].name, "partial_rotary_factor")) /* resolved to it */
                pe_edit_remove(edit, "rotary_dim");
        }
    pe_scalings_drop_factor(d, edit);
    for (size_t i = now->n_own; i < now->n_own + now->n_inherited; i++)
        if (pe_param_find(now->scheme->info.params, now->fields[i].name)) /* not what only scores have */
            pe_edit_set(edit, now->fields[i].name, now->fields[i].value);
}

static bool set_kind(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    enum { NAME = 64 };
    struct pe_failure err;
    struct pe_inheritance *in = pe_edit_room(edit, sizeof *in);
    char *name = pe_edit_room(edit, NAME), first[NAME];
    if (!in || !name || !kind_at(d, i, name, NAME) || pe_same(name, pe_layers_believed(d, first, sizeof first)) ||
        inherit(d, name, in, &err) || in->scheme != d->belief.inheritance->scheme)
        return false;
    pe_edit_set_word(edit, layer_type, name);
    set_inherited(d, edit, in);
    return true;
}

const struct pe_fault pe_fault_layer_type_other = {
    FAULT_TEXT("layer_type_other", "ladder", LADDER, 1, "other kind of layers",
               "The numbers are those of another kind of layers of the model.",
               "These are the numbers of the model's {found} layers; the configuration asks for {believed}."),
    .not_of = PE_EVIDENCE_BIT(MAPS), .count = count_kinds, .apply = set_kind};
