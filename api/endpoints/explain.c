/* /explain: what a configuration means for every kind of layers and every tool. The answer is one JSON document, or its
 * sentences as text, complete before it is sent. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <string.h>

static const char *lone_tensor(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "q";
}

static const struct api_taking taking = {
    .tensor = lone_tensor, .params = pe_explain_params, .may_answer_nothing = true};

/* ---- The request ---- */

static bool check_format(struct api_request *request)
{
    return api_study_is_document(request) ||
           api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                    "an explanation is JSON or text and has no tensor, so %s cannot carry it", request->format->name);
}

static bool explain_read(struct api_request *request)
{
    return api_study_read(request, &taking) && check_format(request);
}

/* ---- The answer ---- */

static void put_line(struct api_text *text, const char *before, const char *sentence)
{
    api_text_put(text, before);
    api_text_put(text, sentence);
    api_text_put(text, "\n");
}

static const char *word(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0 && object->object.fields[i].value.kind == PE_STRING)
            return object->object.fields[i].value.string;
    return "";
}

static const struct pe_value *list(const struct pe_value *object, const char *name)
{
    static const struct pe_value none = {.kind = PE_LIST};
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0 && object->object.fields[i].value.kind == PE_LIST)
            return &object->object.fields[i].value;
    return &none;
}

/* A line for each kind of layers, one for each finding, then the verdict. */
static void put_sentences(struct api_text *text, const struct pe_value *answer)
{
    const struct pe_value *kinds = list(answer, "layers"), *findings = list(answer, "findings");
    for (size_t i = 0; i < kinds->list.n; i++) {
        const char *summary = word(&kinds->list.items[i], "summary");
        api_text_put(text, word(&kinds->list.items[i], "layer_type"));
        put_line(text, ": ", *summary ? summary : word(&kinds->list.items[i], "refused"));
    }
    for (size_t i = 0; i < findings->list.n; i++) {
        api_text_put(text, word(&findings->list.items[i], "level"));
        api_text_put(text, " ");
        api_text_put(text, word(&findings->list.items[i], "code"));
        put_line(text, ": ", word(&findings->list.items[i], "detail"));
    }
    put_line(text, "", word(answer, "detail"));
}

/* One that may be kept has a tag. */
static struct api_reply *reply_of(struct api_request *request, struct api_text *text)
{
    const char *type = api_study_is_sentences(request) ? request->format->media_type : api_json_type;
    struct api_reply *reply = request->is_kept ? api_compute_document(request, type, request->route->pattern, text)
                                               : api_reply_text(200, type, text);
    if (reply->status != 200)
        return reply;
    reply->is_repeatable = api_request_is_lasting(request);
    return api_reply_set_language(reply, request->lang);
}

struct api_reply *api_explained(struct api_request *request, const struct api_explaining *how)
{
    struct pe_failure err;
    struct pe_explain *explain = NULL;
    struct pe_explain_request core = {.fields = request->fields,
                                      .n_fields = request->n_fields,
                                      .lang = request->lang,
                                      .caller_fields = api_form_names,
                                      .admit = api_memory_admit,
                                      .caller = request};
    struct api_text text;
    api_memory_settle(request);
    if (how->ask(&core, &explain, &err)) {
        api_memory_fail(request, &err);
        return NULL;
    }
    api_text_init(&text, API_TEXT_MAX);
    (api_study_is_sentences(request) ? how->put_sentences : how->put)(&text, pe_explain_answer(explain));
    pe_explain_free(explain);
    return reply_of(request, &text);
}

static struct api_reply *explain_build(struct api_request *request)
{
    return api_explained(request, &(struct api_explaining){pe_explain_new, api_text_value, put_sentences});
}

const struct api_steps api_explain = {explain_read, NULL, explain_build, 0};
