/* What an analysis spends beside its metrics: plans, and the numbers that they fill.
 *
 * A plan takes its cost of planning. A scheme that computes each row from the row before it takes the steps to its last
 * row, whichever rows are read. Other numbers take a little each, or as much as the scheme states. */
#include "core/analysis/internal.h"
#include "core/request/request.h"

/* A number of a row as a double: waves are evaluated to the last bit. A bias of one head at one distance: a call. */
enum { NUMBER_WORK = 24, CALL_WORK = 256 };

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { WORK_OF_A_NS = 4 };

double pe_planning_work(const struct pe_subject *subject) { return WORK_OF_A_NS * subject->plan->cost.ns; }

/* A plan with more steps than it may have is refused, and takes none. */
double pe_reach_work(const struct pe_subject *subject, double reach)
{
    double steps = pe_positions_last(subject->plan->seq.k) + 1;
    double work = subject->plan->work > 0 && steps > 0 ? subject->plan->work / steps * reach : 0;
    return work <= PE_STEPS_WORK_MAX ? work : 0;
}

static double distance_work(const struct pe_plan *plan)
{
    return fmax(plan->distance_work > 0 ? plan->distance_work : pe_plan_each(plan), CALL_WORK);
}

/* Rows of a rotary scheme are cosines and sines, which no scale multiplies. */
static double number_work(const struct pe_subject *subject)
{
    const struct pe_plan *plan = subject->plan;
    if (subject->family == PE_BIAS)
        return distance_work(plan);
    if (subject->family == PE_ROTARY)
        return plan->arith == PE_ARITH_FLOAT32 ? PE_SLOW_WORK : NUMBER_WORK;
    return fmax(plan->pace == PE_SLOW ? pe_plan_each(plan) : 0, NUMBER_WORK);
}

double pe_numbers_work(const struct pe_subject *subject, double n) { return n * number_work(subject); }

double pe_scale_work(const struct pe_subject *subject, double n)
{
    bool has_scale = subject->family == PE_ROTARY && subject->plan->element_work > 0;
    return has_scale ? n * subject->plan->element_work : 0;
}

/* Distances whose biases the plan stores, so that all rows of its map copy them; 0: each element is computed. */
static double stored_distances(const struct pe_plan *plan, size_t output)
{
    const struct pe_output *o = pe_plan_output(plan, output);
    double n = o->rank == 3 ? (double)o->shape[0] * (double)(o->shape[1] + o->shape[2]) : 0;
    bool is_stored = n * sizeof(double) <= (double)PE_BIAS_KEPT_MAX && pe_fill_line(plan, output, 0, 0, 0, NULL);
    return is_stored ? n : 0;
}

double pe_output_work(const struct pe_plan *plan, size_t output)
{
    const struct pe_output *o = pe_plan_output(plan, output);
    double n = (double)o->n_rows * (double)o->row_len, distances = stored_distances(plan, output);
    if (distances > 0)
        return n * NUMBER_WORK + distances * distance_work(plan);
    return n * fmax(plan->pace == PE_SLOW ? pe_plan_each(plan) : 0, NUMBER_WORK);
}
