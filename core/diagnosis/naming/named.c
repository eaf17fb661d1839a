/* Relations that were found, as parts of hypotheses: a choice from PE_NAMED on is the number of one. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>

const struct pe_named *pe_named_of(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i)
{
    size_t number = (size_t)h->choice[i] - PE_NAMED;
    return h->choice[i] >= PE_NAMED && d->naming && number < d->naming->n ? &d->naming->list[number] : NULL;
}

bool pe_named_apply(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    return named->apply ? named->apply(d, named, edit) : pe_edit_coordinates(d, edit, named->axes, named->predicted);
}

struct pe_named *pe_named_add(struct pe_diagnosis *d)
{
    if (!d->naming)
        d->naming = calloc(1, sizeof *d->naming);
    d->no_memory |= !d->naming;
    return d->naming && d->naming->n < PE_NAMED_MAX ? &d->naming->list[d->naming->n++] : NULL;
}

struct pe_part pe_named_part(const struct pe_diagnosis *d, const struct pe_named *named)
{
    return (struct pe_part){named->relation->fault, (uint16_t)(PE_NAMED + (size_t)(named - d->naming->list))};
}

void pe_naming_drop(struct pe_diagnosis *d)
{
    for (size_t i = 0; d->naming && i < d->naming->n; i++)
        free(d->naming->list[i].predicted);
    free(d->naming);
}
