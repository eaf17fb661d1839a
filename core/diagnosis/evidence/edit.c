/* Edits: fields that replace the belief's, and transforms. */
#include "core/diagnosis/diagnosis.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void pe_edit_init(struct pe_edit *edit)
{
    *edit = (struct pe_edit){.n_fields = 0};
    edit->transforms.scaled = 1;
    edit->transforms.mask_value = (double)NAN;
    edit->transforms.wrapped_from = (double)NAN;
    edit->transforms.strides = (struct pe_strides){{(double)NAN, (double)NAN}, (double)NAN};
    edit->transforms.switched_at = -1;
}

void pe_edit_drop(struct pe_edit *edit)
{
    for (size_t i = 0; i < edit->n_owned; i++)
        free(edit->owned[i]);
    edit->n_owned = 0;
}

void *pe_edit_room(struct pe_edit *edit, size_t n_bytes)
{
    assert(edit->n_owned < PE_EDIT_ROOMS_MAX);
    void *room = calloc(1, n_bytes ? n_bytes : 1);
    if (room)
        edit->owned[edit->n_owned++] = room;
    else
        edit->failed = true;
    return room;
}

/* ---- Fields ---- */

void pe_edit_set(struct pe_edit *edit, const char *name, struct pe_value value)
{
    size_t i = 0;
    while (i < edit->n_fields && !pe_same(edit->fields[i].name, name))
        i++;
    assert(i < PE_EDIT_FIELDS_MAX);
    edit->n_fields += i == edit->n_fields;
    edit->fields[i] = (struct pe_field){name, value};
    edit->by[i] = edit->now;
}

void pe_edit_set_integer(struct pe_edit *edit, const char *name, int64_t x)
{
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_INTEGER, .integer = x});
}

void pe_edit_set_real(struct pe_edit *edit, const char *name, double x)
{
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_REAL, .real = x});
}

void pe_edit_set_word(struct pe_edit *edit, const char *name, const char *word)
{
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

void pe_edit_set_boolean(struct pe_edit *edit, const char *name, bool x)
{
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_BOOLEAN, .boolean = x});
}

void pe_edit_set_reals(struct pe_edit *edit, const char *name, const double *x, size_t n)
{
    double *copy = pe_edit_room(edit, n * sizeof *x);
    if (!copy)
        return;
    memcpy(copy, x, n * sizeof *x);
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = copy};
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_ARRAY, .array = list});
}

void pe_edit_remove(struct pe_edit *edit, const char *name)
{
    pe_edit_set(edit, name, (struct pe_value){.kind = PE_NULL});
}

/* The fields that give a sequence, and those that are used with some of them only. */
static const char *const sequence_fields[] = {"len",
                                              "offset",
                                              "positions",
                                              "positions_layout",
                                              "attention_mask",
                                              "padding",
                                              "pad_position",
                                              "grid",
                                              "lens",
                                              "cu_seqlens",
                                              "shard",
                                              "segments",
                                              "tokens",
                                              "q_len",
                                              "k_len",
                                              "q_positions",
                                              "k_positions",
                                              "q_offset",
                                              "order",
                                              "position_style",
                                              "spatial_merge_size",
                                              "tokens_per_second",
                                              "position_id_per_seconds",
                                              "seconds_per_chunk",
                                              "temporal_scale",
                                              "id_rules",
                                              "grid_coords",
                                              "coords",
                                              "ref_grid",
                                              "crop_end",
                                              "axis_scale",
                                              "axis_divisor",
                                              "axis_shift",
                                              NULL};

void pe_edit_remove_sequence(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    for (size_t i = 0; sequence_fields[i]; i++)
        for (size_t j = 0; j < d->belief.n_fields; j++)
            if (pe_same(d->belief.fields[j].name, sequence_fields[i]))
                pe_edit_remove(edit, sequence_fields[i]);
    for (size_t j = 0; j < edit->n_fields; j++)
        for (size_t i = 0; sequence_fields[i]; i++)
            if (pe_same(edit->fields[j].name, sequence_fields[i]))
                edit->fields[j].value.kind = PE_NULL;
}

/* ---- Values in use ---- */

static const struct pe_value *find_value(const struct pe_field *fields, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(fields[i].name, name, length) == 0 && fields[i].name[length] == '\0')
            return &fields[i].value;
    return NULL;
}

