/* The cost of planning, estimated in a few additions before anything is done, from sizes that are known by then.
 *
 * Each part of planning estimates its own cost, beside the code that does the work: a scheme in its descriptor's
 * cost(), an operation in its ns(). Time is estimated once, by pe_plan_check, and only chooses the thread that builds.
 * Bytes are asked for step by step: pe_plan_admit() asks the caller whether the next step may allocate them. */
#ifndef PE_COST_H
#define PE_COST_H

#include "core/posenc.h"

struct pe_plan;
struct pe_positions;
struct pe_sequence_fields;

/* Times on a slow machine, twice those of a plain x86-64 of 2020 (tests/core/test_estimate.c compares them with the
 * clock): a number from a seed; a sent number, as a double; a logarithm or exponential in double-double, or to 2^-58; a
 * byte that is set to zero; a multiply-add of BLAS; a position that the checks of a list read; a position that is
 * computed and stored. */
#define PE_NS_SEEDED 50.0
#define PE_NS_SENT 4.0
#define PE_NS_DD 1000.0
#define PE_NS_NEAR 150.0
#define PE_NS_BYTE 1.0
#define PE_NS_PRODUCT 0.6
#define PE_NS_VISIT 25.0
#define PE_NS_PLACE 20.0

/* Bytes that planning allocates and keeps or writes, and nanoseconds on a slow machine, both rather too high. */
struct pe_cost {
    double bytes, ns;
};

static inline void pe_cost_add(struct pe_cost *cost, double bytes, double ns)
{
    cost->bytes += bytes;
    cost->ns += ns;
}

/* n things, each of so many bytes and nanoseconds. */
static inline void pe_cost_each(struct pe_cost *cost, double n, double bytes, double ns)
{
    pe_cost_add(cost, n * bytes, n * ns);
}

/* pe_waves_new of n columns, with the columns themselves; what pe_waves_new_for adds for bf16; base^-i of n rungs. */
void pe_cost_waves(struct pe_cost *cost, double n);
void pe_cost_around(struct pe_cost *cost, double n);
void pe_cost_ladder(struct pe_cost *cost, double n, bool float32);

/* All n numbers of input id, read as doubles. Adds nothing if they are neither sent nor seeded: then there are none, or
 * the plan refuses. */
void pe_cost_weights(struct pe_cost *cost, const struct pe_plan *plan, size_t id, double n);
double pe_cost_of_weight(const struct pe_plan *plan, size_t id); /* nanoseconds of one number */

/* cost() of a scheme whose plan() only checks. */
void pe_cost_nothing(const struct pe_plan *plan, struct pe_cost *cost);

/* A plan itself, and numbers of the request that it copies. */
void pe_cost_request(struct pe_cost *cost, const struct pe_request *request);
/* pe_sequence_init, and the positions that checks read afterwards. */
void pe_cost_sequence(struct pe_cost *cost, const struct pe_sequence_fields *fields);

/* Adds bytes to what planning takes, and asks the caller whether they may be allocated. */
enum pe_status pe_plan_admit(struct pe_plan *plan, double bytes, struct pe_error *err);

#endif
