/* Turning the channels of a head by the angles of its position. */
#include "core/turn.h"
#include "core/kernels/kernels.h"
#include "core/outputs.h"
#include "core/recipe.h"

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
}

void pe_turn_table(const struct pe_turn *turn, const struct pe_plan *plan, const struct pe_positions *positions,
                   size_t id, uint64_t row0, size_t n_rows, double *table)
{
    size_t pairs = turn->rotation.n_pairs, width = 2 * pairs;
    if (plan->arith == PE_ARITH_FLOAT32)
        pe_recipe_fill(turn->columns, PE_F64, positions, row0, n_rows, width, table, width);
    else
        pe_waves_fill(turn->waves, PE_F64, positions, row0, n_rows, 0, width, table, width);
    for (size_t i = 0; plan->scheme->magnitude && i < n_rows; i++) {
        double factors[PE_HEAD_DIM_MAX / 2], *row = table + i * width;
        plan->scheme->magnitude(plan, id, positions, row0 + i, 1, factors);
        for (size_t c = 0; c < width; c++)
            row[c] *= factors[c % pairs];
    }
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
