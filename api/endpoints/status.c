/* What the server reports of itself: /healthz, /readyz, /metrics and /version for operators, /limits for clients. */
#include "api/routes.h"

static struct api_reply *state_reply(const char *state)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_format(&text, "{\"status\":\"%s\"}", state);
    return api_reply_uncached(api_reply_text(200, api_json_type, &text));
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
    return api_refusal(503, "the server accepts no new work: it is starting or shutting down");
}

struct api_reply *api_metrics(struct api_request *request)
{
    size_t n = 0;
    char *bytes = request->host->metrics_print(&n);
    struct api_reply *reply = api_reply_bytes(200, "text/plain; version=0.0.4; charset=utf-8", bytes, n);
    return api_reply_uncached(api_reply_set_format(reply, "prometheus"));
}

struct api_reply *api_version(struct api_request *request)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_open(&text, NULL, '{');
    api_text_member(&text, "name", "posenc");
    api_text_member(&text, "version", PE_VERSION);
    api_text_member(&text, "commit", request->host->commit ? request->host->commit : "unknown");
    api_text_member(&text, "isa", pe_isa_name(pe_isa()));
    api_text_close(&text, '}');
    return api_reply_text(200, api_json_type, &text);
}

/* ---- /limits ----------------------------------------------------------------------------------------------------- */

/* What this server allows, what this request's token may do, and which endpoints the program has, so that a client need
 * not find out by being refused. */

/* The furthest position, as the rows of the sequence state it. */
static int64_t furthest(void) { return (int64_t)pe_param_find(pe_sequence_params(), "offset")->max; }

static void add_limits(struct api_text *text, const struct api_host *host)
{
    const struct {
        const char *name;
        uint64_t value;
    } limits[] = {{"max_body", host->max_body},           {"max_answer", host->max_answer},
                  {"max_work", host->max_work},           {"max_analysis", host->max_analysis},
                  {"picture_side", API_PICTURE_SIDE_MAX}, {"configs", PE_ENTRIES_MAX},
                  {"position", (uint64_t)furthest()}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        api_text_count(text, limits[i].name, (int64_t)limits[i].value);
}

/* It depends on the token, and options change with a restart, so no cache may store it. */
struct api_reply *api_limits(struct api_request *request)
{
    enum api_access access = request->call->access;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_open(&text, NULL, '{');
    add_limits(&text, request->host);
    api_text_flag(&text, "private", access != API_ACCESS_OPEN);
    api_text_flag(&text, "may_write", access == API_ACCESS_OPEN || access == API_ACCESS_WRITE);
    const struct api_route *route;
    api_text_open(&text, "routes", '{');
    for (size_t i = 0; (route = request->route_at(i)); i++) {
        api_text_open(&text, route->pattern, '[');
        for (const struct api_method_row *row = api_methods; row->name; row++)
            if (row->method & route->methods)
                api_text_member(&text, NULL, row->name);
        api_text_close(&text, ']');
    }
    api_text_close(&text, '}');
    api_text_close(&text, '}');
    return api_reply_uncached(api_reply_text(200, api_json_type, &text));
}
