/* Turning the channels of a head by the angles of its position. */
#include "core/turn.h"
#include "core/outputs.h"
#include "core/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Angles ---- */

enum pe_status pe_turn_init(struct pe_turn *turn, const struct pe_plan *plan, struct pe_error *err)
{
    plan->scheme->rotate(plan, &turn->rotation, NULL);
    size_t width = 2 * turn->rotation.n_pairs;
    turn->columns = calloc(width, sizeof *turn->columns);
    if (!turn->columns)
        return pe_no_memory(err);
    plan->scheme->rotate(plan, &turn->rotation, turn->columns);
    enum pe_status status = pe_check_phases(plan, turn->columns, width, err);
    if (!status && plan->arith == PE_ARITH_EXACT && pe_waves_new(turn->columns, width, &turn->waves))
        return pe_no_memory(err);
    return status;
}

void pe_turn_drop(struct pe_turn *turn)
{
    pe_waves_free(turn->waves);
    free(turn->columns);
    free(turn->steps);
}

/* Without the factors. */
static void fill_angles(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                        uint64_t row0, size_t n_rows, double *table)
{
    size_t width = 2 * turn->rotation.n_pairs;
    if (plan->arith == PE_ARITH_FLOAT32)
        pe_recipe_fill(turn->columns, PE_F64, positions, row0, n_rows, width, table, width);
    else
        pe_waves_fill(turn->waves, PE_F64, positions, row0, n_rows, 0, width, table, width);
}

static void scale(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                  size_t id, uint64_t row0, size_t n_rows, double *table)
{
    size_t pairs = turn->rotation.n_pairs, width = 2 * pairs;
    for (size_t i = 0; plan->scheme->magnitude && i < n_rows; i++) {
        double factors[PE_HEAD_DIM_MAX / 2], *row = table + i * width;
        plan->scheme->magnitude(plan, id, positions, row0 + i, 1, factors);
        for (size_t c = 0; c < width; c++)
            row[c] *= factors[c % pairs];
    }
}

void pe_turn_table(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                   size_t id, uint64_t row0, size_t n_rows, double *table)
{
    fill_angles(turn, plan, positions, row0, n_rows, table);
    scale(turn, plan, positions, id, row0, n_rows, table);
}

bool pe_turn_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b)
{
    for (unsigned axis = 0; axis < plan->seq.n_axes; axis++)
        if (!pe_positions_same(&a[axis], &b[axis]))
            return false;
    return true;
}

/* ---- Rows ---- */

/* V-JEPA 2's rotation, which is none: channel i of a block of C pairs takes the cosine and sine of pair i mod C. */
static void rotate_tiled(const struct pe_rotation_block *b, const double *cosines, const double *sines, const double *x,
                         double *y)
{
    for (size_t i = 0; i < 2 * b->n_pairs; i++) {
        double cosine = cosines[b->pair0 + i % b->n_pairs], sine = sines[b->pair0 + i % b->n_pairs];
        y[b->first + i] = i % 2 ? x[b->first + i] * cosine + x[b->first + i - 1] * sine
                                : x[b->first + i] * cosine - x[b->first + i + 1] * sine;
    }
}

/* Pairs of neighbours are written as halves: transformers' rope_interleave of DeepSeek. */
static void move_to_halves(size_t n_pairs, double *y)
{
    double turned[PE_HEAD_DIM_MAX];
    memcpy(turned, y, 2 * n_pairs * sizeof *y);
    for (size_t c = 0; c < n_pairs; c++) {
        y[c] = turned[2 * c];
        y[n_pairs + c] = turned[2 * c + 1];
    }
}

/* One row from a tensor of any dtype to one of any real dtype, in double. */
static void rotate_any(const struct pe_rotation *rot, const double *cosines, enum pe_dtype from, const char *x,
                       enum pe_dtype to, char *y)
{
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX];
    const double *sines = cosines + rot->n_pairs;
    pe_convert(PE_F64, in, from, x, rot->head_dim);
    memcpy(out, in, rot->head_dim * sizeof *out);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        if (rot->is_tiled)
            rotate_tiled(b, cosines, sines, in + rot->offset, out + rot->offset);
        else
            pe_kernels()->rotate_f64(cosines + b->pair0, sines + b->pair0, in + first, out + first, b->n_pairs, b->step,
                                     b->partner);
    }
    if (rot->to_half)
        move_to_halves(rot->n_pairs, out + rot->offset);
    pe_convert(to, y, PE_F64, out, rot->head_dim);
}

static void rotate_floats(const struct pe_rotation *rot, const double *cosines, const float *x, float *y)
{
    const double *sines = cosines + rot->n_pairs;
    if (2 * rot->n_pairs < rot->head_dim)
        memcpy(y, x, rot->head_dim * sizeof *y);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        pe_kernels()->rotate_f32(cosines + b->pair0, sines + b->pair0, x + first, y + first, b->n_pairs, b->step,
                                 b->partner);
    }
}

