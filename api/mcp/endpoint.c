/* POST /mcp: a message is read, its method found, and its result or error written. Nothing is kept between requests. */
#include "api/mcp/mcp.h"
#include "api/requests/requests.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

enum { OLD = 1, NEW = 2 }; /* eras that have a method */

struct method {
    const char *name;
    unsigned eras;
    /* Writes the members of the result. NULL: none, or those of a tool. False: message->error. */
    bool (*print)(struct api_text *text, struct api_request *request, struct api_mcp_message *message);
};

/* ---- Methods ---- */

static bool initialize(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    (void)request;
    api_mcp_initialize(text, message);
    return true;
}

static bool ping(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    (void)text, (void)request, (void)message;
    return true;
}

static bool discover(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    (void)request;
    api_mcp_discover(text);
    api_mcp_cache(text, message, 3600, false);
    return true;
}

static bool check_cursor(struct api_mcp_message *message)
{
    return !json_object_get(message->params, "cursor") ||
           api_mcp_fail(message, API_MCP_NO_PARAMS, "there is no such cursor: the list is one page");
}

static bool list_tools(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    if (!check_cursor(message))
        return false;
    api_mcp_tools_print(text, request);
    api_mcp_cache(text, message, 3600, false);
    return true;
}

static bool list_resources(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    if (!check_cursor(message))
        return false;
    api_mcp_resources_print(text, request);
    api_mcp_cache(text, message, 60, request->call->access != API_ACCESS_OPEN);
    return true;
}

static bool list_templates(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    (void)request;
    if (!check_cursor(message))
        return false;
    api_text_open(text, "resourceTemplates", '[');
    api_text_close(text, ']');
    api_mcp_cache(text, message, 3600, false);
    return true;
}

static bool list_prompts(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    (void)request;
    if (!check_cursor(message))
        return false;
    api_mcp_prompts_print(text);
    api_mcp_cache(text, message, 3600, false);
    return true;
}

static const struct method methods[] = {
    {"initialize", OLD, initialize},
    {"ping", OLD, ping},
    {"server/discover", NEW, discover},
    {"tools/list", OLD | NEW, list_tools},
    {"tools/call", OLD | NEW, NULL},
    {"resources/list", OLD | NEW, list_resources},
    {"resources/templates/list", OLD | NEW, list_templates},
    {"resources/read", OLD | NEW, api_mcp_resource_read},
    {"prompts/list", OLD | NEW, list_prompts},
    {"prompts/get", OLD | NEW, api_mcp_prompt_get},
};

enum { N_METHODS = sizeof methods / sizeof *methods };

static const struct method *find_method(struct api_mcp_message *message)
{
    const char *names[N_METHODS + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_METHODS; i++) {
        if (!(methods[i].eras & (message->is_new ? NEW : OLD)))
            continue;
        if (strcmp(methods[i].name, message->method) == 0)
            return &methods[i];
        names[n++] = methods[i].name;
    }
    names[n] = NULL;
    const char *nearest = pe_nearest(message->method, names);
    api_mcp_fail(message, API_MCP_NO_METHOD, nearest ? "no method \"%.64s\"; nearest: \"%s\"" : "no method \"%.64s\"",
                 message->method, nearest);
    return NULL;
}

/* ---- Reading ---- */

struct own {
    struct api_mcp_call call;
    const struct method *method; /* NULL: the message has an error, or is a notification */
};

static bool find_tool(struct own *own)
{
    struct api_mcp_call *call = &own->call;
    struct api_mcp_message *message = &call->message;
    const char *name = api_mcp_word(message, "name");
    if (!name)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "tools/call needs name, a string");
    if (!api_mcp_tool_find(call->request, name, &call->tool)) {
        const char *nearest = api_mcp_tool_nearest(call->request, name);
        return api_mcp_fail(message, API_MCP_NO_PARAMS,
                            nearest ? "unknown tool \"%.64s\"; nearest: \"%s\""
                                    : "unknown tool \"%.64s\"; tools/list lists them",
                            name, nearest);
    }
    if (message->has_wrong_arguments) {
        api_mcp_count(call->tool.number, API_MCP_ERROR);
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "arguments is no object");
    }
    return call->is_tool = true;
}

static bool check_head(struct api_request *request)
{
    const struct api_call *call = request->call;
    const char *type = call->content_type ? call->content_type : "";
    size_t n = strcspn(type, "; \t");
    if (n != strlen(api_json_type) || strncasecmp(type, api_json_type, n) != 0)
        return api_fail(&request->problem, 415, "", "Content-Type is \"%.64s\"; a message is application/json", type);
    return api_accepts(call->accept, api_json_type) ||
           api_fail(&request->problem, 406, "", "Accept excludes application/json, which the answer is");
}

static bool mcp_read(struct api_request *request)
{
    struct own *own = request->own;
    *own = (struct own){.call = {.request = request}};
    struct api_mcp_message *message = &own->call.message;
    if (!request->host->has_mcp)
        return api_fail(&request->problem, 404, "", "/mcp is switched off (the option --mcp of this server)");
    if (!check_head(request) || !api_mcp_read(request, message))
        return false;
    if (message->error.code || !message->id)
        return true;
    own->method = find_method(message);
    if (own->method && !own->method->print && find_tool(own))
        own->call.is_refused = !api_mcp_call_read(&own->call);
    return true;
}

/* ---- Answering ---- */

static struct api_reply *result(struct own *own)
{
    struct api_mcp_message *message = &own->call.message;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_mcp_begin(&text, message);
    if (own->method->print(&text, own->call.request, message)) {
        api_mcp_end(&text, message, NULL, 0);
        return api_reply_text(200, api_json_type, &text);
    }
    api_text_drop(&text);
    return own->call.request->problem.status ? NULL : api_mcp_reply_error(message);
}

static struct api_reply *mcp_build(struct api_request *request)
{
    struct own *own = request->own;
    struct api_reply *reply;
    if (own->call.message.error.code)
        reply = api_mcp_reply_error(&own->call.message);
    else if (!own->call.message.id)
        reply = api_reply_empty(202);
    else
        reply = own->call.is_tool ? api_mcp_call_build(&own->call) : result(own);
    if (!reply)
        return NULL;
    return api_reply_set_method(reply, own->method ? own->method->name : NULL,
                                own->call.is_tool ? own->call.tool.name : NULL);
}

const struct api_steps api_mcp = {{mcp_read}, NULL, mcp_build, sizeof(struct own)};

/* A page of another origin: the check comes before anything is read, so there is no id. */
struct api_reply *api_mcp_foreign(const char *detail)
{
    struct api_mcp_message message = {.id = NULL};
    api_mcp_fail(&message, API_MCP_NO_REQUEST, "%s", detail);
    message.error.status = 403;
    return api_mcp_reply_error(&message);
}

/* ---- Figures ---- */

static atomic_uint_fast64_t calls[API_MCP_TOOLS_MAX][API_MCP_N_OUTCOMES];
const char *const api_mcp_outcomes[] = {"ok", "refused", "error", "cancelled", NULL};

void api_mcp_count(size_t tool, enum api_mcp_outcome outcome)
{
    if (tool < API_MCP_TOOLS_MAX)
        atomic_fetch_add_explicit(&calls[tool][outcome], 1, memory_order_relaxed);
}

uint64_t api_mcp_calls(size_t tool, size_t outcome)
{
    return atomic_load_explicit(&calls[tool][outcome], memory_order_relaxed);
}
