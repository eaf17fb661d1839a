/* Endpoints for operators: /healthz, /readyz, /metrics, /version. */
#include "api/routes.h"

/* The current state, which no cache may store. */
static struct api_reply *uncached(struct api_reply *reply)
{
    return api_reply_header(reply, "Cache-Control", "no-store") ? reply : api_reply_without_memory(reply);
}

static struct api_reply *state_reply(const char *state)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_format(&text, "{\"status\":\"%s\"}", state);
    return uncached(api_reply_text(200, api_json_type, &text));
}

struct api_reply *api_healthz(struct api_request *request)
{
    (void)request;
    return state_reply("ok");
}

struct api_reply *api_readyz(struct api_request *request)
{
    if (!api_host_is_ending(request->host))
        return state_reply("ready");
    return api_refusal(503, "the server takes no new work: it is starting or shutting down");
}

struct api_reply *api_metrics(struct api_request *request)
{
    size_t n = 0;
    char *bytes = request->host->metrics_print(&n);
    struct api_reply *reply = api_reply_bytes(200, "text/plain; version=0.0.4; charset=utf-8", bytes, n);
    return uncached(api_reply_set_format(reply, "prometheus"));
}

struct api_reply *api_version(struct api_request *request)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{\"name\":\"posenc\",\"version\":");
    api_text_string(&text, PE_VERSION);
    api_text_put(&text, ",\"commit\":");
    api_text_string(&text, request->host->commit ? request->host->commit : "unknown");
    api_text_put(&text, ",\"isa\":");
    api_text_string(&text, pe_isa_name(pe_isa()));
    api_text_put(&text, "}");
    return api_reply_text(200, api_json_type, &text);
}
