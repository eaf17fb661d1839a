/* x = i + 1 (Llama 4's vision tower; DETR, whose cumulative sum of ones begins at 1). */
#include "core/sequence/coords/coords.h"

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    (void)grid, (void)a, (void)err;
    line->first = 1;
    return PE_OK;
}

const struct pe_coord_rule pe_coords_one_based = {.name = "one_based", .axis = axis};
