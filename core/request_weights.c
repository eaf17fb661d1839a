/* The weights that a request can use, and their names in public checkpoints. */
#include "core/models/models.h"
#include "core/request/request.h"
#include "core/operation.h"

#include <assert.h>
#include <stdlib.h>

static void add(struct pe_weight_name *names, size_t *n, const struct pe_request *request, const char *scheme,
                const char *input)
{
    assert(*n < PE_WEIGHT_NAMES_MAX);
    names[(*n)++] = (struct pe_weight_name){input, pe_weight_elsewhere(scheme, request, input)};
}

static size_t list(const struct pe_scheme *scheme, const struct pe_request *request, struct pe_weight_name *names)
{
    const struct pe_scheme_info *info = &scheme->info;
    const struct pe_operation *operation = pe_operation_get(request->operation);
    size_t n = 0;
    for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
        if (pe_weights_takes(row, operation))
            add(names, &n, request, info->name, row->name);
    for (const struct pe_input_row *row = operation->info.inputs; row && operation->takes_weight && row->name; row++)
        if (operation->takes_weight(scheme, request, row->name))
            add(names, &n, request, info->name, row->name);
    return n;
}

enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_failure *err)
{
    struct pe_inheritance *model = calloc(1, sizeof *model);
    enum pe_status status = model ? pe_inherit(model, request, err) : pe_no_memory(err);
    if (!status) {
        *scheme = &model->scheme->info;
        *n = list(model->scheme, request, names);
    }
    free(model);
    return status;
}
