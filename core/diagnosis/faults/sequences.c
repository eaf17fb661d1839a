/* Sequences of hypotheses. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <string.h>

static const struct pe_sequence *sequence(const struct pe_diagnosis *d) { return &d->belief.model->plan->seq; }

static bool has(const struct pe_diagnosis *d, const char *name) { return pe_edit_value(d, NULL, name) != NULL; }

bool pe_belief_is_run(const struct pe_diagnosis *d)
{
    return has(d, "len") && !has(d, "shard") && sequence(d)->n_axes == 1;
}

double pe_belief_position(const struct pe_diagnosis *d, uint64_t i) { return pe_position_at(&sequence(d)->k[0], i); }

/* How many positions a sequence under the edit has: as many as the belief, or as another tensor_layout gives. */
static uint64_t count_positions(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    bool is_open = d->belief.is_len_fixed || pe_edit_has(d, edit, "len");
    return is_open ? (uint64_t)pe_edit_integer(d, edit, "len", (int64_t)d->belief.n) : d->belief.n;
}

/* Room for positions, as the field `positions`: a list for each axis, of each row of the batch (n_batches 0: one for
 * all). */
static double *room(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t n_axes, uint64_t n_batches, uint64_t n)
{
    double *x = pe_edit_room(edit, n_axes * (n_batches ? n_batches : 1) * n * sizeof *x);
    struct pe_tensor t = {.dtype = PE_F64, .data = x};
    if (n_axes > 1)
        t.shape[t.rank++] = n_axes;
    if (n_batches)
        t.shape[t.rank++] = n_batches;
    t.shape[t.rank++] = n;
    if (!x)
        return NULL;
    const struct pe_value positions = {.kind = PE_ARRAY, .array = t};
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "positions", positions);
    if (n_batches)
        pe_edit_set_word(edit, "positions_layout", pe_layout_of(&positions));
    return x;
}

/* Room for the positions of all axes; NULL if the belief has another number of them. */
static double *list(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    uint64_t n = count_positions(d, edit);
    if (sequence(d)->k[0].n != d->belief.n)
        return NULL;
    const struct pe_tensor *t = d->belief.positions ? &d->belief.positions->array : NULL;
    uint64_t n_batches = t ? t->shape[t->rank - 2] : 0;
    return room(d, edit, sequence(d)->n_axes, n_batches, n_batches ? n / n_batches : n);
}

double *pe_edit_positions_by_row(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t levels, uint64_t count)
{
    bool is_by_batch = d->belief.positions != NULL;
    if (sequence(d)->n_axes > 1 || count_positions(d, edit) != (is_by_batch ? levels : 1) * count)
        return NULL;
    double *x = room(d, edit, 1, levels, count);
    for (uint64_t i = 0; x && i < levels * count; i++)
        x[i] = pe_belief_position(d, is_by_batch ? i : i % count);
    return x;
}

bool pe_edit_map(const struct pe_diagnosis *d, struct pe_edit *edit, double scale, double shift, bool reversed)
{
    uint64_t n = count_positions(d, edit);
    const struct pe_plan *plan = d->belief.model->plan;
    double *x = list(d, edit);
    for (unsigned a = 0; x && a < sequence(d)->n_axes; a++)
        for (uint64_t i = 0; i < n; i++)
            x[a * n + i] = scale * pe_coordinate(plan, a, reversed ? n - 1 - i : i) + shift;
    return x;
}

bool pe_edit_shift(const struct pe_diagnosis *d, struct pe_edit *edit, double by)
{
    bool is_lens = has(d, "lens") || has(d, "cu_seqlens") || has(d, "shard");
    if (!(is_lens || pe_belief_is_run(d)) || by != floor(by))
        return pe_edit_map(d, edit, 1, by, false);
    pe_edit_set_integer(edit, "offset", pe_edit_integer(d, NULL, "offset", 0) + (int64_t)by);
    return true;
}

