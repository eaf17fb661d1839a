/* Looks up values in a config, under any of a key's names, with the right type or an error that points to the key.
 * Also appends to the resulting fields. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

/* A limit for numbers that the rules here multiply or add; no model comes near it. */
static const double integer_max = 1099511627776.0; /* 2^40 */

enum { NAME_MAX_BYTES = 48 };

static const struct pe_field *find_one(const struct pe_field *fields, size_t n_fields, const char *name, size_t n)
{
    for (size_t i = 0; i < n_fields; i++)
        if (strncmp(fields[i].name, name, n) == 0 && fields[i].name[n] == '\0')
            return &fields[i];
    return NULL;
}

bool pe_hf_next_name(const char **names, const char **name, size_t *n)
{
    if (!*names)
        return false;
    *name = *names;
    *n = strcspn(*names, "|");
    *names = (*name)[*n] ? *name + *n + 1 : NULL;
    return true;
}

/* Fields that only some types' rotary code reads: those whose row has a value for them, or names them in `reads`. */
static const char seldom[] =
    "rotary_dim|kv_channels|attention_head_dim|global_head_dim|qk_rope_head_dim|qk_nope_head_dim|rope_interleave|"
    "rope_interleaved|rotary_emb_interleaved|rotary_emb_base|rotary_base|rotary_embedding_base|global_rope_theta|theta|"
    "rope_local_base_freq|local_rope_theta|local_partial_rotary_factor|rope_ratio|attn_config|mrope_section|rope_pct|"
    "n_embed";

bool pe_hf_has_default(const struct pe_hf_model *row, const char *name)
{
    return find_one(row->fields.fields, row->fields.n, name, strlen(name)) != NULL;
}

static bool is_unread(const struct pe_hf_place *place, const char *name, size_t n)
{
    char one[NAME_MAX_BYTES];
    const struct pe_hf_model *row = place->row;
    snprintf(one, sizeof one, "%.*s", (int)n, name);
    if (!row || pe_is_among(row->ignores, one))
        return row != NULL;
    bool is_rotary = row->kind == PE_HF_ROPE || row->kind == PE_HF_FALCON;
    return is_rotary && pe_is_among(seldom, one) && !pe_hf_has_default(row, one) && !pe_is_among(row->reads, one);
}

/* The object's own field; NULL if it has none of names, or null. */
static const struct pe_field *find_own(const struct pe_hf_place *place, const char *names, bool *is_null)
{
    const char *name;
    size_t n;
    while (place->object && pe_hf_next_name(&names, &name, &n)) {
        if (is_unread(place, name, n))
            continue;
        const struct pe_field *field = find_one(place->object->object.fields, place->object->object.n, name, n);
        if (field && field->value.kind != PE_NULL)
            return field;
        *is_null |= field != NULL;
    }
    return NULL;
}

static const struct pe_field *find_default(const struct pe_hf_place *place, const char *names)
{
    const char *name;
    size_t n;
    while (place->defaults && pe_hf_next_name(&names, &name, &n)) {
        const struct pe_field *field = find_one(place->defaults->fields, place->defaults->n, name, n);
        if (field) {
            /* A field that the class has and the config too was not read of the config: it is among the ignored. */
            const struct pe_field *own =
                place->object ? find_one(place->object->object.fields, place->object->object.n, name, n) : NULL;
            if (!own || own->value.kind == PE_NULL)
                pe_hf_mark_default(place->marks, field->name, field->value);
            return field->value.kind == PE_NULL ? NULL : field;
        }
    }
    return NULL;
}

const struct pe_field *pe_hf_find(const struct pe_hf_place *place, const char *names)
{
    bool is_null = false;
    const struct pe_field *found = find_own(place, names, &is_null);
    if (!found && (!is_null || (place->row && place->row->is_class))) /* diffusers' code needs a number */
        return find_default(place, names);
    pe_hf_mark_read(place->marks, found);
    return found;
}

bool pe_hf_says(const struct pe_hf_place *place, const char *names)
{
    bool is_null = false;
    return find_own(place, names, &is_null) != NULL;
}

bool pe_hf_holds(const struct pe_hf_place *place, const char *condition)
{
    char name[NAME_MAX_BYTES];
    size_t n = strcspn(condition, "=|"), n_word = strcspn(condition, "|");
    snprintf(name, sizeof name, "%.*s", (int)n, condition);
    const struct pe_field *field = pe_hf_find(place, name);
    if (n == n_word)
        return field != NULL;
    const char *is = !field                            ? ""
                     : field->value.kind == PE_STRING  ? field->value.string
                     : field->value.kind != PE_BOOLEAN ? ""
                     : field->value.boolean            ? "true"
                                                       : "false";
    return strlen(is) == n_word - n - 1 && strncmp(is, condition + n + 1, n_word - n - 1) == 0;
}

