/* YAML of trainers, read by libyaml: its keys about positions, in the words of the tool that has them.
 *
 *     base_model: NousResearch/Meta-Llama-3-8B         axolotl, and others that load a config.json: its fields
 *     overrides_of_model_config: {rope_theta: 1000000}
 *     model: {rotary_base: 500000, kv_channels: 128}   NeMo and Megatron-LM: its arguments, with underscores
 *     model: {_component_: torchtune.models.llama3.llama3, rope_base: 500000}
 *
 * A document becomes JSON first, with its aliases put in their places, which the limit of the text bounds. */
#include "api/inputs/pasted/pasted.h"

#include <jansson.h>
#include <stdio.h>
#include <strings.h>
#include <yaml.h>

enum { DEPTH_MAX = 24, YAML_MAX = 65536 }; /* bytes of the text: libyaml takes long for some longer ones */

/* ---- A document as JSON ---- */

static bool is_word(const char *text, size_t n, const char *words)
{
    for (size_t length; *words; words += length + (words[length] == '|')) {
        length = strcspn(words, "|");
        if (n == length && strncasecmp(text, words, n) == 0)
            return true;
    }
    return false;
}

/* Plain scalars have types, as YAML 1.1 has them; 500_000 is a number. */
static void put_plain(struct api_text *json, const char *text, size_t n)
{
    char number[40];
    size_t length = 0;
    for (size_t i = 0; i < n && length < sizeof number - 1; i++)
        if (text[i] != '_' || i == 0)
            number[length++] = text[i];
    number[length] = '\0';
    bool is_plus = *number == '+', is_point = length > 1 && number[length - 1] == '.';
    if (is_point) /* 1. is a number, too */
        length--;
    if (!n || is_word(text, n, "~|null"))
        api_text_put(json, "null");
    else if (is_word(text, n, "true|yes|on"))
        api_text_put(json, "true");
    else if (is_word(text, n, "false|no|off"))
        api_text_put(json, "false");
    else if (n < sizeof number && api_is_json_number(number + is_plus, length - is_plus))
        api_text_add(json, number + is_plus, length - is_plus);
    else
        api_text_string_n(json, text, n);
}

static void put_node(struct api_text *json, yaml_document_t *document, int index, unsigned depth);

static void put_scalar(struct api_text *json, const yaml_node_t *node, bool is_key)
{
    const char *text = (const char *)node->data.scalar.value;
    size_t n = node->data.scalar.length;
    if (is_key || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        api_text_string_n(json, text, n);
    else
        put_plain(json, text, n);
}

static void put_mapping(struct api_text *json, yaml_document_t *document, const yaml_node_t *node, unsigned depth)
{
    size_t n = 0;
    api_text_put(json, "{");
    const yaml_node_pair_t *end = node->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < end && !json->state; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        if (key->type != YAML_SCALAR_NODE)
            continue;
        api_text_put(json, n++ ? "," : "");
        put_scalar(json, key, true);
        api_text_put(json, ":");
        put_node(json, document, pair->value, depth + 1);
    }
    api_text_put(json, "}");
}

static void put_node(struct api_text *json, yaml_document_t *document, int index, unsigned depth)
{
    const yaml_node_t *node = yaml_document_get_node(document, index);
    if (!node || depth > DEPTH_MAX || json->state) {
        api_text_put(json, "null");
        return;
    }
    switch (node->type) {
    case YAML_SCALAR_NODE: put_scalar(json, node, false); break;
    case YAML_MAPPING_NODE: put_mapping(json, document, node, depth); break;
    case YAML_SEQUENCE_NODE:
        api_text_put(json, "[");
        for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
            api_text_put(json, item > node->data.sequence.items.start ? "," : "");
            put_node(json, document, *item, depth + 1);
        }
        api_text_put(json, "]");
        break;
    case YAML_NO_NODE: api_text_put(json, "null"); break;
    }
}

/* libyaml takes the square of the depth. Brackets in strings count, too. */
static bool is_deep(const char *text)
{
    int depth = 0;
    for (; *text && depth <= 4 * DEPTH_MAX; text++)
        depth += strchr("[{", *text) ? 1 : strchr("]}", *text) && depth > 0 ? -1 : 0;
    return depth > 4 * DEPTH_MAX;
}

