/* Sequences of hypotheses. */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/rotary/rotary.h"

#include <math.h>
#include <string.h>

static const struct pe_sequence *sequence(const struct pe_diagnosis *d) { return &d->belief.model->plan->seq; }

static bool has(const struct pe_diagnosis *d, const char *name) { return pe_edit_value(d, NULL, name) != NULL; }

bool pe_places_are_run(const struct pe_diagnosis *d) { return has(d, "len") && sequence(d)->n_axes == 1; }

double pe_place(const struct pe_diagnosis *d, uint64_t i) { return pe_position_at(&sequence(d)->k[0], i); }

double pe_coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i)
{
    double p = pe_position_at(&plan->seq.k[axis], i);
    return plan->scheme->rotate ? ((const struct pe_rotary *)plan->tables)->unit[axis].hi * p : p;
}

uint64_t pe_places_count(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    bool is_open = d->belief.is_len_fixed;
    return is_open ? (uint64_t)pe_edit_integer(d, edit, "len", (int64_t)d->belief.n) : d->belief.n;
}

/* Room for positions, as the field `positions`: a list for each axis, or for each row of the batch. */
static double *room(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t levels, uint64_t n, bool is_by_batch)
{
    double *x = pe_edit_room(edit, levels * n * sizeof *x);
    struct pe_tensor t = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = x};
    if (levels > 1 || is_by_batch) {
        t.rank = 2;
        t.shape[0] = levels;
        t.shape[1] = n;
    }
    if (!x)
        return NULL;
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "positions", (struct pe_value){.kind = PE_ARRAY, .array = t});
    if (is_by_batch)
        pe_edit_set_word(edit, "positions_layout", "batch");
    return x;
}

/* Room for the positions of all axes; NULL if the belief has another number of them. */
static double *list(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    uint64_t n = pe_places_count(d, edit);
    if (sequence(d)->k[0].n != d->belief.n)
        return NULL;
    bool is_by_batch = pe_edit_has(d, edit, "positions_layout");
    uint64_t levels = is_by_batch ? d->belief.positions->array.shape[0] : sequence(d)->n_axes;
    return room(d, edit, levels, is_by_batch ? n / levels : n, is_by_batch);
}

double *pe_places_by_row(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t levels, uint64_t count)
{
    bool is_by_batch = d->belief.positions != NULL;
    if (sequence(d)->n_axes > 1 || pe_places_count(d, edit) != (is_by_batch ? levels : 1) * count)
        return NULL;
    double *x = room(d, edit, levels, count, true);
    for (uint64_t i = 0; x && i < levels * count; i++)
        x[i] = pe_place(d, is_by_batch ? i : i % count);
    return x;
}

bool pe_places_map(const struct pe_diagnosis *d, struct pe_edit *edit, double scale, double shift, bool reversed)
{
    uint64_t n = pe_places_count(d, edit);
    const struct pe_plan *plan = d->belief.model->plan;
    double *x = list(d, edit);
    for (unsigned a = 0; x && a < sequence(d)->n_axes; a++)
        for (uint64_t i = 0; i < n; i++)
            x[a * n + i] = scale * pe_coordinate(plan, a, reversed ? n - 1 - i : i) + shift;
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
            x[a * n + i] = pe_coordinate(plan, order[a], i);
    return x;
}

bool pe_places_list(const struct pe_diagnosis *d, struct pe_edit *edit, const double *positions)
{
    uint64_t n = pe_places_count(d, edit);
    double *x = sequence(d)->n_axes == 1 ? list(d, edit) : NULL;
    if (x)
        memcpy(x, positions, n * sizeof *x);
    return x;
}

bool pe_places_run(const struct pe_diagnosis *d, struct pe_edit *edit, double first)
{
    if (first != floor(first) || sequence(d)->n_axes > 1)
        return false;
    int64_t n = (int64_t)pe_places_count(d, edit);
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_integer(edit, "len", n);
    if (first != 0 || has(d, "offset"))
        pe_edit_set_integer(edit, "offset", (int64_t)first);
    return true;
}
