/* POST /v2/models/{name}/infer: the body becomes a posenc request, and its outputs determine the operation. */
#include "api/inputs/inputs.h"
#include "api/requests/requests.h"
#include "api/oip/oip.h"
#include "api/operations.h"

#include <stdio.h>
#include <string.h>

struct inference {
    struct api_request *request;
    struct api_oip_model model;
    struct api_oip_request oip;
    struct api_oip_answer answer;
};

/* ---- Which operation ---- */

static bool has_row(const struct pe_output_row *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return true;
    return false;
}

/* The output with this name in /v2; NULL: it has the same name there. */
static const struct api_renamed *renamed_in(enum pe_operation_id id, const char *output)
{
    for (const struct api_renamed *row = api_operations[id].renamed; row->name; row++)
        if (strcmp(row->name, output) == 0)
            return row;
    return NULL;
}

/* The outputs of encodings are rows of the scheme, all others rows of an operation. PE_N_OPERATIONS: the name is
 * unknown. */
static enum pe_operation_id operation_of(const struct api_oip_model *model, const char *output)
{
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        if (renamed_in(id, output))
            return id;
    if (has_row(model->scheme->outputs, output) || (model->scheme->is_additive && strcmp(output, "combined") == 0))
        return PE_ENCODE;
    enum pe_operation_id id = 0;
    while (id < PE_N_OPERATIONS && !has_row(pe_operation_at(id)->outputs, output))
        id++;
    return id;
}

/* If no outputs are named, the tensors decide. */
static enum pe_operation_id usual_operation(const struct api_oip_model *model, const struct api_request *request)
{
    bool q = api_request_find(request, "q"), k = api_request_find(request, "k");
    if (model->is_fixed)
        return model->operation;
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        unsigned n_choose = api_operations[id].n_choose, n_sent = (unsigned)q + (unsigned)k;
        if (n_choose && n_sent >= n_choose && api_oip_can(model, id))
            return id;
    }
    return PE_ENCODE;
}

static bool fail_output(struct inference *inference, size_t i, const char *what)
{
    char pointer[48], name[API_OIP_NAME_MAX];
    snprintf(pointer, sizeof pointer, "/outputs/%zu/name", i);
    api_oip_name_print(&inference->model, name);
    return api_fail(&inference->request->problem, 422, pointer, "output \"%.64s\" of model %s: %s",
                    inference->oip.outputs[i], name, pe_text(what));
}

/* One request is one plan, so its outputs are of one operation. Unknown names are left to the plan, which knows the
 * terms of relative schemes and suggests similar names. */
static bool choose_operation(struct inference *inference, struct api_request *request)
{
    const struct api_oip_request *oip = &inference->oip;
    enum pe_operation_id chosen = PE_N_OPERATIONS;
    for (size_t i = 0; i < oip->n_outputs; i++) {
        enum pe_operation_id operation = operation_of(&inference->model, oip->outputs[i]);
        char what[192];
        if (operation == PE_N_OPERATIONS)
            continue;
        if (!api_oip_can(&inference->model, operation)) {
            snprintf(what, sizeof what, pe_text("it comes from %s, which this model does not do"),
                     pe_text(api_operations[operation].text));
            return fail_output(inference, i, what);
        }
        if (chosen != PE_N_OPERATIONS && chosen != operation) {
            snprintf(what, sizeof what, pe_text("it comes from %s, the one before from %s; ask for them one by one"),
                     pe_text(api_operations[operation].text), pe_text(api_operations[chosen].text));
            return fail_output(inference, i, what);
        }
        chosen = operation;
    }
    if (chosen == PE_N_OPERATIONS) /* an unknown name beside q and k can only be a term of attention */
        chosen = usual_operation(&inference->model, request);
    request->operation = chosen;
    return true;
}

/* The outputs of an operation that have other names in this protocol. */
static bool fail_renamed(struct inference *inference, size_t i, const struct api_operation *row)
{
    char what[192];
    int n = snprintf(what, sizeof what, pe_text("%s answers %s"), pe_text(row->text), row->renamed[0].name);
    for (size_t k = 1; k < API_RENAMED_MAX && row->renamed[k].name; k++)
        n += snprintf(what + n, sizeof what - (size_t)n, pe_text(" and %s"), row->renamed[k].name);
    return fail_output(inference, i, what);
}

