/* x = ⌊i·ref/g⌋: the nearest row before, of a table that the model was trained on (CogView4). */
#include "core/sequence/coords/coords.h"

/* Products of an index and such a length are exact doubles. */
#define REF_MAX 4294967296.0 /* 2^32 */

static enum pe_status axis(const struct pe_coord_grid *grid, unsigned a, struct pe_coord_line *line,
                           struct pe_failure *err)
{
    double ref = pe_real_at(grid->ref, a);
    if (ref != floor(ref) || ref > REF_MAX)
        return pe_fail(err, "/ref_grid",
                       "ref_grid has %s on axis %u; with coords resized_floor allowed: integers up to 2^32",
                       pe_shown(ref).text, a);
    line->step = ref;
    line->denominator = (double)grid->size[a];
    line->is_floor = true;
    return PE_OK;
}

const struct pe_coord_rule pe_coords_resized_floor = {.name = "resized_floor", .ref = PE_REF_AXES, .axis = axis};
