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
    bool is_open = d->belief.is_len_fixed;
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

/* ---- Faults that need no fit ---- */

static bool shift_by_one(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    return pe_edit_shift(d, edit, i == 0 ? 1 : -1);
}

const struct pe_fault pe_fault_off_by_one = {
    FAULT_TEXT("off_by_one", "positions", POSITIONS, 1, "off by one", "All positions are larger or smaller by one.",
               "The tensor begins at position {found}; the configuration begins at {believed}."),
    .evidence = PE_OF_POSITIONS, .n_alternatives = 2, .apply = shift_by_one, .cures = pe_cures_shifted};

static bool not_rotated(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    return pe_edit_map(d, edit, 0, 0, false);
}

const struct pe_fault pe_fault_not_rotated = {
    FAULT_TEXT("not_rotated", "positions", POSITIONS, 2, "positions without effect",
               "Every row is computed at position 0, so nothing is rotated.", "Every row is computed at position 0."),
    .evidence = PE_OF_POSITIONS, .n_alternatives = 1, .apply = not_rotated, .cures = pe_cures_positions};

static bool rotated_twice(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    bool is_map = d->evidence.kind->id == PE_OF_MAPS; /* of any scheme, and not all rotate */
    (void)i;
    bool is_batch = is_map && pe_sequence_n_batches(sequence(d)) > 0; /* whose mask must stay */
    return !(is_map && !d->belief.plan->scheme->rotate) && !is_batch && pe_edit_map(d, edit, 2, 0, false);
}

/* Nothing has been applied to tables yet, so their positions are doubled for another reason. */
static int surprise_of_twice(const struct pe_diagnosis *d, size_t i)
{
    (void)i;
    return d->evidence.kind->id == PE_OF_TABLES ? 3 : 0;
}

const struct pe_fault pe_fault_rotated_twice = {
    FAULT_TEXT("rotated_twice", "positions", POSITIONS, 2, "rotated twice",
               "Every row is computed at twice its position, as when a rotation is applied two times.",
               "Every row is computed at twice its position."),

    .evidence = PE_OF_POSITIONS | PE_EVIDENCE_BIT(MAPS),
    .n_alternatives = 1,
    .apply = rotated_twice,
    .surprise = surprise_of_twice,
    .cures = pe_cures_twice};

static bool reverse(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    return d->belief.n > 1 && pe_edit_map(d, edit, 1, 0, true);
}

const struct pe_fault pe_fault_positions_reversed = {
    FAULT_TEXT("positions_reversed", "positions", POSITIONS, 4, "reversed positions",
               "The rows have the positions in reverse order.",
               "The positions run in reverse order: the first row has the last position."),
    .evidence = PE_OF_POSITIONS, .n_alternatives = 1, .apply = reverse, .cures = pe_cures_reversed};

/* These are measured, never tried (../naming). */
const struct pe_fault pe_fault_exponent_shifted = {
    FAULT_TEXT("exponent_shifted", "ladder", LADDER, 3, "exponents begin too early",
               "The exponents of the frequencies begin at -2/r, as where the index of a pair is one too small.",
               "Every frequency is base^(2/r) = {found} times that of the configuration."),
    .cures = pe_cures_ladder};

const struct pe_fault pe_fault_exponent_lost = {
    FAULT_TEXT("exponent_lost", "ladder", LADDER, 3, "exponents rounded to integers",
               "Pair c has the frequency e^(-k·c) with a whole k: an integer division in the exponent.",
               "Pair c has the frequency e^(-{found}·c)."),
    .cures = pe_cures_ladder};

const struct pe_fault pe_fault_frequencies_equal = {
    FAULT_TEXT("frequencies_equal", "ladder", LADDER, 3, "equal frequencies", "All pairs have the same frequency.",
               "Every pair has the frequency {found}."),
    .cures = pe_cures_ladder};

const struct pe_fault pe_fault_positions_scaled = {
    FAULT_TEXT("positions_scaled", "positions", POSITIONS, 3, "scaled positions",
               "Positions, of all axes or of one, are multiplied by a factor.",
               "The positions are {found} times those of the configuration."),
    .cures = pe_cures_stretched};

const struct pe_fault pe_fault_positions_rounded = {
    FAULT_TEXT("positions_rounded", "positions", POSITIONS, 3, "rounded positions",
               "Positions, of all axes or of one, are rounded to few bits or to integers.",
               "The positions are rounded: {found} in place of {believed}."),
    .cures = pe_cures_positions};

static bool no_reset(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    bool is_packed = pe_edit_has(d, edit, "lens") || pe_edit_has(d, edit, "cu_seqlens");
    return is_packed && pe_edit_run(d, edit, pe_belief_position(d, 0));
}

const struct pe_fault pe_fault_position_no_reset = {
    FAULT_TEXT("position_no_reset", "positions", POSITIONS, 2, "positions run on",
               "Positions run on through packed sequences instead of restarting in each.",
               "Positions run on; in the configuration they restart in each packed sequence."),
    .evidence = PE_OF_POSITIONS, .n_alternatives = 1, .apply = no_reset};
