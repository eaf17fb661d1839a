/* /analyze: properties of one to eight configurations, from the received bytes to the reply. Everything is computed
 * before the first byte is sent, so that results and curves stand in one answer; its tensors stay in memory until they
 * are sent. */
#include "api/endpoints/study.h"
#include "api/replies/language.h"
#include "api/requests/entries.h"
#include "api/requests/lang.h"
#include "api/requests/memory.h"
#include "api/routes.h"

#include <assert.h>

enum { MEMBERS_MAX = 4 }; /* of an answer beside its tensors: configs, results */

struct analyzing {
    struct api_study study;
    struct api_entries *entries;
    struct pe_analysis *analysis; /* of the request's arena */
    struct api_opening opening;
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

static bool read_request(struct analyzing *a)
{
    struct api_computation *c = &a->study.c;
    struct api_request *request = c->request;
    a->entries = api_arena_alloc(&request->arena, sizeof *a->entries);
    if (!a->entries)
        return api_fail_memory(c->problem);
    return api_study_read(&a->study, &taking) && api_entries_read(request, c->host->store, a->entries, c->problem);
}

/* ---- The analysis ---- */

static void drop(void *analysis) { pe_analysis_free(analysis); }

static void set_core(struct analyzing *a, struct pe_analysis_request *core)
{
    const struct api_request *request = a->study.c.request;
    *core = (struct pe_analysis_request){.fields = request->fields,
                                         .n_fields = request->n_fields,
                                         .entries = a->entries->at,
                                         .n_entries = a->entries->n,
                                         .dtype = (enum pe_dtype)a->study.c.form.dtype,
                                         .n_outputs = a->study.c.form.n_outputs,
                                         .lang = a->study.lang,
                                         .max_work = (double)a->study.c.host->max_analysis,
                                         .caller_fields = api_entries_names(a->study.c.request),
                                         .admit = api_study_admit,
                                         .step = api_study_step,
                                         .caller = &a->study};
    if (a->study.c.form.n_outputs || a->study.c.form.has_no_outputs)
        core->outputs = a->study.c.form.outputs;
}

/* Plans all configurations and checks every limit. What the analysis borrows lives as long as the request. */
static bool open_analysis(struct analyzing *a)
{
    struct api_arena *arena = &a->study.c.request->arena;
    struct pe_analysis_request *core = api_arena_alloc(arena, sizeof *core);
    struct pe_error err;
    if (!core)
        return api_fail_memory(a->study.c.problem);
    set_core(a, core);
    if (!core->caller_fields)
        return api_fail_memory(a->study.c.problem);
    api_memory_settle(a->study.c.request);
    if (pe_analysis_open(core, &a->analysis, &err))
        return api_study_fail(&a->study, &err);
    return api_arena_own(arena, a->analysis, drop) || api_fail_memory(a->study.c.problem);
}

static bool name_answer(struct analyzing *a)
{
    struct api_text configs;
    api_text_init(&configs, API_TEXT_MAX);
    api_text_value(&configs, pe_analysis_configs(a->analysis));
    struct api_named named = {.request = a->study.c.request,
                              .form = &a->study.c.form,
                              .format = a->study.c.format,
                              .is_of_machine = true,
                              .is_of_kernels = pe_analysis_is_of_kernels(a->analysis),
                              .commit = a->study.c.host->commit,
                              .config = configs.bytes,
                              .config_bytes = configs.n,
                              .route = "/analyze",
                              .lang = api_lang_words[a->study.lang],
                              .parts = a->entries->requests,
                              .n_parts = a->entries->n};
    bool fine = !configs.state || api_fail_text(a->study.c.problem, &configs);
    if (fine)
        api_compute_name(&a->study.c, &named);
    api_text_drop(&configs);
    return fine;
}

/* ---- The answer ---- */

/* The tensors as the formats read them. They stay where the analysis has them. */
static bool hold_tensors(struct analyzing *a)
{
    size_t n = pe_analysis_n_tensors(a->analysis);
    struct api_held *held = api_arena_array(&a->study.c.request->arena, n, sizeof *held);
    if (!held)
        return api_fail_memory(a->study.c.problem);
    for (size_t i = 0; i < n; i++) {
        const struct pe_named_tensor *named = pe_analysis_tensor(a->analysis, i);
        held[i] = (struct api_held){api_held_output(named->name, &named->tensor), named->tensor.data};
    }
    a->opening.source = (struct api_source){.held = held, .n_held = n};
    if (n <= API_TENSORS_MAX)
        return api_compute_size(&a->study.c, &a->opening.source);
    return api_fail(a->study.c.problem, 413, "/outputs", "the answer has more than %d tensors", API_TENSORS_MAX);
}

/* From here on only the tensors are in memory: how long they stay is for the client's reading to decide. */
static void keep_tensors(struct analyzing *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->opening.source.n_held; i++) {
        const struct pe_output *output = &a->opening.source.held[i].output;
        n += output->n_rows * output->row_len * pe_dtype_size(output->dtype);
    }
    pe_analysis_settle(a->analysis);
    a->study.c.request->arena.n_bytes += n;
    api_memory_settle(a->study.c.request);
}

