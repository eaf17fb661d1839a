/* YAML of trainers, read by libyaml: its keys about positions, in the words of the tool that has them.
 *
 *     base_model: NousResearch/Meta-Llama-3-8B         axolotl, and others that load a config.json: its fields
 *     overrides_of_model_config: {rope_theta: 1000000}
 *     model: {rotary_base: 500000, kv_channels: 128}   NeMo and Megatron-LM: its arguments, with underscores
 *     model: {_component_: torchtune.models.llama3.llama3, rope_base: 500000}
 *     model: Qwen/Qwen3-8B                             vllm serve --config: its flags
 *     hf-overrides: {rope_parameters: {rope_theta: 5000000}}
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
    api_text_put(json, "{");
    const yaml_node_pair_t *end = node->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < end && !json->state; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        if (key->type != YAML_SCALAR_NODE)
            continue;
        api_text_name(json, NULL);
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
            api_text_name(json, NULL);
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

enum { DOCUMENTS_MAX = 32 };

/* A list of the documents; false: one is none, with the reason and its line in *error. */
static bool convert(const char *text, struct api_text *json, yaml_parser_t *error)
{
    yaml_parser_t parser;
    yaml_document_t document;
    bool fine = true, is_there = true;
    if (!yaml_parser_initialize(&parser)) {
        error->error = YAML_MEMORY_ERROR;
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    for (size_t n = 0; n < DOCUMENTS_MAX && fine && is_there; n++) {
        fine = yaml_parser_load(&parser, &document);
        *error = parser; /* its problem is a constant text */
        is_there = fine && yaml_document_get_root_node(&document);
        api_text_put(json, !n ? "[" : is_there ? "," : "");
        if (is_there)
            put_node(json, &document, 1, 0);
        if (fine)
            yaml_document_delete(&document);
    }
    api_text_put(json, "]");
    yaml_parser_delete(&parser);
    return fine;
}

const json_t *pasted_yaml_documents(struct pasting *p)
{
    yaml_parser_t error = {.error = YAML_NO_ERROR};
    struct api_json_error why = {.no_memory = false};
    const json_t *documents = NULL;
    if (strlen(p->text) > YAML_MAX)
        api_fail(p->problem, 413, p->pointer, "the text has %zu bytes; allowed: at most %d", strlen(p->text), YAML_MAX);
    else if (is_deep(p->text))
        pasted_fail(p, "the YAML is nested too deeply");
    else if (!convert(p->text, &p->json, &error))
        error.error == YAML_MEMORY_ERROR ? api_fail_memory(p->problem)
                                         : pasted_fail(p, "not YAML at line %zu: %s", error.problem_mark.line + 1,
                                                       error.problem ? error.problem : "-");
    else if (p->json.state)
        pasted_done(p);
    else if (!(documents = api_json_load(&p->request->arena, p->json.bytes, p->json.n, 0, &why)))
        why.no_memory ? api_fail_memory(p->problem) : pasted_fail(p, "the YAML cannot be read: %s", why.text);
    return documents;
}

bool pasted_yaml_looks_so(const char *text)
{
    const char *line;
    size_t n;
    while (pasted_line(&text, &line, &n))
        if (pasted_name_in(line, n))
            return true;
    return false;
}

/* ---- Keys about positions ---- */

enum { FOUND_MAX = 48 };

struct said {
    struct pasting *p;
    struct pasted_setting at[FOUND_MAX]; /* of the names below; each once */
    size_t n;
    const char *component; /* of torchtune */
    const char *empty;     /* a key about positions without a value; NULL: none */
    bool is_refused;
};

static const char config_names[] = "rope_theta|rope_scaling|partial_rotary_factor|max_position_embeddings";
static const char model_names[] = "base_model|model_name_or_path|pretrained_model_name_or_path|model_path|hf_model_id|"
                                  "model_id|model_name|model";
static const char sizes[] = "rope_base|embed_dim|num_heads|head_dim|hidden_size|num_attention_heads";

/* The same thing under another name. */
static const struct {
    const char *theirs, *name;
} renamed[] = {
    {"rope_parameters", "rope_scaling"},
    {"rotary_percentage", "rotary-percent"}, /* NeMo */
    {"seq_len_interpolation_factor", "rotary-seq-len-interpolation-factor"},
};

static const json_t *given(const struct said *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, name) == 0)
            return s->at[i].value;
    return NULL;
}

