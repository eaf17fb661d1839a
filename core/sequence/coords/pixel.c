/* x = -1 … 1 in g steps, a linspace, which is -1 if g is 1 (lucidrains' rotary-embedding-torch). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double g = (double)grid->size[a];
    (void)err;
    *line = (struct pe_coord_line){.first = -1, .step = 1, .numerator = 1, .denominator = 1};
    if (g > 1)
        *line = (struct pe_coord_line){.first = -(g - 1) / 2, .step = 1, .numerator = 2, .denominator = g - 1};
    return PE_OK;
}

const struct pe_coord_rule pe_coords_pixel = {.name = "pixel", .axis = axis};
