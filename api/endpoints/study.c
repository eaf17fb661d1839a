/* Analyses and diagnoses are computed before their answer begins. */
#include "api/endpoints/endpoints.h"
#include "api/requests/requests.h"

#include <stdio.h>

/* Their tensors are whole. */
static bool check_form(struct api_request *request)
{
    static const char *const names[] = {"slice", "reduce"};
    char pointer[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(pointer, sizeof pointer, "/%s", names[i]);
        if (api_request_find(request, names[i]))
            return api_fail(&request->problem, 422, pointer, "%s has no meaning here: every tensor is whole", names[i]);
    }
    return true;
}

bool api_study_read(struct api_request *request, const struct api_taking *taking)
{
    request->is_kept = api_may_be_kept(request->call);
    request->taking = taking;
    return api_compute_read(request) && check_form(request) &&
           api_form_read(request, &request->form, &request->problem) &&
           api_lang_take(request, request->call, &request->lang, &request->problem) && api_compute_format(request);
}

enum pe_status api_study_admit(void *caller, double bytes, struct pe_error *err)
{
    struct api_request *request = caller;
    request->is_refused = !api_memory_for_planning(request, request->host, bytes, &request->problem);
    return request->is_refused ? err->status = PE_CANCELLED : PE_OK;
}

void api_study_step(void *caller, const char *metric)
{
    const struct api_host *host = ((struct api_request *)caller)->host;
    if (host->metric_step)
        host->metric_step(metric);
}

bool api_study_fail(struct api_request *request, const struct pe_error *err)
{
    return !request->is_refused && api_fail_core(&request->problem, err);
}
