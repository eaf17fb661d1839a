/* POST /v2/models/{name}/infer: the body becomes a request of ours, whose outputs say which operation it is. */
#include "api/requests/memory.h"
#include "api/oip/oip.h"

#include <stdio.h>
#include <string.h>

struct inference {
    struct api_oip_model model;
    struct api_oip_request request;
    struct api_oip_answer answer;
    struct api_computation computation;
    struct api_problem problem;
};

/* ---- Which operation ---- */

static bool has_row(const struct pe_output_row *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return true;
    return false;
}

/* q_out and k_out are turned, encodings have rows of their own, and the rest only attention knows. */
static enum pe_operation operation_of(const struct api_oip_model *model, const char *output)
{
    if (strcmp(output, "q_out") == 0 || strcmp(output, "k_out") == 0)
        return PE_ROTATE;
    bool is_attention = has_row(pe_attention_outputs(), output), is_encoding = has_row(model->scheme->outputs, output);
    if (is_attention && !is_encoding)
        return PE_ATTEND;
    return is_encoding || (model->scheme->is_additive && strcmp(output, "combined") == 0) ? PE_ENCODE : PE_N_OPERATIONS;
}

/* Without names of outputs the tensors decide. */
static enum pe_operation usual_operation(const struct api_oip_model *model, const struct api_request *request)
{
    bool q = api_request_find(request, "q"), k = api_request_find(request, "k");
    if (model->is_fixed)
        return model->operation;
    if ((q || k) && api_oip_can(model, PE_ROTATE))
        return PE_ROTATE;
    return q && k && api_oip_can(model, PE_ATTEND) ? PE_ATTEND : PE_ENCODE;
}

static const char *operation_text(enum pe_operation operation)
{
    static const char *const texts[] = {
        [PE_ENCODE] = "an encoding", [PE_ROTATE] = "a rotation", [PE_ATTEND] = "attention"};
    return texts[operation];
}

static bool fail_output(struct inference *inference, size_t i, const char *what)
{
    char pointer[48], name[API_OIP_NAME_MAX];
    snprintf(pointer, sizeof pointer, "/outputs/%zu/name", i);
    api_oip_name_print(&inference->model, name);
    return api_fail(&inference->problem, 422, pointer, "output \"%.64s\" of model %s: %s",
                    inference->request.outputs[i], name, what);
}

/* One request is one plan, so its outputs are of one operation. Names that nobody knows are left to the plan: it knows
 * the terms of relative schemes, and what is near. */
static bool choose_operation(struct inference *inference, struct api_request *request)
{
    const struct api_oip_request *oip = &inference->request;
    enum pe_operation chosen = PE_N_OPERATIONS;
    for (size_t i = 0; i < oip->n_outputs; i++) {
        enum pe_operation operation = operation_of(&inference->model, oip->outputs[i]);
        char what[128];
        if (operation == PE_N_OPERATIONS)
            continue;
        if (!api_oip_can(&inference->model, operation)) {
            snprintf(what, sizeof what, "it comes from %s, which this model does not do", operation_text(operation));
            return fail_output(inference, i, what);
        }
        if (chosen != PE_N_OPERATIONS && chosen != operation) {
            snprintf(what, sizeof what, "it comes from %s, the one before from %s; ask for them one by one",
                     operation_text(operation), operation_text(chosen));
            return fail_output(inference, i, what);
        }
        chosen = operation;
    }
    if (chosen == PE_N_OPERATIONS) /* an unknown name beside q and k is a term of attention, if anything */
        chosen = usual_operation(&inference->model, request);
    request->operation = chosen;
    return true;
}

static bool name_outputs(struct inference *inference, enum pe_operation operation)
{
    const struct api_oip_request *oip = &inference->request;
    struct api_form *form = &inference->computation.form;
    form->n_outputs = oip->n_outputs;
    for (size_t i = 0; i < oip->n_outputs; i++) {
        bool is_turned = operation_of(&inference->model, oip->outputs[i]) == PE_ROTATE;
        if (operation == PE_ROTATE && !is_turned)
            return fail_output(inference, i, "the outputs of a rotation are q_out and k_out");
        form->outputs[i] = !is_turned ? oip->outputs[i] : *oip->outputs[i] == 'q' ? "q" : "k";
        bool is_sent = api_request_find(&inference->computation.work->request, form->outputs[i]);
        if (is_turned && !is_sent)
            return fail_output(inference, i,
                               *form->outputs[i] == 'q' ? "the input q is missing" : "the input k is missing");
    }
    return true;
}

