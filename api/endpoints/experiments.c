/* /experiments: decoders trained while their client reads. The answer is the job: it is computed piece by piece as it
 * is sent, nothing is kept, and it ends when the client disconnects.
 *
 * Each piece trains until there is an event to send: one line of JSON, or one server-sent event (WHATWG HTML, 9.2). */
#include "api/endpoints/endpoints.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Its events, while it runs ---- */

enum { PIECE_BYTES = 16 * 1024 };
enum { ALIVE_MS = 2000 }; /* a line at least so often, so that proxies and readers do not give up */

struct experiment {
    struct api_body body; /* must be first */
    const struct api_host *host;
    struct api_request *request; /* owns what the experiment borrows, and the memory reserved for it */
    struct pe_experiment *core;
    bool is_events; /* server-sent */
    bool is_begun, is_over, is_done;
    uint64_t n_events;
    uint64_t begun_ms, spoke_ms;
    struct api_text text; /* of the last event */
    char spare[320];      /* replaces an event for which there was no memory */
    const char *bytes;    /* of the event; from `sent` on they are still to be sent */
    size_t n, sent;
};

/* Gives its place to the next experiment: before the last event is sent, so that a client that has read it can begin
 * another. */
static void end(struct experiment *x)
{
    if (x->core)
        x->host->experiment_end(x->is_done, pe_experiment_steps(x->core));
    pe_experiment_free(x->core);
    x->core = NULL;
    x->is_over = true;
}

/* ---- Events ---- */

/* The last event where there was no memory for another. A body that just ended would look complete. */
static void put_spare(struct experiment *x)
{
    static const char problem[] = "{\"event\":\"error\",\"type\":\"about:blank\",\"title\":\"Service "
                                  "Unavailable\",\"status\":503,\"detail\":\"not enough memory to continue; try again "
                                  "later\",\"error\":\"not enough memory to continue; try again later\"}";
    char id[40] = "";
    if (x->is_events)
        snprintf(id, sizeof id, "id: %llu\ndata: ", (unsigned long long)(x->n_events - 1));
    int n = snprintf(x->spare, sizeof x->spare, "%s%s%s", id, problem, x->is_events ? "\n\n" : "\n");
    assert(n > 0 && (size_t)n < sizeof x->spare);
    x->bytes = x->spare;
    x->n = (size_t)n;
    end(x);
}

static const char *const events[] = {"start", "progress", "alive", "done", "error", NULL};

const struct pe_member api_live_members[] = {
    {.name = "event", .words = events},
    {.name = "run", .types = "integer", .summary = "of which configuration", .is_optional = true},
    {.name = "step", .types = "integer", .is_optional = true},
    {.name = "loss", .types = "number", .summary = "mean of the step's batch, nats", .is_optional = true},
    {.name = "seconds", .types = "number", .is_optional = true},
    {.name = "results",
     .types = "array",
     .items = "object",
     .members = pe_experiment_result_members,
     .is_optional = true},
    {.name = "tensors",
     .types = "object",
     .summary = "excess.i [eval_len] of result i: mean loss beyond the best predictor's",
     .is_optional = true},
    {.name = NULL},
};

static void open_event(struct experiment *x, const char *name)
{
    api_text_drop(&x->text);
    api_text_init(&x->text, API_TEXT_MAX);
    if (x->is_events)
        api_text_format(&x->text, "id: %llu\ndata: ", (unsigned long long)x->n_events);
    api_text_format(&x->text, "{\"event\":\"%s\"", name);
    x->n_events++;
}

static void close_event(struct experiment *x)
{
    api_text_put(&x->text, x->is_events ? "}\n\n" : "}\n");
    x->spoke_ms = x->host->now_ms();
    x->bytes = x->text.bytes;
    x->n = x->text.n;
    x->sent = 0;
    if (x->text.state)
        put_spare(x);
}

static void put_members(struct experiment *x, const struct pe_value *object)
{
    for (size_t i = 0; i < object->object.n; i++) {
        api_text_name(&x->text, object->object.fields[i].name);
        api_text_value(&x->text, &object->object.fields[i].value);
    }
}

