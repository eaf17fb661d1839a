/* The names of schemes and dtypes in the Open Inference Protocol. */
#include "api/oip/oip.h"
#include "api/operations.h"

#include <stdio.h>
#include <string.h>

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
