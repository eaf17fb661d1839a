/* Rotates the channels of a head by the angles of its position, and prepares the angles.
 *
 * Cosines and sines come from the same waves as /encode's tables, so a rotated tensor equals the table applied by hand,
 * bit for bit. A block of positions has its table computed once for all heads.
 *
 * f32 tensors are rotated in f32 with cosines rounded to f32, as frameworks do. Where factors leave float's range (xPos
 * far from its centre) rows are rotated in double. kernels/rotate.c has the loops and their error. */
#include "core/rotate/rotate_rows.h"
#include "core/encode/encode.h"
#include "core/waves/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Angles ---- */

enum pe_status pe_rotate_init(struct pe_row_rotation *turn, struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_cost cost = {0, 0};
    plan->scheme->rotate(plan, &turn->rotation, NULL);
    size_t width = 2 * turn->rotation.n_pairs;
    pe_cost_waves(&cost, (double)width);
    enum pe_status status = pe_plan_admit(plan, cost.bytes, err);
    turn->columns = status ? NULL : calloc(width, sizeof *turn->columns);
    if (!turn->columns)
        return status ? status : pe_no_memory(err);
    plan->scheme->rotate(plan, &turn->rotation, turn->columns);
    status = pe_check_phases(plan, turn->columns, width, err);
    if (!status && plan->arith == PE_ARITH_EXACT && pe_waves_new(turn->columns, width, &turn->waves))
        return pe_no_memory(err);
    return status;
}

double pe_rotate_ns(uint64_t head_dim)
{
    struct pe_cost cost = {0, 0};
    pe_cost_waves(&cost, (double)head_dim);
    return cost.ns;
}

/* Nanoseconds for each row, for a cosine of a run, and for a cosine of the frameworks' recipe. Factors that depend on
 * the position add an exponential in double-double for each pair. */
double pe_rotate_table_ns(const struct pe_plan *plan, uint64_t n_rows, uint64_t n_columns)
{
    enum { NS_OF_ROW = 100, NS_OF_WAVE = 16, NS_OF_RECIPE = 150 };
    double ns = (plan->arith != PE_ARITH_EXACT ? NS_OF_RECIPE : NS_OF_WAVE) + (plan->scheme->magnitude ? PE_NS_DD : 0);
    return (double)n_rows * (NS_OF_ROW + (double)n_columns * ns);
}

void pe_rotate_drop(struct pe_row_rotation *turn)
{
    pe_waves_free(turn->waves);
    free(turn->columns);
}

/* Writes cosines and sines without the factors that depend on the position. dtype: f64 or f32. */
static void fill_angles(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                        const struct pe_positions *positions, enum pe_dtype dtype, uint64_t row0, size_t n_rows,
                        void *table)
{
    size_t width = 2 * turn->rotation.n_pairs;
    if (plan->arith != PE_ARITH_EXACT)
        pe_float32_fill(turn->columns, dtype, positions, row0, n_rows, width, table, width);
    else
        pe_waves_fill(turn->waves, dtype, positions, row0, n_rows, 0, width, table, width);
}

void pe_rotate_table(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                     const struct pe_positions *positions, size_t id, uint64_t row0, size_t n_rows, double *table)
{
    fill_angles(turn, plan, positions, PE_F64, row0, n_rows, table);
    size_t pairs = turn->rotation.n_pairs, width = 2 * pairs;
    for (size_t i = 0; plan->scheme->magnitude && i < n_rows; i++) {
        double factors[PE_HEAD_DIM_MAX / 2], *row = table + i * width;
        plan->scheme->magnitude(plan, id, positions, row0 + i, 1, factors);
        for (size_t c = 0; c < width; c++)
            row[c] *= factors[c % pairs];
    }
}

bool pe_rotate_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b)
{
    for (unsigned axis = 0; axis < plan->seq.n_axes; axis++)
        if (!pe_positions_same(&a[axis], &b[axis]))
            return false;
    return true;
}

/* ---- Rows ---- */

/* V-JEPA 2's formula, which is not a rotation: channel i of a block of C pairs uses the cosine and sine of pair i
 * mod C. */
static void rotate_tiled(const struct pe_rotation_block *b, const double *cosines, const double *sines, const double *x,
                         double *y)
{
    for (size_t i = 0; i < 2 * b->n_pairs; i++) {
        double cosine = cosines[b->pair0 + i % b->n_pairs], sine = sines[b->pair0 + i % b->n_pairs];
        y[b->first + i] = i % 2 ? x[b->first + i] * cosine + x[b->first + i - 1] * sine
                                : x[b->first + i] * cosine - x[b->first + i + 1] * sine;
    }
}

