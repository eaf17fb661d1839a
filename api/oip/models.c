/* Requests about the whole server and its model repository: health, names, loading. */
#include "api/inputs/inputs.h"
#include "api/oip/oip.h"

#include <string.h>

static struct api_reply *fixed(const char *json)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, json);
    return api_reply_text(200, api_json_type, &text);
}

struct api_reply *api_oip_server(struct api_request *request)
{
    (void)request;
    return fixed("{\"name\":\"posenc\",\"version\":\"" PE_VERSION
                 "\",\"extensions\":[\"binary_tensor_data\",\"parameters\",\"model_repository\","
                 "\"model_configuration\"]}");
}

/* ---- Health ---- */

struct api_reply *api_oip_live(struct api_request *request)
{
    (void)request;
    return api_reply_uncached(fixed("{\"live\":true}"));
}

static bool check_ready(struct api_request *request)
{
    return !api_host_is_ending(request->host) ||
           api_fail(&request->problem, 503, "", "the server accepts no new work: it is starting or shutting down");
}

struct api_reply *api_oip_ready(struct api_request *request)
{
    return check_ready(request) ? api_reply_uncached(fixed("{\"ready\":true}")) : NULL;
}

struct api_reply *api_oip_model_ready(struct api_request *request)
{
    struct api_oip_model model;
    if (!api_oip_find(request, &model) || !check_ready(request))
        return NULL;
    struct api_text text;
    char name[API_OIP_NAME_MAX];
    api_oip_name_print(&model, name);
    api_text_init(&text, API_TEXT_MAX);
    api_text_format(&text, "{\"name\":\"%s\",\"ready\":true}", name);
    return api_reply_uncached(api_reply_text(200, api_json_type, &text));
}

/* ---- Lists ---- */

/* Prints before, then the entry of each model, then after; %s in the entry is the model's name. */
enum entry { ENTRY_NAME, ENTRY_STATE, ENTRY_STATISTICS };

static void add_entry(struct api_text *text, const struct api_oip_model *model, enum entry entry)
{
    char name[API_OIP_NAME_MAX];
    api_oip_name_print(model, name);
    if (entry == ENTRY_NAME)
        api_text_string(text, name);
    else if (entry == ENTRY_STATE)
        api_text_format(
            text, "{\"name\":\"%s\",\"version\":\"" API_OIP_VERSION "\",\"state\":\"READY\",\"reason\":\"\"}", name);
    else /* /metrics counts by route and scheme, not by model: no figures here, rather than wrong ones */
        api_text_format(text, "{\"name\":\"%s\",\"version\":\"" API_OIP_VERSION "\"}", name);
}

static struct api_reply *list(const char *before, enum entry entry, const char *after)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, before);
    for (size_t i = 0; i < api_oip_n_models(); i++) {
        struct api_oip_model model = api_oip_model_at(i);
        api_text_name(&text, NULL);
        add_entry(&text, &model, entry);
    }
    api_text_put(&text, after);
    return api_reply_text(200, api_json_type, &text);
}

struct api_reply *api_oip_models(struct api_request *request)
{
    (void)request;
    return list("{\"models\":[", ENTRY_NAME, "]}");
}

struct api_reply *api_oip_models_stats(struct api_request *request)
{
    (void)request;
    return list("{\"model_stats\":[", ENTRY_STATISTICS, "]}");
}

/* The body may ask for ready models only; all models are ready. */
struct api_reply *api_oip_index(struct api_request *request)
{
    (void)request;
    return list("[", ENTRY_STATE, "]");
}

struct api_reply *api_oip_stats(struct api_request *request)
{
    struct api_oip_model model;
    if (!api_oip_find(request, &model))
        return NULL;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{\"model_stats\":[");
    add_entry(&text, &model, ENTRY_STATISTICS);
    api_text_put(&text, "]}");
    return api_reply_text(200, api_json_type, &text);
}

/* ---- Loading ---- */

/* Triton's clients may send a configuration or files, which would then take effect: such a request is refused, not
 * ignored. */
static bool check_load(const struct api_call *call, struct api_problem *problem)
{
    struct api_request request;
    if (!call->body_bytes)
        return true;
    api_request_init(&request, PE_ENCODE);
    bool fine = api_json_read_plain(&request, call->body, call->body_bytes, "", problem);
    const struct pe_value *parameters = fine ? api_request_find(&request, "parameters") : NULL;
    if (parameters && parameters->kind == PE_OBJECT && parameters->object.n)
        fine = api_fail(problem, 501, "/parameters", "models are part of the program; their configuration is fixed");
    api_request_drop(&request);
    return fine;
}

struct api_reply *api_oip_load(struct api_request *request)
{
    struct api_oip_model model;
    bool fine = api_oip_find(request, &model) && check_load(request->call, &request->problem);
    return fine ? api_reply_empty(200) : NULL;
}

struct api_reply *api_oip_unload(struct api_request *request)
{
    struct api_oip_model model;
    if (api_oip_find(request, &model))
        api_fail(&request->problem, 501, "", "models are part of the program; none can be unloaded");
    return NULL;
}
