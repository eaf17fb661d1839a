/* Reads the keys of a GGUF file as llama.cpp does: which kind of layers is meant, its fields, and what an answer
 * reports of the reading.
 *
 * A GGUF file states positions by a few keys with the architecture's name in front, and the program decides the rest:
 * the pairing of channels, which layers slide and by which base, which keys are read at all. So a key is never guessed:
 * one that this architecture does not read is reported, and has no effect. */
#include "core/models/gguf/gguf.h"
#include "core/params.h"
#include "core/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Positions that are no rotation ---- */

static enum pe_status put_alibi(struct pe_gguf_reader *r)
{
    int64_t heads = 0;
    double bias_max = 8;
    if (!r->row->alibi_is_8 && !r->row->alibi_of_40_layers) {
        bias_max = 0;
        if (pe_gguf_real(r, PE_GGUF_BIAS_MAX, &bias_max))
            return r->err->status;
        if (!pe_gguf_has(r, PE_GGUF_BIAS_MAX))
            pe_gguf_default(r, PE_GGUF_BIAS_MAX, pe_real(0));
    }
    if (bias_max == 0) {
        pe_hf_put_word(r->out, "scheme", "none");
        return PE_OK;
    }
    if (pe_gguf_size(r, PE_GGUF_HEADS, "each head has a slope of its own", &heads))
        return r->err->status;
    pe_hf_put_word(r->out, "scheme", "alibi");
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_word(r->out, "form", "symmetric");
    if (bias_max != 8)
        pe_hf_put_number(r->out, "bias_max", bias_max);
    return PE_OK;
}

/* No key states the longest distance. */
static enum pe_status put_buckets(struct pe_gguf_reader *r, bool is_decoder)
{
    int64_t heads = 0, buckets = 0;
    if (pe_gguf_size(r, PE_GGUF_HEADS, "each head has a column of the table", &heads) ||
        pe_gguf_size(r, PE_GGUF_BUCKETS, "this architecture needs it", &buckets))
        return r->err->status;
    pe_hf_put_word(r->out, "scheme", "t5");
    pe_hf_put_integer(r->out, "num_heads", heads);
    pe_hf_put_integer(r->out, "num_buckets", buckets);
    pe_hf_put_integer(r->out, "max_distance", 128);
    pe_hf_put_flag(r->out, "bidirectional", !is_decoder);
    return PE_OK;
}

static enum pe_status put_table(struct pe_gguf_reader *r)
{
    static const enum pe_gguf_key_id ids[] = {PE_GGUF_CONTEXT, PE_GGUF_EMBEDDING};
    static const char *const names[] = {"rows", "dim"};
    pe_hf_put_word(r->out, "scheme", "learned");
    for (size_t i = 0; i < 2; i++) {
        int64_t x = 0;
        if (pe_gguf_size(r, ids[i], "it is a size of the table of positions", &x))
            return r->err->status;
        pe_hf_put_integer(r->out, names[i], x);
    }
    return PE_OK;
}

/* ---- One kind ---- */

static enum pe_status is_finetuned(struct pe_gguf_reader *r, bool *finetuned)
{
    *finetuned = true;
    return r->row->needs_finetuned ? pe_gguf_flag(r, PE_GGUF_FINETUNED, finetuned) : PE_OK;
}

static enum pe_status read_positions(struct pe_gguf_reader *r, unsigned kind)
{
    bool turns;
    if (is_finetuned(r, &turns))
        return r->err->status;
    if (!turns || kind & PE_GGUF_STILL || r->row->kind == PE_GGUF_NONE) {
        pe_hf_put_word(r->out, "scheme", "none");
        return PE_OK;
    }
    switch (r->row->kind) {
    case PE_GGUF_ALIBI: return put_alibi(r);
    case PE_GGUF_T5: return put_buckets(r, kind & PE_GGUF_SLIDING);
    case PE_GGUF_LEARNED: return put_table(r);
    case PE_GGUF_ROPE:
    case PE_GGUF_NONE: break;
    }
    return r->row->alibi_of_40_layers && r->layers.n == 40 ? put_alibi(r) : pe_gguf_rope(r, kind);
}

