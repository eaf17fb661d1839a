/* The tool `experiment`: the events of /experiments, line by line, as messages of the protocol. Where the client reads
 * server-sent events, each `progress` becomes a notification if the client has given a token for it, else a comment, as
 * silence does; without such events the response is all that is sent. The result is the last event. When the client
 * disconnects, the experiment's own body ends. */
#include "api/mcp/mcp.h"
#include "api/requests/requests.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_BYTES = 16 * 1024 };
enum { LAST_BYTES = 128 }; /* the message that memory is missing, but for the id of its request */

struct live {
    struct api_body body;        /* must be first */
    struct api_request *request; /* holds the message */
    struct api_mcp_message message;
    struct api_mcp_tool tool;
    int64_t values;
    struct api_reply *inner; /* whose body writes the events, a line each */
    uint64_t next;           /* piece of inner */
    bool is_events, is_over, is_counted;
    struct api_text line, out; /* of the event that is read; of the message that is sent */
    struct api_arena arena;    /* of the event */
    size_t sent;
    char *configs; /* of the event `start`, with their brackets */
    uint64_t n_runs, n_steps, n_done;
    char names[16][32];
};

/* ---- Messages ---- */

static void close_message(struct live *x) { api_text_put(&x->out, x->is_events ? "\n\n" : ""); }

/* Keeps the memory: there is always some for the last message. */
static void open_message(struct live *x)
{
    x->out.n = x->sent = 0;
    x->out.state = API_TEXT_FINE;
    api_text_put(&x->out, x->is_events ? "data: " : "");
}

static void count(struct live *x, enum api_mcp_outcome outcome)
{
    if (!x->is_counted)
        api_mcp_count(x->tool.number, outcome);
    x->is_counted = true;
}

static void take_start(struct live *x, const json_t *event, const char *line, size_t n)
{
    struct api_json_member configs;
    const json_t *list = json_object_get(event, "configs");
    x->n_runs = json_array_size(list);
    x->n_steps = (uint64_t)json_integer_value(json_object_get(event, "steps"));
    for (size_t i = 0; i < x->n_runs && i < 16; i++) {
        const json_t *config = json_array_get(list, i), *inner = json_object_get(config, "config");
        const char *scheme = json_string_value(json_object_get(inner ? inner : config, "scheme"));
        snprintf(x->names[i], sizeof x->names[i], "%s", scheme ? scheme : "run");
    }
    if (api_json_find(line, n, "configs", &configs))
        x->configs = strndup(configs.value, configs.value_bytes);
    if (!x->configs)
        x->out.state = API_TEXT_NO_MEMORY;
}

