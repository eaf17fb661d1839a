/* tools/call: the arguments become the request of the tool's endpoint, which reads, checks, plans and limits it as if
 * it had come by HTTP; only what is around the answer is written here. The call of the endpoint borrows from the call
 * of the message. */
#include "api/formats/format.h"
#include "api/mcp/mcp.h"
#include "api/requests/requests.h"

#include <stdio.h>
#include <stdlib.h>

enum { PNG_MAX = 1 << 20, PNG_SIDE_MAX = 2048, PRESETS_USUAL = 10, QUERY_MAX = 64 * 1024 };

/* ---- The arguments ---- */

static bool is_named(const struct api_json_member *member, const char *name)
{
    return strlen(name) == member->name_bytes && memcmp(name, member->name, member->name_bytes) == 0;
}

/* A field of a tool as the rows read it: a number, a word, or a wrong type, which a refusal names. */
static bool read_value(struct api_request *request, const struct api_json_member *member, struct pe_value *value)
{
    struct api_json_error error;
    char pointer[PE_POINTER_MAX] = "";
    json_t *json = api_json_load(&request->arena, member->value, member->value_bytes, JSON_DECODE_ANY, &error);
    if (!json && error.no_memory)
        return api_fail_memory(&request->problem);
    if (!json && error.status != 400) /* a number that is too large is no error of syntax */
        api_pointer_push(pointer, member->name, member->name_bytes);
    if (!json)
        return api_fail(&request->problem, error.status, pointer, "%s", pe_text(error.text));
    *value = api_json_scalar(json);
    return true;
}

static bool is_own(const struct api_mcp_call *call, const struct api_json_member *member)
{
    bool has_values = call->tool.kind == API_MCP_TENSORS || call->tool.kind == API_MCP_LIVE;
    return (has_values && is_named(member, "values")) || (call->tool.kind == API_MCP_PICTURE && is_named(member, "of"));
}

static bool read_own(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    struct api_json_member member;
    struct pe_field fields[2];
    struct pe_failure err;
    bool taken[2] = {false};
    size_t n = 0;
    while (n < 2 && api_json_next(&at, &member)) {
        if (!is_own(call, &member))
            continue;
        fields[n].name = is_named(&member, "of") ? "of" : "values";
        if (!read_value(request, &member, &fields[n].value))
            return false;
        n += fields[n].value.kind != PE_NULL;
    }
    if (pe_params_read(api_mcp_own_rows, &call->own, fields, n, taken, "", &err))
        return api_fail_core(&request->problem, &err);
    if (call->own.values == PE_UNSET_INT)
        call->own.values = call->tool.values;
    return true;
}

/* The arguments without the tool's own, and with what it takes by default. The text is copied only if it differs. */
static bool set_body(struct api_mcp_call *call)
{
    struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    struct api_json_member member;
    struct api_text text;
    bool differs = false, first = true, is_analysis = strcmp(call->tool.name, "analyze") == 0;
    call->inner.body = call->message.arguments;
    call->inner.body_bytes = call->message.arguments_bytes;
    while (api_json_next(&at, &member)) {
        differs = differs || is_own(call, &member);
        is_analysis = is_analysis && !is_named(&member, "outputs");
    }
    if (!differs && !is_analysis)
        return true;
    api_text_init(&text, call->message.arguments_bytes + 32);
    at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    api_text_put(&text, "{");
    while (api_json_next(&at, &member)) {
        if (is_own(call, &member))
            continue;
        api_text_add(&text, ",", !first);
        api_text_add(&text, member.name - 1, (size_t)(member.value + member.value_bytes - member.name) + 1);
        first = false;
    }
    if (is_analysis)
        api_text_put(&text, first ? "\"outputs\":[]" : ",\"outputs\":[]");
    api_text_put(&text, "}");
    call->inner.body = text.state ? NULL : api_arena_string(&call->request->arena, text.bytes, text.n);
    call->inner.body_bytes = text.n;
    api_text_drop(&text);
    return call->inner.body || api_fail_memory(&call->request->problem);
}

