/* A model's inputs and outputs, from the rows of its scheme, as the protocol and as Triton write them. */
#include "api/numbers/numbers.h"
#include "api/oip/oip.h"
#include "api/operations.h"

#include <stdio.h>
#include <string.h>

/* ---- Rows of both kinds as one list ---- */

enum { TENSORS_MAX = 64 };

struct tensor {
    const char *name, *shape; /* the row's expression: "n,rotary_dim/2" */
    enum pe_dtype dtype;      /* PE_DTYPE_NONE: words */
};

struct tensors {
    struct tensor items[TENSORS_MAX];
    size_t n;
};

/* A name may occur in several tables (q is in those of rotation and of attention); the first one counts. */
static void add_tensor(struct tensors *tensors, const char *name, const char *shape, enum pe_dtype dtype)
{
    for (size_t i = 0; i < tensors->n; i++)
        if (strcmp(tensors->items[i].name, name) == 0)
            return;
    if (tensors->n < TENSORS_MAX)
        tensors->items[tensors->n++] = (struct tensor){name, shape, dtype};
}

static bool uses_encoding(const struct api_oip_model *model)
{
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        if (pe_operation_at(id)->uses_encoding && api_oip_can(model, id))
            return true;
    return false;
}

static void add_inputs(struct tensors *tensors, const struct api_oip_model *model, const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++) {
        bool is_weight = !rows->is_operand && rows->operation == PE_ENCODE;
        if (api_oip_can(model, rows->operation) || (is_weight && uses_encoding(model)))
            add_tensor(tensors, rows->name, rows->shape, PE_F32);
    }
}

static void add_outputs(struct tensors *tensors, const struct pe_scheme_info *scheme, const struct pe_output_row *rows)
{
    for (; rows && rows->name; rows++)
        if (pe_output_suits(rows, scheme))
            add_tensor(tensors, rows->name, rows->shape, rows->dtype == PE_DTYPE_NONE ? PE_F32 : rows->dtype);
}

/* ---- Writing ---- */

/* The words of the protocol for a tensor, or Triton's, whose inputs are all optional, because sizes may be parameters.
 */
struct wording {
    const char *inputs, *outputs, *datatype, *before, *words, *shape; /* words: the datatype of those */
    bool are_optional;
};
static const struct wording of_protocol = {"inputs", "outputs", "datatype", "", "BYTES", "shape", false},
                            of_triton = {"input", "output", "data_type", "TYPE_", "STRING", "dims", true};

static void add_tensors(struct api_text *text, const struct wording *wording, bool are_inputs,
                        const struct tensors *tensors)
{
    api_text_open(text, are_inputs ? wording->inputs : wording->outputs, '[');
    for (size_t i = 0; i < tensors->n; i++) {
        const struct tensor *tensor = &tensors->items[i];
        char datatype[32];
        snprintf(datatype, sizeof datatype, "%s%s", wording->before,
                 tensor->dtype == PE_DTYPE_NONE ? wording->words : api_dtype_name(API_OIP, tensor->dtype));
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", tensor->name);
        api_text_member(text, wording->datatype, datatype);
        /* A number is a fixed length; any other expression means a variable length. */
        api_text_open(text, wording->shape, '[');
        for (const char *p = tensor->shape; *p;) {
            size_t n = strcspn(p, ",");
            bool is_number = strspn(p, "0123456789") == n;
            api_text_name(text, NULL);
            api_text_add(text, is_number ? p : "-1", is_number ? n : 2);
            p += n + (p[n] == ',');
        }
        api_text_close(text, ']');
        if (are_inputs && wording->are_optional)
            api_text_flag(text, "optional", true);
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
}

static struct api_reply *describe(struct api_request *request, const struct wording *wording, const char *more)
{
    struct api_oip_model model;
    struct tensors inputs, outputs;
    struct api_text text;
    char name[API_OIP_NAME_MAX];
    if (!api_oip_find(request, &model))
        return NULL;
    inputs.n = 0;
    add_tensor(&inputs, "positions", "n", PE_I64);
    add_inputs(&inputs, &model, model.scheme->inputs);
    if (model.scheme->is_additive && api_oip_can(&model, PE_ENCODE))
        add_tensor(&inputs, "x", "batch,n,dim", PE_F32);
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        if (!api_oip_can(&model, id))
            continue;
        add_inputs(&inputs, &model, pe_operation_at(id)->inputs);
        if (api_operations[id].takes_tokens)
            add_tensor(&inputs, "tokens", "n", PE_DTYPE_NONE);
    }
    outputs.n = 0;
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        for (const struct api_renamed *row = api_operations[id].renamed; api_oip_can(&model, id) && row->name; row++)
            add_tensor(&outputs, row->name, row->shape, PE_F32);
    if (api_oip_can(&model, PE_ENCODE)) {
        add_outputs(&outputs, model.scheme, model.scheme->outputs);
        if (model.scheme->is_additive)
            add_tensor(&outputs, "combined", "batch,n,dim", PE_F32);
    }
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        if (api_oip_can(&model, id))
            add_outputs(&outputs, model.scheme, pe_operation_at(id)->outputs);
    api_oip_name_print(&model, name);
    api_text_init(&text, API_TEXT_MAX);
    api_text_open(&text, NULL, '{');
    api_text_member(&text, "name", name);
    api_text_put(&text, more);
    add_tensors(&text, wording, true, &inputs);
    add_tensors(&text, wording, false, &outputs);
    api_text_close(&text, '}');
    return api_reply_text(200, api_json_type, &text);
}

