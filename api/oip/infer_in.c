/* The body of an inference: JSON, and behind it the bytes of those tensors that are sent as bytes. The header
 * Inference-Header-Content-Length states the length of the JSON. */
#include "api/inputs/inputs.h"
#include "api/oip/oip.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Members of objects ---- */

/* An object of the request, and its place. */
struct object {
    const struct pe_value *value;
    char pointer[PE_POINTER_MAX];
    struct api_problem *problem;
};

/* The message names the place too, because Triton's clients show only the message of a refusal. */
static bool fail_at(const struct object *object, const char *member, const char *what)
{
    char pointer[PE_POINTER_MAX];
    snprintf(pointer, sizeof pointer, "%s", object->pointer);
    api_pointer_push(pointer, member, strlen(member));
    return api_fail(object->problem, 422, pointer, "%s: %s", pointer, pe_text(what));
}

/* A member without a meaning here is refused, because its sender expects an effect. */
static bool check_names(const struct object *object, const char *const *known)
{
    for (size_t i = 0; i < object->value->object.n; i++) {
        const char *name = object->value->object.fields[i].name;
        if (api_is_among(known, name))
            continue;
        const char *nearest = pe_nearest(name, known);
        char what[192];
        snprintf(what, sizeof what,
                 pe_text(nearest ? "unknown member \"%.64s\"; nearest: \"%s\"" : "unknown member \"%.64s\""), name,
                 nearest);
        return fail_at(object, name, what);
    }
    return true;
}

static bool read_string(const struct object *object, const char *name, const char **string)
{
    const struct pe_value *value = api_member_find(object->value, name);
    if (!value || value->kind != PE_STRING || !*value->string)
        return fail_at(object, name, value ? "must be a string that is not empty" : "is missing; needed: a string");
    *string = value->string;
    return true;
}

/* Parameters may be missing, which means that there are none. */
static bool find_parameters(const struct object *object, struct object *parameters)
{
    static const struct pe_value none = {.kind = PE_OBJECT};
    const struct pe_value *value = api_member_find(object->value, "parameters");
    if (value && value->kind != PE_OBJECT)
        return fail_at(object, "parameters", "must be an object");
    *parameters = (struct object){.value = value ? value : &none, .problem = object->problem};
    snprintf(parameters->pointer, sizeof parameters->pointer, "%.140s/parameters", object->pointer);
    return true;
}

static bool read_flag(const struct object *parameters, const char *name, enum api_oip_wish *wish)
{
    const struct pe_value *value = api_member_find(parameters->value, name);
    *wish = !value ? API_OIP_UNSAID : value->kind == PE_BOOLEAN && value->boolean ? API_OIP_BINARY : API_OIP_JSON;
    return !value || value->kind == PE_BOOLEAN || fail_at(parameters, name, "must be true or false");
}

/* 8.0 counts as an integer, as in all requests. */
static bool read_whole(const struct pe_value *value, uint64_t *count)
{
    double x = value->kind == PE_REAL ? value->real : -1;
    if (value->kind == PE_INTEGER && value->integer >= 0)
        *count = (uint64_t)value->integer;
    else if (x >= 0 && x <= 0x1p53 && x == floor(x))
        *count = (uint64_t)x;
    else
        return false;
    return true;
}

static bool read_count(const struct object *parameters, const char *name, uint64_t *count)
{
    const struct pe_value *value = api_member_find(parameters->value, name);
    *count = 0;
    return !value || read_whole(value, count) || fail_at(parameters, name, "must be an integer of at least 0");
}

static bool refuse_parameter(const struct object *parameters, const char *name, const char *what)
{
    return !api_member_find(parameters->value, name) || fail_at(parameters, name, what);
}

/* The list of objects under a name, NULL if absent; its length; its i-th object. */
static bool find_list(const struct object *root, const char *name, size_t max, const struct pe_value **list, size_t *n)
{
    char what[128];
    *list = api_member_find(root->value, name);
    *n = *list && (*list)->kind == PE_LIST ? (*list)->list.n : 0;
    snprintf(what, sizeof what, pe_text("must be a list of at most %zu objects"), max);
    return (*list ? (*list)->kind == PE_LIST && *n <= max : true) || fail_at(root, name, what);
}

static bool item_at(const struct object *root, const char *name, const struct pe_value *list, size_t i,
                    struct object *item)
{
    *item = (struct object){.value = &list->list.items[i], .problem = root->problem};
    snprintf(item->pointer, sizeof item->pointer, "/%s/%zu", name, i);
    return item->value->kind == PE_OBJECT ||
           api_fail(root->problem, 422, item->pointer, "an entry of %s must be an object with a name", name);
}

/* ---- Inputs ---- */