static void put_tensor(struct experiment *x, const struct pe_named_tensor *named)
{
    const double *values = named->tensor.data;
    api_text_name(&x->text, named->name);
    api_text_format(&x->text, "{\"dtype\":\"f64\",\"shape\":[%llu],\"data\":[",
                    (unsigned long long)named->tensor.shape[0]);
    for (uint64_t i = 0; i < named->tensor.shape[0]; i++) {
        api_text_name(&x->text, NULL);
        api_text_real(&x->text, values[i]);
    }
    api_text_put(&x->text, "]}");
}

static void put_done(struct experiment *x)
{
    open_event(x, "done");
    api_text_name(&x->text, "seconds");
    api_text_real(&x->text, (double)(x->host->now_ms() - x->begun_ms) / 1000);
    api_text_name(&x->text, "results");
    api_text_value(&x->text, pe_experiment_results(x->core));
    api_text_open(&x->text, "tensors", '{');
    for (size_t i = 0; i < pe_experiment_n_tensors(x->core); i++)
        put_tensor(x, pe_experiment_tensor(x->core, i));
    api_text_put(&x->text, "}");
    close_event(x);
    x->is_done = !x->is_over;
    end(x);
}

/* After the first byte a problem can only be an event. */
static void put_error(struct experiment *x, const struct api_problem *problem)
{
    struct api_text members;
    api_text_init(&members, API_TEXT_MAX);
    api_problem_print(&members, problem);
    open_event(x, "error");
    api_text_put(&x->text, ",");
    if (members.state)
        x->text.state = members.state;
    else
        api_text_add(&x->text, members.bytes + 1, members.n - 2); /* without its braces */
    close_event(x);
    api_text_drop(&members);
    end(x);
}

static void put_late(struct experiment *x)
{
    struct api_problem problem;
    api_fail(&problem, 503, "",
             "the experiment has taken %llu seconds; allowed: at most so many (the limit --experiment-seconds of this "
             "server)",
             (unsigned long long)(x->host->experiment_ms / 1000));
    put_error(x, &problem);
}

/* ---- Pieces ---- */

/* Works until there is something to send. A client that has disconnected is sent nothing, also if the work was done
 * meanwhile. */
static void work(struct experiment *x)
{
    enum pe_experiment_event event = PE_EXPERIMENT_WORKED;
    struct pe_experiment_progress progress;
    struct pe_failure err;
    while (event == PE_EXPERIMENT_WORKED && !pe_is_cancelled()) {
        uint64_t now = x->host->now_ms();
        if (now - x->begun_ms >= x->host->experiment_ms) {
            put_late(x);
            return;
        }
        if (now - x->spoke_ms >= ALIVE_MS) {
            open_event(x, "alive");
            close_event(x);
            return;
        }
        if (pe_experiment_advance(x->core, &event, &progress, &err)) {
            struct api_problem problem;
            api_fail_core(&problem, &err);
            put_error(x, &problem);
            return;
        }
    }
    if (event == PE_EXPERIMENT_PROGRESS) {
        open_event(x, "progress");
        api_text_format(&x->text, ",\"run\":%zu,\"step\":%llu,\"loss\":", progress.run,
                        (unsigned long long)progress.step);
        api_text_real(&x->text, progress.loss);
        close_event(x);
    }
    if (event == PE_EXPERIMENT_DONE && !pe_is_cancelled())
        put_done(x);
}

static void speak(struct experiment *x)
{
    if (x->is_begun) {
        work(x);
        return;
    }
    x->is_begun = true;
    x->begun_ms = x->host->now_ms();
    open_event(x, "start");
    put_members(x, pe_experiment_start(x->core));
    close_event(x);
}

static size_t live_piece(struct api_body *body, uint64_t i, char *dst)
{
    struct experiment *x = (struct experiment *)body;
    (void)i; /* each is the next */
    if (x->sent == x->n && !x->is_over)
        speak(x);
    size_t n = x->n - x->sent;
    if (n == 0)
        return 0;
    n = n < PIECE_BYTES ? n : PIECE_BYTES;
    memcpy(dst, x->bytes + x->sent, n);
    x->sent += n;
    return n;
}