void pe_turn_row(const struct pe_turn *turn, const double *cosines, enum pe_dtype from, const void *x, enum pe_dtype to,
                 void *y)
{
    const struct pe_rotation *rot = &turn->rotation;
    if (from == PE_F32 && to == PE_F32 && !rot->is_tiled && !rot->to_half)
        rotate_floats(rot, cosines, x, y);
    else
        rotate_any(rot, cosines, from, x, to, y);
}

/* ---- Tables of octets ---- */

bool pe_turn_packs(const struct pe_turn *turn, enum pe_dtype from, enum pe_dtype to)
{
    bool narrow =
        (from == PE_F32 || from == PE_F16 || from == PE_BF16) && (to == PE_F32 || to == PE_F16 || to == PE_BF16);
    return narrow && !turn->rotation.is_tiled && !turn->rotation.to_half;
}

static size_t octets_of(size_t n_pairs) { return (n_pairs + PE_OCTET - 1) / PE_OCTET; }

size_t pe_turn_n_octets(const struct pe_turn *turn)
{
    size_t n = 0;
    for (size_t i = 0; i < turn->rotation.n_blocks; i++)
        n += octets_of(turn->rotation.blocks[i].n_pairs);
    return n;
}

/* Rows of a run around an anchor at number STEPS of every 2·STEPS; the anchors come from the waves, which cost twenty
 * times as much as a row made from its anchor. Below RUN_MIN rows the steps' own table is not worth its making. */
enum { STEPS = 16, RUN_MIN = 64 };

/* Are the columns cosines and sines of the same angles, all on one axis, with one amplitude for both? */
static bool are_pairs(const struct pe_wave *columns, size_t n_pairs)
{
    for (size_t c = 0; c < n_pairs; c++) {
        const struct pe_wave *cosine = &columns[c], *sine = &columns[n_pairs + c];
        if (cosine->fh != sine->fh || cosine->fl != sine->fl || cosine->ah != sine->ah || cosine->al != sine->al ||
            cosine->axis != columns[0].axis || sine->axis != columns[0].axis || cosine->quarter != 1 ||
            (sine->quarter != 0 && sine->quarter != 2))
            return false;
    }
    return true;
}

static bool is_run(const struct pe_positions *p)
{
    return !p->list && !p->size && p->start == floor(p->start) && pe_positions_largest(p) < 0x1p50;
}

/* Cosines and sines of 0 … STEPS steps without the amplitude. */
static enum pe_status make_steps(struct pe_turn *turn, struct pe_error *err)
{
    size_t width = 2 * turn->rotation.n_pairs;
    struct pe_positions axes[PE_AXES_MAX];
    struct pe_waves *waves = NULL;
    struct pe_wave *unit = malloc(width * sizeof *unit);
    turn->steps = malloc((STEPS + 1) * width * sizeof *turn->steps);
    for (size_t c = 0; unit && c < width; c++) {
        unit[c] = turn->columns[c];
        unit[c].ah = 1;
        unit[c].al = 0;
    }
    for (size_t i = 0; i < PE_AXES_MAX; i++)
        axes[i] = (struct pe_positions){.n = STEPS + 1};
    bool made = unit && turn->steps && !pe_waves_new(unit, width, &waves);
    if (made)
        pe_waves_fill(waves, PE_F64, axes, 0, STEPS + 1, 0, width, turn->steps, width);
    pe_waves_free(waves);
    free(unit);
    return made ? PE_OK : pe_no_memory(err);
}

enum pe_status pe_turn_prepare(struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                               uint64_t n, struct pe_error *err)
{
    if (turn->steps || n < RUN_MIN || plan->arith != PE_ARITH_EXACT || !turn->rotation.n_pairs ||
        !are_pairs(turn->columns, turn->rotation.n_pairs) || !is_run(&positions[turn->columns[0].axis]))
        return PE_OK;
    return make_steps(turn, err);
}

/* The anchor of a row, made anew where the last was another's. */
struct anchor {
    uint64_t number; /* of the anchor whose values these are; UINT64_MAX: none */
    double values[PE_HEAD_DIM_MAX];
};

static const double *anchor_of(const struct pe_turn *turn, const struct pe_positions *run, uint64_t row,
                               struct anchor *anchor)
{
    struct pe_positions axes[PE_AXES_MAX];
    size_t width = 2 * turn->rotation.n_pairs;
    uint64_t number = row / (2 * STEPS);
    if (anchor->number == number)
        return anchor->values;
    anchor->number = number;
    for (size_t i = 0; i < PE_AXES_MAX; i++)
        axes[i] = (struct pe_positions){.n = 1, .start = run->start + (double)(number * 2 * STEPS + STEPS)};
    pe_waves_fill(turn->waves, PE_F64, axes, 0, 1, 0, width, anchor->values, width);
    return anchor->values;
}

