/* The index, from 0 on. */
#include "core/sequence/coords/coords.h"

const struct pe_coord_rule pe_coords_index = {.name = "index"};