static void live_drop(struct api_body *body)
{
    struct experiment *x = (struct experiment *)body;
    end(x);
    api_text_drop(&x->text);
    api_request_free(x->request);
    free(x);
}

static struct api_body *live_body_new(struct api_request *request, struct pe_experiment *experiment, bool is_events)
{
    struct experiment *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    *x = (struct experiment){.body = {.length = API_LENGTH_UNKNOWN,
                                      .n_pieces = UINT64_MAX,
                                      .piece_max = PIECE_BYTES,
                                      .piece = live_piece,
                                      .drop = live_drop},
                             .host = request->host,
                             .request = api_request_hold(request),
                             .core = experiment,
                             .is_events = is_events};
    api_text_init(&x->text, API_TEXT_MAX);
    return &x->body;
}

/* ---- The endpoint ---- */

static const char line_type[] = "application/x-ndjson", event_type[] = "text/event-stream";

static const struct api_taking taking = {.tensor = api_tensor_is_q,
                                         .params = pe_experiment_params,
                                         .entries_max = PE_EXPERIMENT_CONFIGS_MAX,
                                         .variants = "eval"};

static bool open_core(struct api_request *request, const struct api_entries *entries, struct pe_experiment **core)
{
    struct pe_experiment_request wanted = {.fields = request->fields,
                                           .n_fields = request->n_fields,
                                           .entries = entries->at,
                                           .n_entries = entries->n,
                                           .caller_fields = api_entries_names(request),
                                           .admit = api_memory_admit,
                                           .caller = request};
    struct pe_failure err;
    if (!wanted.caller_fields)
        return api_fail_memory(&request->problem);
    if (pe_experiment_new(&wanted, core, &err))
        return api_memory_fail(request, &err);
    return true;
}

static bool begin(const struct api_host *host, const struct api_call *call, struct api_problem *problem)
{
    if (host->experiment_begin(call->turn))
        return true;
    api_fail(problem, 429, "",
             host->experiments == 1 ? "%llu experiment is already running, or other clients have waited longer; try "
                                      "again later (the limit --experiments of this server)"
                                    : "%llu experiments are already running, or other clients have waited longer; try "
                                      "again later (the limit --experiments of this server)",
             (unsigned long long)host->experiments);
    api_problem_header(problem, "Retry-After", "5");
    return false;
}

static struct api_reply *add_headers(struct api_reply *reply, bool is_events)
{
    return api_reply_set_format(api_reply_unbuffered(reply), is_events ? "events" : "ndjson");
}

/* A browser's EventSource begins again when its connection ends, and names what it has seen: 204 makes it stop. */
static bool has_seen(const struct api_call *call) { return call->last_event_id && *call->last_event_id; }

static bool experiments_read(struct api_request *request)
{
    struct api_entries *entries = request->own;
    request->taking = &taking;
    if (request->host->experiments == 0)
        return api_fail(&request->problem, 404, "", "this server runs no experiments (--experiments 0)");
    return has_seen(request->call) ||
           (api_compute_read(request) && api_entries_read(request, request->host->store, entries, &request->problem));
}

static struct api_reply *experiments_build(struct api_request *request)
{
    struct pe_experiment *core = NULL;
    if (has_seen(request->call))
        return api_reply_empty(204);
    if (!open_core(request, request->own, &core))
        return NULL;
    bool is_events = api_prefers(request->call->accept, event_type, line_type);
    if (strcmp(request->call->method, "HEAD") == 0) {
        /* HEAD: the request is right; nothing is begun. */
        pe_experiment_free(core);
        return add_headers(api_reply_lasting(200, is_events ? event_type : line_type, "", 0), is_events);
    }
    if (begin(request->host, request->call, &request->problem)) {
        struct api_body *body = live_body_new(request, core, is_events);
        if (body)
            return add_headers(api_reply_of(200, is_events ? event_type : line_type, body, request->n_taken),
                               is_events);
        request->host->experiment_end(false, 0);
        pe_experiment_free(core);
        api_fail_memory(&request->problem);
        return NULL;
    }
    pe_experiment_free(core);
    return NULL;
}

const struct api_steps api_experiments = {{experiments_read}, NULL, experiments_build, sizeof(struct api_entries)};
