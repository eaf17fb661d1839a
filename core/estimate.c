/* The estimated cost of filling a plan's outputs. */
#include "core/operation.h"
#include "core/slice.h"

/* Multiply-adds that take as long as computing one element: a few nanoseconds (quick), or microseconds (slow). */
static const double element_work[] = {[PE_QUICK] = 4, [PE_SLOW] = PE_SLOW_WORK, [PE_HEAVY] = 4};

double pe_plan_each(const struct pe_plan *plan)
{
    return plan->element_work > 0 ? plan->element_work : element_work[plan->pace];
}

double pe_plan_work(const struct pe_plan *plan)
{
    double work = plan->work, each = pe_plan_each(plan), passes = 1;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        work += pe_slice_work(plan, i, plan->operation->is_counted_whole ? 0 : each);
        passes = fmax(passes, pe_reduce_passes(plan, i));
    }
    return work * passes;
}

double pe_plan_bytes(const struct pe_plan *plan)
{
    return (plan->operation->bytes ? plan->operation->bytes(plan) : 0) + pe_tallies_bytes(plan);
}