struct pe_reals pe_hf_numbers(const struct pe_hf_place *place, const char *name)
{
    const struct pe_field *field = pe_hf_find(place, name);
    bool fine = field && field->value.kind == PE_ARRAY && field->value.array.rank == 1;
    return fine ? (struct pe_reals){field->value.array, field->value.array.shape[0]} : (struct pe_reals){.n = 0};
}

int64_t pe_hf_count(const struct pe_hf_place *place, const char *names)
{
    const struct pe_field *field = pe_hf_find(place, names);
    bool fine = field && field->value.kind == PE_INTEGER && field->value.integer > 0;
    return fine && field->value.integer <= PE_HF_LAYERS_MAX ? field->value.integer : 0;
}

enum pe_status pe_hf_wrong(const struct pe_hf_place *place, const struct pe_field *field, const char *allowed,
                           struct pe_failure *err)
{
    char found[64];
    pe_value_show(&field->value, found, sizeof found);
    return pe_fail_at(err, place->at, field->name, "%.64s is %s; allowed: %s", field->name, found, pe_text(allowed));
}

enum pe_status pe_hf_wrong_list(const struct pe_hf_place *place, const struct pe_field *field, const char *allowed,
                                struct pe_failure *err)
{
    char found[64], index[64];
    const struct pe_value *odd;
    if (!pe_value_find_odd(&field->value, index, sizeof index, &odd))
        return pe_hf_wrong(place, field, allowed, err);
    pe_value_show(odd, found, sizeof found);
    return pe_fail_at(err, place->at, field->name, "%.64s has %s at index %s; allowed: %s", field->name, found, index,
                      pe_text(allowed));
}

enum pe_status pe_hf_wrong_value(const struct pe_hf_place *place, const char *names, const char *allowed,
                                 struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    char first[NAME_MAX_BYTES];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(names, "|"), names);
    const struct pe_field null = {first, {.kind = PE_NULL}};
    return pe_hf_wrong(place, field ? field : &null, allowed, err);
}

enum pe_status pe_hf_number(const struct pe_hf_place *place, const char *names, double *out, struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    double x = field ? pe_value_number(&field->value) : *out;
    if (field && !isfinite(x))
        return pe_hf_wrong(place, field, "a number", err);
    *out = x;
    return PE_OK;
}

static enum pe_status read_integer(const struct pe_hf_place *place, const char *names, bool any_sign, int64_t *out,
                                   struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    if (!field)
        return PE_OK;
    double x = pe_value_number(&field->value);
    if (!isfinite(x) || x != floor(x) || fabs(x) > integer_max || (x < 0 && !any_sign))
        return pe_hf_wrong(place, field, any_sign ? "an integer from -2^40 to 2^40" : "an integer from 0 to 2^40", err);
    *out = (int64_t)x;
    return PE_OK;
}

enum pe_status pe_hf_integer(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_failure *err)
{
    return read_integer(place, names, false, out, err);
}

enum pe_status pe_hf_signed(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_failure *err)
{
    return read_integer(place, names, true, out, err);
}

enum pe_status pe_hf_flag(const struct pe_hf_place *place, const char *names, bool *out, struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    if (field && field->value.kind != PE_BOOLEAN)
        return pe_hf_wrong(place, field, "true or false", err);
    if (field)
        *out = field->value.boolean;
    return PE_OK;
}

enum pe_status pe_hf_word(const struct pe_hf_place *place, const char *names, const char **out, struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    if (field && field->value.kind != PE_STRING)
        return pe_hf_wrong(place, field, "a word", err);
    if (field)
        *out = field->value.string;
    return PE_OK;
}

enum pe_status pe_hf_object(const struct pe_hf_place *place, const char *names, struct pe_hf_place *inner,
                            struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    struct pe_hf_place found = {.object = NULL, .marks = place->marks}; /* copied first, because inner may be place */
    if (field && field->value.kind != PE_OBJECT)
        return pe_hf_wrong(place, field, "an object", err);
    if (field) {
        found.object = &field->value;
        pe_pointer_join(found.at, sizeof found.at, place->at, field->name);
        if (pe_hf_says(place, names)) /* the config's, and not the class's */
            pe_hf_mark_seen(place->marks, found.object, found.at);
    }
    *inner = found;
    return PE_OK;
}

void pe_hf_spell(const char *names, char *out, size_t room)
{
    size_t used = 0;
    for (; *names && used + 3 < room; names++) {
        out[used++] = *names == '|' ? ',' : *names;
        if (*names == '|')
            out[used++] = ' ';
    }
    out[used] = '\0';
}

