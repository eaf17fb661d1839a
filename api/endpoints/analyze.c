/* /analyze: properties of one to eight configurations, from the received bytes to the reply. Everything is computed
 * before the first byte is sent, so that results and curves stand in one answer; its tensors stay in memory until they
 * are sent. */
#include "api/endpoints/compute.h"
#include "api/replies/language.h"
#include "api/requests/entries.h"
#include "api/requests/lang.h"
#include "api/requests/memory.h"
#include "api/routes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MEMBERS_MAX = 4 }; /* of an answer beside its tensors: configs, results */

struct study {
    struct api_computation c;
    struct api_problem problem;
    enum pe_lang lang;
    struct api_entries *entries;
    struct pe_analysis *analysis; /* of the request's arena */
    struct api_opening opening;
    bool is_refused; /* the host has no memory; the problem is set */
};

/* ---- The request ---- */

/* No tensor is analysed; as for most endpoints, one without a name is q, which is then refused by name. */
static const char *lone_tensor(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "q";
}

static const struct api_taking taking = {
    .tensor = lone_tensor, .params = pe_analysis_params, .may_answer_nothing = true};

/* Tensors of an analysis are whole. */
static bool check_form(const struct study *s)
{
    static const char *const names[] = {"slice", "reduce"};
    char pointer[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(pointer, sizeof pointer, "/%s", names[i]);
        if (api_request_find(&s->c.work->request, names[i]))
            return api_fail(s->c.problem, 422, pointer,
                            "%s has no meaning in an analysis, whose tensors are whole; outputs chooses among them",
                            names[i]);
    }
    return true;
}

static bool read_request(struct study *s)
{
    struct api_request *request = &s->c.work->request;
    s->entries = api_arena_alloc(&request->arena, sizeof *s->entries);
    if (!s->entries)
        return api_fail_memory(s->c.problem);
    request->taking = &taking;
    return api_compute_read(&s->c) && check_form(s) && api_form_read(request, &s->c.form, s->c.problem) &&
           api_lang_take(request, s->c.call, &s->lang, s->c.problem) && api_compute_format(&s->c) &&
           api_entries_read(request, s->c.host->store, s->entries, s->c.problem);
}

/* ---- The analysis ---- */

static enum pe_status admit(void *caller, const struct pe_cost *cost, struct pe_error *err)
{
    struct study *s = caller;
    s->is_refused = !api_memory_for_planning(s->c.work, s->c.host, cost->bytes, s->c.problem);
    return s->is_refused ? err->status = PE_CANCELLED : PE_OK;
}

static void step(void *caller, const char *metric)
{
    const struct api_host *host = ((struct study *)caller)->c.host;
    if (host->metric_step)
        host->metric_step(host->self, metric);
}

static bool fail_core(const struct study *s, const struct pe_error *err)
{
    return !s->is_refused && api_fail_core(s->c.problem, err);
}

static void drop(void *analysis) { pe_analysis_free(analysis); }

static void set_core(struct study *s, struct pe_analysis_request *core)
{
    const struct api_request *request = &s->c.work->request;
    *core = (struct pe_analysis_request){.fields = request->fields,
                                         .n_fields = request->n_fields,
                                         .entries = s->entries->at,
                                         .n_entries = s->entries->n,
                                         .dtype = (enum pe_dtype)s->c.form.dtype,
                                         .n_outputs = s->c.form.n_outputs,
                                         .lang = s->lang,
                                         .max_work = (double)s->c.host->max_analysis,
                                         .caller_fields = api_entries_names(&s->c.work->request),
                                         .admit = admit,
                                         .step = step,
                                         .caller = s};
    if (s->c.form.n_outputs || s->c.form.has_no_outputs)
        core->outputs = s->c.form.outputs;
}

/* Plans all configurations and checks every limit. What the analysis borrows lives as long as the request. */
static bool open_analysis(struct study *s)
{
    struct api_arena *arena = &s->c.work->request.arena;
    struct pe_analysis_request *core = api_arena_alloc(arena, sizeof *core);
    struct pe_error err;
    if (!core)
        return api_fail_memory(s->c.problem);
    set_core(s, core);
    if (!core->caller_fields)
        return api_fail_memory(s->c.problem);
    api_memory_settle(s->c.work);
    if (pe_analysis_open(core, &s->analysis, &err))
        return fail_core(s, &err);
    return api_arena_own(arena, s->analysis, drop) || api_fail_memory(s->c.problem);
}