static void put_progress(struct live *x, const json_t *event)
{
    uint64_t run = (uint64_t)json_integer_value(json_object_get(event, "run"));
    uint64_t step = (uint64_t)json_integer_value(json_object_get(event, "step"));
    uint64_t done = run * x->n_steps + step;
    x->n_done = done > x->n_done ? done : x->n_done;
    open_message(x);
    api_text_put(&x->out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
    api_text_add(&x->out, x->message.progress.value, x->message.progress.value_bytes);
    api_text_format(
        &x->out, ",\"progress\":%llu,\"total\":%llu,\"message\":\"%s: step %llu of %llu, loss %.3f nats\"}}",
        (unsigned long long)x->n_done, (unsigned long long)(x->n_runs * x->n_steps), run < 16 ? x->names[run] : "run",
        (unsigned long long)step, (unsigned long long)x->n_steps, json_number_value(json_object_get(event, "loss")));
    close_message(x);
}

static void put_alive(struct live *x)
{
    if (!x->is_events)
        return;
    x->out.n = x->sent = 0;
    api_text_put(&x->out, ":\n\n");
}

static void put_tensors(struct live *x, const json_t *tensors)
{
    const char *name;
    const json_t *tensor;
    json_t *mutable = (json_t *)(uintptr_t)tensors;
    api_text_put(&x->out, "\"tensors\":{");
    json_object_foreach(mutable, name, tensor)
    {
        const json_t *data = json_object_get(tensor, "data");
        size_t n = json_array_size(data), shown = (size_t)x->values < n ? (size_t)x->values : n;
        api_text_name(&x->out, name);
        api_text_format(&x->out, "{\"dtype\":\"f64\",\"shape\":[%zu],\"bytes\":%zu", n, n * 8);
        if (shown)
            api_text_format(&x->out, ",\"shown\":[[0,%zu]],\"data\":[", shown);
        for (size_t i = 0; i < shown; i++) {
            api_text_name(&x->out, NULL);
            api_text_real(&x->out, json_number_value(json_array_get(data, i)));
        }
        api_text_put(&x->out, shown ? "]}" : "}");
    }
    api_text_put(&x->out, "}");
}

static void put_done(struct live *x, const json_t *event, const char *line, size_t n)
{
    struct api_json_member results;
    struct api_text members, summary;
    api_text_init(&members, API_TEXT_MAX);
    api_text_init(&summary, API_TEXT_MAX);
    double seconds = json_number_value(json_object_get(event, "seconds"));
    /* One sentence for each result. */
    api_text_format(&summary, "%llu runs of %llu steps in %.1f s; results has the losses of each.",
                    (unsigned long long)x->n_runs, (unsigned long long)x->n_steps, seconds);
    x->out.n = 0;
    put_tensors(x, json_object_get(event, "tensors"));
    api_text_put(&members, "\"summary\":");
    api_text_string_n(&members, summary.bytes, summary.n);
    api_text_put(&members, ",\"seconds\":");
    api_text_real(&members, seconds);
    api_text_format(&members, ",\"configs\":%s,\"results\":", x->configs ? x->configs : "[]");
    if (api_json_find(line, n, "results", &results))
        api_text_add(&members, results.value, results.value_bytes);
    api_text_put(&members, ",");
    api_text_add(&members, x->out.bytes, x->out.n);
    if (summary.state || x->out.state)
        members.state = API_TEXT_NO_MEMORY;
    open_message(x);
    api_mcp_result(&x->out, &x->message, members.bytes, members.n, NULL, NULL, 0);
    close_message(x);
    x->out.state = members.state ? members.state : x->out.state;
    api_text_drop(&members);
    api_text_drop(&summary);
    x->is_over = true;
    count(x, API_MCP_OK);
}

static void put_error(struct live *x, const json_t *event)
{
    const char *detail = json_string_value(json_object_get(event, "detail"));
    struct api_problem problem;
    api_fail(&problem, (int)json_integer_value(json_object_get(event, "status")), "", "%s", detail ? detail : "");
    open_message(x);
    api_mcp_result_problem(&x->out, &x->message, &problem);
    close_message(x);
    x->is_over = true;
    count(x, API_MCP_REFUSED);
}

/* ---- Events of the experiment ---- */

/* A stream that just ended would look complete. */
static void end_without_memory(struct live *x)
{
    x->message.error = (struct api_mcp_error){.code = API_MCP_NO_MEMORY, .text = "out of memory"};
    open_message(x);
    api_mcp_error_print(&x->out, &x->message);
    close_message(x);
    x->is_over = true;
    count(x, API_MCP_ERROR);
}

/* Memory of an event is the request's, as long as the event is read. */
static bool may_grow(void *lender, size_t n)
{
    struct live *x = lender;
    return api_arena_reserve(&x->request->arena, x->arena.n_bytes + n);
}

static void take_line(struct live *x)
{
    struct api_json_error error;
    x->arena = (struct api_arena){.may_grow = may_grow, .lender = x};
    const json_t *event = api_json_load(&x->arena, x->line.bytes, x->line.n, 0, &error);
    const char *name = json_string_value(json_object_get(event, "event"));
    name = name ? name : "";
    if (strcmp(name, "start") == 0)
        take_start(x, event, x->line.bytes, x->line.n);
    else if (strcmp(name, "progress") == 0 && x->is_events && x->message.progress.value)
        put_progress(x, event);
    else if (strcmp(name, "progress") == 0 || strcmp(name, "alive") == 0)
        put_alive(x);
    else if (strcmp(name, "done") == 0)
        put_done(x, event, x->line.bytes, x->line.n);
    else if (strcmp(name, "error") == 0)
        put_error(x, event);
    if (!event || x->out.state)
        end_without_memory(x);
    api_arena_drop(&x->arena);
    api_text_drop(&x->line);
}

/* Reads the experiment until there is a message to send. False: it has ended, or its client has disconnected. */
static bool go_on(struct live *x)
{
    while (x->sent == x->out.n && !x->is_over) {
        char *place = api_text_room(&x->line, x->inner->body->piece_max);
        size_t n = place ? x->inner->body->piece(x->inner->body, x->next++, place) : 0;
        if (!place)
            end_without_memory(x);
        else if (!n)
            return false;
        x->line.n += n;
        if (n && x->line.bytes[x->line.n - 1] == '\n')
            take_line(x);
    }
    return x->sent < x->out.n;
}

static size_t live_piece(struct api_body *body, uint64_t i, char *dst)
{
    struct live *x = (struct live *)body;
    (void)i; /* each is the next */
    if (!go_on(x))
        return 0;
    size_t n = x->out.n - x->sent;
    n = n < PIECE_BYTES ? n : PIECE_BYTES;
    memcpy(dst, x->out.bytes + x->sent, n);
    x->sent += n;
    return n;
}

static void live_drop(struct api_body *body)
{
    struct live *x = (struct live *)body;
    count(x, API_MCP_CANCELLED);
    api_reply_free(x->inner);
    api_text_drop(&x->line);
    api_text_drop(&x->out);
    free(x->configs);
    api_request_free(x->request);
    free(x);
}

struct api_reply *api_mcp_live(struct api_mcp_call *call, struct api_reply *inner)
{
    static const char type[] = "text/event-stream";
    bool is_events = api_prefers(call->request->call->accept, type, "application/x-none");
    struct live *x = calloc(1, sizeof *x);
    if (!x)
        return api_reply_without_memory(inner);
    *x = (struct live){.body = {.length = API_LENGTH_UNKNOWN,
                                .n_pieces = UINT64_MAX,
                                .piece_max = PIECE_BYTES,
                                .piece = live_piece,
                                .drop = live_drop},
                       .request = api_request_hold(call->request),
                       .message = call->message,
                       .tool = call->tool,
                       .values = call->own.values,
                       .inner = inner,
                       .is_events = is_events};
    api_text_init(&x->line, API_TEXT_MAX);
    api_text_init(&x->out, API_TEXT_MAX);
    bool has_last = api_text_room(&x->out, LAST_BYTES + call->message.id_bytes) != NULL;
    struct api_reply *reply = api_reply_of(200, is_events ? type : api_json_type, &x->body, 0);
    reply = has_last ? api_reply_unbuffered(reply) : api_reply_without_memory(reply);
    return api_reply_set_format(reply, is_events ? "events" : "json");
}
