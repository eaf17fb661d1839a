/* tools/call: the arguments become the request of the tool's endpoint, which reads, checks, plans and limits it as if
 * it had come by HTTP; only what is around the answer is written here. The call of the endpoint borrows from the call
 * of the message. */
#include "api/formats/format.h"
#include "api/mcp/mcp.h"
#include "api/requests/requests.h"

#include <stdio.h>
#include <stdlib.h>

enum { PNG_MAX = 1 << 20, PNG_SIDE_MAX = 2048, PRESETS_USUAL = 10 };

/* Bytes of JSON that becomes the answer of a tool, which is for a model's context; and how often it is in memory then:
 * as it is, as members, as an object, as that object's text, and as both together, in rooms of twice the size. */
enum { ANSWER_MAX = 8 << 20, ANSWER_COPIES = 10 };

/* ---- The arguments ---- */

static bool is_named(const struct api_json_member *member, const char *name)
{
    return strlen(name) == member->name_bytes && memcmp(name, member->name, member->name_bytes) == 0;
}

/* A part of the arguments, or all, as a tree in the request's arena. NULL: request->problem is set; an error of syntax
 * has no pointer, a number that is too large has. */
static json_t *load(struct api_mcp_call *call, const char *text, size_t n)
{
    struct api_problem *problem = &call->request->problem;
    struct api_json_error error;
    char pointer[PE_POINTER_MAX] = "";
    json_t *json = api_json_load(&call->request->arena, text, n, JSON_DECODE_ANY, &error);
    if (!json && error.no_memory)
        api_fail_memory(problem);
    if (json || error.no_memory)
        return json;
    if (error.status == 422) {
        /* The member of the arguments that has this byte. */
        struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
        struct api_json_member member;
        *pointer = '\0';
        while (api_json_next(&at, &member) && member.value + member.value_bytes <= text + error.at)
            continue;
        if (!at.is_broken)
            api_pointer_push(pointer, member.name, member.name_bytes);
    }
    api_fail(problem, error.status, pointer, "%s", pe_text(error.text));
    return NULL;
}

/* The field of the tool that its endpoint does not have; NULL: none. */
static const char *own_name(const struct api_mcp_call *call)
{
    bool has_values = call->tool.kind == API_MCP_TENSORS || call->tool.kind == API_MCP_LIVE;
    return has_values ? "values" : call->tool.kind == API_MCP_PICTURE ? "of" : NULL;
}

/* What the tool and its endpoint take of the arguments. Where they are no JSON, or have a name twice, the endpoint
 * takes all, and refuses them. */
struct parts {
    struct api_json_member own; /* value NULL: it is not there */
    bool has_outputs, are_whole;
};

/* A field of a tool as the rows read it: a number, a word, or a wrong type, which a refusal names. */
static bool read_own(struct api_mcp_call *call, const struct parts *parts)
{
    struct api_request *request = call->request;
    struct pe_field field = {own_name(call), {.kind = PE_NULL}};
    char pointer[PE_POINTER_MAX] = "";
    struct pe_failure err;
    bool taken[1] = {false};
    if (parts->own.value && !parts->are_whole) {
        api_pointer_push(pointer, field.name, strlen(field.name));
        if (parts->own.value_bytes > API_MCP_WHOLE_MAX)
            return api_fail(&request->problem, 413, pointer, "%s has %zu bytes; allowed: at most %d", field.name,
                            parts->own.value_bytes, API_MCP_WHOLE_MAX);
        const json_t *json = load(call, parts->own.value, parts->own.value_bytes);
        if (!json)
            return false;
        field.value = api_json_scalar(json);
    }
    if (pe_params_read(api_mcp_own_rows, &call->own, &field, field.value.kind != PE_NULL, taken, "", &err))
        return api_fail_core(&request->problem, &err);
    if (call->own.values == PE_UNSET_INT)
        call->own.values = call->tool.values;
    return true;
}

/* A copy of a long text gives up its turn. */
static char *copy(char *place, const char *text, size_t n)
{
    enum { STEP = 1 << 20 };
    for (size_t at = 0, step; at < n && !pe_is_cancelled(); at += step) {
        step = n - at < STEP ? n - at : STEP;
        memcpy(place + at, text + at, step);
    }
    return place + n;
}

