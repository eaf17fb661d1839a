/* What is no rotation: scores, biases, tables. Which relations each kind of evidence has. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

/* What each kind of evidence shows. */
static const struct {
    enum pe_evidence_id id;
    const char *scheme; /* NULL: any */
    size_t (*relate)(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
} kinds[] = {
    {PE_OF_MAPS, NULL, pe_relate_scores},
    {PE_OF_BIAS, NULL, pe_relate_bias},
    {PE_OF_BUCKETS, NULL, pe_relate_bias},
    {PE_OF_ENCODING, "learned", pe_relate_table},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_of(const struct pe_diagnosis *d)
{
    const char *scheme = d->belief.inheritance->scheme->info.name;
    size_t i = 0;
    while (i < N_KINDS &&
           !(kinds[i].id == d->evidence.kind->id && (!kinds[i].scheme || pe_same(kinds[i].scheme, scheme))))
        i++;
    return i;
}

bool pe_has_no_waves(const struct pe_diagnosis *d) { return !d->evidence.is_typed && kind_of(d) < N_KINDS; }

bool pe_is_by_distance(const struct pe_diagnosis *d)
{
    return pe_has_no_waves(d) && kinds[kind_of(d)].relate == pe_relate_bias;
}

size_t pe_relate_without_waves(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts)
{
    return kinds[kind_of(d)].relate(d, edit, is_first, parts);
}
