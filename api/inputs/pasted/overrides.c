/* Overrides of a config.json, as vLLM's --hf-overrides and SGLang's --json-model-override-args have them. What is about
 * positions may be inside the config of the language model, and in its old form beside the object:
 *
 *     {"text_config": {"rope_parameters": {…}}}      {"rope_scaling": {…}, "rope_theta": 1000000}
 *
 * Both become {"rope_parameters": {…}} with everything inside, as a target reads it; said.place states what it was, for
 * on top of a model a tool may not read it there (pe_said_unread). */
#include "api/inputs/pasted/pasted.h"

#include <jansson.h>
#include <stdio.h>

static const char *const inside[] = {"rope_theta", "partial_rotary_factor", "original_max_position_embeddings"};

struct place {
    const json_t *config; /* the object that has what is about positions */
    const json_t *rope;   /* rope_parameters or rope_scaling; NULL: none, or null */
    bool is_nested;
};

static bool states(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    return v && !json_is_null(v);
}

static bool is_about_positions(const json_t *config)
{
    bool is = json_object_get(config, "rope_parameters") || json_object_get(config, "rope_scaling");
    for (size_t i = 0; i < 3; i++)
        is |= states(config, inside[i]);
    return is || states(config, "head_dim");
}

static const json_t *find_config(const json_t *config, unsigned depth, bool *is_nested)
{
    json_t *mutable = (json_t *)(uintptr_t)config;
    if (is_about_positions(config))
        return config;
    for (void *at = json_object_iter(mutable); at && depth < 3; at = json_object_iter_next(mutable, at)) {
        const json_t *inner = json_object_iter_value(at);
        if (!json_is_object(inner) || strstr(json_object_iter_key(at), "vision") ||
            strstr(json_object_iter_key(at), "audio"))
            continue;
        const json_t *found = find_config(inner, depth + 1, is_nested);
        *is_nested |= found != NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* Objects of both names that differ contradict each other. */
static bool find_rope(struct pasting *p, struct place *place)
{
    const json_t *new = json_object_get(place->config, "rope_parameters"),
                 *old = json_object_get(place->config, "rope_scaling");
    if (json_is_object(new) && json_is_object(old) && !json_equal(new, old))
        return pasted_fail(p, "the overrides have rope_parameters and rope_scaling, and they differ; give one");
    place->rope = json_is_object(new) ? new : json_is_object(old) ? old : NULL;
    for (size_t i = 0; place->rope && i < 3; i++) {
        const json_t *a = json_object_get(place->rope, inside[i]), *b = json_object_get(place->config, inside[i]);
        if (json_is_number(a) && json_is_number(b) && json_number_value(a) != json_number_value(b))
            return pasted_fail(p, "the overrides have %s twice: %.10g inside the rope object and %.10g beside it",
                               inside[i], json_number_value(a), json_number_value(b));
    }
    return true;
}

static bool put_member(struct api_text *json, const char *name, const json_t *value)
{
    char *text = api_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text)
        return false;
    api_text_name(json, name);
    api_text_put(json, text);
    free(text);
    return true;
}

static bool put_rope(struct api_text *json, const struct place *place)
{
    json_t *mutable = (json_t *)(uintptr_t)place->rope;
    bool turns_off = !place->rope && (json_is_null(json_object_get(place->config, "rope_scaling")) ||
                                      json_is_null(json_object_get(place->config, "rope_parameters")));
    bool fine = true;
    api_text_put(json, "\"rope_parameters\":{");
    bool is_empty = place->rope && !json_object_size(place->rope) && !place->is_nested;
    api_text_put(json, turns_off || is_empty ? "\"rope_type\":\"default\"" : "");
    for (void *at = json_object_iter(mutable); at && fine; at = json_object_iter_next(mutable, at))
        fine = put_member(json, json_object_iter_key(at), json_object_iter_value(at));
    for (size_t i = 0; i < 3 && fine; i++)
        if (states(place->config, inside[i]) && !states(place->rope, inside[i]))
            fine = put_member(json, inside[i], json_object_get(place->config, inside[i]));
    api_text_put(json, "}");
    return fine;
}

/* The other members are named as flags about other things are. */
bool pasted_overrides_put(struct pasting *p, struct api_text *json, const char *name, const char *word)
{
    char flag[PASTED_FLAG_BYTES];
    struct api_json_error error;
    struct place place = {.config = NULL};
    const json_t *root = api_json_load(&p->request->arena, word, strlen(word), 0, &error);
    if (!root)
        return error.no_memory ? api_fail_memory(p->problem)
                               : pasted_fail(p, "%s is not JSON: %s", pasted_flag_spelled(name, flag), error.text);
    if (!json_is_object(root)) {
        api_text_put(json, word);
        return true;
    }
    place.config = find_config(root, 0, &place.is_nested);
    place.config = place.config ? place.config : root;
    if (!find_rope(p, &place))
        return false;
    bool is_some = is_about_positions(place.config), fine = true;
    bool is_beside = states(place.config, "rope_theta") && !states(place.rope, "rope_theta");
    if (is_some)
        p->place = place.is_nested ? "nested"
                   : place.rope    ? is_beside ? "both" : NULL
                   : is_beside     ? "beside"
                                   : "numbers";
    api_text_put(json, "{");
    if (is_some)
        fine = put_rope(json, &place);
    if (fine && states(place.config, "max_position_embeddings"))
        fine = put_member(json, "max_position_embeddings", json_object_get(place.config, "max_position_embeddings"));
    if (fine && states(place.config, "head_dim"))
        fine = put_member(json, "head_dim", json_object_get(place.config, "head_dim"));
    api_text_put(json, "}");
    return fine || api_fail_memory(p->problem);
}
