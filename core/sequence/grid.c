/* Sequences that are grids: the product of axes, the last one fastest. An axis is its length, or the list of its
 * coordinates; either way the positions of 2^40 patches take no more memory than the axes. */
#include "core/sequence/sequence.h"
#include "core/numeric/numeric.h"
#include "core/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lengths ---- */

static enum pe_status read_grid(struct pe_sequence *seq, const struct pe_reals *grid, uint64_t *n,
                                struct pe_failure *err)
{
    if (grid->array.rank != 1 || grid->n > PE_AXES_MAX)
        return pe_fail(err, "/grid", "grid has %u dimensions and %llu lengths; allowed: one list of up to %d",
                       grid->array.rank, (unsigned long long)grid->n, PE_AXES_MAX);
    *n = 1;
    for (unsigned a = 0; a < grid->n; a++) {
        double x = pe_real_at(grid, a);
        if (x != floor(x))
            return pe_fail(err, "/grid", "grid has %s at index %u; allowed: integers of at least 1", pe_shown(x).text,
                           a);
        seq->grid[a] = (uint64_t)x;
        if ((double)*n * x > PE_POSITION_MAX)
            return pe_fail(err, "/grid", "grid has more than 2^40 (1099511627776) positions");
        *n *= (uint64_t)x;
    }
    seq->n_axes = seq->n_grid = (unsigned)grid->n;
    return PE_OK;
}

/* The last two axes in blocks of m by m, visited row by row; inside a block row by row again. */
static enum pe_status lay_out_blocks(struct pe_sequence *seq, uint64_t m, struct pe_failure *err)
{
    if (seq->n_axes < 2)
        return pe_fail(err, "/order", "order merge needs a grid of at least two axes");
    struct pe_positions *row = &seq->k[seq->n_axes - 2], *col = &seq->k[seq->n_axes - 1];
    if (row->size % m || col->size % m)
        return pe_fail(err, "/grid",
                       "the last two axes of grid are %llu and %llu; order merge needs multiples of "
                       "spatial_merge_size, %llu",
                       (unsigned long long)row->size, (unsigned long long)col->size, (unsigned long long)m);
    row->inner = col->size * m;
    row->step = m;
    col->inner = m * m;
    col->step = 1;
    row->size /= m;
    col->size /= m;
    row->merge = col->merge = m;
    return PE_OK;
}

enum pe_status pe_sequence_init_grid(struct pe_sequence *seq, struct pe_sequence_fields *f, struct pe_failure *err)
{
    uint64_t n = 0;
    enum pe_status status = read_grid(seq, &f->grid, &n, err);
    if (status)
        return status;
    /* Row-major: an index of axis a is repeated for all positions of the axes after it. */
    uint64_t inner = 1;
    for (unsigned a = seq->n_axes; a-- > 0; inner *= seq->grid[a])
        seq->k[a] = (struct pe_positions){.n = n, .inner = inner, .size = seq->grid[a]};
    if (f->order == PE_MERGE && !pe_given(f->spatial_merge_size))
        f->spatial_merge_size = 2;
    if (f->order == PE_MERGE)
        status = lay_out_blocks(seq, (uint64_t)f->spatial_merge_size, err);
    memcpy(seq->q, seq->k, sizeof seq->q);
    return status;
}

/* ---- Coordinates ---- */

/* One list of numbers for each axis, of any lengths. */
static enum pe_status check_grid_coords(const struct pe_value *v, uint64_t *listed, struct pe_failure *err)
{
    bool is_even = v->kind == PE_ARRAY && v->array.rank == 2;
    unsigned n_axes = v->kind == PE_LIST ? (unsigned)v->list.n : is_even ? (unsigned)v->array.shape[0] : 0;
    *listed = is_even ? v->array.shape[0] * v->array.shape[1] : 0;
    if (n_axes > PE_AXES_MAX)
        return pe_fail(err, "/grid_coords", "grid_coords has %u axes; allowed: at most %d", n_axes, PE_AXES_MAX);
    for (unsigned a = 0; v->kind == PE_LIST && a < n_axes; a++) {
        const struct pe_value *axis = &v->list.items[a];
        bool is_list = axis->kind == PE_ARRAY && axis->array.rank == 1;
        if (!is_list || axis->array.shape[0] == 0)
            return pe_fail(err, "/grid_coords",
                           "grid_coords has %s on axis %u; allowed: a list of numbers for each axis",
                           is_list ? pe_text("an empty list") : pe_text("no list of numbers"), a);
        *listed += axis->array.shape[0];
    }
    if (n_axes == 0 || *listed == 0)
        return pe_fail(err, "/grid_coords",
                       "grid_coords is not a list of numbers for each axis, as in [[0,0.5],[0,1,2],[0,1,2]]");
    if (*listed <= PE_LISTED_POSITIONS_MAX)
        return PE_OK;
    pe_fail(err, "/grid_coords", "grid_coords has %llu numbers; allowed: at most %d", (unsigned long long)*listed,
            PE_LISTED_POSITIONS_MAX);
    return err->status = PE_TOO_LARGE;
}

static struct pe_tensor coords_of_axis(const struct pe_value *v, unsigned axis)
{
    if (v->kind == PE_LIST)
        return v->list.items[axis].array;
    struct pe_tensor row = v->array;
    row.rank = 1;
    row.shape[0] = v->array.shape[1];
    row.data = (const char *)row.data + axis * row.shape[0] * pe_dtype_size(row.dtype);
    return row;
}

static enum pe_status read_grid_coords(struct pe_sequence *seq, const struct pe_value *v, double *list, uint64_t *n,
                                       struct pe_failure *err)
{
    seq->n_axes = v->kind == PE_LIST ? (unsigned)v->list.n : (unsigned)v->array.shape[0];
    *n = 1;
    for (unsigned a = 0; a < seq->n_axes; a++) {
        struct pe_tensor axis = coords_of_axis(v, a);
        uint64_t size = axis.shape[0];
        pe_convert(PE_F64, list, axis.dtype, axis.data, size);
        for (uint64_t i = 0; i < size; i++)
            if (!(fabs(list[i]) <= PE_POSITION_MAX))
                return pe_fail(err, "/grid_coords",
                               "grid_coords has %s on axis %u; allowed: magnitudes up to 2^40 (1099511627776)",
                               pe_shown(list[i]).text, a);
        if ((double)*n * (double)size > PE_POSITION_MAX)
            return pe_fail(err, "/grid_coords", "grid_coords has more than 2^40 (1099511627776) positions");
        *n *= size;
        seq->k[a] = (struct pe_positions){.list = list, .size = size};
        list += size;
    }
    return PE_OK;
}

enum pe_status pe_sequence_init_grid_coords(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                            struct pe_failure *err)
{
    uint64_t listed = 0, n = 0, inner = 1;
    if (check_grid_coords(f->grid_coords, &listed, err))
        return err->status;
    seq->owned[0] = malloc(listed * sizeof *seq->owned[0]);
    if (!seq->owned[0])
        return pe_no_memory(err);
    if (read_grid_coords(seq, f->grid_coords, seq->owned[0], &n, err))
        return err->status;
    for (unsigned a = seq->n_axes; a-- > 0; inner *= seq->k[a].size) {
        seq->k[a].n = n;
        seq->k[a].inner = inner;
    }
    memcpy(seq->q, seq->k, sizeof seq->q);
    return PE_OK;
}
