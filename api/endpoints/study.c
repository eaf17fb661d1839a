/* Analyses and diagnoses are computed before their answer begins. */
#include "api/endpoints/study.h"
#include "api/requests/lang.h"
#include "api/requests/memory.h"

#include <stdio.h>

bool api_study_init(struct api_study *study, const struct api_asked *asked)
{
    *study = (struct api_study){.c = {.host = asked->host, .call = asked->call}};
    study->c.problem = &study->problem;
    study->c.is_kept = api_may_be_kept(asked->call);
    study->c.request = api_request_new(PE_ENCODE);
    return study->c.request || api_fail_memory(&study->problem);
}

/* Their tensors are whole. */
static bool check_form(const struct api_study *study)
{
    static const char *const names[] = {"slice", "reduce"};
    char pointer[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(pointer, sizeof pointer, "/%s", names[i]);
        if (api_request_find(study->c.request, names[i]))
            return api_fail(study->c.problem, 422, pointer, "%s has no meaning here: every tensor is whole", names[i]);
    }
    return true;
}

bool api_study_read(struct api_study *study, const struct api_taking *taking)
{
    struct api_request *request = study->c.request;
    request->taking = taking;
    return api_compute_read(&study->c) && check_form(study) &&
           api_form_read(request, &study->c.form, study->c.problem) &&
           api_lang_take(request, study->c.call, &study->lang, study->c.problem) && api_compute_format(&study->c);
}

enum pe_status api_study_admit(void *caller, const struct pe_cost *cost, struct pe_error *err)
{
    struct api_study *study = caller;
    study->is_refused = !api_memory_for_planning(study->c.request, study->c.host, cost->bytes, study->c.problem);
    return study->is_refused ? err->status = PE_CANCELLED : PE_OK;
}

void api_study_step(void *caller, const char *metric)
{
    const struct api_host *host = ((struct api_study *)caller)->c.host;
    if (host->metric_step)
        host->metric_step(host->self, metric);
}

bool api_study_fail(const struct api_study *study, const struct pe_error *err)
{
    return !study->is_refused && api_fail_core(study->c.problem, err);
}

struct api_reply *api_study_refuse(struct api_study *study)
{
    api_memory_refusal(study->c.request, &study->problem);
    api_request_free(study->c.request);
    return api_reply_problem(&study->problem);
}