/* ---- From bytes to a plan ---- */

static bool read(struct inference *inference)
{
    struct api_computation *c = &inference->computation;
    struct api_request *request = &c->work->request;
    struct pe_value scheme = {.kind = PE_STRING, .string = inference->model.scheme->name};
    request->max_json = c->host->max_json;
    request->body_is_ours = c->call->body_is_ours && !c->call->is_hurried; /* who hurries may ask again */
    size_t n_json;
    return api_oip_json_bytes(c->call, &n_json, &inference->problem) &&
           api_memory_for_json(c->work, c->host, c->call, n_json, &inference->problem) &&
           api_oip_read(request, c->call, n_json, &inference->request, &inference->problem) &&
           api_request_add(request, "scheme", &scheme, &inference->problem) && choose_operation(inference, request);
}

static bool is_under(const char *pointer, const char *name, size_t *n)
{
    char place[PE_POINTER_MAX] = "";
    api_pointer_push(place, name, strlen(name));
    *n = strlen(place);
    return strncmp(pointer, place, *n) == 0 && (!pointer[*n] || pointer[*n] == '/');
}

/* The plan points at fields of a flat request; the client has written inputs and parameters. */
static bool relocate(struct inference *inference)
{
    char *pointer = inference->problem.error.pointer, inner[PE_POINTER_MAX];
    size_t n;
    if (!*pointer || is_under(pointer, "outputs", &n))
        return false;
    if (is_under(pointer, "scheme", &n)) /* which the client has not written */
        return api_fail(&inference->problem, 422, "/parameters",
                        "the model is the scheme %s, and the parameters name a preset or configuration of another",
                        inference->model.scheme->name);
    snprintf(inner, sizeof inner, "%s", pointer);
    for (size_t i = 0; i < inference->request.n_inputs; i++)
        if (is_under(inner, inference->request.inputs[i].name, &n)) {
            snprintf(pointer, PE_POINTER_MAX, "/inputs/%zu%.130s", i, inner + n);
            return false;
        }
    snprintf(pointer, PE_POINTER_MAX, "/parameters%.140s", inner);
    return false;
}

static bool plan(struct inference *inference, struct api_opening *opening, bool *later)
{
    struct api_computation *c = &inference->computation;
    bool is_mixed;
    if (!api_form_read(&c->work->request, &c->form, &inference->problem))
        return relocate(inference);
    if (!name_outputs(inference, c->work->request.operation))
        return false;
    c->format = api_oip_format(&inference->request, &is_mixed);
    if (is_mixed && c->call->is_hurried) { /* its JSON is made here, however long that takes */
        *later = true;
        return false;
    }
    inference->answer = (struct api_oip_answer){.model = &inference->model, .request = &inference->request};
    c->about = &inference->answer;
    return api_compute(c, opening, later) || relocate(inference);
}

/* ---- The answer ---- */

static struct api_reply *answer(struct inference *inference, const struct api_opening *opening)
{
    bool has_tail = inference->answer.has_tail;
    struct api_reply *reply = api_reply_stream(inference->computation.work, has_tail ? opening->header : NULL,
                                               has_tail ? opening->header_value : NULL);
    if (reply->status != 200)
        return reply;
    reply->timeout_us = inference->request.timeout_us;
    if (!has_tail)
        reply->content_type = api_json_type;
    return reply;
}

static struct api_reply *infer(struct inference *inference)
{
    struct api_work *work = inference->computation.work = api_work_new(PE_ENCODE);
    struct api_opening opening;
    bool later = false;
    if (!work)
        api_fail_memory(&inference->problem);
    else if (read(inference) && plan(inference, &opening, &later))
        return answer(inference, &opening);
    api_memory_refusal(work, &inference->problem);
    api_work_free(work);
    return later ? NULL : api_reply_problem(&inference->problem);
}

struct api_reply *api_oip_infer(const struct api_asked *asked)
{
    struct inference inference = {.computation = {.host = asked->host, .call = asked->call}};
    inference.computation.problem = &inference.problem;
    if (!api_oip_find(asked, &inference.model, &inference.problem))
        return api_reply_problem(&inference.problem);
    return infer(&inference);
}
