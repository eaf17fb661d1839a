/* GET, PUT, DELETE /presets/{name}: public models by name, as requests that a client can send with
 * POST, with notes in two languages; and those that clients have stored. */
#include "api/endpoints/endpoints.h"
#include "api/formats/format.h"
#include "api/inputs/inputs.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <stdio.h>
#include <string.h>

/* ---- Presets of the program ---- */

static void add_config(struct api_text *text, const struct pe_preset_layer *layer)
{
    struct pe_value config = {.kind = PE_OBJECT, .object = {layer->fields, layer->n_fields}};
    api_text_name(text, "config");
    api_text_value(text, &config);
}

void api_preset_print(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang)
{
    api_preset_about_in(text, preset, lang);
    api_text_aliases(text, preset->aliases);
    add_config(text, preset->layers);
    if (preset->n_layers > 1) {
        /* The layers of other types than the first; `config` shows the first. */
        api_text_open(text, "layers", '[');
        for (size_t i = 0; i < preset->n_layers; i++) {
            api_text_open(text, NULL, '{');
            api_text_member(text, "layer_type", preset->layers[i].layer_type);
            add_config(text, &preset->layers[i]);
            api_text_close(text, '}');
        }
        api_text_close(text, ']');
    }
}

/* ---- Refusals ---- */

bool api_preset_absent(const struct api_store *store, const char *asked, struct api_problem *problem)
{
    struct pe_preset_name name;
    struct pe_failure err;
    if (pe_preset_name(asked, &name, &err) == PE_OK) /* one of the program, where a stored one is meant */
        return api_fail(problem, 404, "", "unknown preset \"%.64s\"; GET /presets lists them", asked);
    api_fail_preset(store, &name, &err, problem);
    problem->status = 404;
    *problem->error.pointer = '\0';
    return false;
}

static bool check_name(const char *name, struct api_problem *problem)
{
    const struct pe_preset *preset = pe_preset_find(name);
    if (preset)
        return api_fail(problem, 422, "",
                        strcmp(preset->name, name) != 0
                            ? "\"%s\" is a preset of the program (%s), which is not changed; take another name"
                            : "\"%s\" is a preset of the program, which is not changed; take another name",
                        name, preset->name);
    return api_weight_name_is_valid(name) || api_fail_stored_name(problem, "", &api_contents_presets, name);
}

/* ---- GET ---- */

static struct api_reply *send(int status, const struct api_stored_file *file)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{");
    api_preset_stored(&text, file->name, file->preset);
    api_text_put(&text, "}");
    return api_stored_headers(api_reply_text(status, api_json_type, &text), file->sha256);
}

static struct api_reply *get_found(struct api_request *request, const struct api_stored_file *file)
{
    const struct api_call *call = request->call;
    struct api_guard match = {.if_match = call->if_match}, none = {.if_none_match = call->if_none_match};
    if (!api_guard_allows(&match, file->sha256))
        return api_stored_guarded(request, request->host->presets);
    return api_guard_allows(&none, file->sha256) ? send(200, file)
                                                 : api_stored_headers(api_reply_empty(304), file->sha256);
}

/* One of the program, under the name that was asked for. */
static struct api_reply *get_known(struct api_request *request, const struct pe_preset *preset)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{");
    api_preset_print(&text, preset, request->lang);
    api_preset_asked(&text, request->path.name);
    api_text_put(&text, "}");
    struct api_reply *reply = api_reply_text(200, api_json_type, &text);
    reply->is_repeatable = reply->status == 200;
    return api_reply_set_language(reply, request->lang);
}

static struct api_reply *get_kept(struct api_request *request)
{
    const struct api_store *store = request->host->presets;
    const struct api_stored_file *file = NULL;
    struct api_wanted wanted = {.name = request->path.name, .must_not_block = request->must_not_block};
    enum api_found found = store ? store->find(store->self, &wanted, &file) : API_FOUND_NOTHING;
    if (found == API_FOUND_LATER && api_is_late(request))
        return NULL;
    const struct pe_preset *named = found == API_FOUND_NOTHING ? pe_preset_named(request->path.name) : NULL;
    if (named)
        return get_known(request, named);
    if (found == API_FOUND_NOTHING)
        api_preset_absent(store, request->path.name, &request->problem);
    else if (found != API_FOUND)
        api_fail_stored_unknown(&request->problem, "", store, found, request->path.name);
    if (found != API_FOUND)
        return NULL;
    struct api_reply *reply = get_found(request, file);
    store->release(store->self, file);
    return reply;
}

