/* The Model Context Protocol: endpoints as tools of language models. Shared declarations of this folder. */
#ifndef API_MCP_MCP_H
#define API_MCP_MCP_H

#include "api/endpoints/endpoints.h"
#include "api/operations.h"
#include "api/routes.h"

/* ---- A message (message.c) --------------------------------------------------------------------------------------- */

enum api_mcp_code {
    API_MCP_NOT_JSON = -32700,
    API_MCP_NO_REQUEST = -32600,
    API_MCP_NO_METHOD = -32601,
    API_MCP_NO_PARAMS = -32602,
    API_MCP_NO_MEMORY = -32603,
    API_MCP_HEADERS = -32020,
    API_MCP_NO_VERSION = -32022
};

enum { API_MCP_ID_MAX = 256, API_MCP_INTEGER_MAX = 20 };

/* Bytes of what is read as a whole here: a message, but for the arguments of a tool whose endpoint reads them. */
enum { API_MCP_WHOLE_MAX = 64 * 1024 };

/* An error of JSON-RPC: for the program that calls, not for its model. */
struct api_mcp_error {
    int status, code; /* status 0: there is none */
    char text[PE_DETAIL_MAX];
    const char *requested; /* a version that is not spoken here; else NULL */
};

struct api_mcp_message {
    bool is_new;    /* of the revision 2026-07-28; else of one that begins with `initialize` */
    const char *id; /* as it is written, with its quotes; NULL: a notification */
    size_t id_bytes;
    const char *method;
    const json_t *params, *meta; /* objects, or NULL; `arguments` is {} in params */
    const char *arguments;       /* the text of the object; "{}" where there is none */
    size_t arguments_bytes;
    bool has_wrong_arguments;        /* they are no object */
    struct api_json_member progress; /* the token as it is written; value NULL: none */
    struct api_mcp_error error;
};

/* Reads the call's body. Memory from the request's arena. False: an HTTP refusal is in request->problem. An error of
 * the protocol is in message->error. */
bool api_mcp_read(struct api_request *request, struct api_mcp_message *message);

/* A string member of params; NULL: there is none. */
const char *api_mcp_word(const struct api_mcp_message *message, const char *name);