static enum pe_status read_kind(struct pe_gguf_reader *r, unsigned kind)
{
    pe_model_fields_clear(r->out);
    return read_positions(r, kind) ? r->err->status : pe_gguf_scores(r, kind);
}

/* ---- Which kind ---- */

static enum pe_status read_kind_of(void *reader, size_t k, struct pe_model_fields *out)
{
    struct pe_gguf_reader *r = reader;
    struct pe_model_fields *first = r->out;
    r->out = out;
    enum pe_status status = read_kind(r, r->kinds[k]);
    r->out = first;
    return status;
}

static enum pe_status choose_kind(struct pe_gguf_reader *r, const char *named, size_t *k)
{
    const struct pe_hf_layers *layers = &r->layers;
    *k = 0;
    for (size_t i = 0; i < layers->n_kinds; i++)
        if (pe_same(layers->kinds[i], named ? named : pe_hf_default_kind(layers)))
            *k = i;
    bool is_one = !named || pe_hf_has_kind(layers, named);
    if (is_one && (named || layers->n_kinds == 1))
        return PE_OK;
    return pe_hf_compare_kinds(layers, r->architecture, is_one ? NULL : named, read_kind_of, r, r->out, r->err);
}

static enum pe_status read_all(struct pe_gguf_reader *r, const struct pe_value *object, const char *layer_type,
                               size_t *k)
{
    if (pe_gguf_open(r, object) || pe_gguf_list_layers(r) || choose_kind(r, layer_type, k))
        return r->err->status;
    memset(r->was_read, 0, sizeof r->was_read); /* of this kind alone */
    r->n_defaults = 0;
    return pe_gguf_list_layers(r) ? r->err->status : read_kind(r, r->kinds[*k]);
}

/* Marks the keys that other kinds read: they have an effect on the model. The kind itself has been read. */
static void mark_other_kinds(struct pe_gguf_reader *r, size_t k)
{
    struct pe_failure ignored, *err = r->err;
    size_t n = r->n_defaults;
    r->err = &ignored;
    for (size_t i = 0; i < r->layers.n_kinds; i++)
        if (i != k)
            (void)read_kind(r, r->kinds[i]);
    r->n_defaults = n;
    r->err = err;
}

static struct pe_gguf_reader *reader_new(struct pe_model_fields *out, struct pe_failure *err)
{
    struct pe_gguf_reader *r = calloc(1, sizeof *r);
    if (r) {
        r->out = out;
        r->err = err;
        pe_model_fields_clear(out);
    }
    return r;
}

enum pe_status pe_gguf_read(const struct pe_value *object, const char *layer_type, struct pe_model_fields *out,
                            struct pe_failure *err)
{
    size_t k;
    struct pe_gguf_reader *r = reader_new(out, err);
    enum pe_status status = r ? read_all(r, object, layer_type, &k) : pe_no_memory(err);
    free(r);
    return status;
}

bool pe_gguf_is_permuted(const struct pe_value *object)
{
    const struct pe_value *name = pe_stated(object, "general.architecture");
    const struct pe_gguf_architecture *row =
        name && name->kind == PE_STRING ? pe_gguf_architecture_find(name->string) : NULL;
    return row && row->is_permuted;
}

enum pe_status pe_gguf_outline(const struct pe_value *object, struct pe_gguf_outline *out, struct pe_failure *err)
{
    struct pe_model_fields *fields = malloc(sizeof *fields);
    struct pe_gguf_reader *r = fields ? reader_new(fields, err) : NULL;
    enum pe_status status = r ? pe_gguf_open(r, object) : pe_no_memory(err);
    if (!status)
        status = pe_gguf_list_layers(r);
    if (!status) {
        int64_t length = 0;
        status = pe_gguf_count(r, PE_GGUF_CONTEXT, &length);
        *out = (struct pe_gguf_outline){r->architecture, r->row, length, r->layers};
    }
    free(r);
    free(fields);
    return status;
}

/* ---- What an answer reports of it ---- */

