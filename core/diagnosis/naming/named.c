/* Relations that were found, as parts of hypotheses: a choice from PE_NAMED on is the number of one. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>

const struct pe_named *pe_named_of(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i)
{
    size_t number = (size_t)h->choice[i] - PE_NAMED;
    return h->choice[i] >= PE_NAMED && d->naming && number < d->naming->n ? &d->naming->list[number] : NULL;
}

static bool set_field(const struct pe_named *named, struct pe_edit *edit)
{
    double x = named->related.found;
    if (x == floor(x) && fabs(x) < 1e15)
        pe_edit_set_integer(edit, named->field, (int64_t)x);
    else
        pe_edit_set_real(edit, named->field, x);
    return true;
}

bool pe_named_apply(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    if (named->field)
        return set_field(named, edit);
    return named->apply ? named->apply(d, named, edit) : pe_edit_coordinates(d, edit, named->axes, named->predicted);
}

struct pe_named *pe_part_add(struct pe_diagnosis *d, const struct pe_relation *relation, double found, double believed,
                             struct pe_part *parts, size_t *n)
{
    if (!d->naming)
        d->naming = calloc(1, sizeof *d->naming);
    d->no_memory |= !d->naming;
    if (!d->naming || d->naming->n == PE_NAMED_MAX || *n == PE_PARTS_MAX)
        return NULL;
    parts[(*n)++] = (struct pe_part){relation->fault, (uint16_t)(PE_NAMED + d->naming->n)};
    struct pe_named *named = &d->naming->list[d->naming->n++];
    *named = (struct pe_named){.relation = relation, .related = {found, believed, 0, 1}};
    return named;
}

void pe_naming_drop(struct pe_diagnosis *d)
{
    for (size_t i = 0; d->naming && i < d->naming->n; i++)
        free(d->naming->list[i].predicted);
    free(d->naming);
}
