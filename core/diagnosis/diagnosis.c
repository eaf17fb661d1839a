/* The steps of a diagnosis. */
#include "core/diagnosis/diagnosis.h"

#include <stdlib.h>

/* Everything that is wrong with the request is found here, before the search. */
static enum pe_status check(struct pe_diagnosis *d, struct pe_error *err)
{
    enum pe_status status = pe_evidence_find(d, err);
    if (!status)
        status = pe_belief_open(d, err);
    if (!status)
        status = d->evidence.kind->read(d, err);
    if (!status)
        status = pe_belief_plan(d, err);
    return status ? status : pe_evidence_sample(d, err);
}

static void step(const struct pe_diagnosis *d, const char *name)
{
    if (d->request->step)
        d->request->step(d->request->caller, name);
}

enum pe_status pe_diagnosis_run(struct pe_diagnosis *d, struct pe_error *err)
{
    enum pe_status status = check(d, err);
    step(d, "diagnose");
    if (!status)
        status = pe_search(d, err);
    if (!status)
        status = pe_diagnosis_state(d, err);
    step(d, NULL);
    if (status)
        pe_belief_blame(d, err);
    return status;
}

enum pe_status pe_diagnosis_new(const struct pe_diagnosis_request *request, struct pe_diagnosis **diagnosis,
                                struct pe_error *err)
{
    struct pe_diagnosis *d = calloc(1, sizeof *d);
    if (!d)
        return pe_no_memory(err);
    d->request = request;
    enum pe_status status = (pe_diagnosis_has_sides(request) ? pe_diagnosis_of_sides : pe_diagnosis_run)(d, err);
    if (status)
        pe_diagnosis_free(d);
    else
        *diagnosis = d;
    return status;
}

void pe_diagnosis_free(struct pe_diagnosis *d)
{
    if (!d)
        return;
    pe_answer_drop(d);
    pe_values_free(d->values);
    pe_diagnosis_drop_sides(d);
    pe_measure_drop(d);
    pe_evidence_drop(d);
    pe_belief_drop(d);
    free(d->factors);
    free(d->cached);
    free(d);
}

const struct pe_value *pe_diagnosis_answer(const struct pe_diagnosis *d) { return d->stated; }

uint64_t pe_diagnosis_searched(const struct pe_diagnosis *d) { return d->searched; }
