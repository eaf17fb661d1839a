/* What filling will cost, told by the plan. */
#include "core/attention/attention.h"
#include "core/scheme.h"
#include "core/slice.h"

/* Multiply-adds that take as long as making one element: a nanosecond or some, and microseconds. */
static const double element_work[] = {[PE_QUICK] = 4, [PE_SLOW] = PE_SLOW_WORK, [PE_HEAVY] = 4};

double pe_plan_work(const struct pe_plan *plan)
{
    double work = plan->work, each = plan->element_work > 0 ? plan->element_work : element_work[plan->pace];
    for (size_t i = 0; !plan->attention && i < plan->n_outputs; i++)
        work += pe_slice_elements(plan, i) * each;
    return work;
}

double pe_plan_bytes(const struct pe_plan *plan) { return plan->attention ? pe_attention_bytes(plan) : 0; }