bool pe_edit_reorder(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_plan *plan,
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

/* A list of the edit that has all axes; NULL: it has none. Its numbers are the edit's own. */
static double *own_list(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    const struct pe_value *v = pe_field_find(edit->fields, edit->n_fields, "positions");
    uint64_t n = 0;
    bool is_whole = v && v->kind == PE_ARRAY && pe_shape_count(v->array.shape, v->array.rank, &n) &&
                    n == sequence(d)->n_axes * d->belief.n;
    return is_whole ? (double *)v->array.data : NULL;
}

/* A list has no sides to be divided by: DETR's `normalize` becomes a factor of the coordinates, that of the fastest
 * column of each axis. 1 where nothing is normalised. */
static double side_of(const struct pe_diagnosis *d, unsigned axis)
{
    const struct pe_model *m = d->belief.model;
    double scale = 0;
    if (!pe_edit_is_true(d, NULL, "normalize", false))
        return 1;
    for (size_t j = 0; j < m->n_columns; j++)
        if (m->columns[j].axis == axis)
            scale = fmax(scale, fabs(pe_wave_radians(&m->columns[j])));
    return scale;
}

static void write_axis(const struct pe_diagnosis *d, double *x, unsigned axis, const double *coordinates)
{
    double side = side_of(d, axis);
    for (uint64_t i = 0; i < d->belief.n; i++)
        x[axis * d->belief.n + i] = side * coordinates[axis * d->belief.n + i];
}

bool pe_edit_coordinates(const struct pe_diagnosis *d, struct pe_edit *edit, unsigned axes, const double *coordinates)
{
    double *x = own_list(d, edit);
    bool is_new = !x && pe_edit_map(d, edit, 1, 0, false);
    x = is_new ? own_list(d, edit) : x;
    for (unsigned a = 0; is_new && x && a < sequence(d)->n_axes; a++)
        write_axis(d, x, a, x);
    for (unsigned a = 0; x && a < sequence(d)->n_axes; a++)
        if (axes & 1U << a)
            write_axis(d, x, a, coordinates);
    if (x && pe_edit_is_true(d, edit, "normalize", false)) {
        pe_edit_set_boolean(edit, "normalize", false);
        if (pe_edit_has(d, edit, "angle_scale"))
            pe_edit_remove(edit, "angle_scale");
    }
    return x;
}

bool pe_edit_positions(const struct pe_diagnosis *d, struct pe_edit *edit, const double *positions)
{
    uint64_t n = count_positions(d, edit);
    double *x = sequence(d)->n_axes == 1 ? list(d, edit) : NULL;
    if (x)
        memcpy(x, positions, n * sizeof *x);
    return x;
}

bool pe_edit_run(const struct pe_diagnosis *d, struct pe_edit *edit, double first)
{
    if (first != floor(first) || sequence(d)->n_axes > 1)
        return false;
    int64_t n = (int64_t)count_positions(d, edit);
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_integer(edit, "len", n);
    if (first != 0 || has(d, "offset"))
        pe_edit_set_integer(edit, "offset", (int64_t)first);
    return true;
}

/* Of maps whose scheme rotates; the mask of a batch would be lost. */
static bool may_move(const struct pe_diagnosis *d)
{
    bool is_map = d->evidence.kind->id == PE_OF_MAPS;
    return !is_map || (d->belief.plan->scheme->rotate && pe_sequence_n_batches(sequence(d)) == 0);
}

bool pe_edit_by_map(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_position_map *map)
{
    bool is_one_axis = sequence(d)->n_axes == 1, is_run = pe_belief_is_run(d), is_even = map->scale == 1;
    double first = is_one_axis ? pe_belief_position(d, 0) : 0, shift = map->shift + map->first * first;
    if (!may_move(d) || (map->of == PE_OF_A_RUN && !is_run) || (map->of == PE_OF_NO_RUN && is_run) ||
        (map->of == PE_OF_A_MOVED_RUN && first == 0) ||
        (d->belief.n < 2 && (map->is_reversed || (map->scale == 0 && map->first != 0))))
        return false;
    return is_even && !map->is_reversed ? pe_edit_shift(d, edit, shift)
                                        : pe_edit_map(d, edit, map->scale, shift, map->is_reversed);
}
