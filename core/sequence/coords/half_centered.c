/* x = i + 1/2: centres of patches (Deformable DETR and its line; with style detr and normalize divided by the length,
 * as there). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    (void)grid, (void)a, (void)err;
    line->first = 0.5;
    return PE_OK;
}

const struct pe_coord_rule pe_coords_half_centered = {.name = "half_centered", .axis = axis};
