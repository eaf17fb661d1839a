/* The memory of a diagnosis, asked for before it is allocated. */
#include "core/diagnosis/diagnosis.h"

enum pe_status pe_diagnosis_admit(struct pe_diagnosis *d, double bytes, struct pe_error *err)
{
    d->bytes += bytes;
    return d->request->admit ? d->request->admit(d->request->caller, d->bytes, err) : PE_OK;
}
