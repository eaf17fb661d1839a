/* The rotation of a rotary plan, after planning: pe_rotate_init asks for memory as a part of planning. */
#include "core/analysis/parts/turn.h"

#include <stdlib.h>

enum pe_status pe_turn_init(struct pe_row_rotation *turn, const struct pe_plan *plan, struct pe_error *err)
{
    *turn = (struct pe_row_rotation){.columns = NULL};
    plan->scheme->rotate(plan, &turn->rotation, NULL);
    size_t width = 2 * turn->rotation.n_pairs;
    turn->columns = calloc(width, sizeof *turn->columns);
    if (!turn->columns)
        return pe_no_memory(err);
    plan->scheme->rotate(plan, &turn->rotation, turn->columns);
    if (plan->arith == PE_ARITH_EXACT && pe_waves_new(turn->columns, width, &turn->waves))
        return pe_no_memory(err);
    return PE_OK;
}

double pe_turn_bytes(const struct pe_plan *plan)
{
    enum { COLUMN_BYTES = 512 }; /* a prepared column, generously */
    struct pe_rotation rotation;
    plan->scheme->rotate(plan, &rotation, NULL);
    return 2 * (double)rotation.n_pairs * COLUMN_BYTES;
}

size_t pe_turn_input(const struct pe_plan *plan, const char *name)
{
    size_t id = 0;
    while (!pe_same(plan->scheme->info.inputs[id].name, name))
        id++;
    return id;
}