static bool read_axis(double x, uint64_t *axis)
{
    if (!(x >= 0 && x <= 0x1p53 && x == floor(x))) /* beyond, the number's text is no longer exact */
        return false;
    *axis = (uint64_t)x;
    return true;
}

static bool read_shape(const struct object *object, struct pe_tensor *tensor)
{
    const struct pe_value *shape = api_member_find(object->value, "shape");
    const char *what = pe_text("must be a list of at most 8 integers of at least 0");
    *tensor = (struct pe_tensor){0};
    if (shape && shape->kind == PE_LIST && shape->list.n == 0)
        return true;
    if (!shape || shape->kind != PE_ARRAY || shape->array.rank != 1 || shape->array.shape[0] > PE_RANK_MAX)
        return fail_at(object, "shape", what);
    tensor->rank = (unsigned)shape->array.shape[0];
    for (unsigned i = 0; i < tensor->rank; i++)
        if (!read_axis(((const double *)shape->array.data)[i], &tensor->shape[i]))
            return fail_at(object, "shape", what);
    return true;
}

static bool read_input(const struct object *object, struct api_oip_input *input)
{
    static const char *const known[] = {"name", "shape", "datatype", "parameters", "data", NULL};
    struct object parameters;
    if (!check_names(object, known) || !read_string(object, "name", &input->name) ||
        !read_string(object, "datatype", &input->datatype) || !read_shape(object, &input->shape) ||
        !find_parameters(object, &parameters) || !read_count(&parameters, "binary_data_size", &input->n_bytes) ||
        !refuse_parameter(&parameters, "shared_memory_region", "there is no shared memory here; send data or bytes"))
        return false;
    if (api_is_among(api_form_names, input->name) || strcmp(input->name, "scheme") == 0) {
        /* Else a list of numbers named slice would cut the answer. */
        char what[160];
        snprintf(what, sizeof what,
                 pe_text("\"%s\" is no input: it belongs to the form of an answer or names the model"), input->name);
        return fail_at(object, "name", what);
    }
    input->data = api_member_find(object->value, "data");
    input->is_binary = api_member_find(parameters.value, "binary_data_size");
    if (input->is_binary && input->data)
        return fail_at(object, "data", "data and binary_data_size are both there; give one");
    return input->is_binary || input->data || fail_at(object, "data", "data or parameters.binary_data_size is missing");
}

static bool read_inputs(const struct object *root, struct api_oip_request *oip)
{
    const struct pe_value *list;
    if (!find_list(root, "inputs", API_FIELDS_MAX, &list, &oip->n_inputs))
        return false;
    for (size_t i = 0; i < oip->n_inputs; i++) {
        struct object item;
        oip->inputs[i].index = i;
        if (!item_at(root, "inputs", list, i, &item) || !read_input(&item, &oip->inputs[i]))
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(oip->inputs[k].name, oip->inputs[i].name) == 0)
                return fail_at(&item, "name", "another input has this name");
    }
    return true;
}

/* ---- Outputs ---- */

static bool read_output(const struct object *object, struct api_oip_request *oip, size_t i)
{
    static const char *const known[] = {"name", "parameters", NULL};
    struct object parameters;
    return check_names(object, known) && read_string(object, "name", &oip->outputs[i]) &&
           find_parameters(object, &parameters) && read_flag(&parameters, "binary_data", &oip->wishes[i]) &&
           refuse_parameter(&parameters, "shared_memory_region", "there is no shared memory here; leave it out") &&
           refuse_parameter(&parameters, "classification", "nothing here is a classification; leave it out");
}

static bool read_outputs(const struct object *root, struct api_oip_request *oip)
{
    const struct pe_value *list;
    if (!find_list(root, "outputs", API_OUTPUTS_MAX, &list, &oip->n_outputs))
        return false;
    for (size_t i = 0; i < oip->n_outputs; i++) {
        struct object item;
        if (!item_at(root, "outputs", list, i, &item) || !read_output(&item, oip, i))
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(oip->outputs[k], oip->outputs[i]) == 0)
                return fail_at(&item, "name", "another output has this name");
    }
    return true;
}

/* ---- Parameters of the request ---- */

static bool is_reserved(const char *name)
{
    /* content_type belongs to MLServer: it tells its codecs how to read tensors. */
    static const char *const names[] = {"sequence_id",        "sequence_start", "sequence_end", "priority", "headers",
                                        "binary_data_output", "timeout",        "content_type", NULL};
    return api_is_among(names, name) || strncmp(name, "triton_", 7) == 0;
}

static bool check_parameter(const struct object *parameters, const char *name)
{
    if (api_is_among(api_form_names, name) && strcmp(name, "dtype") != 0)
        return fail_at(parameters, name, "does not belong to /v2; of the fields that shape an answer only dtype does");
    return strcmp(name, "scheme") != 0 || fail_at(parameters, name, "the model is the scheme; leave it out");
}

