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

enum pe_status pe_plan_wrong_axes(const struct pe_plan *plan, unsigned n_axes, struct pe_failure *err)
{
    static const char *const forms[] = {"positions [axes][n]", "grid [h,w]", "grid [t,h,w], of an image [1,h,w]",
                                        "grid [t,h,w,l], of an image [1,h,w,1]"};
    const char *pointer = pe_sequence_pointer(&plan->sequence);
    return pe_fail(err, pointer, "this model's positions have %u axes, %s gives %u; give %s", n_axes, pointer + 1,
                   plan->seq.n_axes, pe_text(forms[n_axes >= 2 && n_axes <= 4 ? n_axes - 1 : 0]));
}

bool pe_request_has(const struct pe_request *request, const char *name)
{
    return pe_field_find(request->fields, request->n_fields, name);
}
