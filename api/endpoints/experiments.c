/* /experiments: decoders trained while their client reads. The answer is the job: it is computed piece by piece as it
 * is sent, nothing is kept, and it ends when the client disconnects. bodies/live.c computes it. */
#include "api/endpoints/study.h"
#include "api/requests/entries.h"
#include "api/requests/memory.h"
#include "api/requests/negotiate.h"
#include "api/routes.h"

#include <string.h>

static const char line_type[] = "application/x-ndjson", event_type[] = "text/event-stream";

static const char *lone_tensor(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "q";
}

static const struct api_taking taking = {.tensor = lone_tensor,
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
                                           .admit = api_study_admit,
                                           .caller = request};
    struct pe_error err;
    if (!wanted.caller_fields)
        return api_fail_memory(&request->problem);
    if (pe_experiment_new(&wanted, core, &err))
        return api_study_fail(request, &err);
    return true;
}

static bool begin(const struct api_host *host, const struct api_call *call, struct api_problem *problem)
{
    if (host->experiment_begin(host->self, call->turn))
        return true;
    api_fail(problem, 429, "",
             "%llu experiment%s already running, or other clients have waited longer; try again later (the limit "
             "--experiments of this server)",
             (unsigned long long)host->experiments, host->experiments == 1 ? " is" : "s are");
    api_problem_header(problem, "Retry-After", "5");
    return false;
}

static struct api_reply *add_headers(struct api_reply *reply, bool is_events)
{
    bool fine = api_reply_header(reply, "Cache-Control", "no-store") &&
                api_reply_header(reply, "X-Accel-Buffering", "no"); /* nginx would wait for a full buffer */
    return fine ? api_reply_set_format(reply, is_events ? "events" : "ndjson") : api_reply_without_memory(reply);
}

/* HEAD: the request is right; nothing is begun. */
static struct api_reply *reply_to_head(struct pe_experiment *core, bool is_events)
{
    pe_experiment_free(core);
    return add_headers(api_reply_lasting(200, is_events ? event_type : line_type, "", 0), is_events);
}

static struct api_reply *reply_to(struct api_request *request, struct pe_experiment *core, bool is_events)
{
    struct api_body *body = api_live_body_new(request, core, is_events);
    if (body)
        return add_headers(api_reply_of(200, is_events ? event_type : line_type, body, request->n_taken), is_events);
    request->host->experiment_end(request->host->self, false, 0);
    pe_experiment_free(core);
    api_fail_memory(&request->problem);
    return NULL;
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
    if (strcmp(request->call->method, "HEAD") == 0)
        return reply_to_head(core, is_events);
    if (begin(request->host, request->call, &request->problem))
        return reply_to(request, core, is_events);
    pe_experiment_free(core);
    return NULL;
}

const struct api_steps api_experiments = {experiments_read, NULL, experiments_build, sizeof(struct api_entries)};