/* ---- The endpoint's request ---- */

static const struct api_route *route_of(const struct api_request *request, const char *pattern)
{
    const struct api_route *route;
    for (size_t i = 0; (route = request->route_at(i)); i++)
        if (strcmp(route->pattern, pattern) == 0)
            return route;
    return NULL;
}

static void set_inner(struct api_mcp_call *call, const struct api_route *route)
{
    const struct api_call *outer = call->request->call;
    call->inner = *outer;
    call->inner.method = "POST";
    call->inner.path = call->tool.route->pattern;
    call->inner.query = NULL;
    call->inner.content_type = api_json_type;
    call->inner.accept = call->tool.kind == API_MCP_PICTURE ? "image/png" : api_json_type;
    call->inner.if_match = call->inner.if_none_match = call->inner.if_range = call->inner.range = NULL;
    call->inner.last_event_id = NULL;
    call->inner.body_is_ours = false;
    call->inner.route = route;
}

/* Steps of the endpoint see its own call, route and state. */
struct outer {
    const struct api_call *call;
    const struct api_route *route;
    void *own;
};

static struct outer enter(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    struct outer outer = {request->call, request->route, request->own};
    request->call = &call->inner;
    request->route = call->tool.route;
    request->own = call->inner_own;
    request->operation = call->tool.route->operation;
    return outer;
}

static void leave(struct api_mcp_call *call, const struct outer *outer)
{
    call->request->call = outer->call;
    call->request->route = outer->route;
    call->request->own = outer->own;
}

static const struct api_steps *steps_of(const struct api_route *route)
{
    return route->steps ? route->steps : &api_operate;
}

/* An answer is JSON, or the picture; other formats are what the url is for. An experiment has no format. */
static bool choose_format(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    if (call->tool.kind == API_MCP_LIVE)
        return true;
    const char *wanted = call->tool.kind == API_MCP_PICTURE ? "png" : "json";
    if (strcmp(request->format->name, wanted) != 0)
        return api_fail(&request->problem, 406, "/format",
                        call->tool.kind == API_MCP_ANSWER
                            ? "the answer of this tool is %s, not %s"
                            : "the answer of this tool is %s, not %s; its url gives files",
                        wanted, request->format->name);
    call->has_data = request->form.data;
    if (call->tool.kind == API_MCP_TENSORS) {
        request->format = &api_mcp_tensors;
        request->about = call;
    }
    return true;
}

static bool read_request(struct api_mcp_call *call)
{
    const struct api_steps *steps = steps_of(call->tool.route);
    struct api_request *request = call->request;
    call->inner_own = api_arena_alloc(&request->arena, steps->own_bytes + 16);
    if (!call->inner_own)
        return api_fail_memory(&request->problem);
    struct outer outer = enter(call);
    bool fine = steps->read(request) && choose_format(call) && (!steps->check || steps->check(request));
    leave(call, &outer);
    return fine;
}

/* ---- The catalogue: a GET with the arguments in its path or query ---- */

static bool check_string(struct api_mcp_call *call, const struct api_json_member *member, const struct pe_value *value)
{
    char pointer[PE_POINTER_MAX] = "";
    if (value->kind == PE_STRING || is_named(member, "limit"))
        return true;
    api_pointer_push(pointer, member->name, member->name_bytes);
    return api_fail(&call->request->problem, 422, pointer, "%s is not a string", pointer + 1);
}

