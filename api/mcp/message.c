/* One message of JSON-RPC 2.0, from the body of a POST. The envelope is read here; `arguments` of a tool stays text,
 * because the endpoint of the tool reads it. A small body is checked as a whole first, so that what is wrong with its
 * JSON has a place in the body; the arguments of a large one are checked by the endpoint's own reader, once. No other
 * message has large arguments. */
#include "api/inputs/inputs.h"
#include "api/mcp/mcp.h"

#include <stdarg.h>
#include <stdio.h>

bool api_mcp_fail(struct api_mcp_message *message, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message->error.text, sizeof message->error.text, pe_text(format), args);
    va_end(args);
    message->error.code = code;
    message->error.status =
        code == API_MCP_NO_PARAMS || code == API_MCP_NO_METHOD || code == API_MCP_NO_MEMORY ? 200 : 400;
    return false;
}

static bool fail_json(struct api_mcp_message *message, const char *detail)
{
    return api_mcp_fail(message, API_MCP_NOT_JSON, "%s", detail);
}

/* ---- The text ---- */

/* What cannot be held (a number too large) is no error of syntax: the endpoint refuses it where it matters. */
static bool check_text(struct api_request *request, const char *text, size_t n, const char *where,
                       struct api_mcp_message *message)
{
    struct api_problem problem;
    bool is_json = api_json_check(&request->arena, text, n, where, &problem) || problem.status != 400;
    return is_json || fail_json(message, problem.error.detail);
}

static bool check_body(struct api_request *request, struct api_mcp_message *message)
{
    const struct api_call *call = request->call;
    if (api_json_is_deep(call->body, call->body_bytes))
        return fail_json(message, pe_text("JSON is nested deeper than 64 levels"));
    return call->body_bytes > API_MCP_WHOLE_MAX || check_text(request, call->body, call->body_bytes, "", message);
}

/* The body with {} for the arguments: what is left is small. NULL: it is not, or there is no memory. */
static char *envelope_of(struct api_request *request, const struct api_json_member *arguments, size_t *n)
{
    const struct api_call *call = request->call;
    const char *end = call->body + call->body_bytes;
    size_t before = arguments->value ? (size_t)(arguments->value - call->body) : call->body_bytes;
    size_t after = arguments->value ? (size_t)(end - arguments->value) - arguments->value_bytes : 0;
    if (before + after > API_SKELETON_MAX) {
        api_fail(&request->problem, 413, "", "the message has %zu bytes beside the arguments of its tool; allowed: %d",
                 before + after, API_SKELETON_MAX);
        return NULL;
    }
    char *text = api_arena_alloc(&request->arena, before + after + 3);
    if (!text) {
        api_fail_memory(&request->problem);
        return NULL;
    }
    memcpy(text, call->body, before);
    memcpy(text + before, "{}", 2);
    if (after)
        memcpy(text + before + 2, end - after, after);
    *n = before + after + (arguments->value ? 2 : 0);
    return text;
}

/* ---- Its members ---- */

static bool is_integer(const char *text, size_t n)
{
    size_t sign = n && *text == '-';
    bool fine = n > sign && n <= API_MCP_INTEGER_MAX;
    for (size_t i = sign; fine && i < n; i++)
        fine = text[i] >= '0' && text[i] <= '9';
    return fine;
}

static bool read_id(const struct api_call *call, const json_t *root, struct api_mcp_message *message)
{
    struct api_json_member id;
    const json_t *value = json_object_get(root, "id");
    if (!value)
        return true;
    bool is_written = api_json_find(call->body, call->body_bytes, "id", &id);
    bool is_string = json_is_string(value) && json_string_length(value) <= API_MCP_ID_MAX;
    if (!is_written || !(is_string || is_integer(id.value, id.value_bytes)))
        return api_mcp_fail(message, API_MCP_NO_REQUEST,
                            "id is a string of at most %d bytes, or an integer of at most %d characters",
                            API_MCP_ID_MAX, API_MCP_INTEGER_MAX);
    message->id = id.value;
    message->id_bytes = id.value_bytes;
    return true;
}

