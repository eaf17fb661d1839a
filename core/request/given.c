/* Which parameters a request has given, in its own fields or through the model it names. Only while planning. */
#include "core/scheme.h"

#include <string.h>

static bool gave(const struct pe_plan *plan, size_t n, const char *name)
{
    const struct pe_param *row = pe_param_find(plan->scheme->info.params, name);
    for (size_t i = 0; i < n; i++) {
        const char *given = plan->request->fields[i].name;
        if (strcmp(given, name) == 0 || (row && pe_param_find(plan->scheme->info.params, given) == row))
            return true;
    }
    return false;
}

bool pe_plan_gave(const struct pe_plan *plan, const char *name) { return gave(plan, plan->request->n_fields, name); }

bool pe_plan_gave_itself(const struct pe_plan *plan, const char *name)
{
    return gave(plan, plan->inheritance->n_own, name);
}

bool pe_request_has(const struct pe_request *request, const char *name)
{
    return pe_field_find(request->fields, request->n_fields, name);
}