/* Writes interleaved pairs as halves: transformers' rope_interleave of DeepSeek. */
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

void pe_rotate_row(const struct pe_row_rotation *turn, const double *cosines, enum pe_dtype from, const void *x,
                   enum pe_dtype to, void *y)
{
    const struct pe_rotation *rot = &turn->rotation;
    if (from == PE_F32 && to == PE_F32 && x != y && !rot->is_tiled && !rot->to_half)
        rotate_floats(rot, cosines, x, y);
    else
        rotate_any(rot, cosines, from, x, to, y);
}

/* ---- Rows of floats ---- */

#define AMPLITUDE_MAX 0x1p60

static bool are_floats(const struct pe_wave *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(columns[i].ah) <= AMPLITUDE_MAX && fabs(columns[i].ah) >= 1 / AMPLITUDE_MAX))
            return false;
    return true;
}

static bool is_narrow(enum pe_dtype dtype) { return dtype == PE_F32 || pe_narrow_type(dtype); }

bool pe_rotate_by_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan, enum pe_dtype from,
                         enum pe_dtype to)
{
    return is_narrow(from) && is_narrow(to) && !turn->rotation.is_tiled && !turn->rotation.to_half &&
           !plan->scheme->magnitude && are_floats(turn->columns, 2 * turn->rotation.n_pairs);
}

void pe_rotate_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                      const struct pe_positions *positions, uint64_t row0, size_t n_rows, float *table)
{
    fill_angles(turn, plan, positions, PE_F32, row0, n_rows, table);
}

static void rotate_block(const struct pe_row_rotation *turn, const float *cosines, size_t table_step, const float *x,
                         float *y, const struct pe_rotate_extent *e)
{
    const struct pe_rotation *rot = &turn->rotation;
    const float *sines = cosines + rot->n_pairs;
    if (x != y && 2 * rot->n_pairs < rot->head_dim)
        for (size_t h = 0; h < e->n_heads; h++)
            memcpy(y + h * e->apart, x + h * e->apart, e->n_rows * rot->head_dim * sizeof *y);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        pe_kernels()->rotate_rows(cosines + b->pair0, sines + b->pair0, table_step, x + first, y + first, rot->head_dim,
                                  e->n_rows, b->n_pairs, b->step, b->partner, e->n_heads, e->apart);
    }
}

/* Floats processed at a time, unless one row has more. The number is small because reading, rotating and writing
 * alternate, and the processor can prefetch only a little of the input meanwhile. It is not smaller, because values
 * just stored in halves of a register would then be loaded as a whole before they reach the cache. */
enum { FLOATS_AT_ONCE = 512 };
_Static_assert((int)FLOATS_AT_ONCE <= (int)PE_HEAD_DIM_MAX, "they fit where one row does");

/* Rotates rows if the input or the output is narrower than f32. */
static void rotate_some(const struct pe_row_rotation *turn, const float *table, size_t table_step, enum pe_dtype from,
                        const void *x, enum pe_dtype to, void *y, size_t n_rows)
{
    _Alignas(32) float wide[PE_HEAD_DIM_MAX];
    size_t n = n_rows * turn->rotation.head_dim;
    float *turned = to == PE_F32 ? y : wide;
    if (from != PE_F32)
        pe_narrow_type(from)->widen(x, n, turned);
    rotate_block(turn, table, table_step, from == PE_F32 ? x : turned, turned,
                 &(struct pe_rotate_extent){n_rows, 1, 0});
    if (to != PE_F32)
        pe_narrow_type(to)->narrow(turned, n, y);
}

void pe_rotate_rows(const struct pe_row_rotation *turn, const float *table, size_t table_step, enum pe_dtype from,
                    const void *x, enum pe_dtype to, void *y, const struct pe_rotate_extent *e)
{
    if (from == PE_F32 && to == PE_F32) {
        rotate_block(turn, table, table_step, x, y, e);
        return;
    }
    for (uint64_t h = 0; h < e->n_heads; h++) {
        size_t d = turn->rotation.head_dim, room = d < FLOATS_AT_ONCE ? FLOATS_AT_ONCE / d : 1;
        for (uint64_t i = 0, n; i < e->n_rows; i += n) {
            n = e->n_rows - i < room ? e->n_rows - i : room;
            rotate_some(turn, table + i * table_step, table_step, from,
                        ((const char *)x + h * e->apart * pe_dtype_size(from)) + i * d * pe_dtype_size(from), to,
                        ((char *)y + h * e->apart * pe_dtype_size(to)) + i * d * pe_dtype_size(to), n);
        }
    }
}
