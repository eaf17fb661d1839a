/* /diagnose: which configuration gives a tensor. The answer is one JSON document, complete before it is sent. */
#include "api/endpoints/study.h"
#include "api/inputs/weights_in.h"
#include "api/replies/language.h"
#include "api/requests/form.h"
#include "api/requests/memory.h"
#include "api/routes.h"

#include <string.h>

/* A body of one tensor says by its shape what it is. */
static const char *lone_tensor(const struct pe_tensor *tensor)
{
    if (!pe_dtype_is_real(tensor->dtype))
        return "position_ids";
    return tensor->rank == 3 ? "bias" : "encoding";
}

static const struct api_taking taking = {.tensor = lone_tensor, .may_answer_nothing = true};

static bool check_format(const struct api_study *study)
{
    const struct api_format *format = study->c.format;
    if (strcmp(format->name, "json") == 0)
        return true;
    return api_fail(study->c.problem, 406, api_form_format(&study->c.form) ? "/format" : "",
                    "a diagnosis is JSON and has no tensor, so %s cannot carry it", format->name);
}

static bool read_request(struct api_study *study)
{
    struct api_computation *c = &study->c;
    return api_study_read(study, &taking) && check_format(study) &&
           api_weights_add(c->host->store, c->request, &c->stored_bytes, c->problem);
}

/* The form's names, for suggestions. */
static bool diagnose(struct api_study *study, struct pe_diagnosis **diagnosis)
{
    const struct api_request *request = study->c.request;
    struct pe_error err;
    struct pe_diagnosis_request core = {.fields = request->fields,
                                        .n_fields = request->n_fields,
                                        .lang = study->lang,
                                        .max_work = (double)study->c.host->max_analysis,
                                        .caller_fields = api_form_names(),
                                        .admit = api_study_admit,
                                        .step = api_study_step,
                                        .caller = study};
    api_memory_settle(study->c.request);
    return pe_diagnosis_new(&core, diagnosis, &err) == PE_OK || api_study_fail(study, &err);
}

static struct api_reply *reply_of(struct api_study *study, struct pe_diagnosis *diagnosis)
{
    const struct api_host *host = study->c.host;
    struct api_text text;
    bool is_repeatable = api_request_is_lasting(study->c.request);
    api_text_init(&text, API_TEXT_MAX);
    api_text_value(&text, pe_diagnosis_answer(diagnosis));
    if (host->hypotheses_searched)
        host->hypotheses_searched(host->self, pe_diagnosis_searched(diagnosis));
    pe_diagnosis_free(diagnosis);
    api_request_free(study->c.request);
    struct api_reply *reply = api_reply_text(200, api_json_type, &text);
    if (reply->status != 200)
        return reply;
    reply->is_repeatable = is_repeatable;
    return api_reply_set_language(reply, study->lang);
}

/* Like an analysis, it always goes to a worker. */
struct api_reply *api_diagnose(const struct api_asked *asked)
{
    struct api_study study;
    struct pe_diagnosis *diagnosis = NULL;
    if (asked->call->must_not_block)
        return NULL;
    if (api_study_init(&study, asked) && read_request(&study) && diagnose(&study, &diagnosis))
        return reply_of(&study, diagnosis);
    return api_study_refuse(&study);
}
