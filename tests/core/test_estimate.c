/* The estimated cost of filling: the work grows with the size of the output. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>

static double work_of(const char *json)
{
    struct test_request r;
    struct pe_plan *plan = test_plan(&r, json);
    double work = pe_plan_work(plan);
    pe_plan_free(plan);
    test_request_drop(&r);
    return work;
}

TEST(work_grows_with_what_is_made)
{
    double table = work_of("{'scheme':'sinusoidal','dim':64,'len':1000}");
    assert_true(table == 4 * 64000.0);
    assert_true(work_of("{'scheme':'sinusoidal','dim':64,'len':4000}") == 4 * table);
    assert_true(work_of("{'scheme':'xpos','head_dim':64,'len':1000}") > 100 * table);
    double near = work_of("{'scheme':'floater','dim':64,'positions':[10],'seed':1}");
    assert_true(work_of("{'scheme':'floater','dim':64,'positions':[1000],'seed':1}") > 50 * near);
}

#define WIDE "{'scheme':'recursive','dim':64,'hidden':1,'seed':3,'std':0.4,"

/* After a step back the rows are computed from a stored one: each costs as much. */
TEST(each_step_back_is_work)
{
    double none = work_of(WIDE "'positions':[0,5,70000]}"), one = work_of(WIDE "'positions':[70000,0,5]}"),
           two = work_of(WIDE "'positions':[70000,5,0]}");
    assert_true(one > none);
    assert_true(fabs((two - one) - (one - none)) <= 1e-9 * two);
}

/* A number computed from a whole table costs the computation of the table and the visit of each of its numbers. */
TEST(reduced_blocks_cost_what_they_are_made_of)
{
    struct test_request r;
    static const struct pe_cut cuts[] = {{false, PE_UNSET_INT, PE_UNSET_INT, 1000000},
                                         {false, PE_UNSET_INT, PE_UNSET_INT, 64}};
    struct pe_slice slice = {.cuts = {cuts[0], cuts[1]}, .n_cuts = 2};
    test_request_parse(&r, "{'scheme':'sinusoidal','dim':64,'len':1000000}");
    r.request.slices = &slice;
    r.request.n_slices = 1;
    static const enum pe_reduce ways[] = {PE_REDUCE_SAMPLE, PE_REDUCE_MEAN};
    for (size_t i = 0; i < 2; i++) {
        struct pe_plan *plan;
        struct pe_failure err;
        r.request.reduce = ways[i];
        assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
        double work = pe_plan_work(plan);
        assert_true(ways[i] == PE_REDUCE_MEAN ? work >= 4 * 64e6 && work <= 16 * 64e6 : work <= 1024);
        pe_plan_free(plan);
    }
    test_request_drop(&r);
}
