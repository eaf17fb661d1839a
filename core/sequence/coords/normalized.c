/* x = 2(i + 1/2)/g - 1 = (2i + 1 - g)/g: centres of patches on -1 to 1 (DINOv3). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double g = (double)grid->size[a];
    (void)err;
    *line = (struct pe_coord_line){.first = (1 - g) / 2, .step = 1, .numerator = 2, .denominator = g};
    return PE_OK;
}

const struct pe_coord_rule pe_coords_normalized = {.name = "normalized", .axis = axis};
