/* Layers whose positions differ: the comparison of kinds, and the refusal that lists them. */
#include "core/models/hf/hf.h"
#include "core/params.h"
#include "core/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- A line for each kind ---- */

struct difference {
    const struct pe_hf_layers *layers;
    bool differ;
    char lines[PE_DETAIL_MAX - 128];
};

struct line {
    char *text;
    size_t room, used;
    bool is_full;
};

static void put_text(struct line *line, const char *text)
{
    size_t n = strlen(text);
    line->is_full |= line->used + n + 1 > line->room;
    if (line->is_full)
        return;
    memcpy(line->text + line->used, text, n + 1);
    line->used += n;
}

void pe_layers_print(const int64_t *indices, size_t n, char *out, size_t room)
{
    size_t starts[PE_HF_LAYERS_MAX + 1], n_runs = 0, used = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || indices[i] != indices[i - 1] + 1)
            starts[n_runs++] = i;
    starts[n_runs] = n;
    *out = '\0';
    for (size_t i = 0; i < n_runs && used < room; i++) {
        bool is_shown = n_runs <= 3 || i < 2 || i == n_runs - 1;
        int64_t first = indices[starts[i]], last = indices[starts[i + 1] - 1];
        if (is_shown)
            used += (size_t)snprintf(out + used, room - used, first == last ? "%s%" PRId64 : "%s%" PRId64 "-%" PRId64,
                                     i ? ", " : "", first, last);
        else if (i == 2)
            used += (size_t)snprintf(out + used, room - used, ", …");
    }
}

static void put_layers(struct line *line, const struct pe_hf_layers *layers, const char *kind)
{
    int64_t indices[PE_HF_LAYERS_MAX];
    char count[64], runs[64];
    if (!pe_hf_layers_known(layers, kind))
        return;
    size_t n = pe_hf_layers_of(layers, kind, indices);
    if (layers->are_stacks)
        snprintf(count, sizeof count, pe_text(" (%zu layers)"), n);
    else
        snprintf(count, sizeof count, pe_text(" (%zu of %zu%s"), n, layers->n, n ? ": " : ")");
    put_text(line, count);
    if (layers->are_stacks || !n)
        return;
    pe_layers_print(indices, n, runs, sizeof runs);
    put_text(line, runs);
    put_text(line, ")");
}

static void put_scaling(struct line *line, const struct pe_value *scaling)
{
    char text[96];
    const struct pe_value *type = pe_stated(scaling, "type"), *factor = pe_stated(scaling, "factor");
    snprintf(text, sizeof text, ", %.24s", type && type->kind == PE_STRING ? type->string : "scaling");
    put_text(line, text);
    if (!factor || (factor->kind != PE_INTEGER && factor->kind != PE_REAL))
        return;
    snprintf(text, sizeof text, " factor %.10g", pe_value_number(factor));
    put_text(line, text);
}

static void put_field(struct line *line, const struct pe_field *field)
{
    char text[96];
    const struct pe_value *v = &field->value;
    if (v->kind == PE_OBJECT) {
        put_scaling(line, v);
        return;
    }
    if (v->kind == PE_INTEGER || v->kind == PE_REAL)
        snprintf(text, sizeof text, ", %.32s %.10g", field->name, pe_value_number(v));
    else if (v->kind == PE_STRING)
        snprintf(text, sizeof text, ", %.32s %.32s", field->name, v->string);
    else if (v->kind == PE_BOOLEAN)
        snprintf(text, sizeof text, ", %s%.32s", v->boolean ? "" : "not ", field->name);
    else if (v->kind == PE_ARRAY && v->array.rank == 1 && v->array.shape[0] == 2)
        snprintf(text, sizeof text, ", %.32s %.6g×%.6g", field->name, pe_real_at(&(struct pe_reals){v->array, 2}, 0),
                 pe_real_at(&(struct pe_reals){v->array, 2}, 1));
    else
        return;
    put_text(line, text);
}

/* The scheme, base and scaling, and what else differs. */
static void put_positions(struct line *line, const struct pe_model_fields *fields, const struct pe_model_fields *other)
{
    const struct pe_value *scheme = pe_field_find(fields->fields, fields->n, "scheme");
    const struct pe_value *others = pe_field_find(other->fields, other->n, "scheme");
    if (strcmp(scheme->string, "none") == 0) {
        put_text(line, pe_text("no positions"));
        return;
    }
    bool comparable = pe_value_same(scheme, others);
    put_text(line, scheme->string);
    for (size_t i = 0; i < fields->n; i++) {
        const struct pe_field *field = &fields->fields[i];
        const struct pe_value *value = comparable ? pe_field_find(other->fields, other->n, field->name) : NULL;
        bool differs = comparable && !(value && pe_value_same(&field->value, value));
        if (differs || pe_is_among("base|scaling", field->name))
            put_field(line, field);
    }
}

/* Adds the line of kind k, and before that of kind 1 the other's, which is kind 0. Shown is what differs from the other
 * kind, and what a reader knows a rotation by. */
static void describe(struct difference *difference, size_t k, const struct pe_model_fields *fields,
                     const struct pe_model_fields *other)
{
    if (k == 1) /* the first, which is now known not to be the only one */
        describe(difference, 0, other, fields);
    const char *kind = difference->layers->kinds[k];
    static const char more[] = "\n…";
    size_t start = k ? strlen(difference->lines) : 0;
    struct line line = {difference->lines, sizeof difference->lines - sizeof more, start, false};
    struct pe_value all = pe_object(fields->fields, fields->n), others = pe_object(other->fields, other->n);
    difference->differ = difference->differ || !pe_value_same(&all, &others);
    put_text(&line, "\n\"");
    put_text(&line, kind);
    put_text(&line, "\"");
    put_layers(&line, difference->layers, kind);
    put_text(&line, ": ");
    put_positions(&line, fields, other);
    if (line.is_full) {
        line.text[start] = '\0';
        line = (struct line){difference->lines, sizeof difference->lines, start, false};
        if (!strstr(difference->lines, more))
            put_text(&line, more);
    }
}

enum pe_status pe_hf_compare_kinds(const struct pe_hf_layers *layers, const char *model_type, const char *named,
                                   enum pe_status (*read)(void *reader, size_t k, struct pe_model_fields *out),
                                   void *reader, struct pe_model_fields *first, struct pe_failure *err)
{
    struct pe_model_fields other;
    struct difference difference = {.layers = layers};
    enum pe_status status = read(reader, 0, first);
    for (size_t k = 1; !status && k < layers->n_kinds; k++) {
        status = read(reader, k, &other);
        if (!status)
            describe(&difference, k, &other, first);
    }
    if (!status && layers->n_kinds == 1)
        describe(&difference, 0, first, first);
    if (status || (!difference.differ && !named))
        return status;
    if (named)
        pe_fail(err, "/layer_type", "\"%.32s\" has no layers of type \"%.32s\"; it has:%s", model_type, named,
                difference.lines);
    else
        pe_fail(err, "/layer_type", "layers of \"%.48s\" differ; give layer_type:%s", model_type, difference.lines);
    pe_hf_name_kinds(layers, err);
    return err->status;
}

void pe_hf_name_kinds(const struct pe_hf_layers *layers, struct pe_failure *err)
{
    struct line names = {err->layer_types, sizeof err->layer_types, 0, false};
    for (size_t k = 0; k < layers->n_kinds; k++) {
        put_text(&names, k ? "|" : "");
        put_text(&names, layers->kinds[k]);
    }
}
