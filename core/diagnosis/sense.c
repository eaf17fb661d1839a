/* Faults of sense: the direction of rotation, exchanged tensors or axes, signs. */
#include "core/diagnosis/diagnosis.h"

const struct pe_fault pe_fault_direction_reversed = {.n_alternatives = 0};
const struct pe_fault pe_fault_sin_cos_swapped = {.n_alternatives = 0};

static bool negated(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    edit->transforms.negated = true;
    return d->evidence.kind->id != PE_OF_BUCKETS && d->evidence.kind->id != PE_OF_IDS;
}
const struct pe_fault pe_fault_negated = {.n_alternatives = 1, .apply = negated};

/* Of maps of queries and keys with as many of both. (Another shape would not be that of the belief.) */
static bool transposed(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    const struct pe_tensor *t = &d->evidence.tensors[0];
    edit->transforms.transposed = true;
    return t->rank > 1 && t->shape[t->rank - 1] == t->shape[t->rank - 2];
}
const struct pe_fault pe_fault_transposed = {.n_alternatives = 1, .apply = transposed};