/* Sets the error and returns false. */
bool api_mcp_fail(struct api_mcp_message *message, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- The two eras (era.c) ---------------------------------------------------------------------------------------- */

extern const char api_mcp_instructions[];

/* Which era, and whether its headers agree with the body. */
bool api_mcp_era(const struct api_call *call, struct api_mcp_message *message);
/* What is around the members of a result: writes the beginning, and the end with, where it is not NULL, one more member
 * of _meta ("name":value). */
void api_mcp_begin(struct api_text *text, const struct api_mcp_message *message);
void api_mcp_end(struct api_text *text, const struct api_mcp_message *message, const char *meta, size_t meta_bytes);
/* How long a result may be cached, where this era states it. */
void api_mcp_cache(struct api_text *text, const struct api_mcp_message *message, unsigned seconds, bool is_private);
void api_mcp_initialize(struct api_text *text, const struct api_mcp_message *message);
void api_mcp_discover(struct api_text *text);
/* The response that is an error of the protocol, and the reply that has it. */
void api_mcp_error_print(struct api_text *text, const struct api_mcp_message *message);
struct api_reply *api_mcp_reply_error(const struct api_mcp_message *message);

/* ---- Tools (tools.c) --------------------------------------------------------------------------------------------- */

/* What a tool makes of the answer of its endpoint. */
enum api_mcp_kind {
    API_MCP_SCHEMES,
    API_MCP_PRESETS,
    API_MCP_ANSWER,  /* the JSON as it is, with a summary */
    API_MCP_TENSORS, /* the first numbers of each tensor, and a link to all */
    API_MCP_PICTURE,
    API_MCP_LIVE
};

struct api_mcp_tool {
    const char *name, *title, *description;
    enum api_mcp_kind kind;
    const struct api_route *route;
    size_t number; /* in the list */
    int values;    /* by default */
};

enum { API_MCP_TOOLS_MAX = 32, API_MCP_VALUES_MAX = 4096, API_MCP_LIST_MAX = 48 << 10 };

bool api_mcp_tool_at(const struct api_request *request, size_t i, struct api_mcp_tool *tool);
bool api_mcp_tool_find(const struct api_request *request, const char *name, struct api_mcp_tool *tool);
/* The nearest name; NULL: none. */
const char *api_mcp_tool_nearest(const struct api_request *request, const char *name);
void api_mcp_tools_print(struct api_text *text, const struct api_request *request);

/* The fields of a tool that its endpoint does not have. */
struct api_mcp_own {
    int64_t values;
    int of;
};
extern const struct pe_param api_mcp_own_rows[];

/* ---- A call (call.c, result.c, live.c) --------------------------------------------------------------------------- */

struct api_mcp_call {
    struct api_request *request;
    struct api_mcp_message message;
    struct api_mcp_tool tool;
    struct api_mcp_own own;
    struct api_call inner; /* what the endpoint of the tool reads */
    void *inner_own;
    bool is_tool, is_refused; /* by the endpoint: request->problem */
    bool has_data;            /* the request has not left its numbers out */
};

bool api_mcp_call_read(struct api_mcp_call *call);
struct api_reply *api_mcp_call_build(struct api_mcp_call *call);

/* The result of a tool: structured has its members without the braces around it; link may be empty. */
struct api_mcp_link {
    char *url; /* NULL: none */
    const char *name, *media_type;
    uint64_t bytes; /* 0: not known */
};
void api_mcp_result(struct api_text *text, const struct api_mcp_message *message, const char *structured, size_t n,
                    const struct api_mcp_link *link, const char *png, size_t png_bytes);
/* The result that is the refusal of its endpoint. */
void api_mcp_result_problem(struct api_text *text, const struct api_mcp_message *message,
                            const struct api_problem *problem);
/* The URL whose GET gives all, in the request's arena. NULL: GET cannot ask it, nothing is known of this host, or there
 * was no memory; then the answer's state is set. */
char *api_mcp_url(const struct api_mcp_call *call, const char *format, struct api_text *answer);

/* What a picture shows: the members summary, config, output, shape and url (NULL: none) (result.c). */
void api_mcp_put_picture(struct api_text *text, const struct api_mcp_call *call, const struct api_reply *reply,
                         const char *url);

extern const struct api_format api_mcp_tensors; /* result.c; its request->about is the api_mcp_call */
/* `tensors` of an answer: dtype, shape, bytes, and the first numbers of each. *complete: all of them. */
void api_mcp_put_tensors(struct api_text *text, const struct api_source *source, int64_t values, int digits,
                         bool *complete, uint64_t *bytes);

struct api_reply *api_mcp_live(struct api_mcp_call *call, struct api_reply *inner); /* takes inner */

/* Counts a call of a tool, for the metrics. */
enum api_mcp_outcome { API_MCP_OK, API_MCP_REFUSED, API_MCP_ERROR, API_MCP_CANCELLED, API_MCP_N_OUTCOMES };
void api_mcp_count(size_t tool, enum api_mcp_outcome outcome);

/* ---- Resources and prompts --------------------------------------------------------------------------------------- */

void api_mcp_resources_print(struct api_text *text, const struct api_request *request);
bool api_mcp_resource_read(struct api_text *text, struct api_request *request, struct api_mcp_message *message);
/* The text of a scheme, for a prompt that embeds it. */
void api_mcp_scheme_text(struct api_text *text, const struct pe_scheme_info *info);
void api_mcp_prompts_print(struct api_text *text);
bool api_mcp_prompt_get(struct api_text *text, struct api_request *request, struct api_mcp_message *message);

extern const struct api_steps api_mcp; /* endpoint.c */
/* The refusal of a page of another origin. */
struct api_reply *api_mcp_foreign(const char *detail);

#endif