struct api_reply *api_oip_model(struct api_request *request)
{
    return describe(request, &of_protocol, ",\"versions\":[\"" API_OIP_VERSION "\"],\"platform\":\"posenc\"");
}

struct api_reply *api_oip_config(struct api_request *request)
{
    return describe(
        request, &of_triton,
        ",\"platform\":\"posenc\",\"backend\":\"posenc\",\"version_policy\":{\"latest\":{\"num_versions\":1}},"
        "\"max_batch_size\":0");
}

/* ---- Names of schemes and dtypes ---- */

/* Every scheme in turn: itself, then its operations in their order. */
enum { PER_SCHEME = PE_N_OPERATIONS + 1 };

/* The k-th model of a scheme; false if the scheme does not have that operation. */
static bool form_of(const struct pe_scheme_info *scheme, size_t k, struct api_oip_model *model)
{
    *model = (struct api_oip_model){.scheme = scheme, .is_fixed = k > 0, .operation = PE_ENCODE};
    if (k == 0)
        return true;
    model->operation = (enum pe_operation_id)(k - 1);
    return pe_scheme_can(scheme, model->operation);
}

size_t api_oip_n_models(void)
{
    struct api_oip_model model;
    size_t n = 0;
    for (size_t i = 0; i < PER_SCHEME * pe_n_schemes(); i++)
        n += form_of(pe_scheme_at(i / PER_SCHEME), i % PER_SCHEME, &model);
    return n;
}

struct api_oip_model api_oip_model_at(size_t i)
{
    struct api_oip_model model;
    for (size_t k = 0;; k++)
        if (form_of(pe_scheme_at(k / PER_SCHEME), k % PER_SCHEME, &model) && i-- == 0)
            return model;
}

void api_oip_name_print(const struct api_oip_model *model, char *name)
{
    snprintf(name, API_OIP_NAME_MAX, "%s%s", model->is_fixed ? api_operations[model->operation].prefix : "",
             model->scheme->name);
}

bool api_oip_can(const struct api_oip_model *model, enum pe_operation_id operation)
{
    return model->is_fixed ? model->operation == operation : pe_scheme_can(model->scheme, operation);
}

/* ---- Finding ---- */

static bool find_model(const char *name, struct api_oip_model *model)
{
    char candidate[API_OIP_NAME_MAX];
    for (size_t i = 0; i < PER_SCHEME * pe_n_schemes(); i++)
        if (form_of(pe_scheme_at(i / PER_SCHEME), i % PER_SCHEME, model)) {
            api_oip_name_print(model, candidate);
            if (strcmp(candidate, name) == 0)
                return true;
        }
    return false;
}

/* The nearest name is searched among the schemes; the prefix is kept. */
static bool fail_name(const char *name, struct api_problem *problem)
{
    const char *names[128], *prefix = "";
    size_t n = 0;
    for (; n < pe_n_schemes() && n + 1 < sizeof names / sizeof names[0]; n++)
        names[n] = pe_scheme_at(n)->name;
    names[n] = NULL;
    for (size_t i = 0; i < PE_N_OPERATIONS; i++)
        if (strncmp(name, api_operations[i].prefix, strlen(api_operations[i].prefix)) == 0)
            prefix = api_operations[i].prefix;
    const char *scheme = name + strlen(prefix), *nearest = pe_nearest(scheme, names);
    if (!nearest)
        return api_fail(problem, 404, "", "unknown model \"%.64s\"; POST /v2/repository/index lists them", name);
    if (strcmp(nearest, scheme) == 0)
        return api_fail(problem, 404, "", "unknown model \"%.64s\": %s cannot do that; nearest: \"%s\"", name, nearest,
                        nearest);
    return api_fail(problem, 404, "", "unknown model \"%.64s\"; nearest: \"%s%s\"", name, prefix, nearest);
}

bool api_oip_find(struct api_request *request, struct api_oip_model *model)
{
    if (!find_model(request->path.name, model))
        return fail_name(request->path.name, &request->problem);
    if (*request->path.version && strcmp(request->path.version, API_OIP_VERSION) != 0)
        return api_fail(&request->problem, 404, "", "model \"%.64s\" has no version \"%.32s\"; it has: %s",
                        request->path.name, request->path.version, API_OIP_VERSION);
    return true;
}
