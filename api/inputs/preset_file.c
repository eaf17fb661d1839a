/* Owns the file of a stored preset: reads and writes it, finds that of a request, and writes what is known of a preset.
 *
 * The file is one JSON object, in UTF-8, of at most API_PRESET_BYTES_MAX bytes:
 *
 *     {"config":{"scheme":"rope",…},"source":"…","note":"…","stored_by":"…","stored_at":"2026-01-02T03:04:05Z"}
 *
 * config is a configuration with every reference resolved: no preset, model or file within it, so what it means does
 * not depend on the release that reads it. source and note are texts of whoever stored it; stored_by and stored_at are
 * null where they are not known. Unknown members are passed over, and an older file lacks newer ones, so there is no
 * number of a version. A config that this release cannot compute is read all the same, and refused by the request that
 * uses it. The store writes a file whole (server/store/store.c), so there is no half one; what cannot be read is passed
 * over with a line in the log, and its name stays free to be written again. */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read lies in the arena. */
struct kept {
    struct api_stored_preset face; /* must be first: api.h's contents */
    struct pe_preset_layer layer;
    struct api_arena arena;
};

/* ---- Writing ---- */

/* null where it is not known, as GET writes it. */
static void add_stored(struct api_text *text, const char *name, const char *value)
{
    api_text_name(text, name);
    if (value)
        api_text_string(text, value);
    else
        api_text_put(text, "null");
}

void api_preset_members(struct api_text *text, const struct api_preset_members *members)
{
    api_text_name(text, "config");
    api_text_value(text, members->config);
    if (members->source)
        api_text_member(text, "source", members->source);
    if (members->note)
        api_text_member(text, "note", members->note);
    add_stored(text, "stored_by", members->stored_by);
    add_stored(text, "stored_at", members->stored_at);
}

void api_preset_stored(struct api_text *text, const char *name, const struct api_stored_preset *kept)
{
    api_text_member(text, "name", name);
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

/* Whether it fits this release is checked when a request uses it. */
static bool check_config(const struct pe_value *config, struct api_problem *problem)
{
    static const char *const names[] = {"preset", "hf_config", "gguf", "said", "layer_type", "fps"};
    if (!config || config->kind != PE_OBJECT)
        return api_fail(problem, 422, "/config", "it has no config, an object as {\"scheme\":\"rope\"}");
    const struct pe_value *scheme = api_member_find(config, "scheme");
    if (!scheme || scheme->kind != PE_STRING || !pe_scheme_find(scheme->string))
        return api_fail(problem, 422, "/config/scheme", "its config names no scheme of this server");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (api_member_find(config, names[i]))
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

bool api_fail_preset(const struct api_store *presets, const struct pe_preset_name *name, const struct pe_failure *err,
                     struct api_problem *problem)
{
    char buffer[API_WEIGHT_NAME_MAX + 1];
    const char *nearest = NULL;
    if (name->is_foreign)
        nearest = api_preset_nearest(presets, name->asked, buffer);
    else if (presets && presets->nearest(presets->self, name->asked, buffer))
        nearest = buffer;
    if (!nearest)
        return api_fail_core(problem, err);
    return api_fail(problem, 422, "/preset", "unknown preset \"%.64s\"; nearest: \"%s\"; GET /presets lists them",
                    name->asked, nearest);
}

/* ---- In a request ---- */

static bool put_preset(struct api_request *request, struct pe_value *value, const struct api_stored_file *file,
                       struct api_problem *problem)
{
    bool is_held = api_request_hold_file(request, request->presets, file);
    struct pe_preset *preset = is_held ? api_arena_alloc(&request->arena, sizeof *preset) : NULL;
    if (!preset)
        return api_fail_memory(problem);
    *preset = file->preset->preset;
    preset->name = preset->label = file->name;
    *value = (struct pe_value){.kind = PE_PRESET, .preset = preset};
    request->has_stored_preset = true;
    return true;
}

/* None is stored under this name: a name that people have for a model of the program, or none. */
static bool take_name(const struct api_request *request, const char *asked, struct api_problem *problem)
{
    struct pe_preset_name name;
    struct pe_failure err;
    return pe_preset_name(asked, &name, &err) == PE_OK || api_fail_preset(request->presets, &name, &err, problem);
}

static bool take_preset(struct api_request *request, struct pe_field *fields, size_t n_fields,
                        struct api_problem *problem)
{
    for (size_t i = 0; request->presets && i < n_fields; i++) {
        struct pe_value *value = &fields[i].value;
        if (!api_is(fields[i].name, "preset"))
            continue;
        if (value->kind != PE_STRING || pe_preset_find(value->string))
            return true;
        const struct api_store *store = request->presets;
        const struct api_stored_file *file = NULL;
        struct api_wanted wanted = {.name = value->string, .must_not_block = request->must_not_block};
        enum api_found found = store->find(store->self, &wanted, &file);
        switch (found) {
        case API_FOUND: return put_preset(request, value, file, problem);
        case API_FOUND_LATER: return !(request->is_late = true);
        case API_FOUND_UNKNOWN:
        case API_FOUND_TOO_LARGE:
        case API_FOUND_NO_ROOM:
        case API_FOUND_BUSY: return api_fail_stored_unknown(problem, "/preset", store, found, value->string);
        default: return take_name(request, value->string, problem);
        }
    }
    return true;
}

bool api_preset_find(struct api_request *request, struct api_problem *problem)
{
    return take_preset(request, request->fields, request->n_fields, problem);
}

/* The objects are in the request's arena, or in that of the request whose entry it is. */
bool api_preset_take_within(struct api_request *request, const char *name, const struct pe_value *list,
                            struct api_problem *problem)
{
    for (size_t i = 0; list->kind == PE_LIST && i < list->list.n; i++) {
        const struct pe_value *item = &list->list.items[i];
        if (item->kind != PE_OBJECT ||
            take_preset(request, (struct pe_field *)(uintptr_t)item->object.fields, item->object.n, problem))
            continue;
        snprintf(problem->error.pointer, PE_POINTER_MAX, "/%s/%zu/preset", name, i);
        return false;
    }
    return true;
}

/* ---- The source of a preset, and how certain it is ---- */

static void add_source(struct api_text *text, const struct pe_preset *preset)
{
    api_text_member(text, "name", preset->name);
    if (preset->source)
        api_text_member(text, "source", preset->source);
    if (pe_certainty_name(preset->certainty))
        api_text_member(text, "certainty", pe_certainty_name(preset->certainty));
}

void api_preset_about(struct api_text *text, const struct pe_preset *preset)
{
    add_source(text, preset);
    if (preset->note)
        api_text_member(text, "note", preset->note);
}

void api_preset_asked(struct api_text *text, const char *asked)
{
    struct pe_preset_name name;
    struct pe_failure ignored;
    if (!asked || pe_preset_name(asked, &name, &ignored) || !name.is_resolved)
        return;
    api_text_member(text, "asked", asked);
    api_text_member(text, "resolved", name.preset->name);
    api_text_open(text, "dropped", '[');
    for (size_t i = 0; i < name.n_dropped; i++) {
        char word[PE_NAME_MAX + 1];
        snprintf(word, sizeof word, "%.*s", (int)name.dropped[i].n, name.dropped[i].text);
        api_text_member(text, NULL, word);
    }
    api_text_close(text, ']');
}

void api_preset_about_in(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang)
{
    const char *zh = preset->label_zh ? preset->label_zh : preset->label;
    add_source(text, preset);
    api_text_pair(text, "label", preset->label, zh, lang);
    if (preset->note)
        api_text_pair(text, "note", preset->note, preset->note_zh, lang);
}