static bool name_output(struct inference *inference, size_t i, enum pe_operation_id operation)
{
    const char *wanted = inference->oip.outputs[i], **output = &inference->request->form.outputs[i];
    const struct api_renamed *renamed = renamed_in(operation, wanted);
    char what[192];
    *output = renamed ? renamed->output : wanted;
    if (!renamed && api_operations[operation].renamed[0].name)
        return fail_renamed(inference, i, &api_operations[operation]);
    if (!renamed || api_request_find(inference->request, *output))
        return true;
    snprintf(what, sizeof what, pe_text("the input %s is missing"), *output);
    return fail_output(inference, i, what);
}

/* ---- From bytes to a plan ---- */

static bool is_under(const char *pointer, const char *name, size_t *n)
{
    char place[PE_POINTER_MAX] = "";
    api_pointer_push(place, name, strlen(name));
    *n = strlen(place);
    return strncmp(pointer, place, *n) == 0 && (!pointer[*n] || pointer[*n] == '/');
}

/* The plan's pointers name fields of a flat request, but the client has sent inputs and parameters. */
static bool relocate(struct inference *inference)
{
    char *pointer = inference->request->problem.error.pointer, inner[PE_POINTER_MAX];
    size_t n;
    if (!*pointer || is_under(pointer, "outputs", &n))
        return false;
    if (is_under(pointer, "scheme", &n)) /* a field that the client has not sent */
        return api_fail(&inference->request->problem, 422, "/parameters",
                        "the model is the scheme %s, and the parameters name a preset or configuration of another",
                        inference->model.scheme->name);
    snprintf(inner, sizeof inner, "%s", pointer);
    for (size_t i = 0; i < inference->oip.n_inputs; i++)
        if (is_under(inner, inference->oip.inputs[i].name, &n)) {
            snprintf(pointer, PE_POINTER_MAX, "/inputs/%zu%.130s", i, inner + n);
            return false;
        }
    snprintf(pointer, PE_POINTER_MAX, "/parameters%.140s", inner);
    return false;
}

static bool infer_body(struct api_request *request)
{
    struct inference *inference = request->own;
    struct api_problem *problem = &request->problem;
    size_t n_json;
    *inference = (struct inference){.request = request};
    return api_oip_find(request, &inference->model) && api_oip_json_bytes(request->call, &n_json, problem) &&
           api_memory_for_json(request, n_json) &&
           api_oip_read(request, request->call, n_json, &inference->oip, problem);
}

static bool infer_preset(struct api_request *request)
{
    return (api_pasted_take(request, &request->problem) && api_take_preset(request)) || relocate(request->own);
}

static bool infer_form(struct api_request *request)
{
    struct inference *inference = request->own;
    struct pe_value scheme = {.kind = PE_STRING, .string = inference->model.scheme->name};
    if (!api_request_add(request, "scheme", &scheme, &request->problem) || !choose_operation(inference, request))
        return false;
    if (!api_form_read(request, &request->form, &request->problem))
        return relocate(inference);
    inference->request->form.n_outputs = inference->oip.n_outputs;
    for (size_t i = 0; i < inference->oip.n_outputs; i++)
        if (!name_output(inference, i, request->operation))
            return false;
    return true;
}

/* Of some outputs in JSON and others as bytes, the JSON is computed before the answer begins. */
static bool infer_check(struct api_request *request)
{
    struct inference *inference = request->own;
    bool is_mixed;
    request->format = api_oip_format(&inference->oip, &is_mixed);
    bool fine = api_compute_check(request) || relocate(inference);
    request->is_long |= is_mixed;
    return fine;
}

/* ---- The answer ---- */

static struct api_reply *infer_build(struct api_request *request)
{
    struct inference *inference = request->own;
    inference->answer = (struct api_oip_answer){.model = &inference->model, .request = &inference->oip};
    request->about = &inference->answer;
    if (!api_compute(request)) {
        relocate(inference);
        return NULL;
    }
    struct api_reply *reply = api_reply_stream(request);
    if (reply->status != 200)
        return reply;
    reply->timeout_us = inference->oip.timeout_us;
    if (!inference->answer.has_tail)
        reply->content_type = api_json_type;
    return reply;
}

const struct api_steps api_oip_infer = {
    {infer_body, infer_preset, infer_form}, infer_check, infer_build, sizeof(struct inference)};
