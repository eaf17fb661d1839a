/* /experiments: decoders trained while their client reads. The answer is the job: it is computed piece by piece as it
 * is sent, nothing is kept, and it ends when the client leaves. bodies/live.c computes it. */
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

static bool open_core(struct api_study *study, const struct api_entries *entries, struct pe_experiment **core)
{
    struct api_request *request = study->c.request;
    struct pe_experiment_request asked = {.fields = request->fields,
                                          .n_fields = request->n_fields,
                                          .entries = entries->at,
                                          .n_entries = entries->n,
                                          .caller_fields = api_entries_names(request),
                                          .admit = api_study_admit,
                                          .caller = study};
    struct pe_error err;
    if (!asked.caller_fields)
        return api_fail_memory(study->c.problem);
    if (pe_experiment_new(&asked, core, &err))
        return api_study_fail(study, &err);
    return true;
}

static bool open_experiment(struct api_study *study, struct pe_experiment **core)
{
    struct api_request *request = study->c.request;
    struct api_entries *entries = api_arena_alloc(&request->arena, sizeof *entries);
    request->taking = &taking;
    if (!entries)
        return api_fail_memory(study->c.problem);
    return api_compute_read(&study->c) && api_entries_read(request, study->c.host->store, entries, study->c.problem) &&
           open_core(study, entries, core);
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
static struct api_reply *reply_to_head(struct api_study *study, struct pe_experiment *core, bool is_events)
{
    pe_experiment_free(core);
    api_request_free(study->c.request);
    return add_headers(api_reply_lasting(200, is_events ? event_type : line_type, "", 0), is_events);
}

static struct api_reply *reply_to(struct api_study *study, struct pe_experiment *core, bool is_events)
{
    uint64_t memory = study->c.request->n_taken;
    struct api_body *body = api_live_body_new(study->c.host, study->c.request, core, is_events);
    if (!body) {
        study->c.host->experiment_end(study->c.host->self, false, 0);
        pe_experiment_free(core);
        api_fail_memory(&study->problem);
        return api_study_refuse(study);
    }
    return add_headers(api_reply_of(200, is_events ? event_type : line_type, body, memory), is_events);
}

/* A browser's EventSource begins again when its connection ends, and names what it has seen: 204 makes it stop. */
static bool has_seen(const struct api_call *call) { return call->last_event_id && *call->last_event_id; }

static struct api_reply *check_host(const struct api_asked *asked)
{
    if (asked->host->experiments == 0)
        return api_refusal(404, "this server runs no experiments (--experiments 0)");
    return has_seen(asked->call) ? api_reply_empty(204) : NULL;
}

struct api_reply *api_experiments(const struct api_asked *asked)
{
    struct api_study study;
    struct pe_experiment *core = NULL;
    struct api_reply *refusal = check_host(asked);
    if (refusal || asked->call->must_not_block)
        return refusal;
    if (!api_study_init(&study, asked) || !open_experiment(&study, &core))
        return api_study_refuse(&study);
    bool is_events = api_prefers(asked->call->accept, event_type, line_type);
    if (strcmp(asked->call->method, "HEAD") == 0)
        return reply_to_head(&study, core, is_events);
    if (begin(asked->host, asked->call, study.c.problem))
        return reply_to(&study, core, is_events);
    pe_experiment_free(core);
    return api_study_refuse(&study);
}