static bool read_progress(const struct api_call *call, struct api_mcp_message *message)
{
    struct api_json_member params, meta, token;
    bool is_there = api_json_find(call->body, call->body_bytes, "params", &params) &&
                    api_json_find(params.value, params.value_bytes, "_meta", &meta) &&
                    api_json_find(meta.value, meta.value_bytes, "progressToken", &token);
    if (is_there && (*token.value == '"' || is_integer(token.value, token.value_bytes)))
        message->progress = token;
    return true;
}

static bool read_root(const struct api_call *call, const json_t *root, struct api_mcp_message *message)
{
    const char *version = json_string_value(json_object_get(root, "jsonrpc"));
    if (json_is_array(root))
        return api_mcp_fail(message, API_MCP_NO_REQUEST, "a batch is not read; send one message in each POST");
    if (!json_is_object(root))
        return api_mcp_fail(message, API_MCP_NO_REQUEST, "the message is no object");
    if (!read_id(call, root, message))
        return false;
    if (json_object_get(root, "result") || json_object_get(root, "error"))
        return api_mcp_fail(message, API_MCP_NO_REQUEST, "a response is not read: this server asks nothing");
    if (!version || strcmp(version, "2.0") != 0)
        return api_mcp_fail(message, API_MCP_NO_REQUEST, "jsonrpc is not \"2.0\"");
    message->method = json_string_value(json_object_get(root, "method"));
    if (!message->method)
        return api_mcp_fail(message, API_MCP_NO_REQUEST, "method is missing, or no string");
    return true;
}

static bool read_params(const struct api_call *call, const json_t *root, struct api_mcp_message *message)
{
    const json_t *params = json_object_get(root, "params");
    if (json_is_object(params))
        message->params = params;
    const json_t *meta = json_object_get(message->params, "_meta");
    message->meta = json_is_object(meta) ? meta : NULL;
    if (!message->id)
        return true; /* a notification: nothing of it is read */
    if (!api_mcp_era(call, message))
        return false;
    if (params && !message->params)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "params is no object");
    return read_progress(call, message);
}

/* What is read as text has to be found as text. */
static bool check_written(struct api_mcp_message *message, const struct api_json_member *arguments)
{
    return arguments->value || !json_object_get(message->params, "arguments") ||
           api_mcp_fail(message, API_MCP_NO_REQUEST, "the name \"arguments\" is written without escapes");
}

bool api_mcp_read(struct api_request *request, struct api_mcp_message *message)
{
    const struct api_call *call = request->call;
    struct api_json_error error;
    size_t n;
    *message = (struct api_mcp_message){.arguments = "{}", .arguments_bytes = 2};
    if (!call->body_bytes)
        return fail_json(message, pe_text("the body is empty; send a message of JSON-RPC 2.0")) || true;
    if (!api_memory_for_json(request, call->body_bytes))
        return false;
    struct api_json_member params, arguments = {.value = NULL};
    if (!api_json_find(call->body, call->body_bytes, "params", &params) ||
        !api_json_find(params.value, params.value_bytes, "arguments", &arguments))
        arguments.value = NULL;
    if (!check_body(request, message))
        return true;
    char *envelope = envelope_of(request, &arguments, &n);
    if (!envelope)
        return false;
    json_t *root = api_json_load(&request->arena, envelope, n, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (!root && error.no_memory)
        return api_fail_memory(&request->problem);
    if (!root)
        return fail_json(message, error.text) || true;
    if (arguments.value) {
        message->arguments = arguments.value;
        message->arguments_bytes = arguments.value_bytes;
        message->has_wrong_arguments = *arguments.value != '{';
    }
    (void)(read_root(call, root, message) && read_params(call, root, message) && check_written(message, &arguments));
    /* Arguments that no endpoint reads. */
    bool is_call = message->id && message->method && strcmp(message->method, "tools/call") == 0;
    if (is_call || request->call->body_bytes <= API_MCP_WHOLE_MAX)
        return true;
    if (message->arguments_bytes > API_MCP_WHOLE_MAX)
        return api_fail(&request->problem, 413, "", "the arguments have %zu bytes; allowed beside calls of tools: %d",
                        message->arguments_bytes, API_MCP_WHOLE_MAX);
    if (!message->error.code)
        check_text(request, message->arguments, message->arguments_bytes, "arguments: ", message);
    return true;
}

const char *api_mcp_word(const struct api_mcp_message *message, const char *name)
{
    return json_string_value(json_object_get(message->params, name));
}
