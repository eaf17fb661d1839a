/* The positional fields of a model's config, or keys of its file, and what each tool takes in their place. */
#include "core/dialects/dialects.h"

#include <stdio.h>
#include <string.h>

/* ---- Which fields ---- */

static const struct {
    const char *names, *path;
    const char *layer_type; /* NULL: of all layers */
    bool is_derived;
} meanings[] = {
    {"rope_theta|rotary_emb_base|global_rope_theta|rotary_base|rotary_embedding_base", "base", NULL, false},
    {"rope_local_base_freq|local_rope_theta|swa_rope_theta", "base", "sliding_attention", false},
    {"compress_rope_theta", "base", "compress", false},
    {"head_dim|global_head_dim|kv_channels", "head_dim", NULL, true},
    {"rotary_dim|qk_rope_head_dim", "rotary_dim", NULL, true},
    {"partial_rotary_factor|rotary_pct|rotary_percent|rotary_emb_fraction|rope_pct", "share", NULL, false},
    {"rope_type|type", "scaling.type", NULL, false},
    {"factor", "scaling.factor", NULL, true},
    {"original_max_position_embeddings", "scaling.original_max_position_embeddings", NULL, true},
    {"max_position_embeddings|n_positions|max_seq_len|seq_length|n_ctx", "length", NULL, false},
    {"beta_fast", "scaling.beta_fast", NULL, false},
    {"beta_slow", "scaling.beta_slow", NULL, false},
    {"truncate", "scaling.truncate", NULL, false},
    {"mscale", "scaling.mscale", NULL, false},
    {"mscale_all_dim", "scaling.mscale_all_dim", NULL, false},
    {"attention_factor|attn_factor", "attention_factor", NULL, true},
    {"low_freq_factor", "scaling.low_freq_factor", NULL, false},
    {"high_freq_factor", "scaling.high_freq_factor", NULL, false},
    {"short_factor", "scaling.short_factor", NULL, false},
    {"long_factor", "scaling.long_factor", NULL, false},
    {"mrope_section", "mrope_section", NULL, false},
    {"mrope_interleaved", "channels", NULL, false},
    {"rope_interleave|rotary_emb_interleaved|rope_interleaved", "layout", NULL, false},
    {"query_pre_attn_scalar|attention_multiplier|softmax_scale|scale_attn_weights", "softmax_scale", NULL, true},
    {"attn_logit_softcapping", "softcap", NULL, false},
    {"llama_4_scaling_beta", "query_scale.beta", NULL, false},
    {"attn_scale", "query_scale.beta", PE_HF_FULL, false}, /* Llama 4's layers without positions */
    {"floor_scale", "query_scale.original_max_position_embeddings", PE_HF_FULL, false},
};

enum { N_MEANINGS = sizeof meanings / sizeof *meanings };

struct walk {
    struct pe_dialect_field *out;
    size_t n;
};

static void add_fields(struct walk *walk, const struct pe_value *object, const char *at, const char *layer_type,
                       bool is_inside)
{
    for (size_t i = 0; i < object->object.n; i++) {
        const struct pe_field *field = &object->object.fields[i];
        for (size_t m = 0; m < N_MEANINGS && walk->n < PE_DIALECT_FIELDS_MAX; m++) {
            if (!pe_is_among(meanings[m].names, field->name) || field->value.kind == PE_NULL)
                continue;
            struct pe_dialect_field *found = &walk->out[walk->n++];
            *found = (struct pe_dialect_field){field, meanings[m].path, "", "", is_inside, meanings[m].is_derived};
            pe_pointer_join(found->pointer, sizeof found->pointer, at, field->name);
            snprintf(found->layer_type, sizeof found->layer_type, "%s",
                     meanings[m].layer_type ? meanings[m].layer_type : layer_type);
        }
        if (pe_is_among("rope_scaling|rope_parameters|attn_config", field->name) && field->value.kind == PE_OBJECT &&
            !is_inside) {
            char inner[PE_POINTER_MAX];
            pe_pointer_join(inner, sizeof inner, at, field->name);
            add_fields(walk, &field->value, inner, "", true);
        } else if (is_inside && !*layer_type && field->value.kind == PE_OBJECT) {
            char inner[PE_POINTER_MAX];
            pe_pointer_join(inner, sizeof inner, at, field->name);
            add_fields(walk, &field->value, inner, field->name, true);
        }
    }
}

size_t pe_dialect_fields(const struct pe_explain *ex, struct pe_dialect_field *out)
{
    struct walk walk = {out, 0};
    add_fields(&walk, ex->language.place.object, ex->language.place.at, "", false);
    return walk.n;
}

/* ---- What is taken ---- */

/* The kind of layers that a field is about: that of its name, else the first that turns, full attention before others.
 */
static size_t kind_of(const struct pe_explain *ex, const struct pe_dialect_field *field)
{
    size_t best = ex->n_text;
    for (size_t k = 0; k < ex->n_text; k++) {
        const char *name = ex->kinds[k].layer_type;
        bool is_full = pe_same(name, PE_HF_FULL);
        if (*field->layer_type && pe_same(name, field->layer_type))
            return k;
        if (ex->kinds[k].own.turn.n && (best == ex->n_text || is_full))
            best = k;
    }
    return best < ex->n_text ? best : 0;
}

static struct pe_value taken_of(const struct pe_explain *ex, const struct pe_dialect_field *field,
                                const struct pe_reading *reading)
{
    if (pe_same(field->path, "length"))
        return pe_integer(ex->length);
    struct pe_value value = pe_config_at(reading->config, field->path);
    if (value.kind == PE_NULL && pe_same(field->path, "scaling.type") && reading->turn.n)
        return pe_word("default");
    return value;
}

