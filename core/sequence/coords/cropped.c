/* Rows and columns fitted into the grid that the model was trained on, with the same ratio of sides, in its middle
 * (HunyuanDiT, CogVideoX: diffusers, get_resize_crop_region_for_grid); other axes count from 0.
 *
 *     open      x = start + i·(end - start)/g                 linspace without its end point
 *     shrunk    x = start + i·(end·(g-1)/g - start)/(g-1)     diffusers' torch code: equal only where start is 0 */
#include "core/sequence/coords/coords.h"

/* Where the rows (0) or columns (1) of an h × w grid begin and end in one of ref; Python's round takes halves to the
 * even number, as rint does. */
static void region(const struct pe_coord_grid *grid, unsigned side, double *start, double *end)
{
    double h = (double)grid->size[grid->n_axes - 2], w = (double)grid->size[grid->n_axes - 1];
    double ref[2] = {pe_real_at(grid->ref, 0), pe_real_at(grid->ref, 1)}, fitted[2];
    bool is_tall = h / w > ref[0] / ref[1];
    fitted[0] = is_tall ? ref[0] : rint(ref[1] / w * h);
    fitted[1] = is_tall ? rint(ref[0] / h * w) : ref[1];
    *start = rint((ref[side] - fitted[side]) / 2);
    *end = *start + fitted[side];
}

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double g = (double)grid->size[a], start, end;
    if (grid->n_axes < 2)
        return pe_fail(err, "/coords", "coords cropped needs a grid of rows and columns; this one has one axis");
    if (a + 2 < grid->n_axes)
        return PE_OK;
    region(grid, a + 2 - grid->n_axes, &start, &end);
    if (grid->crop_end == PE_CROP_OPEN || g == 1)
        *line = (struct pe_coord_line){start * g, end - start, 1, g, false};
    else
        *line = (struct pe_coord_line){start * g * (g - 1), end * (g - 1) - start * g, 1, g * (g - 1), false};
    return PE_OK;
}

const struct pe_coord_rule pe_coords_cropped = {.name = "cropped", .ref = PE_REF_SPACE, .axis = axis};
