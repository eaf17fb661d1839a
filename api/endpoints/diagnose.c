/* /diagnose: which configuration gives a tensor. The answer is one JSON document, complete before it is sent. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <string.h>

/* A tensor that is sent alone is recognised by its shape. */
static const char *lone_tensor(const struct pe_tensor *tensor)
{
    if (!pe_dtype_is_real(tensor->dtype))
        return "position_ids";
    return tensor->rank == 3 ? "bias" : "encoding";
}

static const struct api_taking taking = {.tensor = lone_tensor, .may_answer_nothing = true};

static bool check_format(struct api_request *request)
{
    const struct api_format *format = request->format;
    if (strcmp(format->name, "json") == 0)
        return true;
    return api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                    "a diagnosis is JSON and has no tensor, so %s cannot carry it", format->name);
}

static bool diagnose_read(struct api_request *request)
{
    return api_study_read(request, &taking) && check_format(request) &&
           api_weights_add(request->host->store, request, &request->stored_bytes, &request->problem);
}

/* The form's names, for suggestions. */
static bool diagnose(struct api_request *request, struct pe_diagnosis **diagnosis)
{
    struct pe_error err;
    struct pe_diagnosis_request core = {.fields = request->fields,
                                        .n_fields = request->n_fields,
                                        .lang = request->lang,
                                        .max_work = (double)request->host->max_analysis,
                                        .caller_fields = api_form_names(),
                                        .admit = api_memory_admit,
                                        .step = api_study_step,
                                        .caller = request};
    api_memory_settle(request);
    return pe_diagnosis_new(&core, diagnosis, &err) == PE_OK || api_memory_fail(request, &err);
}

static struct api_reply *reply_of(struct api_request *request, struct pe_diagnosis *diagnosis)
{
    const struct api_host *host = request->host;
    struct api_text text;
    bool is_repeatable = api_request_is_lasting(request);
    api_text_init(&text, API_TEXT_MAX);
    api_text_value(&text, pe_diagnosis_answer(diagnosis));
    if (host->hypotheses_searched)
        host->hypotheses_searched(pe_diagnosis_searched(diagnosis));
    pe_diagnosis_free(diagnosis);
    struct api_reply *reply = api_reply_text(200, api_json_type, &text);
    if (reply->status != 200)
        return reply;
    reply->is_repeatable = is_repeatable;
    return api_reply_set_language(reply, request->lang);
}

static struct api_reply *diagnose_build(struct api_request *request)
{
    struct pe_diagnosis *diagnosis = NULL;
    return diagnose(request, &diagnosis) ? reply_of(request, diagnosis) : NULL;
}

const struct api_steps api_diagnose = {diagnose_read, NULL, diagnose_build, 0};