/* The members of the answer as JSON, one after the other in text; names are constants. */
static bool print_members(struct analyzing *a, struct api_text *text, struct api_member *members)
{
    const struct pe_value *answer = pe_analysis_answer(a->analysis);
    size_t begins[MEMBERS_MAX + 1] = {0};
    assert(answer->object.n <= MEMBERS_MAX);
    for (size_t i = 0; i < answer->object.n; i++) {
        api_text_value(text, &answer->object.fields[i].value);
        begins[i + 1] = text->n;
    }
    if (text->state)
        return api_fail_text(a->study.c.problem, text);
    for (size_t i = 0; i < answer->object.n; i++)
        members[i] =
            (struct api_member){answer->object.fields[i].name, text->bytes + begins[i], begins[i + 1] - begins[i]};
    a->opening.members = members;
    a->opening.n_members = answer->object.n;
    return true;
}

static bool open_stream(struct analyzing *a)
{
    struct api_computation *c = &a->study.c;
    a->opening.form = &c->form;
    a->opening.request = c->request;
    a->opening.arena = &c->request->arena;
    a->opening.max_kept = c->host->max_pictures;
    return api_memory_for_answering(c->request, c->host, &a->opening.source, c->format, c->problem) &&
           api_body_open(c->format, &a->opening, c->problem);
}

static bool open_answer(struct analyzing *a)
{
    struct api_text text;
    struct api_member members[MEMBERS_MAX];
    api_text_init(&text, API_TEXT_MAX);
    bool fine = print_members(a, &text, members);
    if (fine) {
        keep_tensors(a);
        fine = open_stream(a);
    }
    api_text_drop(&text);
    a->opening.members = NULL;
    return fine;
}

static bool compute(struct analyzing *a)
{
    struct pe_error err;
    if (pe_analysis_compute(a->analysis, &err))
        return api_study_fail(&a->study, &err);
    return hold_tensors(a) && open_answer(a);
}

static bool answer(struct analyzing *a)
{
    return read_request(a) && open_analysis(a) && name_answer(a) && (a->study.c.is_unchanged || compute(a));
}

/* Errors are English. */
static struct api_reply *in_language(struct api_reply *reply, enum pe_lang lang)
{
    return reply->status < 400 ? api_reply_set_language(reply, lang) : reply;
}

/* A thread that must not block does not even read the request: an analysis always goes to a worker. */
struct api_reply *api_analyze(const struct api_asked *asked)
{
    struct analyzing a = {.entries = NULL};
    if (asked->call->must_not_block)
        return NULL;
    if (api_study_init(&a.study, asked) && answer(&a))
        return in_language(api_compute_reply(&a.study.c, &a.opening), a.study.lang);
    return api_study_refuse(&a.study);
}