static bool name_answer(struct study *s)
{
    struct api_text configs;
    api_text_init(&configs, API_TEXT_MAX);
    api_text_value(&configs, pe_analysis_configs(s->analysis));
    struct api_named named = {.request = &s->c.work->request,
                              .form = &s->c.form,
                              .format = s->c.format,
                              .is_of_machine = true, /* sums of products in the order of its kernels */
                              .commit = s->c.host->commit,
                              .config = configs.bytes,
                              .config_bytes = configs.n,
                              .route = "/analyze",
                              .lang = api_lang_words[s->lang],
                              .parts = s->entries->requests,
                              .n_parts = s->entries->n};
    bool fine = !configs.state || api_fail_text(s->c.problem, &configs);
    if (fine)
        api_compute_name(&s->c, &named);
    api_text_drop(&configs);
    return fine;
}

/* ---- The answer ---- */

/* The tensors as the formats read them. They stay where the analysis has them. */
static bool hold_tensors(struct study *s)
{
    size_t n = pe_analysis_n_tensors(s->analysis);
    struct api_held *held = api_arena_array(&s->c.work->request.arena, n, sizeof *held);
    if (!held)
        return api_fail_memory(s->c.problem);
    for (size_t i = 0; i < n; i++) {
        const struct pe_named_tensor *named = pe_analysis_tensor(s->analysis, i);
        held[i] = (struct api_held){api_held_output(named->name, &named->tensor), named->tensor.data};
    }
    s->opening.source = (struct api_source){.held = held, .n_held = n};
    if (n <= API_TENSORS_MAX)
        return api_compute_size(&s->c, &s->opening.source);
    return api_fail(s->c.problem, 413, "/outputs", "the answer has more than %d tensors", API_TENSORS_MAX);
}

/* From here on only the tensors and the results are in memory. */
static void give_scratch(struct study *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->opening.source.n_held; i++) {
        const struct pe_output *output = &s->opening.source.held[i].output;
        n += output->n_rows * output->row_len * pe_dtype_size(output->dtype);
    }
    s->c.work->request.arena.n_bytes += n;
    api_memory_settle(s->c.work);
}

static bool open_stream(struct study *s, struct api_text *text, struct api_member *members)
{
    const struct pe_value *answer = pe_analysis_answer(s->analysis);
    size_t begins[MEMBERS_MAX + 1] = {0};
    assert(answer->object.n <= MEMBERS_MAX);
    for (size_t i = 0; i < answer->object.n; i++) {
        api_text_value(text, &answer->object.fields[i].value);
        begins[i + 1] = text->n;
    }
    if (text->state)
        return api_fail_text(s->c.problem, text);
    for (size_t i = 0; i < answer->object.n; i++)
        members[i] =
            (struct api_member){answer->object.fields[i].name, text->bytes + begins[i], begins[i + 1] - begins[i]};
    s->opening.members = members;
    s->opening.n_members = answer->object.n;
    return api_memory_for_answering(s->c.work, s->c.host, &s->opening.source, s->c.format, s->c.problem) &&
           api_body_open(s->c.format, &s->opening, s->c.problem);
}

static bool open_answer(struct study *s)
{
    struct api_text text;
    struct api_member members[MEMBERS_MAX];
    s->opening.form = &s->c.form;
    s->opening.request = &s->c.work->request;
    s->opening.arena = &s->c.work->request.arena;
    s->opening.max_kept = s->c.host->max_pictures;
    s->opening.stream = &s->c.work->stream;
    api_text_init(&text, API_TEXT_MAX);
    bool fine = open_stream(s, &text, members);
    api_text_drop(&text);
    s->opening.members = NULL;
    return fine;
}

static bool compute(struct study *s)
{
    struct pe_error err;
    if (pe_analysis_compute(s->analysis, &err))
        return fail_core(s, &err);
    if (!hold_tensors(s))
        return false;
    give_scratch(s);
    return open_answer(s);
}

static bool answer(struct study *s)
{
    return read_request(s) && open_analysis(s) && name_answer(s) && (s->c.is_unchanged || compute(s));
}

/* Errors are English. */
static struct api_reply *in_language(struct api_reply *reply, enum pe_lang lang)
{
    return reply->status < 400 ? api_reply_set_language(reply, lang) : reply;
}

/* A thread that must not block does not even read the request: an analysis always goes to a worker. */
struct api_reply *api_analyze(const struct api_asked *asked)
{
    struct study s = {.c = {.host = asked->host, .call = asked->call}};
    if (asked->call->must_not_block)
        return NULL;
    s.c.problem = &s.problem;
    s.c.is_kept = api_may_be_kept(asked->call);
    s.c.work = api_work_new(PE_ENCODE);
    if (!s.c.work)
        api_fail_memory(&s.problem);
    else if (answer(&s))
        return in_language(api_compute_reply(&s.c, &s.opening), s.lang);
    api_memory_refusal(s.c.work, &s.problem);
    api_work_free(s.c.work);
    return api_reply_problem(&s.problem);
}
