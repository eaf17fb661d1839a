/* Which names of a config.json were read, which values were taken for missing ones, and which field of the request was
 * taken from which: the config is read once more with marks, so that planning itself need not keep them. */
#include "core/models/hf/hf.h"
#include "core/params.h"
#include "core/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool was_read(const struct pe_hf_marks *marks, const struct pe_field *field)
{
    for (size_t i = 0; i < marks->n_read; i++)
        if (marks->read[i] == field)
            return true;
    return false;
}

/* Names in one report; a real config has a hundred. */
enum { IGNORED_MAX = 512, NAME_BYTES = 128 };

/* "rope_scaling.type": the pointer without /hf_config, with dots. Names so long are none of a model's. */
static bool put_name(struct pe_node *list, const char *at, const char *name)
{
    char path[PE_POINTER_MAX + NAME_BYTES];
    const char *inner = at + strlen("/hf_config");
    if (strlen(name) >= NAME_BYTES)
        return false;
    size_t n = (size_t)snprintf(path, sizeof path, "%s%s", *inner ? inner + 1 : "", *inner ? "." : "");
    for (char *c = path; *c; c++)
        *c = *c == '/' ? '.' : *c;
    snprintf(path + n, sizeof path - n, "%s", name);
    pe_put_string(list, NULL, path);
    return true;
}

static void put_ignored(struct pe_node *list, const struct pe_hf_marks *marks)
{
    size_t n = 0;
    for (size_t i = 0; i < marks->n_seen; i++)
        for (size_t f = 0; f < marks->seen[i].object->object.n && n < IGNORED_MAX; f++)
            if (marks->seen[i].object->object.fields[f].value.kind != PE_NULL &&
                !was_read(marks, &marks->seen[i].object->object.fields[f]))
                n += put_name(list, marks->seen[i].at, marks->seen[i].object->object.fields[f].name);
}

void pe_hf_put_layers(struct pe_node *root, const struct pe_hf_layers *layers, const char *kind)
{
    int64_t indices[PE_HF_LAYERS_MAX];
    pe_put_string(root, "layer_type", kind ? kind : pe_hf_default_kind(layers));
    if (pe_hf_layers_known(layers, kind))
        pe_put_integers(root, "layers", indices, pe_hf_layers_of(layers, kind, indices));
    else
        pe_put_null(root, "layers");
}

static void put_report(struct pe_node *root, const struct pe_hf_marks *marks, const struct pe_model_scores *scores)
{
    pe_put_string(root, "model_type", marks->model_type ? marks->model_type : "");
    pe_put_string(root, "certainty", marks->scheme_is_given ? "as told" : pe_certainty_name(marks->certainty));
    pe_hf_put_layers(root, &marks->layers, marks->layer_type);
    put_ignored(pe_put_list(root, "ignored"), marks);
    struct pe_node *defaults = pe_put_object(root, "defaults");
    for (size_t i = 0; i < marks->n_defaults; i++)
        pe_put_value(defaults, marks->defaults[i].name, &marks->defaults[i].value);
    if (marks->first)
        pe_put_integer(root, "first_position", marks->first);
    if (scores)
        pe_model_put_scores(scores, root);
}

static void marks_free(struct pe_hf_marks *marks)
{
    if (marks)
        free(marks->read);
    free(marks);
}

static enum pe_status report(const struct pe_request *request, const struct pe_value *hf, struct pe_values *values,
                             struct pe_failure *err)
{
    struct pe_hf_marks *marks = calloc(1, sizeof *marks);
    struct pe_model_fields *fields = malloc(sizeof *fields);
    struct pe_hf_asked asked = pe_hf_asked_of(request->fields, request->n_fields);
    enum pe_status status =
        marks && fields ? pe_hf_config_read_marked(hf, &asked, fields, marks, err) : pe_no_memory(err);
    if (!status && marks->no_memory)
        status = pe_no_memory(err);
    if (!status)
        put_report(pe_values_root(values), marks, request->operation == PE_ATTEND ? &fields->scores : NULL);
    free(fields);
    marks_free(marks);
    return status;
}

/* ---- Of a config.json, or a GGUF file ---- */

struct pe_model_about {
    struct pe_values *values;
    const struct pe_value *value;
};

enum pe_status pe_model_about_new(const struct pe_request *request, struct pe_model_about **out, struct pe_failure *err)
{
    const struct pe_value *hf = pe_field_find(request->fields, request->n_fields, "hf_config"),
                          *gguf = pe_field_find(request->fields, request->n_fields, "gguf");
    *out = NULL;
    if (!hf && !gguf)
        return PE_OK;
    struct pe_model_about *about = calloc(1, sizeof *about);
    if (!about)
        return pe_no_memory(err);
    about->values = pe_values_new();
    enum pe_status status = !about->values ? pe_no_memory(err)
                            : hf           ? report(request, hf, about->values, err)
                                           : pe_gguf_report(request, gguf, about->values, err);
    if (!status)
        about->value = pe_values_done(about->values);
    if (!status && !about->value)
        status = pe_no_memory(err);
    if (status)
        pe_model_about_free(about);
    else
        *out = about;
    return status;
}

void pe_model_about_free(struct pe_model_about *about)
{
    if (!about)
        return;
    pe_values_free(about->values);
    free(about);
}

const struct pe_value *pe_model_about_value(const struct pe_model_about *about) { return about->value; }

/* ---- Where a field of the request is from ---- */

/* Lists are borrowed of the config, and not copied. */
static bool is_taken(const struct pe_value *a, const struct pe_value *b)
{
    if (a->kind == PE_STRING && b->kind == PE_STRING)
        return strcmp(a->string, b->string) == 0;
    if (a->kind == PE_ARRAY && b->kind == PE_ARRAY)
        return a->array.data == b->array.data;
    return pe_value_number(a) == pe_value_number(b);
}

static void point(const struct pe_hf_marks *marks, const struct pe_field *taken, char *pointer)
{
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < marks->n_seen; i++)
        for (size_t f = 0; f < marks->seen[i].object->object.n; f++) {
            const struct pe_field *field = &marks->seen[i].object->object.fields[f];
            bool is_named = strcmp(field->name, taken->name) == 0;
            if (!is_taken(&field->value, &taken->value) || !was_read(marks, field))
                continue;
            if (is_named || n_named == 0)
                pe_pointer_join(pointer, PE_POINTER_MAX, marks->seen[i].at, field->name);
            n++, n_named += is_named;
        }
    if (n_named != 1 && n != 1)
        *pointer = '\0';
}

void pe_hf_config_point(const struct pe_value *config, const struct pe_hf_asked *asked, const struct pe_field *taken,
                        char *pointer)
{
    struct pe_hf_marks *marks = calloc(1, sizeof *marks);
    struct pe_model_fields *fields = malloc(sizeof *fields);
    char found[PE_POINTER_MAX] = "";
    struct pe_failure err;
    if (marks && fields && !pe_hf_config_read_marked(config, asked, fields, marks, &err) && !marks->no_memory)
        point(marks, taken, found);
    if (*found)
        memcpy(pointer, found, sizeof found);
    free(fields);
    marks_free(marks);
}