static const struct pe_param *argument_of(const char *name)
{
    char flag[64];
    snprintf(flag, sizeof flag, "--%.60s", name);
    return pasted_flag_of(pe_target_info_find("megatron"), flag);
}

/* The same key at two places with two values contradicts itself. */
static void add_setting(struct said *s, const char *name, const char *key, const json_t *value)
{
    const json_t *before = given(s, name);
    if (before && !json_equal(before, value) && !s->is_refused) {
        char *a = api_json_text(before, JSON_ENCODE_ANY | JSON_COMPACT),
             *b = api_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
        pasted_fail(s->p, "the text has %s twice: as %.60s and as %.60s", key, a ? a : "", b ? b : "");
        free(a);
        free(b);
        s->is_refused = true;
    }
    if (!before && s->n < FOUND_MAX)
        s->at[s->n++] = (struct pasted_setting){name, value};
}

static void take_member(struct said *s, const char *key, const json_t *value)
{
    const char *name = key;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        name = strcmp(key, renamed[i].theirs) == 0 ? renamed[i].name : name;
    const struct pe_param *argument = argument_of(name);
    if (argument || pasted_is_among(config_names, name, strlen(name)) || pasted_is_among(sizes, name, strlen(name)))
        add_setting(s, argument ? argument->name : name, key, value);
    const char *component = strcmp(key, "_component_") == 0 ? json_string_value(value) : NULL;
    if (component && !s->component && strstr(component, ".models.") && !strstr(component, "tokenizer"))
        s->component = component;
    if (pasted_is_among(model_names, key, strlen(key)) && json_is_string(value) && !*s->p->model)
        snprintf(s->p->model, sizeof s->p->model, "%s", json_string_value(value));
}

/* Null is no value. Objects of positions are not entered. */
static void walk(struct said *s, const json_t *object, unsigned depth)
{
    json_t *mutable = (json_t *)(uintptr_t)object;
    for (size_t i = 0; i < json_array_size(object); i++)
        walk(s, json_array_get(object, i), depth + 1);
    for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        if (!json_is_null(value))
            take_member(s, key, value);
        bool is_rope = strcmp(key, "rope_scaling") == 0 || strcmp(key, "rope_parameters") == 0;
        bool is_among = pasted_is_among(config_names, key, strlen(key)) || is_rope;
        s->empty = json_is_null(value) && is_among ? key : s->empty;
        if ((json_is_object(value) || json_is_array(value)) && !is_rope && depth < DEPTH_MAX)
            walk(s, value, depth + 1);
    }
}

static void put_member(struct api_text *json, const char *name, const json_t *value)
{
    char *text = value ? api_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (value && !text)
        json->state = API_TEXT_NO_MEMORY;
    if (!text)
        return;
    api_text_name(json, name);
    api_text_put(json, text);
    free(text);
}

/* A builder with sizes of its own, or a model by its name. */
static void put_torchtune(struct said *s)
{
    struct api_text *json = &s->p->json;
    const char *const *width = pe_target_info_find("torchtune")->width;
    double heads = json_number_value(given(s, width[2])), whole = json_number_value(given(s, width[1]));
    const char *class =
        strstr(s->component, "qwen") ? "Qwen2RotaryPositionalEmbeddings"
        : strstr(s->component, "llama3_1") || strstr(s->component, "llama3_2") || strstr(s->component, "llama3_3")
            ? "Llama3ScaledRoPE"
            : "RotaryPositionalEmbeddings";
    s->p->tool = "torchtune";
    if (!given(s, "head_dim") && !given(s, width[1])) {
        /* torchtune.models.llama3_1.llama3_1_8b is llama3.1-8b: a digit alone between two lines is a version. */
        const char *dot = strrchr(s->component, '.');
        char *name = s->p->model;
        snprintf(name, sizeof s->p->model, "%s", dot ? dot + 1 : s->component);
        for (char *p = name; *p; p++)
            if (p > name && *p == '_' && p[-1] >= '0' && p[-1] <= '9' && p[1] >= '0' && p[1] <= '9' && p[2] == '_')
                *p = '.';
    }
    if (!given(s, "rope_base"))
        return;
    api_text_format(json, "\"class\":\"%s\"", class);
    if (given(s, "head_dim"))
        put_member(json, width[0], given(s, "head_dim"));
    else if (heads > 0 && whole > 0 && whole / heads < 65536)
        api_text_format(json, ",\"%s\":%d", width[0], (int)(whole / heads));
    put_member(json, "base", given(s, "rope_base"));
}

