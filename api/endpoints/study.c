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
           api_lang_take(request) && api_compute_format(request);
}

void api_study_step(void *caller, const char *metric)
{
    const struct api_host *host = ((struct api_request *)caller)->host;
    if (host->metric_step)
        host->metric_step(metric);
}