/* Row row of the table of a run. What cancelled is made as any position is. */
static void run_row(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                    uint64_t row, struct anchor *anchor, double *cosines)
{
    size_t pairs = turn->rotation.n_pairs, back = row % (2 * STEPS) < STEPS,
           steps = back ? STEPS - row % (2 * STEPS) : row % (2 * STEPS) - STEPS;
    const double *from = anchor_of(turn, &positions[turn->columns[0].axis], row, anchor);
    bool lost = pe_kernels()->angles(from, turn->steps + steps * 2 * pairs, back ? -1 : 1, pairs, cosines);
    if (lost)
        fill_angles(turn, plan, positions, row, 1, cosines);
}

static void pack_row(const struct pe_turn *turn, const double *cosines, struct pe_octet *to)
{
    for (size_t i = 0; i < turn->rotation.n_blocks; i++) {
        const struct pe_rotation_block *b = &turn->rotation.blocks[i];
        const double *sines = cosines + turn->rotation.n_pairs;
        pe_kernels()->pack(cosines + b->pair0, sines + b->pair0, b->n_pairs, to);
        to += octets_of(b->n_pairs);
    }
}

void pe_turn_pack(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                  size_t id, uint64_t row0, size_t n_rows, struct pe_octet *table)
{
    double rows[PE_HEAD_DIM_MAX];
    struct anchor anchor;
    anchor.number = UINT64_MAX;
    size_t width = 2 * turn->rotation.n_pairs, n_octets = pe_turn_n_octets(turn), room = PE_HEAD_DIM_MAX / width;
    bool by_steps = turn->steps && is_run(&positions[turn->columns[0].axis]);
    for (size_t i = 0, n; i < n_rows; i += n) {
        n = by_steps ? 1 : n_rows - i < room ? n_rows - i : room;
        if (by_steps)
            run_row(turn, plan, positions, row0 + i, &anchor, rows);
        else
            fill_angles(turn, plan, positions, row0 + i, n, rows);
        scale(turn, plan, positions, id, row0 + i, n, rows);
        for (size_t k = 0; k < n; k++)
            pack_row(turn, rows + k * width, table + (i + k) * n_octets);
    }
}

/* ---- Rows of octets ---- */

static void rotate_block(const struct pe_turn *turn, const struct pe_octet *table, size_t table_step, const float *x,
                         float *y, size_t n_rows)
{
    const struct pe_rotation *rot = &turn->rotation;
    if (x != y && 2 * rot->n_pairs < rot->head_dim)
        memcpy(y, x, n_rows * rot->head_dim * sizeof *y);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        pe_kernels()->rotate_rows(table, table_step, x + first, y + first, rot->head_dim, n_rows, b->n_pairs, b->step,
                                  b->partner);
        table += octets_of(b->n_pairs);
    }
}

static void widen(enum pe_dtype from, const void *x, size_t n, float *wide)
{
    if (from == PE_F16)
        pe_kernels()->of_f16(x, n, wide);
    else
        pe_kernels()->of_bf16(x, n, wide);
}

static void narrow(enum pe_dtype to, const float *wide, size_t n, void *y)
{
    if (to == PE_F16)
        pe_kernels()->to_f16(wide, n, y);
    else
        pe_kernels()->to_bf16(wide, n, y);
}

/* Floats of the rows worked on at a time, if they are not one row: few, for reading what was sent, turning and writing
 * take turns, and only a little of the first can be on its way while the others work. Not fewer, or what has just been
 * stored in halves of a register would be loaded whole before it is in the cache. */
enum { FLOATS_AT_ONCE = 512 };
_Static_assert((int)FLOATS_AT_ONCE <= (int)PE_HEAD_DIM_MAX, "they fit where one row does");

static void rotate_some(const struct pe_turn *turn, const struct pe_octet *table, size_t table_step, enum pe_dtype from,
                        const void *x, enum pe_dtype to, void *y, size_t n_rows)
{
    _Alignas(32) float wide[PE_HEAD_DIM_MAX];
    size_t n = n_rows * turn->rotation.head_dim;
    float *turned = to == PE_F32 ? y : wide;
    if (from != PE_F32)
        widen(from, x, n, turned);
    rotate_block(turn, table, table_step, from == PE_F32 ? x : turned, turned, n_rows);
    if (to != PE_F32)
        narrow(to, turned, n, y);
}

void pe_turn_rows(const struct pe_turn *turn, const struct pe_octet *table, size_t table_step, enum pe_dtype from,
                  const void *x, enum pe_dtype to, void *y, size_t n_rows)
{
    size_t d = turn->rotation.head_dim, room = d < FLOATS_AT_ONCE ? FLOATS_AT_ONCE / d : 1;
    for (size_t i = 0, n; i < n_rows; i += n) {
        n = n_rows - i < room ? n_rows - i : room;
        rotate_some(turn, table + i * table_step, table_step, from, (const char *)x + i * d * pe_dtype_size(from), to,
                    (char *)y + i * d * pe_dtype_size(to), n);
    }
}
