/* Analyses, diagnoses and golden vectors are computed before their answer begins. */
#include "api/endpoints/endpoints.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <assert.h>
#include <string.h>

bool api_study_read(struct api_request *request, const struct api_taking *taking)
{
    static const char *const parts[] = {"slice", "reduce", NULL};
    char pointer[PE_POINTER_MAX];
    request->is_cacheable = api_is_cacheable(request->call);
    request->taking = taking;
    if (!api_compute_read(request))
        return false;
    const char *part = api_request_first(request, parts, pointer);
    if (part)
        return api_fail(&request->problem, 422, pointer, "%s has no meaning here: every tensor is whole", part);
    return api_form_read(request, &request->form, &request->problem) && api_lang_take(request) &&
           api_form_choose(request);
}

bool api_study_is_sentences(const struct api_request *request) { return strcmp(request->format->name, "text") == 0; }

bool api_study_is_document(const struct api_request *request)
{
    return strcmp(request->format->name, "json") == 0 || api_study_is_sentences(request);
}

void api_study_step(void *caller, const char *metric)
{
    const struct api_host *host = ((struct api_request *)caller)->host;
    if (host->metric_step)
        host->metric_step(metric);
}

bool api_study_hold(struct api_request *request, api_study_tensor *tensor, const void *result, size_t n)
{
    struct api_held *held = api_arena_array(&request->arena, n, sizeof *held);
    if (!held)
        return api_fail_memory(&request->problem);
    for (size_t i = 0; i < n; i++) {
        const struct pe_named_tensor *named = tensor(result, i);
        held[i] = (struct api_held){api_held_output(named->name, &named->tensor), named->tensor.data};
    }
    request->opening.source = (struct api_source){.held = held, .n_held = n};
    return true;
}

bool api_study_members(struct api_request *request, const struct pe_value *object, struct api_text *text,
                       struct api_member members[API_STUDY_MEMBERS_MAX])
{
    size_t n = object->object.n, begins[API_STUDY_MEMBERS_MAX + 1] = {0};
    assert(n <= API_STUDY_MEMBERS_MAX);
    text->n = 0;
    for (size_t i = 0; i < n; i++) {
        api_text_value(text, &object->object.fields[i].value);
        begins[i + 1] = text->n;
    }
    if (text->state)
        return api_fail_text(&request->problem, text);
    for (size_t i = 0; i < n; i++)
        members[i] =
            (struct api_member){object->object.fields[i].name, text->bytes + begins[i], begins[i + 1] - begins[i]};
    request->opening.members = members;
    request->opening.n_members = n;
    return true;
}

bool api_study_open(struct api_request *request)
{
    return api_memory_for_answering(request, &request->opening.source) && api_body_open(request);
}

struct api_reply *api_study_reply(struct api_request *request, struct api_text *text, bool has_language)
{
    const char *type = api_format_type(request->format);
    request->tagged_as = request->route->pattern;
    struct api_reply *reply =
        request->is_cacheable ? api_compute_document(request, type, text) : api_reply_text(200, type, text);
    if (reply->status != 200)
        return reply;
    reply->is_repeatable = api_request_is_lasting(request);
    return has_language ? api_reply_set_language(reply, request->lang) : reply;
}
