/* /golden: a few exact tensors of a configuration as a file of at most 64 KiB, whose tag a port's tests can pin. The
 * tensors, and which of them fit, are the core's; this file knows how long the header is. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <string.h>

struct giving {
    struct pe_golden *golden; /* of the request's arena */
    struct pe_golden_request core;
    struct api_text text; /* the members beside the tensors, one after the other */
    struct api_member members[API_STUDY_MEMBERS_MAX];
};

/* ---- The request ---- */

/* Weights; as for /encode, a tensor without a name is x, which is then refused by name. */
static const char *lone_tensor(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "x";
}

static const struct api_taking taking = {.tensor = lone_tensor, .params = pe_golden_params};

/* The preset of the path as a field of the request. */
static bool read_path(struct api_request *request)
{
    const char *name = request->path.preset;
    struct pe_value value = {.kind = PE_STRING, .string = name};
    if (!api_memory_for_reading(request) || !api_request_add(request, "preset", &value, &request->problem))
        return false;
    if (!api_preset_take(request, &request->problem))
        return request->problem.status == 422 && api_preset_absent(request->presets, name, &request->problem);
    if (!request->has_stored_preset && !pe_preset_named(name))
        return api_preset_absent(request->presets, name, &request->problem);
    return api_query_read(request, true) && api_take_preset(request) && api_query_read(request, false);
}

/* Whatever Accept names: a file that a test pins does not depend on the client. */
static bool choose_format(struct api_request *request)
{
    int usual = 0;
    while (strcmp(api_format_names[usual], "safetensors") != 0)
        usual++;
    if (request->form.format < 0)
        request->form.format = usual;
    request->format = api_form_format(&request->form);
    bool is_one = strcmp(request->format->name, "safetensors") == 0 || strcmp(request->format->name, "json") == 0;
    if (!is_one)
        return api_fail(&request->problem, 406, "/format", "golden vectors are safetensors or json, not %s",
                        request->format->name);
    return api_form_check(&request->form, request->format, &request->problem);
}

static bool golden_read(struct api_request *request)
{
    static const char *const parts[] = {"outputs", "slice", "reduce", NULL};
    char pointer[PE_POINTER_MAX];
    request->is_cacheable = api_is_cacheable(request->call);
    request->taking = &taking;
    if (!(*request->path.preset ? read_path(request) : api_compute_read(request)))
        return false;
    const char *part = api_request_first(request, parts, pointer);
    if (part)
        return api_fail(&request->problem, 422, pointer, "%s has no meaning here: every tensor is there, and whole",
                        part);
    return api_form_read(request, &request->form, &request->problem) && api_lang_take(request) &&
           choose_format(request) && api_take_weights(request);
}

/* ---- How many positions fit ---- */

static void drop_golden(void *golden) { pe_golden_free(golden); }
static void drop_text(void *text) { api_text_drop(text); }

static const struct pe_named_tensor *tensor_at(const void *golden, size_t i) { return pe_golden_tensor(golden, i); }

/* The tensors, and the members beside them. */
static bool set_opening(struct api_request *request)
{
    struct giving *g = request->own;
    if (!api_study_hold(request, tensor_at, g->golden, pe_golden_n_tensors(g->golden)))
        return false;
    const struct pe_value *about = pe_golden_about(g->golden);
    return about ? api_study_members(request, about, &g->text, g->members) : api_fail_memory(&request->problem);
}

/* As safetensors, also if JSON is asked for: both have the same tensors. */
static bool fit(struct api_request *request)
{
    struct giving *g = request->own;
    uint64_t n = 0;
    for (;;) {
        if (!set_opening(request) || !api_safetensors_size(request, &n))
            return false;
        if (n <= PE_GOLDEN_BYTES_MAX)
            return true;
        if (!pe_golden_shrink(g->golden))
            return api_fail(&request->problem, 413, "",
                            "the file would have %llu bytes; allowed: at most %d; name one layer_type, or give fewer "
                            "positions",
                            (unsigned long long)n, PE_GOLDEN_BYTES_MAX);
    }
}

static bool golden_check(struct api_request *request)
{
    struct giving *g = request->own;
    struct api_arena *arena = &request->arena;
    struct pe_failure err;
    g->golden = NULL;
    g->core = (struct pe_golden_request){.fields = request->fields,
                                         .n_fields = request->n_fields,
                                         .dtype = pe_answer_dtype(request->form.dtype),
                                         .max_work = (double)request->host->max_analysis,
                                         .caller_fields = api_form_names,
                                         .admit = api_memory_admit,
                                         .caller = request};
    api_text_init(&g->text, API_TEXT_MAX);
    request->opening.keeps_order = true;
    api_memory_settle(request);
    if (!api_arena_own(arena, &g->text, drop_text))
        return api_fail_memory(&request->problem);
    if (pe_golden_open(&g->core, &g->golden, &err))
        return api_memory_fail(request, &err);
    return (api_arena_own(arena, g->golden, drop_golden) || api_fail_memory(&request->problem)) && fit(request);
}

/* ---- The answer ---- */

static bool compute_tensors(struct api_request *request)
{
    struct giving *g = request->own;
    struct pe_failure err;
    if (pe_golden_compute(g->golden, &err))
        return api_memory_fail(request, &err);
    return set_opening(request) && api_study_open(request);
}

static struct api_reply *golden_build(struct api_request *request)
{
    const struct giving *g = request->own;
    const struct pe_scheme_info *scheme = pe_golden_scheme(g->golden);
    request->tagged_as = "/golden";
    request->is_of_machine = scheme->is_of_machine;
    api_compute_name(request, g->text.bytes, g->text.n);
    if (!request->is_unchanged && !compute_tensors(request))
        return NULL;
    return api_reply_set_scheme(api_compute_reply(request), scheme->name);
}

const struct api_steps api_golden = {{golden_read}, golden_check, golden_build, sizeof(struct giving)};