/* Of a program that reads a file: keys that its architecture does not read have no effect. */
static bool is_read_on(const struct pe_dialect_reader *tool, const struct pe_dialect_field *field)
{
    const struct pe_gguf_architecture *row = tool->architecture ? pe_gguf_architecture_find(tool->architecture) : NULL;
    if (!tool->reader->architecture)
        return true;
    if (pe_is_among("scaling.beta_fast|scaling.beta_slow", field->path))
        return row && row->beta_fast > 0;
    if (pe_same("scaling.mscale_all_dim", field->path))
        return row && row->log_multiplier > 0;
    if (pe_same("softmax_scale", field->path))
        return row && row->scale == PE_GGUF_SCALE_BY_KEY;
    if (pe_same("softcap", field->path))
        return row && row->cap > 0;
    return row && !pe_same("scaling.mscale", field->path);
}

static bool reads(const struct pe_dialect_reader *tool, const struct pe_dialect_field *field)
{
    if (*tool->refused)
        return false;
    return pe_same(field->path, "length") || (pe_tool_reads(tool, field->field) && is_read_on(tool, field));
}

/* Another field for the same number that the tool reads; NULL: none. */
static const struct pe_dialect_field *other_of(const struct pe_dialect_reader *tool,
                                               const struct pe_dialect_field *fields, size_t n,
                                               const struct pe_dialect_field *field)
{
    for (size_t i = 0; i < n; i++)
        if (&fields[i] != field && pe_same(fields[i].path, field->path) &&
            pe_same(fields[i].layer_type, field->layer_type) && reads(tool, &fields[i]))
            return &fields[i];
    return NULL;
}

static void put_tool(const struct pe_explain *ex, struct pe_node *node, const struct pe_dialect_reader *tool,
                     const struct pe_dialect_field *fields, size_t n, const struct pe_dialect_field *field)
{
    struct pe_node *one = pe_put_object(node, tool->reader->name);
    bool is_read = reads(tool, field);
    struct pe_value taken = taken_of(ex, field, &tool->readings[kind_of(ex, field)]);
    const struct pe_dialect_field *other = is_read ? NULL : other_of(tool, fields, n, field);
    pe_put_boolean(one, "reads", is_read);
    pe_put_value(one, "takes", &taken);
    pe_put_string(one, "from", is_read ? "field" : other ? "other" : field->is_derived ? "derived" : "default");
    if (other)
        pe_put_string(one, "other", other->pointer);
}

static void put_fields_of_config(const struct pe_explain *ex, struct pe_node *list,
                                 const struct pe_dialect_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pe_node *node = pe_put_object(list, NULL);
        pe_put_string(node, "pointer", fields[i].pointer);
        pe_put_value(node, "value", &fields[i].field->value);
        struct pe_node *tools = pe_put_object(node, "readers");
        for (size_t t = 0; t < ex->n_readers; t++)
            put_tool(ex, tools, &ex->readers[t], fields, n, &fields[i]);
    }
}

/* ---- Keys of a file ---- */

/* The keys without effect that the report of a kind names. */
static bool is_ignored(const struct pe_value *report, const char *key)
{
    const struct pe_value *list = pe_stated(report, "ignored");
    for (size_t i = 0; list && list->kind == PE_LIST && i < list->list.n; i++)
        if (pe_same(list->list.items[i].string, key))
            return true;
    return false;
}

static void put_key(struct pe_node *list, const struct pe_field *key, bool is_read)
{
    char pointer[PE_POINTER_MAX];
    struct pe_node *node = pe_put_object(list, NULL);
    pe_pointer_join(pointer, sizeof pointer, "/gguf", key->name);
    pe_put_string(node, "pointer", pointer);
    pe_put_value(node, "value", &key->value);
    struct pe_node *one = pe_put_object(pe_put_object(node, "readers"), pe_tool_of_files()->name);
    pe_put_boolean(one, "reads", is_read);
    pe_put_value(one, "takes", is_read ? &key->value : NULL);
    pe_put_string(one, "from", is_read ? "field" : "default");
    if (!is_read)
        pe_put_string(one, "why", pe_text("this architecture does not read it"));
}

static void put_keys(const struct pe_explain *ex, struct pe_node *list)
{
    for (size_t i = 0; i < ex->gguf->object.n; i++) {
        const struct pe_field *key = &ex->gguf->object.fields[i];
        const char *dot = strchr(key->name, '.');
        bool is_known = dot && strncmp(key->name, "general.", strlen("general.")) != 0 &&
                        (pe_gguf_key_find(dot + 1) || strncmp(dot + 1, "rope.", strlen("rope.")) == 0);
        if (is_known && strlen(key->name) < PE_GGUF_IGNORED_BYTES)
            put_key(list, key, ex->report && !is_ignored(ex->report, key->name));
    }
}

const struct pe_member pe_dialect_field_members[] = {
    {.name = "pointer", .types = "string", .summary = "to the field"},
    {.name = "value", .summary = "as it is there"},
    {.name = "readers",
     .types = "object",
     .summary = "by tool: reads, takes (the number that it computes with), from: field, other, default or derived; "
                "other: the pointer to that field; why"},
    {.name = NULL},
};

enum pe_status pe_dialect_put_fields(struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "fields");
    if (ex->gguf)
        put_keys(ex, list);
    if (!ex->hf)
        return PE_OK;
    struct pe_dialect_field *fields = pe_values_room(ex->values, PE_DIALECT_FIELDS_MAX * sizeof *fields);
    if (!fields)
        return pe_no_memory(ex->err);
    put_fields_of_config(ex, list, fields, pe_dialect_fields(ex, fields));
    return PE_OK;
}