static struct api_reply *get(struct api_request *request)
{
    const struct pe_preset *preset = pe_preset_find(request->path.name);
    if (!api_lang_of_query(request->call, &request->lang, &request->problem))
        return NULL;
    return preset ? get_known(request, preset) : get_kept(request);
}

/* ---- PUT ---- */

struct putting {
    struct api_request *request;
    struct api_preset_members members;
};

/* What GET answers may be sent back: the members that the server sets itself are not read. */
static bool check_members(struct putting *p)
{
    static const char *const names[] = {"config", "source", "note", "name", "stored_by", "stored_at", NULL};
    const struct api_request *request = p->request;
    for (size_t i = 0; i < request->n_fields; i++) {
        const char *name = request->fields[i].name, *nearest = pe_nearest(name, names);
        char pointer[PE_POINTER_MAX] = "";
        if (nearest && strcmp(nearest, name) == 0)
            continue;
        api_pointer_push(pointer, name, strlen(name));
        return api_fail(&p->request->problem, 422, pointer,
                        nearest ? "unknown member \"%.64s\" of a preset; nearest: \"%s\""
                                : "unknown member \"%.64s\" of a preset; there are: config, source, note",
                        name, nearest);
    }
    return true;
}

static bool take_word(struct putting *p, const char *name, const char **word)
{
    const struct pe_value *value = api_request_find(p->request, name);
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/%s", name);
    *word = value && value->kind == PE_STRING ? value->string : NULL;
    return !value || *word || api_fail(&p->request->problem, 422, pointer, "%s is not a string", name);
}

/* Errors about a field name its place in the body. False, as what has failed. */
static bool point_into_config(struct api_problem *problem)
{
    char inner[PE_POINTER_MAX];
    if (problem->status != 422 && problem->status != 413)
        return false;
    snprintf(inner, sizeof inner, "%s", problem->error.pointer);
    snprintf(problem->error.pointer, PE_POINTER_MAX, "/config%.*s", PE_POINTER_MAX - 8, inner);
    return false;
}

/* The members of config become the fields of the request. */
static bool take_config(struct putting *p)
{
    struct api_request *request = p->request;
    const struct pe_value *found = api_request_find(request, "config");
    if (!found || found->kind != PE_OBJECT)
        return api_fail(&p->request->problem, 422, "/config",
                        "config must be an object, a request without its sequence: {\"config\":{\"scheme\":\"rope\"}}");
    struct pe_value config = *found;
    request->n_fields = 0;
    for (size_t i = 0; i < config.object.n; i++)
        if (!api_request_add(request, config.object.fields[i].name, &config.object.fields[i].value,
                             &p->request->problem))
            return point_into_config(&p->request->problem);
    return true;
}

static bool read_json(struct putting *p)
{
    const struct api_call *call = p->request->call;
    if (api_json_read_plain(p->request, call->body, call->body_bytes, "", &p->request->problem))
        return true;
    bool is_no_object = p->request->problem.status == 422 && !*p->request->problem.error.pointer;
    return is_no_object ? api_fail(&p->request->problem, 422, "",
                                   "a preset is a JSON object: {\"config\":{\"scheme\":\"rope\"}}")
                        : false;
}

static bool read_body(struct putting *p)
{
    const struct api_call *call = p->request->call;
    struct api_request *request = p->request;
    const char *name = NULL;
    if (!call->body_bytes)
        return api_fail(&p->request->problem, 400, "",
                        "the body is empty; send a preset: {\"config\":{\"scheme\":\"rope\"}}");
    if (call->body_bytes > API_PRESET_BYTES_MAX)
        return api_fail(&p->request->problem, 413, "", "the preset has %zu bytes; allowed: at most %d",
                        call->body_bytes, API_PRESET_BYTES_MAX);
    request->presets = p->request->host->presets;
    if (!api_memory_for_reading(p->request) || !read_json(p) || !check_members(p) ||
        !take_word(p, "source", &p->members.source) || !take_word(p, "note", &p->members.note) ||
        !take_word(p, "name", &name))
        return false;
    if (name && strcmp(name, p->request->path.name) != 0)
        return api_fail(&p->request->problem, 422, "/name",
                        "name is \"%.64s\", but the path names \"%s\"; leave name out", name, p->request->path.name);
    return take_config(p);
}