enum pe_status pe_hf_needed(const struct pe_hf_place *place, const char *names, const char *what, int64_t *out,
                            struct pe_failure *err)
{
    const struct pe_field *field = pe_hf_find(place, names);
    char spelled[160];
    pe_hf_spell(names, spelled, sizeof spelled);
    if (!field && !strchr(names, '|'))
        return pe_fail_at(err, place->at, names, "%s is missing; looked for %s", pe_text(what), spelled);
    if (!field)
        return pe_fail(err, place->at, "%s is missing; looked for %s", pe_text(what), spelled);
    if (pe_hf_integer(place, names, out, err))
        return err->status;
    return *out ? PE_OK : pe_hf_wrong(place, field, "an integer from 1 to 2^40", err);
}

enum pe_status pe_hf_divide_width(const struct pe_hf_reader *r, int64_t *head_dim)
{
    int64_t width = 0, heads = 0;
    char found[PE_DETAIL_MAX];
    if (pe_hf_needed(&r->config, PE_HF_WIDTH, "width", &width, r->err) ||
        pe_hf_needed(&r->config, PE_HF_HEADS, "number of heads", &heads, r->err)) {
        snprintf(found, sizeof found, "%.300s", r->err->detail);
        return pe_fail(r->err, r->err->pointer, "head_dim is missing, and to divide the width by the heads, %s", found);
    }
    if (width % heads)
        return pe_fail(r->err, r->config.at, "head_dim is missing, and %lld channels do not divide into %lld heads",
                       (long long)width, (long long)heads);
    *head_dim = width / heads;
    return PE_OK;
}

void pe_hf_put(struct pe_model_fields *out, const char *name, struct pe_value value)
{
    out->fields[out->n++] = (struct pe_field){.name = name, .value = value};
}

void pe_hf_put_word(struct pe_model_fields *out, const char *name, const char *word)
{
    pe_hf_put(out, name, pe_word(word));
}

void pe_hf_put_flag(struct pe_model_fields *out, const char *name, bool flag) { pe_hf_put(out, name, pe_flag(flag)); }

void pe_hf_put_integer(struct pe_model_fields *out, const char *name, int64_t x)
{
    pe_hf_put(out, name, pe_integer(x));
}

void pe_hf_put_number(struct pe_model_fields *out, const char *name, double x) { pe_hf_put(out, name, pe_real(x)); }

void pe_hf_put_list(struct pe_model_fields *out, const char *name, const double *numbers, size_t n)
{
    struct pe_tensor array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = numbers};
    pe_hf_put(out, name, (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = array});
}

void pe_hf_give(struct pe_hf_reader *r)
{
    for (size_t i = 0; i < r->model->gives.n; i++) {
        const struct pe_field *f = &r->model->gives.fields[i];
        pe_hf_put(r->out, f->name, f->value);
        if (r->model->chosen && pe_is_among(r->model->chosen, f->name))
            pe_hf_mark_default(r->config.marks, f->name, f->value);
    }
}

enum pe_status pe_hf_put_heads(struct pe_hf_reader *r, const char *head_dim_names)
{
    int64_t heads = 0, head_dim = 0;
    if (pe_hf_needed(&r->config, PE_HF_HEADS, "num_heads", &heads, r->err))
        return r->err->status;
    bool is_stated = head_dim_names && pe_hf_find(&r->config, head_dim_names);
    if (is_stated ? pe_hf_needed(&r->config, head_dim_names, "head_dim", &head_dim, r->err)
                  : pe_hf_divide_width(r, &head_dim))
        return r->err->status;
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_integer(r->out, "head_dim", head_dim);
    return PE_OK;
}

/* ---- Marks of what is read ---- */

void pe_hf_mark_read(struct pe_hf_marks *marks, const struct pe_field *field)
{
    if (!marks || !field || marks->no_memory)
        return;
    if (marks->n_read == marks->room) {
        size_t room = marks->room ? 2 * marks->room : 64;
        const struct pe_field **longer = realloc(marks->read, room * sizeof *longer);
        marks->no_memory = !longer;
        if (!longer)
            return;
        marks->read = longer;
        marks->room = room;
    }
    marks->read[marks->n_read++] = field;
}

void pe_hf_mark_seen(struct pe_hf_marks *marks, const struct pe_value *object, const char *at)
{
    if (!marks || marks->n_seen == PE_HF_OBJECTS_MAX)
        return;
    for (size_t i = 0; i < marks->n_seen; i++)
        if (marks->seen[i].object == object)
            return;
    char *pointer = marks->pointers[marks->n_seen];
    snprintf(pointer, PE_POINTER_MAX, "%s", at);
    marks->seen[marks->n_seen++] = (struct pe_hf_seen){object, pointer};
}

void pe_hf_mark_default(struct pe_hf_marks *marks, const char *name, struct pe_value value)
{
    if (!marks || marks->n_defaults == PE_HF_DEFAULTS_MAX)
        return;
    for (size_t i = 0; i < marks->n_defaults; i++)
        if (strcmp(marks->defaults[i].name, name) == 0)
            return;
    marks->defaults[marks->n_defaults++] = (struct pe_field){name, value};
}