/* The arguments without the tool's own, and with what it takes by default. The text is copied only if it differs. */
static bool set_body(struct api_mcp_call *call, const struct parts *parts)
{
    static const char no_outputs[] = "\"outputs\":[]";
    struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    struct api_json_member member;
    bool adds = strcmp(call->tool.name, "analyze") == 0 && !parts->has_outputs;
    call->inner.body = call->message.arguments;
    call->inner.body_bytes = call->message.arguments_bytes;
    if (parts->are_whole || (!parts->own.value && !adds))
        return true;
    char *body = api_arena_alloc(&call->request->arena, call->message.arguments_bytes + sizeof no_outputs + 2);
    char *p = body;
    if (!body)
        return api_fail_memory(&call->request->problem);
    while (api_json_next(&at, &member)) {
        if (member.name == parts->own.name)
            continue;
        *p = p == body ? '{' : ',';
        p = copy(p + 1, member.name - 1, (size_t)(member.value + member.value_bytes - member.name) + 1);
    }
    if (adds) {
        *p = p == body ? '{' : ',';
        p = copy(p + 1, no_outputs, sizeof no_outputs - 1);
    } else if (p == body) {
        *p++ = '{';
    }
    *p++ = '}';
    call->inner.body = body;
    call->inner.body_bytes = (size_t)(p - body);
    return true;
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
    const struct api_steps *steps = api_steps_of(call->tool.route);
    struct api_request *request = call->request;
    call->inner_own = api_arena_alloc(&request->arena, steps->own_bytes + 16);
    if (!call->inner_own)
        return api_fail_memory(&request->problem);
    struct outer outer = enter(call);
    bool fine = true;
    for (size_t i = 0; fine && steps->read[i]; i++)
        fine = steps->read[i](request);
    fine = fine && choose_format(call) && (!steps->check || steps->check(request));
    leave(call, &outer);
    return fine;
}

/* ---- The catalogue: a GET with the arguments in its path or query ---- */

static bool check_argument(struct api_mcp_call *call, const char *name, const struct pe_value *value)
{
    static const char *const of_schemes[] = {"name", "lang", NULL};
    static const char *const of_presets[] = {"query", "scheme", "limit", "lang", NULL};
    const char *const *names = call->tool.kind == API_MCP_SCHEMES ? of_schemes : of_presets;
    struct api_problem *problem = &call->request->problem;
    bool is_known = api_is_among(names, name);
    const char *nearest = is_known ? NULL : pe_nearest(name, names);
    if (!is_known)
        return api_fail_at(problem, 422, "", name,
                           nearest ? "unknown field \"%.64s\"; nearest: \"%s\"" : "unknown field \"%.64s\"", name,
                           nearest);
    bool may_be_number = strcmp(name, "limit") == 0 && value->kind != PE_LIST && value->kind != PE_OBJECT;
    return value->kind == PE_STRING || may_be_number || api_fail_at(problem, 422, "", name, "%s is not a string", name);
}

static void put_pair(struct api_text *query, const char *name, const struct pe_value *value)
{
    struct api_text words;
    api_text_init(&words, API_MCP_WHOLE_MAX);
    if (value->kind == PE_STRING)
        api_text_put(&words, value->string);
    else
        api_text_value(&words, value);
    api_text_format(query, "%s=", name);
    for (size_t i = 0; i < words.n; i++)
        api_text_format(query, "%%%02X", (unsigned char)words.bytes[i]);
    api_text_put(query, "&");
    query->state = words.state ? words.state : query->state;
    api_text_drop(&words);
}

/* As in the other tools, a null counts as absent. */
static bool put_query(struct api_mcp_call *call, json_t *arguments, struct api_text *query)
{
    const json_t *limit = json_object_get(arguments, "limit");
    const char *name;
    json_t *json;
    json_object_foreach(arguments, name, json)
    {
        struct pe_value value = api_json_scalar(json);
        if (value.kind == PE_NULL)
            continue;
        if (!check_argument(call, name, &value))
            return false;
        if (strcmp(name, "name") == 0) {
            snprintf(call->request->path.name, sizeof call->request->path.name, "%s", value.string);
            api_text_put(query, "notation=text&"); /* of a formula, which a model reads best */
        } else {
            put_pair(query, name, &value);
        }
    }
    if (call->tool.kind == API_MCP_PRESETS && (!limit || json_is_null(limit)))
        api_text_format(query, "limit=%d", PRESETS_USUAL);
    return !query->state || api_fail_memory(&call->request->problem);
}

static bool read_catalogue(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    struct api_text query;
    if (call->message.arguments_bytes > API_MCP_WHOLE_MAX)
        return api_fail(&request->problem, 413, "", "the arguments have %zu bytes; allowed in this tool: %d",
                        call->message.arguments_bytes, API_MCP_WHOLE_MAX);
    json_t *arguments = load(call, call->message.arguments, call->message.arguments_bytes);
    if (!arguments)
        return false;
    api_text_init(&query, API_SKELETON_MAX);
    bool fine = put_query(call, arguments, &query);
    char *copied = fine ? api_arena_string(&request->arena, query.bytes ? query.bytes : "", query.n) : NULL;
    api_text_drop(&query);
    call->inner.method = "GET";
    call->inner.body = NULL;
    call->inner.body_bytes = 0;
    call->inner.query = copied;
    call->inner.has_lang = false;
    api_speak(&call->inner);
    request->lang = call->inner.lang;
    if (*request->path.name)
        call->tool.route = route_of(request, "/schemes/{name}");
    return copied || (fine && api_fail_memory(&request->problem));
}