static void put_config(struct said *s)
{
    s->p->tool = "transformers4";
    for (size_t i = 0; i < s->n; i++)
        if (pasted_is_among(config_names, s->at[i].name, strlen(s->at[i].name)))
            put_member(&s->p->json, s->at[i].name, s->at[i].value);
}

static bool has_arguments(const struct said *s)
{
    bool has = false;
    for (size_t i = 0; i < s->n; i++)
        has |= argument_of(s->at[i].name) && !is_word(s->at[i].name, strlen(s->at[i].name), "kv-channels|mscale");
    return has;
}

/* The whole is a config.json in YAML. */
static bool is_config(const json_t *root)
{
    bool has_type = json_is_string(json_object_get(root, "model_type"));
    return json_is_string(json_object_get(root, "_class_name")) ||
           (has_type && json_object_get(root, "hidden_size") && json_object_get(root, "num_attention_heads"));
}

static bool put_said(struct said *s)
{
    struct pasting *p = s->p;
    bool is_config = given(s, "rope_theta") || given(s, "rope_scaling");
    p->kind = PASTED_WORDS;
    p->json.n = 0;
    if (!s->component && !is_config && has_arguments(s)) {
        /* Arguments of Megatron-LM and the sizes that give the width of a head, without those of others. */
        size_t n = 0;
        for (size_t i = 0; i < s->n; i++)
            if (argument_of(s->at[i].name) ||
                is_word(s->at[i].name, strlen(s->at[i].name), "hidden_size|num_attention_heads"))
                s->at[n++] = s->at[i];
        return pasted_settings_read(s->p, pe_target_info_find("megatron"), s->at, n);
    }
    if (!s->component && !is_config && s->empty)
        return pasted_fail(p, "the YAML gives %.60s no value, and has nothing else about positions", s->empty);
    if (!s->component && !is_config)
        return pasted_fail(p, "the YAML has nothing about positions: none of rope_theta, rope_scaling, "
                              "rope_parameters, rotary_base, rotary_percentage, rope_base with _component_ is in it");
    api_text_put(&p->json, "{");
    if (s->component)
        put_torchtune(s);
    else
        put_config(s);
    api_text_put(&p->json, "}");
    return pasted_done(p);
}

/* Documents that differ contradict each other. */
static bool check_documents(struct pasting *p, const json_t *documents)
{
    const json_t *first = json_array_get(documents, 0);
    for (size_t i = 1; i < json_array_size(documents); i++) {
        const json_t *other = json_array_get(documents, i);
        char *a = json_equal(first, other) ? NULL : api_json_text(first, JSON_ENCODE_ANY | JSON_COMPACT),
             *b = a ? api_json_text(other, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        if (a)
            pasted_fail(p, "the YAML has two documents that differ: %.160s and %.160s; paste one of them", a,
                        b ? b : "");
        free(a);
        free(b);
        if (a)
            return false;
    }
    return true;
}

bool pasted_yaml_read(struct pasting *p)
{
    struct said s = {.p = p};
    const json_t *documents = pasted_yaml_documents(p), *root = json_array_get(documents, 0);
    if (!documents || !check_documents(p, documents))
        return false;
    if (!json_is_object(root))
        return pasted_fail(p, "the YAML is no mapping of names to values");
    if (is_config(root)) {
        p->kind = PASTED_CONFIG;
        p->json.n--; /* of the list */
        memmove(p->json.bytes, p->json.bytes + 1, --p->json.n);
        return pasted_done(p);
    }
    json_t *mutable = (json_t *)(uintptr_t)root;
    bool are = false;
    for (void *at = json_object_iter(mutable); at && !are; at = json_object_iter_next(mutable, at))
        are = pasted_is_setting(json_object_iter_key(at), strlen(json_object_iter_key(at)));
    if (are) {
        size_t n;
        const struct pasted_setting *settings = pasted_settings_of(p, root, &n);
        return pasted_settings_read(p, NULL, settings, n);
    }
    walk(&s, root, 0);
    return !s.is_refused && put_said(&s);
}
