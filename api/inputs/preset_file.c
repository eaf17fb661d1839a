/* Reads and writes stored presets. */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read lies in the arena. */
struct kept {
    struct api_kept_preset face; /* must be first: api.h's contents */
    struct pe_preset_layer layer;
    struct api_arena arena;
};

/* ---- Writing ---- */

/* null where it is not known, as GET writes it. */
static void add_stored(struct api_text *text, const char *name, const char *value)
{
    if (value)
        api_text_member(text, name, value);
    else
        api_text_format(text, ",\"%s\":null", name);
}

void api_preset_members(struct api_text *text, const struct api_preset_members *members)
{
    api_text_put(text, "\"config\":");
    api_text_value(text, members->config);
    if (members->source)
        api_text_member(text, "source", members->source);
    if (members->note)
        api_text_member(text, "note", members->note);
    add_stored(text, "stored_by", members->stored_by);
    add_stored(text, "stored_at", members->stored_at);
}

void api_preset_kept(struct api_text *text, const char *name, const struct api_kept_preset *kept)
{
    api_text_put(text, "\"name\":");
    api_text_string(text, name);
    api_text_put(text, ",");
    api_text_put(text, kept->members);
}

/* ---- Reading ---- */

static void kept_free(void *contents)
{
    struct kept *kept = contents;
    if (!kept)
        return;
    api_arena_drop(&kept->arena);
    free(kept);
}

static const char *word_of(const struct api_request *file, const char *name)
{
    const struct pe_value *value = api_request_find(file, name);
    return value && value->kind == PE_STRING ? value->string : NULL;
}

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0)
            return &object->object.fields[i].value;
    return NULL;
}

/* Whether it fits this release is checked when a request uses it. */
static bool check_config(const struct pe_value *config, struct api_problem *problem)
{
    static const char *const names[] = {"preset", "hf_config", "gguf", "said", "layer_type"};
    if (!config || config->kind != PE_OBJECT)
        return api_fail(problem, 422, "/config", "it has no config, an object as {\"scheme\":\"rope\"}");
    const struct pe_value *scheme = member(config, "scheme");
    if (!scheme || scheme->kind != PE_STRING || !pe_scheme_find(scheme->string))
        return api_fail(problem, 422, "/config/scheme", "its config names no scheme of this server");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (member(config, names[i]))
            return api_fail(problem, 422, "/config", "its config has %s, which a stored one has resolved", names[i]);
    return config->object.n <= API_FIELDS_MAX / 2 ||
           api_fail(problem, 422, "/config", "its config has more than %d names", API_FIELDS_MAX / 2);
}

static bool check_memory(const struct api_request *file, size_t n, struct api_problem *problem)
{
    size_t allowed = API_PRESET_MEMORY * n + API_PRESET_MEMORY_EACH;
    return file->arena.n_bytes <= allowed ||
           api_fail(problem, 413, "", "its lists and objects need %zu bytes of memory; allowed for its size: %zu",
                    file->arena.n_bytes, allowed);
}

static bool read_file(struct api_request *file, const char *bytes, size_t n, struct api_problem *problem)
{
    if (n > API_PRESET_BYTES_MAX)
        return api_fail(problem, 413, "", "it has more than %d bytes", API_PRESET_BYTES_MAX);
    return api_json_read_plain(file, bytes, n, "", problem) &&
           check_config(api_request_find(file, "config"), problem) && check_memory(file, n, problem);
}

/* In the form of our own files, whatever the order and the spaces of this one. NULL: no memory. */
static const char *print_members(struct api_request *file)
{
    struct api_preset_members members = {.config = api_request_find(file, "config"),
                                         .source = word_of(file, "source"),
                                         .note = word_of(file, "note"),
                                         .stored_by = word_of(file, "stored_by"),
                                         .stored_at = word_of(file, "stored_at")};
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_preset_members(&text, &members);
    const char *kept = text.state ? NULL : api_arena_string(&file->arena, text.bytes, text.n);
    api_text_drop(&text);
    return kept;
}

/* Takes the arena of file. */
static struct kept *kept_new(struct api_request *file)
{
    const char *members = print_members(file);
    struct kept *kept = members ? calloc(1, sizeof *kept) : NULL;
    if (!kept)
        return NULL;
    const struct pe_value *config = api_request_find(file, "config");
    kept->layer = (struct pe_preset_layer){.fields = config->object.fields, .n_fields = config->object.n};
    kept->face.preset = (struct pe_preset){.source = word_of(file, "source"),
                                           .certainty = PE_UNSTATED,
                                           .note = word_of(file, "note"),
                                           .layers = &kept->layer,
                                           .n_layers = 1};
    kept->face.members = members;
    kept->arena = file->arena;
    file->arena = (struct api_arena){0};
    return kept;
}

static void *kept_read(const char *bytes, size_t n, char *why, size_t n_why)
{
    struct api_problem problem = {.status = 503};
    struct kept *kept = NULL;
    struct api_request *file = malloc(sizeof *file);
    *why = '\0';
    if (!file)
        return NULL;
    api_request_init(file, PE_ENCODE);
    if (read_file(file, bytes, n, &problem))
        kept = kept_new(file);
    else if (problem.status != 503)
        snprintf(why, n_why, "%s", problem.error.detail);
    api_request_drop(file);
    free(file);
    return kept;
}

const struct api_contents api_contents_presets = {.what = "presets", .read = kept_read, .free = kept_free};

/* ---- Names ---- */

const char *api_preset_nearest(const struct api_store *presets, const char *name, char *buffer)
{
    const char *both[3] = {pe_preset_nearest(name)};
    if (presets && presets->nearest(presets->self, name, buffer))
        both[both[0] ? 1 : 0] = buffer;
    return both[0] ? pe_nearest(name, both) : NULL;
}
