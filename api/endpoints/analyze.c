/* /analyze: properties of one to eight configurations, from the received bytes to the reply. Everything is computed
 * before the first byte is sent, so that results and curves are in one answer; its tensors stay in memory until they
 * are sent. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <string.h>

struct analyzing {
    struct api_request *request;
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

static bool analyze_read(struct api_request *request)
{
    struct analyzing *a = request->own;
    *a = (struct analyzing){.request = request};
    a->entries = api_arena_alloc(&request->arena, sizeof *a->entries);
    if (!a->entries)
        return api_fail_memory(&request->problem);
    return api_study_read(request, &taking) &&
           api_entries_read(request, request->host->store, a->entries, &request->problem);
}

/* ---- The analysis ---- */

static void drop(void *analysis) { pe_analysis_free(analysis); }

static void set_core(struct analyzing *a, struct pe_analysis_request *core)
{
    const struct api_request *request = a->request;
    *core = (struct pe_analysis_request){.fields = request->fields,
                                         .n_fields = request->n_fields,
                                         .entries = a->entries->at,
                                         .n_entries = a->entries->n,
                                         .dtype = pe_answer_dtype(a->request->form.dtype),
                                         .n_outputs = a->request->form.n_outputs,
                                         .lang = a->request->lang,
                                         .max_work = (double)a->request->host->max_analysis,
                                         .caller_fields = api_entries_names(a->request),
                                         .admit = api_memory_admit,
                                         .step = api_study_step,
                                         .caller = a->request};
    if (a->request->form.n_outputs || a->request->form.has_no_outputs)
        core->outputs = a->request->form.outputs;
}

/* Plans all configurations and checks every limit. What the analysis borrows lives as long as the request. */
static bool analyze_check(struct api_request *request)
{
    struct analyzing *a = request->own;
    struct api_arena *arena = &a->request->arena;
    struct pe_analysis_request *core = api_arena_alloc(arena, sizeof *core);
    struct pe_failure err;
    if (!core)
        return api_fail_memory(&a->request->problem);
    set_core(a, core);
    if (!core->caller_fields)
        return api_fail_memory(&a->request->problem);
    api_memory_settle(a->request);
    if (pe_analysis_open(core, &a->analysis, &err))
        return api_memory_fail(a->request, &err);
    return api_arena_own(arena, a->analysis, drop) || api_fail_memory(&a->request->problem);
}

static bool name_answer(struct analyzing *a)
{
    struct api_text configs;
    api_text_init(&configs, API_TEXT_MAX);
    api_text_value(&configs, pe_analysis_configs(a->analysis));
    struct api_named named = {.request = a->request,
                              .form = &a->request->form,
                              .format = a->request->format,
                              .is_of_machine = true,
                              .is_of_kernels = pe_analysis_is_of_kernels(a->analysis),
                              .commit = a->request->host->commit,
                              .config = configs.bytes,
                              .config_bytes = configs.n,
                              .route = "/analyze",
                              .lang = api_lang_words[a->request->lang],
                              .parts = a->entries->requests,
                              .n_parts = a->entries->n};
    bool fine = !configs.state || api_fail_text(&a->request->problem, &configs);
    if (fine)
        api_compute_name(a->request, &named);
    api_text_drop(&configs);
    return fine;
}

/* ---- The answer ---- */

static const struct pe_named_tensor *tensor_at(const void *analysis, size_t i)
{
    return pe_analysis_tensor(analysis, i);
}

static bool hold_tensors(struct analyzing *a)
{
    size_t n = pe_analysis_n_tensors(a->analysis);
    if (!api_study_hold(a->request, &a->opening, tensor_at, a->analysis, n))
        return false;
    if (n <= API_TENSORS_MAX)
        return api_compute_size(a->request, &a->opening.source);
    return api_fail(&a->request->problem, 413, "/outputs", "the answer has more than %d tensors", API_TENSORS_MAX);
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
    a->request->arena.n_bytes += n;
    api_memory_settle(a->request);
}

static bool open_answer(struct analyzing *a)
{
    struct api_text text;
    struct api_member members[API_STUDY_MEMBERS_MAX];
    api_text_init(&text, API_TEXT_MAX);
    bool fine = api_study_members(a->request, &a->opening, pe_analysis_answer(a->analysis), &text, members);
    if (fine) {
        keep_tensors(a);
        fine = api_study_open(a->request, &a->opening);
    }
    api_text_drop(&text);
    a->opening.members = NULL;
    return fine;
}

static bool compute(struct analyzing *a)
{
    struct pe_failure err;
    if (pe_analysis_compute(a->analysis, &err))
        return api_memory_fail(a->request, &err);
    return hold_tensors(a) && open_answer(a);
}

/* ---- The answer as sentences, which has no tensors ---- */

static const struct pe_value *member_of(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0)
            return &object->object.fields[i].value;
    return NULL;
}

/* A line for each metric; of several configurations the number of each is before it. */
static void print_sentences(struct api_text *text, const struct pe_value *answer)
{
    const struct pe_value *results = member_of(answer, "results");
    for (size_t i = 0; i < results->list.n; i++) {
        const struct pe_value *result = &results->list.items[i];
        for (size_t k = 0; k < result->object.n; k++) {
            const struct pe_field *metric = &result->object.fields[k];
            const struct pe_value *detail = member_of(&metric->value, "detail");
            if (results->list.n > 1)
                api_text_format(text, "%zu ", i);
            api_text_format(text, "%s: %s\n", metric->name, detail ? detail->string : "");
        }
    }
}

static struct api_reply *build_sentences(struct analyzing *a)
{
    struct api_request *request = a->request;
    struct pe_failure err;
    struct api_text text;
    if (pe_analysis_compute(a->analysis, &err)) {
        api_memory_fail(request, &err);
        return NULL;
    }
    api_text_init(&text, API_TEXT_MAX);
    print_sentences(&text, pe_analysis_answer(a->analysis));
    const char *type = request->format->content_type;
    struct api_reply *reply = request->is_kept ? api_compute_document(request, type, request->route->pattern, &text)
                                               : api_reply_text(200, type, &text);
    return reply->status == 200 ? api_reply_set_language(reply, request->lang) : reply;
}

static struct api_reply *analyze_build(struct api_request *request)
{
    struct analyzing *a = request->own;
    if (api_study_is_sentences(request) && request->form.has_no_outputs)
        return build_sentences(a);
    if (!name_answer(a) || (!request->is_unchanged && !compute(a)))
        return NULL;
    return api_reply_set_language(api_compute_reply(request, &a->opening), request->lang);
}

const struct api_steps api_analyze = {analyze_read, analyze_check, analyze_build, sizeof(struct analyzing)};