/* As in the other tools, a null counts as absent. */
static bool put_query(struct api_mcp_call *call, struct api_text *query)
{
    struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    struct api_json_member member;
    bool has_limit = false;
    while (api_json_next(&at, &member)) {
        struct pe_value value;
        if (!read_value(call->request, &member, &value))
            return false;
        if (value.kind == PE_NULL)
            continue;
        if (!check_string(call, &member, &value))
            return false;
        if (is_named(&member, "name") && call->tool.kind == API_MCP_SCHEMES && value.kind == PE_STRING) {
            snprintf(call->request->path.name, sizeof call->request->path.name, "%s", value.string);
            continue;
        }
        has_limit = has_limit || is_named(&member, "limit");
        api_text_add(query, member.name, member.name_bytes);
        api_text_put(query, "=");
        const char *text = value.kind == PE_STRING ? value.string : member.value;
        size_t n = value.kind == PE_STRING ? strlen(text) : member.value_bytes;
        for (size_t i = 0; i < n; i++)
            api_text_format(query, "%%%02X", (unsigned char)text[i]);
        api_text_put(query, "&");
    }
    if (call->tool.kind == API_MCP_PRESETS && !has_limit)
        api_text_format(query, "limit=%d", PRESETS_USUAL);
    return !query->state || api_fail_memory(&call->request->problem);
}

static bool read_catalogue(struct api_mcp_call *call)
{
    struct api_text query;
    if (call->message.arguments_bytes > QUERY_MAX)
        return api_fail(&call->request->problem, 413, "", "the arguments have %zu bytes; allowed in this tool: %d",
                        call->message.arguments_bytes, QUERY_MAX);
    api_text_init(&query, API_SKELETON_MAX);
    bool fine = put_query(call, &query);
    char *copy = fine ? api_arena_string(&call->request->arena, query.bytes ? query.bytes : "", query.n) : NULL;
    api_text_drop(&query);
    call->inner.method = "GET";
    call->inner.body = NULL;
    call->inner.body_bytes = 0;
    call->inner.query = copy;
    call->inner.lang = call->request->lang = api_lang_of(&call->inner);
    pe_speak_in(call->inner.lang);
    if (*call->request->path.name)
        call->tool.route = route_of(call->request, "/schemes/{name}");
    return copy || (fine && api_fail_memory(&call->request->problem));
}

bool api_mcp_call_read(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    call->request->problem.status = 0;
    set_inner(call, call->tool.route);
    if (call->tool.kind <= API_MCP_PRESETS)
        return read_catalogue(call);
    if (!read_own(call) || !set_body(call))
        return false;
    if (call->tool.kind == API_MCP_PICTURE) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "/%s", api_mcp_own_rows[1].words[call->own.of]);
        call->tool.route = call->inner.route = route_of(request, pattern);
        call->inner.path = call->tool.route->pattern;
    }
    return read_request(call);
}

/* ---- The answer ---- */

static char *whole_of(const struct api_reply *reply, size_t *n)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_room(&text, 1); /* an empty body is no failed allocation */
    for (uint64_t i = 0; i < reply->body->n_pieces; i++) {
        char *place = api_text_room(&text, reply->body->piece_max + 8);
        if (!place)
            break;
        text.n += api_reply_piece(reply, i, place);
    }
    *n = text.n;
    if (!text.state)
        return text.bytes;
    api_text_drop(&text);
    return NULL;
}

static const json_t *parse(const struct api_mcp_call *call, const char *bytes, size_t n)
{
    struct api_json_error error;
    return api_json_load(&call->request->arena, bytes, n, 0, &error);
}

static void put_findings(struct api_text *text, const json_t *answer)
{
    const json_t *findings = json_object_get(answer, "findings");
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const char *detail = json_string_value(json_object_get(json_array_get(findings, i), "detail"));
        api_text_format(text, "%s%s", i ? "\n" : "", detail ? detail : "");
    }
    if (!json_array_size(findings))
        api_text_put(text, pe_text("nothing is found"));
}

