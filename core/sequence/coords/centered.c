/* x = i - (g - ⌊g/2⌋): rows and columns from the middle; of three axes the first, frames, counts from 0 (Qwen-Image;
 * diffusers, QwenEmbedRope). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double g = (double)grid->size[a];
    (void)err;
    line->first = grid->n_axes > 2 && a == 0 ? 0 : -(g - floor(g / 2));
    return PE_OK;
}

const struct pe_coord_rule pe_coords_centered = {.name = "centered", .axis = axis};
