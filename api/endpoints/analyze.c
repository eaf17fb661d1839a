/* /analyze: properties of one to eight configurations, from the received bytes to the reply. Everything is computed
 * before the first byte is sent, so that results and curves are in one answer; its tensors stay in memory until they
 * are sent. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <string.h>

struct analyzing {
    struct api_entries *entries;
    struct pe_analysis *analysis; /* of the request's arena */
};

/* ---- The request ---- */

static const struct api_taking taking = {
    .tensor = api_tensor_is_q, .params = pe_analysis_params, .may_answer_nothing = true};

static bool analyze_read(struct api_request *request)
{
    struct analyzing *a = request->own;
    a->entries = api_arena_alloc(&request->arena, sizeof *a->entries);
    if (!a->entries)
        return api_fail_memory(&request->problem);
    return api_study_read(request, &taking) &&
           api_entries_read(request, request->host->store, a->entries, &request->problem);
}

/* ---- The analysis ---- */

static void drop(void *analysis) { pe_analysis_free(analysis); }

/* Plans all configurations and checks every limit. What the analysis borrows lives as long as the request. */
static bool analyze_check(struct api_request *request)
{
    struct analyzing *a = request->own;
    struct pe_analysis_request *core = api_arena_alloc(&request->arena, sizeof *core);
    const char *const *names = api_entries_names(request);
    struct pe_failure err;
    if (!core || !names)
        return api_fail_memory(&request->problem);
    *core = (struct pe_analysis_request){.fields = request->fields,
                                         .n_fields = request->n_fields,
                                         .entries = a->entries->at,
                                         .n_entries = a->entries->n,
                                         .dtype = pe_answer_dtype(request->form.dtype),
                                         .n_outputs = request->form.n_outputs,
                                         .lang = request->lang,
                                         .max_work = (double)request->host->max_analysis,
                                         .caller_fields = names,
                                         .admit = api_memory_admit,
                                         .step = api_study_step,
                                         .caller = request};
    if (request->form.n_outputs || request->form.has_no_outputs)
        core->outputs = request->form.outputs;
    api_memory_settle(request);
    if (pe_analysis_open(core, &a->analysis, &err))
        return api_memory_fail(request, &err);
    return api_arena_own(&request->arena, a->analysis, drop) || api_fail_memory(&request->problem);
}

static bool name_answer(struct api_request *request)
{
    const struct analyzing *a = request->own;
    struct api_text configs;
    api_text_init(&configs, API_TEXT_MAX);
    api_text_value(&configs, pe_analysis_configs(a->analysis));
    request->tagged_as = "/analyze";
    request->is_of_machine = true;
    request->is_of_kernels = pe_analysis_is_of_kernels(a->analysis);
    request->parts = a->entries->requests;
    request->n_parts = a->entries->n;
    bool fine = !configs.state || api_fail_text(&request->problem, &configs);
    if (fine)
        api_compute_name(request, configs.bytes, configs.n);
    api_text_drop(&configs);
    return fine;
}

/* ---- The answer ---- */

static const struct pe_named_tensor *tensor_at(const void *analysis, size_t i)
{
    return pe_analysis_tensor(analysis, i);
}

static bool hold_tensors(struct api_request *request, const struct pe_analysis *analysis)
{
    size_t n = pe_analysis_n_tensors(analysis);
    if (!api_study_hold(request, tensor_at, analysis, n))
        return false;
    if (n <= API_TENSORS_MAX)
        return api_compute_size(request, &request->opening.source);
    return api_fail(&request->problem, 413, "/outputs", "the answer has more than %d tensors", API_TENSORS_MAX);
}

static bool open_answer(struct api_request *request, struct pe_analysis *analysis)
{
    struct api_text text;
    struct api_member members[API_STUDY_MEMBERS_MAX];
    api_text_init(&text, API_TEXT_MAX);
    bool fine =
        hold_tensors(request, analysis) && api_study_members(request, pe_analysis_answer(analysis), &text, members);
    if (fine) {
        /* From here on only the tensors are in memory: how long they stay is for the client's reading to decide. */
        const struct api_source *source = &request->opening.source;
        uint64_t n = 0;
        for (size_t i = 0; i < source->n_held; i++) {
            const struct pe_output *output = &source->held[i].output;
            n += output->n_rows * output->row_len * pe_dtype_size(output->dtype);
        }
        pe_analysis_settle(analysis);
        request->arena.n_bytes += n;
        api_memory_settle(request);
        fine = api_study_open(request);
    }
    api_text_drop(&text);
    request->opening.n_members = 0;
    return fine;
}

static struct api_reply *analyze_build(struct api_request *request)
{
    struct pe_analysis *analysis = ((const struct analyzing *)request->own)->analysis;
    bool has_tensors = !api_study_is_sentences(request) || !request->form.has_no_outputs;
    struct pe_failure err;
    struct api_text text;
    if (has_tensors && !name_answer(request))
        return NULL;
    if (!request->is_unchanged && pe_analysis_compute(analysis, &err)) {
        api_memory_fail(request, &err);
        return NULL;
    }
    if (has_tensors)
        return request->is_unchanged || open_answer(request, analysis)
                   ? api_reply_set_language(api_compute_reply(request), request->lang)
                   : NULL;
    api_text_init(&text, API_TEXT_MAX);
    /* The answer as sentences, which has no tensors: a line for each metric; of several configurations the number of
     * each is before it. */
    const struct pe_value *results = api_member_find(pe_analysis_answer(analysis), "results");
    for (size_t i = 0; i < results->list.n; i++) {
        const struct pe_value *result = &results->list.items[i];
        for (size_t k = 0; k < result->object.n; k++) {
            const struct pe_field *metric = &result->object.fields[k];
            const struct pe_value *detail = api_member_find(&metric->value, "detail");
            if (results->list.n > 1)
                api_text_format(&text, "%zu ", i);
            api_text_format(&text, "%s: %s\n", metric->name, detail ? detail->string : "");
        }
    }
    return api_study_reply(request, &text, true);
}

const struct api_steps api_analyze = {{analyze_read}, analyze_check, analyze_build, sizeof(struct analyzing)};
