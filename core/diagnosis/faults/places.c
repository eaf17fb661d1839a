/* Sequences of hypotheses. */
#include "core/diagnosis/faults/places.h"
#include "core/schemes/rotary.h"

#include <math.h>
#include <string.h>

static const struct pe_sequence *sequence(const struct pe_diagnosis *d) { return &d->belief.model->plan->seq; }

static bool has(const struct pe_diagnosis *d, const char *name) { return pe_edit_value(d, NULL, name) != NULL; }

bool pe_places_are_run(const struct pe_diagnosis *d) { return has(d, "len") && sequence(d)->n_axes == 1; }

double pe_place(const struct pe_diagnosis *d, uint64_t i) { return pe_position_at(&sequence(d)->k[0], i); }

/* The coordinate of row i on an axis, in the unit of a list. */
static double coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i)
{
    double p = pe_position_at(&plan->seq.k[axis], i);
    return plan->scheme->rotate ? ((const struct pe_rotary *)plan->tables)->unit[axis].hi * p : p;
}

/* Room for the positions of all axes, as the field `positions`; NULL if the belief has another number of them. */
static double *list(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    uint64_t n = d->belief.n;
    if (sequence(d)->k[0].n != n)
        return NULL;
    unsigned axes = sequence(d)->n_axes;
    double *x = pe_edit_room(edit, axes * n * sizeof *x);
    struct pe_tensor t = {.dtype = PE_F64, .rank = axes > 1 ? 2 : 1, .shape = {n}, .data = x};
    if (axes > 1) {
        t.shape[0] = axes;
        t.shape[1] = n;
    }
    if (x) {
        pe_edit_remove_sequence(d, edit);
        pe_edit_set(edit, "positions", (struct pe_value){.kind = PE_ARRAY, .array = t});
    }
    return x;
}

bool pe_places_map(const struct pe_diagnosis *d, struct pe_edit *edit, double scale, double shift, bool reversed)
{
    uint64_t n = d->belief.n;
    const struct pe_plan *plan = d->belief.model->plan;
    double *x = list(d, edit);
    for (unsigned a = 0; x && a < sequence(d)->n_axes; a++)
        for (uint64_t i = 0; i < n; i++)
            x[a * n + i] = scale * coordinate(plan, a, reversed ? n - 1 - i : i) + shift;
    return x;
}

bool pe_places_shift(const struct pe_diagnosis *d, struct pe_edit *edit, double by)
{
    bool is_lens = has(d, "lens");
    if (!(is_lens || pe_places_are_run(d)) || by != floor(by))
        return pe_places_map(d, edit, 1, by, false);
    pe_edit_set_integer(edit, "offset", pe_edit_integer(d, NULL, "offset", 0) + (int64_t)by);
    return true;
}

bool pe_places_reorder(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_plan *plan,
                       const unsigned *order)
{
    uint64_t n = d->belief.n;
    bool is_alike = plan->seq.n_axes == sequence(d)->n_axes && plan->seq.k->n == n;
    double *x = is_alike ? list(d, edit) : NULL;
    for (unsigned a = 0; x && a < sequence(d)->n_axes; a++)
        for (uint64_t i = 0; i < n; i++)
            x[a * n + i] = coordinate(plan, order[a], i);
    return x;
}

bool pe_places_list(const struct pe_diagnosis *d, struct pe_edit *edit, const double *positions)
{
    double *x = sequence(d)->n_axes == 1 ? list(d, edit) : NULL;
    if (x)
        memcpy(x, positions, d->belief.n * sizeof *x);
    return x;
}

bool pe_places_run(const struct pe_diagnosis *d, struct pe_edit *edit, double first)
{
    if (first != floor(first) || sequence(d)->n_axes > 1)
        return false;
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_integer(edit, "len", (int64_t)d->belief.n);
    if (first != 0 || has(d, "offset"))
        pe_edit_set_integer(edit, "offset", (int64_t)first);
    return true;
}
