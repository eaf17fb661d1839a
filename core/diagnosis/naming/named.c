/* Relations that were found, as parts of hypotheses: a choice from PE_NAMED on is the number of one. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdlib.h>

const struct pe_named *pe_named_of(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i)
{
    size_t number = (size_t)h->choice[i] - PE_NAMED;
    return h->choice[i] >= PE_NAMED && d->naming && number < d->naming->n ? &d->naming->list[number] : NULL;
}

/* A scaling of another type brings its own attention factor. */
static bool write_scaling(const struct pe_diagnosis *d, const struct pe_spelling *s, struct pe_edit *edit)
{
    if (!pe_edit_is_word(d, edit, "scaling.type", s->type))
        pe_scalings_drop_factor(d, edit);
    if (!*s->type) {
        pe_edit_remove(edit, "scaling");
        return true;
    }
    const struct pe_value *scaling = pe_scaling_with(d, edit, s->type, s->members, s->n_members);
    if (scaling)
        pe_edit_set(edit, "scaling", *scaling);
    return scaling;
}

bool pe_spelling_apply(const struct pe_diagnosis *d, const struct pe_spelling *s, struct pe_edit *edit)
{
    if (!isnan(s->base))
        pe_edit_set_real(edit, pe_edit_has(d, NULL, "temperature") ? "temperature" : "base", s->base);
    if (s->field.name)
        pe_edit_set(edit, s->field.name, s->field.value);
    return !s->type || write_scaling(d, s, edit);
}

/* The fields of a ladder, or its list. */
static bool write_ladder(const struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    if (!named->is_list)
        return pe_spelling_apply(d, &named->spelling, edit);
    pe_edit_set_reals(edit, "inv_freq", named->predicted, named->n_pairs);
    if (named->attention_factor != 1)
        pe_edit_set_real(edit, "attention_factor", named->attention_factor);
    return true;
}

/* One after another, where the belief is a run too. */
static bool is_run(const struct pe_diagnosis *d, const struct pe_named *named)
{
    const double *x = named->predicted;
    bool is_run = named->n_axes == 1 && pe_belief_is_run(d) && x[0] == nearbyint(x[0]);
    for (uint64_t i = 1; is_run && i < d->belief.n; i++)
        is_run = x[i] == x[i - 1] + 1;
    return is_run;
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
    if (named->apply)
        return named->apply(d, named, edit);
    if (named->is_ladder)
        return write_ladder(d, named, edit);
    if (is_run(d, named))
        return pe_edit_shift(d, edit, named->predicted[0] - pe_belief_position(d, 0));
    return pe_edit_coordinates(d, edit, named->axes, named->predicted);
}

struct pe_naming *pe_naming_of(struct pe_diagnosis *d)
{
    if (!d->naming)
        d->naming = calloc(1, sizeof *d->naming);
    d->no_memory |= !d->naming;
    return d->naming;
}

struct pe_named *pe_part_add(struct pe_diagnosis *d, const struct pe_relation *relation, double found, double believed,
                             struct pe_part *parts, size_t *n)
{
    if (!pe_naming_of(d) || d->naming->n == PE_NAMED_MAX || *n == PE_PARTS_MAX)
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