/* The first document; false: it is none, with the reason and its line in *error. */
static bool convert(const char *text, struct api_text *json, yaml_parser_t *error)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser)) {
        error->error = YAML_MEMORY_ERROR;
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    bool fine = yaml_parser_load(&parser, &document);
    *error = parser; /* its problem is a constant text */
    if (fine) {
        if (yaml_document_get_root_node(&document))
            put_node(json, &document, 1, 0);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return fine;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-.", c);
}

/* A line "key: value". */
bool pasted_yaml_looks_so(const char *text)
{
    const char *line;
    size_t n;
    while (pasted_line(&text, &line, &n)) {
        size_t name = 0;
        while (name < n && line[name] && is_of_name(line[name]))
            name++;
        if (name > 0 && name < n && line[name] == ':' && (name + 1 == n || line[name + 1] == ' '))
            return true;
    }
    return false;
}

/* ---- Keys about positions ---- */

enum family { NONE, CONFIG, MEGATRON, TORCHTUNE };

struct said {
    struct pasting *p;
    const json_t *config[4], *rope_base; /* members of CONFIG */
    const json_t *arguments[24];
    const char *names[24]; /* of Megatron's */
    size_t n_arguments;
    const char *component; /* of torchtune */
    const json_t *embed_dim, *num_heads, *head_dim;
    bool is_refused;
};

static const char *const config_names[] = {"rope_theta", "rope_scaling", "partial_rotary_factor",
                                           "max_position_embeddings"};
static const char model_names[] = "base_model|model_name_or_path|pretrained_model_name_or_path|model_path|hf_model_id|"
                                  "model_id|model_name|model";

/* The same key at two places with two values contradicts itself. */
static void take(struct said *s, const json_t **place, const char *name, const json_t *value)
{
    if (*place && !json_equal(*place, value) && !s->is_refused) {
        char *a = json_dumps(*place, JSON_ENCODE_ANY | JSON_COMPACT),
             *b = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        pasted_fail(s->p, "the text has %s twice: as %.60s and as %.60s", name, a ? a : "", b ? b : "");
        free(a);
        free(b);
        s->is_refused = true;
    }
    *place = value;
}

static void take_argument(struct said *s, const char *key, const json_t *value)
{
    static const char *const others[][2] = {{"rotary_percentage", "rotary-percent"},
                                            {"seq_len_interpolation_factor", "rotary-seq-len-interpolation-factor"}};
    const struct pe_target_info *target = pe_target_info_find("megatron");
    char name[64];
    snprintf(name, sizeof name, "%s", key);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(key, others[i][0]) == 0)
            snprintf(name, sizeof name, "%s", others[i][1]);
    for (const struct pe_param *row = target->members; row->name; row++) {
        if (strcmp(row->name, name) != 0)
            continue;
        size_t i = 0;
        while (i < s->n_arguments && strcmp(s->names[i], row->name) != 0)
            i++;
        if (i == s->n_arguments && s->n_arguments < 24) {
            s->arguments[i] = NULL;
            s->names[s->n_arguments++] = row->name;
        }
        if (i < s->n_arguments)
            take(s, &s->arguments[i], key, value);
    }
}

static void take_member(struct said *s, const char *key, const json_t *value)
{
    for (size_t i = 0; i < 4; i++)
        if (strcmp(key, config_names[i]) == 0)
            take(s, &s->config[i], key, value);
    if (strcmp(key, "rope_parameters") == 0)
        take(s, &s->config[1], key, value);
    if (strcmp(key, "rope_base") == 0)
        take(s, &s->rope_base, key, value);
    if (strcmp(key, "embed_dim") == 0)
        s->embed_dim = value;
    if (strcmp(key, "num_heads") == 0)
        s->num_heads = value;
    if (strcmp(key, "head_dim") == 0)
        s->head_dim = value;
    if (strcmp(key, "_component_") == 0 && json_is_string(value) && strstr(json_string_value(value), "models"))
        s->component = json_string_value(value);
    if (is_word(key, strlen(key), model_names) && json_is_string(value) && !*s->p->model)
        snprintf(s->p->model, sizeof s->p->model, "%s", json_string_value(value));
    take_argument(s, key, value);
}

/* Null is no value. Objects of positions are not entered. */
static void walk(struct said *s, const json_t *object, unsigned depth)
{
    json_t *mutable = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        if (!json_is_null(value))
            take_member(s, key, value);
        bool is_rope = strcmp(key, "rope_scaling") == 0 || strcmp(key, "rope_parameters") == 0;
        if (json_is_object(value) && !is_rope && depth < DEPTH_MAX)
            walk(s, value, depth + 1);
    }
}

