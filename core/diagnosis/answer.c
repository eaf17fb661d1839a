/* The answer of a diagnosis. */
#include "core/diagnosis/diagnosis.h"

enum pe_status pe_diagnosis_state(struct pe_diagnosis *d, struct pe_error *err)
{
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(err);
    pe_put_integer(pe_values_root(d->values), "searched", (int64_t)d->searched);
    return pe_values_done(d->values) ? PE_OK : pe_no_memory(err);
}