/* A field, or one of the object scaling. */
static void point(const struct pe_gguf_reader *r, const char *field, char pointer[PE_POINTER_MAX])
{
    static const char *const lists[PE_GGUF_TENSORS] = {"divisors", "long_factor", "short_factor"};
    char inside[64];
    snprintf(inside, sizeof inside, "scaling.%.48s", field);
    for (size_t t = 0; t < PE_GGUF_TENSORS; t++)
        if (pe_same(field, lists[t])) {
            pe_pointer_join(pointer, PE_POINTER_MAX, "/gguf/tensors", pe_gguf_tensor_names[t]);
            return;
        }
    for (enum pe_gguf_key_id id = 0; id < PE_GGUF_N_KEYS; id++) {
        const char *fields = pe_gguf_key_at(id)->fields;
        if (pe_gguf_has(r, id) && (pe_is_among(fields, field) || pe_is_among(fields, inside))) {
            pe_gguf_pointer(r, id, pointer);
            return;
        }
    }
}

void pe_gguf_point(const struct pe_value *object, const char *field, char *pointer)
{
    struct pe_failure err;
    struct pe_model_fields *out = malloc(sizeof *out);
    struct pe_gguf_reader *r = out ? reader_new(out, &err) : NULL;
    if (r && !pe_gguf_open(r, object))
        point(r, field, pointer);
    free(r);
    free(out);
}

/* Is it about positions, so that a reader of the answer may have relied on it? */
static bool is_positional(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot && strncmp(key, "general.", 8) != 0 && (strncmp(dot + 1, "rope.", 5) == 0 || pe_gguf_key_find(dot + 1));
}

static bool has_effect(const struct pe_gguf_reader *r, const struct pe_field *field)
{
    for (size_t k = 0; k < PE_GGUF_N_KEYS; k++)
        if (r->keys[k] == field)
            return r->was_read[k] || k == PE_GGUF_CONTEXT || k == PE_GGUF_BLOCK_COUNT || k == PE_GGUF_EMBEDDING ||
                   k == PE_GGUF_HEADS;
    return false;
}

static void put_ignored(struct pe_node *list, const struct pe_gguf_reader *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->object->object.n && n < PE_GGUF_IGNORED_MAX; i++) {
        const struct pe_field *field = &r->object->object.fields[i];
        if (!is_positional(field->name) || has_effect(r, field) || strlen(field->name) >= PE_GGUF_IGNORED_BYTES)
            continue;
        pe_put_string(list, NULL, field->name);
        n++;
    }
}

static void put_report(struct pe_node *root, const struct pe_gguf_reader *r, const char *kind)
{
    pe_put_string(root, "architecture", r->architecture);
    pe_put_string(root, "certainty", r->row->certainty ? r->row->certainty : "code");
    pe_hf_put_layers(root, &r->layers, kind);
    pe_put_string(root, "rows", pe_rows_name(r->row->is_permuted));
    put_ignored(pe_put_list(root, "ignored"), r);
    struct pe_node *defaults = pe_put_object(root, "defaults");
    for (size_t i = 0; i < r->n_defaults; i++)
        pe_put_value(defaults, r->default_names[i], &r->defaults[i].value);
    pe_put_string(root, "source", pe_gguf_source);
}

/* The reader has names and values of the report. */
enum pe_status pe_gguf_report(const struct pe_request *request, const struct pe_value *gguf, struct pe_values *values,
                              struct pe_failure *err)
{
    const struct pe_value *named = pe_field_find(request->fields, request->n_fields, "layer_type");
    struct pe_gguf_reader *r = pe_values_room(values, sizeof *r);
    struct pe_model_fields *fields = pe_values_room(values, sizeof *fields);
    size_t k = 0;
    if (!r || !fields)
        return pe_no_memory(err);
    *r = (struct pe_gguf_reader){.out = fields, .err = err};
    pe_model_fields_clear(fields);
    if (read_all(r, gguf, named && named->kind == PE_STRING ? named->string : NULL, &k))
        return err->status;
    const struct pe_model_scores scores = fields->scores; /* of this kind */
    mark_other_kinds(r, k);
    if (request->operation == PE_ATTEND)
        pe_model_put_scores(&scores, pe_values_root(values));
    put_report(pe_values_root(values), r, r->layers.kinds[k]);
    return PE_OK;
}