static bool is_catalogue(const struct api_mcp_call *call) { return call->tool.kind <= API_MCP_PRESETS; }

/* What the endpoint of the tool reads. */
static bool set_request(struct api_mcp_call *call)
{
    if (is_catalogue(call))
        return read_catalogue(call);
    struct api_json_members at = api_json_members(call->message.arguments, call->message.arguments_bytes);
    struct api_json_member member;
    struct parts parts = {.own = {.value = NULL}};
    const char *name = own_name(call);
    while (api_json_next(&at, &member)) {
        bool is_own = name && is_named(&member, name);
        parts.are_whole |= is_own && parts.own.value;
        parts.own = is_own ? member : parts.own;
        parts.has_outputs |= is_named(&member, "outputs");
    }
    parts.are_whole |= at.is_broken;
    if (!read_own(call, &parts) || !set_body(call, &parts))
        return false;
    if (call->tool.kind == API_MCP_PICTURE) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "/%s", api_mcp_own_rows[1].words[call->own.of]);
        call->tool.route = call->inner.route = route_of(call->request, pattern);
        call->inner.path = call->tool.route->pattern;
    }
    return true;
}

bool api_mcp_call_read(struct api_mcp_call *call)
{
    struct api_request *request = call->request;
    request->problem.status = 0;
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
    call->inner.route = call->tool.route;
    return set_request(call) &&
           request->check_head(request->host, &call->inner, call->tool.route, call->inner.body_bytes,
                               &request->problem) &&
           (is_catalogue(call) || read_request(call));
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
        api_text_format(text, pe_text("presets found: %lld; listed: %zu."), total, shown);
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
    else if (json_object_get(answer, "numbers"))
        api_text_format(text, pe_text("%zu numbers, each with its steps."),
                        json_array_size(json_object_get(answer, "numbers")));
    else
        put_findings(text, answer);
}

/* The members of the endpoint's JSON object, as they are. */
static void put_answer(struct api_text *text, const struct api_mcp_call *call, const struct api_reply *reply,
                       const char *bytes, size_t n)
{
    struct api_text summary;
    bool is_one = *call->request->path.name;
    struct api_json_error error;
    const json_t *answer =
        call->tool.kind == API_MCP_SCHEMES ? NULL : api_json_load(&call->request->arena, bytes, n, 0, &error);
    const char *fits = json_object_get(answer, "fits") ? NULL : api_reply_find(reply, "Posenc-Fits");
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
        api_text_flag(text, "fits", strcmp(fits, "?1") == 0);
    if (call->tool.kind != API_MCP_SCHEMES) {
        api_text_put(text, ",");
        api_text_add(text, bytes + 1, n - 2);
    } else if (is_one) {
        api_text_open(text, "schemes", '[');
        api_text_add(text, bytes, n);
        api_text_close(text, ']');
    } else {
        api_text_open(text, "schemes", '[');
        for (size_t i = 0; i < pe_n_schemes(); i++) {
            const struct pe_scheme_info *info = pe_scheme_at(i);
            api_text_open(text, NULL, '{');
            api_text_member(text, "name", info->name);
            api_text_member(text, "family", info->family);
            api_text_member(text, "summary", pe_summary_in(pe_spoken(), &info->about));
            api_text_open(text, "outputs", '[');
            for (const struct pe_output_row *row = info->outputs; row && row->name; row++)
                if (pe_output_suits(row, info))
                    api_text_member(text, NULL, row->name);
            api_text_format(text, "],\"example\":%s}", info->example);
        }
        api_text_close(text, ']');
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

/* Its length is known: only experiments have none. */
static bool admit_answer(struct api_mcp_call *call, const struct api_reply *reply)
{
    struct api_problem *problem = &call->request->problem;
    uint64_t n = reply->body->length;
    if (n > ANSWER_MAX)
        return api_fail(problem, 413, "", "the answer has %llu bytes; allowed in a tool: at most %d; ask for less",
                        (unsigned long long)n, ANSWER_MAX);
    return api_arena_reserve(&call->request->arena, ANSWER_COPIES * (size_t)n) || api_fail_memory(problem);
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
    bool is_picture = call->tool.kind == API_MCP_PICTURE;
    struct api_reply *wrapped = NULL;
    if (!admit_answer(call, reply)) {
        api_reply_free(reply);
        api_memory_refusal(call->request, &call->request->problem);
        return wrap_problem(call);
    }
    char *bytes = whole_of(reply, &n);
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
        reply = route->handle ? route->handle(request) : api_steps_of(route)->build(request);
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
