/* x = i·ref/g: the grid stretched over the one the model was trained on (EVA-02, PixArt). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    (void)err;
    line->numerator = pe_real_at(grid->ref, a);
    line->denominator = (double)grid->size[a];
    return PE_OK;
}

const struct pe_coord_rule pe_coords_resized = {.name = "resized", .ref = PE_REF_AXES, .axis = axis};