const struct pe_value *pe_edit_value(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name)
{
    size_t length = strcspn(name, ".");
    const struct pe_value *v = edit ? find_value(edit->fields, edit->n_fields, name, length) : NULL;
    if (!v)
        v = find_value(d->belief.fields, d->belief.n_fields, name, length);
    if (v && name[length] == '.')
        v = v->kind == PE_OBJECT
                ? find_value(v->object.fields, v->object.n, name + length + 1, strlen(name + length + 1))
                : NULL;
    return v && v->kind != PE_NULL ? v : NULL;
}

double pe_edit_real(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, double fallback)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    return !v ? fallback : v->kind == PE_REAL ? v->real : v->kind == PE_INTEGER ? (double)v->integer : fallback;
}

int64_t pe_edit_integer(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, int64_t fallback)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    return !v                                                                        ? fallback
           : v->kind == PE_INTEGER                                                   ? v->integer
           : v->kind == PE_REAL && v->real == floor(v->real) && fabs(v->real) < 1e15 ? (int64_t)v->real
                                                                                     : fallback;
}

bool pe_edit_has(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name)
{
    return pe_edit_value(d, edit, name) != NULL;
}

bool pe_edit_is_true(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, bool fallback)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    return v && v->kind == PE_BOOLEAN ? v->boolean : fallback;
}

bool pe_edit_is_word(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, const char *word)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    return v && v->kind == PE_STRING && pe_same(v->string, word);
}

/* ---- The request of an edit ---- */

/* Do two fields exclude each other? The belief's gives way to the edit's. */
static bool are_exclusive(const struct pe_param *a, const struct pe_param *b)
{
    return a && b && (pe_is_among(a->excludes, b->name) || pe_is_among(b->excludes, a->name));
}

static bool is_replaced(const struct pe_param *rows, const struct pe_field *field, const struct pe_edit *edit)
{
    const struct pe_param *row = edit->n_fields ? pe_param_find(rows, field->name) : NULL;
    for (size_t i = 0; i < edit->n_fields; i++) {
        const struct pe_field *own = &edit->fields[i];
        if (pe_same(own->name, field->name) ||
            (own->value.kind != PE_NULL && are_exclusive(row, pe_param_find(rows, own->name))))
            return true;
    }
    return false;
}

/* A mask of padding is the positions that it gives. */
static size_t put_padded(const struct pe_belief *b, bool is_counted, struct pe_field *fields, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!pe_is_among("len|offset", fields[i].name))
            fields[m++] = fields[i];
    struct pe_tensor t = {PE_F64, 1, {b->padding.n_batches * b->padding.n}, b->padded[is_counted]};
    fields[m++] = (struct pe_field){"positions", {.kind = PE_ARRAY, .array = t}};
    return m;
}

/* A field that only states how the tensor holds its rows is no field of a plan; positions for each row of the batch are
 * one list.
 */
static size_t for_plan(const struct pe_belief *b, struct pe_field *fields, size_t n)
{
    size_t m = 0;
    bool is_by_batch = false, is_padded = false, is_counted = false;
    for (size_t i = 0; i < n; i++) {
        is_by_batch |= pe_same(fields[i].name, "positions_layout") && !pe_same(fields[i].value.string, "axes");
        is_padded |= pe_same(fields[i].name, "attention_mask");
        is_counted |= pe_same(fields[i].name, "padding") && pe_same(fields[i].value.string, "counted");
        if (!pe_is_among("tensor_layout|positions_layout|attention_mask|padding|pad_position|query_scale|layer_type",
                         fields[i].name))
            fields[m++] = fields[i];
    }
    if (is_padded)
        return put_padded(b, is_counted, fields, m);
    for (size_t i = 0; is_by_batch && i < m; i++)
        if (pe_same(fields[i].name, "positions") && fields[i].value.array.rank > 1)
            fields[i].value = pe_flat_positions(&fields[i].value);
    return m;
}

size_t pe_edit_fields(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_field *fields)
{
    const struct pe_belief *b = &d->belief;
    const struct pe_param *rows = b->inheritance->scheme->info.params;
    size_t n = 0;
    for (size_t i = 0; i < b->n_fields; i++)
        if (edit->transforms.is_tiled && pe_same(b->fields[i].name, "k"))
            fields[n++] = (struct pe_field){"k", d->evidence.tiled_keys};
        else if (!is_replaced(rows, &b->fields[i], edit))
            fields[n++] = b->fields[i];
    for (size_t i = 0; i < edit->n_fields; i++)
        if (edit->fields[i].value.kind != PE_NULL && n < PE_FIELDS_MAX)
            fields[n++] = edit->fields[i];
    return d->evidence.kind->id == PE_OF_MAPS ? n : for_plan(b, fields, n);
}
