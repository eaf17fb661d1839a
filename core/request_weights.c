/* Which weights a request can take, and what public checkpoints call them. */
#include "core/attend.h"
#include "core/attention/attention.h"
#include "core/models/inherit.h"
#include "core/request/weights.h"
#include "core/scheme.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool has_field(const struct pe_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, name) == 0)
            return true;
    return false;
}

/* Projections make queries, keys and values out of x; one scheme projects its own table with two of them. */
static bool takes_projection(const struct pe_scheme *scheme, const struct pe_request *request, const char *name)
{
    if (strncmp(name, "w_", 2) != 0 && strncmp(name, "b_", 2) != 0)
        return false;
    bool for_table = scheme->attend && scheme->attend->uses_projections && name[2] != 'v';
    return for_table || has_field(request, "x") || has_field(request, "tokens");
}

static void add(struct pe_weight_name *names, size_t *n, const struct pe_request *request, const char *scheme,
                const char *input)
{
    assert(*n < PE_WEIGHT_NAMES_MAX);
    names[(*n)++] = (struct pe_weight_name){input, pe_weight_elsewhere(scheme, request, input)};
}

static size_t list(const struct pe_scheme *scheme, const struct pe_request *request, struct pe_weight_name *names)
{
    const struct pe_scheme_info *info = &scheme->info;
    size_t n = 0;
    for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
        if (pe_weights_takes(row, request->operation))
            add(names, &n, request, info->name, row->name);
    if (request->operation == PE_ATTEND)
        for (const struct pe_input_row *row = pe_attention_inputs(); row->name; row++)
            if (takes_projection(scheme, request, row->name))
                add(names, &n, request, info->name, row->name);
    return n;
}

enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_error *err)
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