static void put_presets(struct api_text *text, const json_t *answer)
{
    long long total = (long long)json_integer_value(json_object_get(answer, "total"));
    size_t shown = json_array_size(json_object_get(answer, "presets"));
    const char *nearest = json_string_value(json_object_get(answer, "nearest"));
    if (total)
        api_text_format(text, pe_text("%lld presets; %zu are listed."), total, shown);
    else if (nearest)
        api_text_format(text, pe_text("no preset has these words; nearest: %s"), nearest);
    else
        api_text_put(text, pe_text("no preset has these words; presets without a query lists them"));
}

static void put_summary(struct api_text *text, const struct api_mcp_call *call, const json_t *answer)
{
    const char *detail = json_string_value(json_object_get(answer, "detail"));
    if (call->tool.kind == API_MCP_SCHEMES)
        api_text_format(text, pe_text("%zu schemes; with name, every parameter of one."), pe_n_schemes());
    else if (call->tool.kind == API_MCP_PRESETS)
        put_presets(text, answer);
    else if (detail)
        api_text_put(text, detail);
    else
        put_findings(text, answer);
}

static void put_schemes(struct api_text *text)
{
    api_text_put(text, "\"schemes\":[");
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *info = pe_scheme_at(i);
        api_text_put(text, i ? ",{\"name\":" : "{\"name\":");
        api_text_string(text, info->name);
        api_text_member(text, "family", info->family);
        api_text_member(text, "summary", pe_summary_in(pe_spoken(), &info->about));
        api_text_put(text, ",\"outputs\":[");
        bool first = true;
        for (const struct pe_output_row *row = info->outputs; row && row->name; row++) {
            if (!pe_output_suits(row, info))
                continue;
            api_text_add(text, ",", !first);
            api_text_string(text, row->name);
            first = false;
        }
        api_text_format(text, "],\"example\":%s}", info->example);
    }
    api_text_put(text, "]");
}

static const char *fits_of(const struct api_reply *reply)
{
    for (size_t i = 0; i < reply->n_headers; i++)
        if (strcmp(reply->headers[i].name, "Posenc-Fits") == 0)
            return strcmp(reply->headers[i].value, "?1") == 0 ? "true" : "false";
    return NULL;
}

/* The members of the endpoint's JSON object, as they are. */
static void put_answer(struct api_text *text, const struct api_mcp_call *call, const struct api_reply *reply,
                       const char *bytes, size_t n)
{
    struct api_text summary;
    bool is_one = *call->request->path.name;
    const json_t *answer = call->tool.kind == API_MCP_SCHEMES ? NULL : parse(call, bytes, n);
    const char *fits = json_object_get(answer, "fits") ? NULL : fits_of(reply);
    api_text_init(&summary, API_TEXT_MAX);
    if (!answer && call->tool.kind != API_MCP_SCHEMES)
        text->state = API_TEXT_NO_MEMORY;
    if (is_one && call->tool.kind == API_MCP_SCHEMES)
        api_text_format(&summary, "%s: %s", call->request->path.name,
                        pe_summary_in(pe_spoken(), &pe_scheme_find(call->request->path.name)->about));
    else
        put_summary(&summary, call, answer);
    api_text_put(text, "\"summary\":");
    api_text_string_n(text, summary.bytes, summary.n);
    if (fits)
        api_text_format(text, ",\"fits\":%s", fits);
    api_text_put(text, ",");
    if (call->tool.kind != API_MCP_SCHEMES) {
        api_text_add(text, bytes + 1, n - 2);
    } else if (is_one) {
        api_text_put(text, "\"schemes\":[");
        api_text_add(text, bytes, n);
        api_text_put(text, "]");
    } else {
        put_schemes(text);
    }
    if (summary.state)
        text->state = summary.state;
    api_text_drop(&summary);
}

/* ---- A picture ---- */

static uint64_t big_endian(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
}

