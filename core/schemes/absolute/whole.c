/* Positions that are row numbers, and the field of the request that gives them. */
#include "core/schemes/absolute/absolute.h"

const char *pe_whole_pointer(const struct pe_plan *plan)
{
    const struct pe_sequence_fields *f = &plan->sequence;
    if (f->positions.n)
        return "/positions";
    if (f->offset != PE_UNSET_INT && f->offset != 0)
        return "/offset";
    return f->lens.n ? "/lens" : f->tokens ? "/tokens" : pe_absolute_n(plan) ? "/x" : "/len";
}

static enum pe_status refuse(const struct pe_plan *plan, double p, uint64_t i, struct pe_failure *err)
{
    return pe_fail(err, pe_whole_pointer(plan), "position %s (index %llu) is %s; %s allows whole numbers from 0 on",
                   pe_shown(p).text, (unsigned long long)i, pe_text(p < 0 ? "negative" : "fractional"),
                   plan->scheme->info.name);
}

enum pe_status pe_whole_check(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_positions *positions = plan->seq.k;
    uint64_t n = positions->list ? pe_positions_count(positions) : 1; /* a run grows by 1 */
    for (uint64_t i = 0; i < n; i++) {
        double p = pe_position_at(positions, i);
        if (!(p >= 0) || p != floor(p))
            return refuse(plan, p, i, err);
    }
    return PE_OK;
}