static void put(struct api_text *json, const char *name, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (value && !text)
        json->state = API_TEXT_NO_MEMORY;
    if (!text)
        return;
    api_text_put(json, json->n > 1 ? "," : "");
    api_text_string(json, name);
    api_text_put(json, ":");
    api_text_put(json, text);
    free(text);
}

static enum family family_of(const struct said *s)
{
    if (s->component && s->rope_base)
        return TORCHTUNE;
    if (s->config[0] || s->config[1])
        return CONFIG;
    for (size_t i = 0; i < s->n_arguments; i++)
        if (!is_word(s->names[i], strlen(s->names[i]), "kv-channels|mscale"))
            return MEGATRON;
    return NONE;
}

static void put_torchtune(struct said *s)
{
    struct api_text *json = &s->p->json;
    const char *name = s->component;
    double heads = json_number_value(s->num_heads), width = json_number_value(s->embed_dim);
    const char *class = strstr(name, "qwen") ? "Qwen2RotaryPositionalEmbeddings"
                        : strstr(name, "llama3_1") || strstr(name, "llama3_2") || strstr(name, "llama3_3")
                            ? "Llama3ScaledRoPE"
                            : "RotaryPositionalEmbeddings";
    api_text_format(json, "\"class\":\"%s\"", class);
    if (s->head_dim)
        put(json, "dim", s->head_dim);
    else if (heads > 0 && width > 0 && width / heads < 65536)
        api_text_format(json, ",\"dim\":%d", (int)(width / heads));
    put(json, "base", s->rope_base);
}

/* The whole is a config.json in YAML. */
static bool is_config(const json_t *root)
{
    return json_is_string(json_object_get(root, "model_type")) && json_object_get(root, "hidden_size") &&
           json_object_get(root, "num_attention_heads");
}

static bool put_said(struct said *s)
{
    struct pasting *p = s->p;
    enum family family = family_of(s);
    p->kind = PASTED_WORDS;
    p->tool = family == TORCHTUNE ? "torchtune" : family == MEGATRON ? "megatron" : "transformers4";
    p->json.n = 0;
    if (family == NONE)
        return pasted_fail(p, "the YAML says nothing about positions: none of rope_theta, rope_scaling, "
                              "rope_parameters, rotary_base, rotary_percentage, rope_base with _component_ is in it");
    api_text_put(&p->json, "{");
    for (size_t i = 0; family == CONFIG && i < 4; i++)
        put(&p->json, config_names[i], s->config[i]);
    for (size_t i = 0; family == MEGATRON && i < s->n_arguments; i++)
        put(&p->json, s->names[i], s->arguments[i]);
    if (family == TORCHTUNE)
        put_torchtune(s);
    api_text_put(&p->json, "}");
    return pasted_done(p);
}

bool pasted_yaml_read(struct pasting *p)
{
    yaml_parser_t error = {.error = YAML_NO_ERROR};
    struct api_json_error why = {.no_memory = false};
    struct said s = {.p = p};
    if (strlen(p->text) > YAML_MAX)
        return api_fail(p->problem, 413, p->pointer, "the text has %zu bytes; allowed: at most %d", strlen(p->text),
                        YAML_MAX);
    if (is_deep(p->text))
        return pasted_fail(p, "the YAML is nested too deeply");
    if (!convert(p->text, &p->json, &error))
        return error.error == YAML_MEMORY_ERROR
                   ? api_fail_memory(p->problem)
                   : pasted_fail(p, "not YAML at line %zu: %s", error.problem_mark.line + 1,
                                 error.problem ? error.problem : "-");
    if (p->json.state)
        return pasted_done(p);
    const json_t *root = p->json.n ? api_json_load(&p->request->arena, p->json.bytes, p->json.n, 0, &why) : NULL;
    if (!root && p->json.n)
        return why.no_memory ? api_fail_memory(p->problem) : pasted_fail(p, "the YAML cannot be read: %s", why.text);
    if (!json_is_object(root))
        return pasted_fail(p, "the YAML is no mapping of names to values");
    if (is_config(root)) {
        p->kind = PASTED_CONFIG;
        return pasted_done(p);
    }
    walk(&s, root, 0);
    return !s.is_refused && put_said(&s);
}
