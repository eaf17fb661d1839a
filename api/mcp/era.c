/* The two eras of the protocol: names, headers and wrapping, in this file alone. Nothing is kept between requests, so
 * each request states its era: a version in its _meta (2026-07-28), or the handshake of the revisions before. */
#include "api/mcp/mcp.h"

#include <stdio.h>

#define NEW "2026-07-28"
#define OLD "2025-11-25"
#define OLDER "2025-06-18"
#define META "io.modelcontextprotocol/"
#define SERVER "{\"name\":\"posenc\",\"title\":\"posenc\",\"version\":\"" PE_VERSION "\"}"
#define CAPABILITIES "\"capabilities\":{\"tools\":{},\"resources\":{},\"prompts\":{}}"

const char api_mcp_instructions[] =
    "posenc computes the positional encodings of Transformer models exactly (RoPE and its scalings, ALiBi, T5, "
    "sinusoidal, learned tables) and finds which configuration made a given tensor. Start with explain, which reads a "
    "config.json, or with presets, which finds a model by name; schemes lists what can be computed, with name every "
    "parameter of one. When numbers differ from those of another implementation, call diagnose with the configuration "
    "that you believe and a few rows of cos and sin, of inv_freq, or of q and q_out: its findings name the mistake. "
    "check answers yes or no, for tests. Answers show the first numbers of each tensor; values asks for more, and url "
    "gives all of them. Positions are integers, absolute, from 0. Pairs of channels have a layout, half (Hugging Face) "
    "or interleaved (Meta): state it. An error names the field at fault and the nearest valid name.";

static const char *const versions = "[\"" NEW "\",\"" OLD "\",\"" OLDER "\"]";

/* ---- Which era ---- */

static bool fail_version(struct api_mcp_message *message, const char *version)
{
    message->error.requested = version;
    return api_mcp_fail(message, API_MCP_NO_VERSION,
                        "the protocol version \"%.64s\" is not spoken here; there are: " NEW ", " OLD ", " OLDER,
                        version);
}

static bool check_header(struct api_mcp_message *message, const char *header, const char *value, const char *what,
                         const char *body)
{
    if (value && strcmp(value, body) == 0)
        return true;
    if (!value)
        return api_mcp_fail(message, API_MCP_HEADERS, "the header %s is missing, the body's %s is \"%.128s\"", header,
                            pe_text(what), body);
    return api_mcp_fail(message, API_MCP_HEADERS, "the header %s is \"%.128s\", the body's %s is \"%.128s\"", header,
                        value, pe_text(what), body);
}

static const char *name_of(const struct api_mcp_message *message)
{
    if (strcmp(message->method, "tools/call") == 0 || strcmp(message->method, "prompts/get") == 0)
        return api_mcp_word(message, "name");
    return strcmp(message->method, "resources/read") == 0 ? api_mcp_word(message, "uri") : NULL;
}

static bool check_new(const struct api_call *call, struct api_mcp_message *message)
{
    const char *version = json_string_value(json_object_get(message->meta, META "protocolVersion"));
    const char *name = name_of(message);
    message->is_new = true;
    if (!version || !json_is_object(json_object_get(message->meta, META "clientCapabilities"))) {
        api_mcp_fail(message, API_MCP_NO_PARAMS, "_meta needs " META "%s, %s",
                     version ? "clientCapabilities" : "protocolVersion", pe_text(version ? "an object" : "a string"));
        message->error.status = 400;
        return false;
    }
    if (strcmp(version, NEW) != 0)
        return fail_version(message, version);
    return check_header(message, "MCP-Protocol-Version", call->mcp_version, "version", version) &&
           check_header(message, "Mcp-Method", call->mcp_method, "method", message->method) &&
           (!name || check_header(message, "Mcp-Name", call->mcp_name, "name", name));
}

bool api_mcp_era(const struct api_call *call, struct api_mcp_message *message)
{
    const char *header = call->mcp_version;
    bool is_stated = json_object_get(message->meta, META "protocolVersion");
    if (is_stated || (header && strcmp(header, NEW) == 0))
        return check_new(call, message);
    if (!header || strcmp(header, OLD) == 0 || strcmp(header, OLDER) == 0)
        return true;
    return fail_version(message, header);
}

/* ---- Results ---- */

/* What begins every response: `{"jsonrpc":"2.0","id":…`. */
static void open_response(struct api_text *text, const struct api_mcp_message *message)
{
    api_text_put(text, "{\"jsonrpc\":\"2.0\"");
    if (!message->id)
        return;
    api_text_name(text, "id");
    api_text_add(text, message->id, message->id_bytes);
}

void api_mcp_begin(struct api_text *text, const struct api_mcp_message *message)
{
    open_response(text, message);
    api_text_open(text, "result", '{');
    if (message->is_new)
        api_text_member(text, "resultType", "complete");
}

void api_mcp_end(struct api_text *text, const struct api_mcp_message *message, const char *meta, size_t meta_bytes)
{
    if (message->is_new || meta) {
        api_text_open(text, "_meta", '{');
        if (message->is_new)
            api_text_put(text, "\"" META "serverInfo\":" SERVER);
        if (meta) {
            api_text_name(text, NULL);
            api_text_add(text, meta, meta_bytes);
        }
        api_text_put(text, "}");
    }
    api_text_put(text, "}}");
}

void api_mcp_cache(struct api_text *text, const struct api_mcp_message *message, unsigned seconds, bool is_private)
{
    if (message->is_new)
        api_text_format(text, ",\"ttlMs\":%u000,\"cacheScope\":\"%s\"", seconds, is_private ? "private" : "public");
}

void api_mcp_initialize(struct api_text *text, const struct api_mcp_message *message)
{
    const char *asked = api_mcp_word(message, "protocolVersion");
    const char *version = asked && strcmp(asked, OLDER) == 0 ? OLDER : OLD;
    api_text_format(text, "\"protocolVersion\":\"%s\"," CAPABILITIES ",\"serverInfo\":" SERVER, version);
    api_text_member(text, "instructions", pe_text(api_mcp_instructions));
}

void api_mcp_discover(struct api_text *text)
{
    api_text_name(text, "supportedVersions");
    api_text_format(text, "%s," CAPABILITIES, versions);
    api_text_member(text, "instructions", pe_text(api_mcp_instructions));
}

void api_mcp_error_print(struct api_text *text, const struct api_mcp_message *message)
{
    const struct api_mcp_error *error = &message->error;
    open_response(text, message);
    api_text_open(text, "error", '{');
    api_text_count(text, "code", error->code);
    api_text_member(text, "message", error->text);
    if (error->requested) {
        api_text_format(text, ",\"data\":{\"supported\":%s", versions);
        api_text_member(text, "requested", error->requested);
        api_text_close(text, '}');
    }
    api_text_put(text, "}}");
}

struct api_reply *api_mcp_reply_error(const struct api_mcp_message *message)
{
    const struct api_mcp_error *error = &message->error;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_mcp_error_print(&text, message);
    int status = error->code == API_MCP_NO_METHOD && message->is_new ? 404 : error->status;
    return api_reply_text(status, api_json_type, &text);
}
