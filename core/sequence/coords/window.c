/* x = i + ⌊(ref - g)/2⌋: the middle rows and columns of the table that the model was trained on (SD3, OmniGen:
 * diffusers, PatchEmbed.cropped_pos_embed). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double ref = pe_real_at(grid->ref, a), g = (double)grid->size[a];
    if (g > ref)
        return pe_fail(err, "/ref_grid",
                       "ref_grid has %s on axis %u, grid has %.0f; coords window is a part of ref_grid, so a grid "
                       "is at most as long",
                       pe_shown(ref).text, a, g);
    line->first = floor((ref - g) / 2);
    return PE_OK;
}

const struct pe_coord_rule pe_coords_window = {.name = "window", .ref = PE_REF_AXES, .axis = axis};