static bool check_picture(struct api_mcp_call *call, const char *png, size_t n)
{
    struct api_problem *problem = &call->request->problem;
    uint64_t width = n > 24 ? big_endian(png + 16) : 0, height = n > 24 ? big_endian(png + 20) : 0;
    if (width > PNG_SIDE_MAX || height > PNG_SIDE_MAX)
        return api_fail(problem, 413, "", "the picture has %llu x %llu pixels; allowed in a tool: at most %d on a side",
                        (unsigned long long)width, (unsigned long long)height, PNG_SIDE_MAX);
    return n <= PNG_MAX ||
           api_fail(problem, 413, "", "the picture has %zu bytes; allowed in a tool: at most %d", n, PNG_MAX);
}

/* ---- All ---- */

static struct api_reply *wrap_problem(struct api_mcp_call *call)
{
    struct api_text text;
    struct api_problem *problem = &call->request->problem;
    if (problem->status == 400 && !*problem->error.pointer) { /* syntax that only the endpoint's reader has seen */
        char detail[PE_DETAIL_MAX];
        snprintf(detail, sizeof detail, "arguments: %.480s", problem->error.detail);
        api_mcp_fail(&call->message, API_MCP_NOT_JSON, "%s", detail);
        api_mcp_count(call->tool.number, API_MCP_ERROR);
        return api_mcp_reply_error(&call->message);
    }
    api_text_init(&text, API_TEXT_MAX);
    api_mcp_result_problem(&text, &call->message, problem);
    api_mcp_count(call->tool.number, API_MCP_REFUSED);
    return api_reply_text(200, api_json_type, &text);
}

static struct api_reply *wrap(struct api_mcp_call *call, struct api_reply *reply)
{
    struct api_text text, members;
    size_t n;
    char *bytes = whole_of(reply, &n);
    bool is_picture = call->tool.kind == API_MCP_PICTURE;
    struct api_reply *wrapped = NULL;
    if (!bytes)
        return api_reply_without_memory(reply);
    if (reply->status >= 400) { /* without memory; any other refusal is the request's problem, and no reply yet */
        api_fail_memory(&call->request->problem);
        wrapped = wrap_problem(call);
    } else if (is_picture && !check_picture(call, bytes, n)) {
        wrapped = wrap_problem(call);
    } else {
        struct api_mcp_link link = {.name = call->tool.name, .media_type = "image/png", .bytes = n};
        api_text_init(&text, API_TEXT_MAX);
        api_text_init(&members, API_TEXT_MAX);
        link.url = is_picture ? api_mcp_url(call, "png", &text) : NULL;
        if (is_picture)
            api_mcp_put_picture(&members, call, reply, link.url);
        else
            put_answer(&members, call, reply, bytes, n);
        api_mcp_result(&text, &call->message, members.bytes, members.n, &link, is_picture ? bytes : NULL, n);
        text.state = members.state ? members.state : text.state;
        api_text_drop(&members);
        api_mcp_count(call->tool.number, API_MCP_OK);
        wrapped = api_reply_text(200, api_json_type, &text);
    }
    free(bytes);
    api_reply_free(reply);
    return wrapped;
}

struct api_reply *api_mcp_call_build(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    struct api_reply *reply = NULL;
    if (!call->is_refused) {
        const struct api_route *route = call->tool.route;
        struct outer outer = enter(call);
        if (call->tool.kind == API_MCP_SCHEMES)
            call->request->problem.status = 0;
        reply = route->handle ? route->handle(request) : steps_of(route)->build(request);
        leave(call, &outer);
    }
    if (pe_was_cancelled()) {
        api_mcp_count(call->tool.number, API_MCP_CANCELLED);
        api_reply_free(reply);
        return NULL;
    }
    if (!reply) {
        api_memory_refusal(request, &request->problem);
        return wrap_problem(call);
    }
    if (call->tool.kind == API_MCP_LIVE && reply->status < 400)
        return api_mcp_live(call, reply);
    if (call->tool.kind == API_MCP_TENSORS && reply->status < 400) {
        api_mcp_count(call->tool.number, API_MCP_OK);
        return reply;
    }
    return wrap(call, reply);
}