static bool add_parameters(struct api_request *request, const struct object *parameters)
{
    for (size_t i = 0; i < parameters->value->object.n; i++) {
        const struct pe_field *field = &parameters->value->object.fields[i];
        if (is_reserved(field->name))
            continue;
        if (!check_parameter(parameters, field->name) ||
            !api_oip_add_parameter(request, field->name, &field->value, parameters->problem))
            return false;
    }
    return true;
}

/* ---- The whole ---- */

/* The JSON's members arrive as fields of the request and are removed from it; the values that they point to stay. */
static bool read_json(struct api_request *request, const char *text, size_t n, struct api_oip_request *oip,
                      struct api_problem *problem)
{
    if (!api_json_read_plain(request, text, n, "", problem))
        return false;
    struct pe_field fields[8]; /* more names than are known, so at least one is unknown */
    size_t n_fields = request->n_fields < 8 ? request->n_fields : 8;
    memcpy(fields, request->fields, n_fields * sizeof *fields);
    request->n_fields = 0;
    struct pe_value value = {.kind = PE_OBJECT, .object = {.fields = fields, .n = n_fields}};
    struct object root = {.value = &value, .problem = problem};
    /* Some clients repeat the model, which the path already names. */
    static const char *const known[] = {"id", "parameters", "inputs", "outputs", "model_name", "model_version", NULL};
    struct object parameters;
    const struct pe_value *id = api_member_find(root.value, "id");
    if (id && id->kind != PE_STRING)
        return fail_at(&root, "id", "must be a string");
    oip->id = id ? id->string : NULL;
    return check_names(&root, known) && find_parameters(&root, &parameters) &&
           read_flag(&parameters, "binary_data_output", &oip->wish) &&
           read_count(&parameters, "timeout", &oip->timeout_us) && read_inputs(&root, oip) &&
           read_outputs(&root, oip) && add_parameters(request, &parameters);
}

static bool read_tensors(struct api_request *request, const struct api_oip_request *oip, struct api_oip_tail *tail,
                         struct api_problem *problem)
{
    for (size_t i = 0; i < oip->n_inputs; i++)
        if (!api_oip_add_tensor(request, &oip->inputs[i], tail, problem))
            return false;
    if (tail->p == tail->end)
        return true;
    return api_fail(problem, 400, "", "%zu bytes are left after the last input", (size_t)(tail->end - tail->p));
}

/* Header 0: there is no JSON, the body is the single input that nearly every model has, and all outputs are returned as
 * bytes. */
static bool read_raw(struct api_request *request, struct api_oip_request *oip, struct api_oip_tail *tail,
                     struct api_problem *problem)
{
    uint64_t n = (uint64_t)(tail->end - tail->p);
    if (n == 0 || n % sizeof(int64_t))
        return api_fail(problem, 400, "",
                        "with Inference-Header-Content-Length 0 the body is the input positions, INT64, 8 bytes each; "
                        "it has %" PRIu64 " bytes",
                        n);
    oip->n_inputs = 1;
    oip->inputs[0] = (struct api_oip_input){
        .name = "positions", .datatype = "INT64", .shape = {.rank = 1}, .is_binary = true, .n_bytes = n};
    oip->inputs[0].shape.shape[0] = n / sizeof(int64_t);
    oip->wish = API_OIP_BINARY;
    return read_tensors(request, oip, tail, problem);
}

/* Digits and nothing else: a number that two programs read differently is how requests are smuggled. */
bool api_oip_json_bytes(const struct api_call *call, size_t *n, struct api_problem *problem)
{
    const char *text = call->inference_header;
    *n = call->body_bytes;
    if (!call->body_bytes)
        return api_fail(problem, 400, "", "the request is empty; send a JSON object with inputs");
    if (!text)
        return true;
    if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 19)
        return api_fail(problem, 400, "", "Inference-Header-Content-Length is \"%.32s\"; allowed: a number of bytes",
                        text);
    *n = (size_t)strtoull(text, NULL, 10);
    return *n <= call->body_bytes ||
           api_fail(problem, 400, "", "Inference-Header-Content-Length is %zu, but the body has %zu bytes", *n,
                    call->body_bytes);
}

bool api_oip_read(struct api_request *request, const struct api_call *call, size_t n_json, struct api_oip_request *oip,
                  struct api_problem *problem)
{
    struct api_oip_tail tail = {
        .p = call->body + n_json, .end = call->body + call->body_bytes, .free_from = call->body};
    if (n_json == 0)
        return read_raw(request, oip, &tail, problem);
    return read_json(request, call->body, n_json, oip, problem) && read_tensors(request, oip, &tail, problem);
}