static bool resolve(struct putting *p, struct pe_config **config)
{
    const struct api_request *request = p->request;
    struct pe_failure err;
    struct pe_request core = {.operation = PE_ENCODE,
                              .fields = request->fields,
                              .n_fields = request->n_fields,
                              .caller_fields = api_form_names,
                              .admit = api_memory_admit,
                              .caller = p->request};
    if (!api_pasted_take(p->request, &p->request->problem) || !api_preset_take(p->request, &p->request->problem))
        return false;
    api_memory_settle(p->request);
    if (pe_config_new(&core, config, &err) == PE_OK)
        return true;
    if (p->request->is_refused)
        return false;
    const char *name = err.pointer + (*err.pointer == '/');
    for (const char *const *row = api_form_names; *row; row++)
        if (strcmp(*row, name) == 0)
            return api_fail(&p->request->problem, 422, err.pointer,
                            "%s is about one request, not about a preset; leave it out", name);
    return api_fail_core(&p->request->problem, &err);
}

/* The file's text; what has been resolved is not needed any more then. */
static bool print_file(struct putting *p, struct api_text *text)
{
    struct pe_config *config = NULL;
    char now[API_TIME_BYTES];
    if (!resolve(p, &config))
        return point_into_config(&p->request->problem);
    p->request->host->print_time(now);
    p->members.config = pe_config_value(config);
    p->members.stored_by = p->request->call->client;
    p->members.stored_at = now;
    api_text_put(text, "{");
    api_preset_members(text, &p->members);
    api_text_put(text, "}\n");
    pe_config_free(config);
    if (text->state == API_TEXT_FULL)
        return api_fail(&p->request->problem, 413, "", "as it would be stored, the preset has more than %d bytes",
                        API_PRESET_BYTES_MAX);
    return !text->state || api_fail_text(&p->request->problem, text);
}

static struct api_reply *store_text(struct putting *p, const struct api_text *text)
{
    const struct api_store *store = p->request->host->presets;
    const struct api_stored_file *file = NULL;
    struct api_guard guard = api_stored_guard(p->request->call);
    char why[256];
    void *contents = api_contents_presets.read(text->bytes, text->n, why, sizeof why);
    if (!contents) {
        if (*why)
            api_fail(&p->request->problem, 422, "/config", "%s", why);
        else
            api_fail_memory(&p->request->problem);
        return NULL;
    }
    enum api_stored stored =
        store->put(store->self, p->request->path.name, text->bytes, text->n, contents, &guard, &file);
    if (stored == API_STORED_GUARDED)
        return api_stored_guarded(p->request, store);
    if (!file)
        return api_stored_refused(p->request, store, stored, text->n);
    struct api_reply *reply = send(stored == API_STORED_NEW ? 201 : 200, file);
    store->release(store->self, file);
    return reply;
}

static struct api_reply *put_preset(struct api_request *request)
{
    struct putting p = {.request = request};
    struct api_text text;
    api_text_init(&text, API_PRESET_BYTES_MAX);
    struct api_reply *reply = read_body(&p) && print_file(&p, &text) ? store_text(&p, &text) : NULL;
    api_text_drop(&text);
    return reply;
}

/* ---- One preset ---- */

static struct api_reply *change(struct api_request *request, bool is_put)
{
    if (!request->host->presets)
        return api_refusal(503, "this server stores no presets");
    if (!check_name(request->path.name, &request->problem))
        return NULL;
    return is_put ? put_preset(request) : api_stored_remove(request, request->host->presets, api_preset_absent);
}

struct api_reply *api_preset(struct api_request *request)
{
    const char *method = request->call->method;
    bool is_put = strcmp(method, "PUT") == 0;
    return is_put || strcmp(method, "DELETE") == 0 ? change(request, is_put) : get(request);
}
