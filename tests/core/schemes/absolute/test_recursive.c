/* recursive: each row is the network's output for the previous row; late rows are the same however they are reached. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>

#define R "{'scheme':'recursive',"
#define LINEAR R "'activation':'identity','p0':[1,-0.5],'w1':[[2,0],[0,3]],'b1':[0,1],"
#define NET "'p0':[1,-0.5],'w1':[[0.5,-0.25],[0.75,1]],'b1':[0.125,0],'w2':[[1,0.5],[-0.25,0.5]],'b2':[0,-0.5],"
#define WIDE "'dim':64,'hidden':1,'seed':3,'std':0.4,"

/* p' = (2 p1, 3 p2 + 1): 1, 2, 4, 8 and the fixed point -1/2; residual: p + p'. */
TEST(by_hand)
{
    test_assert_row(LINEAR "'len':4}", 0, (const double[]){1, -0.5}, 2, 0);
    test_assert_row(LINEAR "'len':4}", 3, (const double[]){8, -0.5}, 2, 0);
    test_assert_row(LINEAR "'residual':true,'len':3}", 2, (const double[]){9, -3}, 2, 0);
    test_assert_row(LINEAR "'positions':[3,0,1]}", 2, (const double[]){2, -0.5}, 2, 0);
}

/* W2·tanh(W1·p + b1) + b2, three times (Python's math.tanh in float64). */
TEST(two_layers)
{
    test_assert_row(R NET "'len':4}", 3, (const double[]){0.4219814975844164, -0.7230698857714768}, 2, 1e-14);
}

/* So many rows that not all are stored: in any order and in pieces they are the same as from the start. */
TEST(far_down)
{
    test_assert_laws(R WIDE "'positions':[70000,3,69999,40001,40002,0]}");
    test_assert_laws(R NET "'len':300}");
}

/* After a step back the rows are computed from a stored one: each costs as much. */
TEST(each_step_back_is_work)
{
    const char *const texts[] = {R WIDE "'positions':[0,5,70000]}", R WIDE "'positions':[70000,0,5]}",
                                 R WIDE "'positions':[70000,5,0]}"}; /* no step back, one, two */
    double work[3];
    for (size_t i = 0; i < 3; i++) {
        struct test_request r;
        struct pe_plan *plan = test_plan(&r, texts[i]);
        work[i] = pe_plan_work(plan);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
    assert_true(work[1] > work[0]);
    assert_true(fabs((work[2] - work[1]) - (work[1] - work[0])) <= 1e-9 * work[2]);
}

TEST(refusals)
{
    test_refused(R "'len':2}", "/p0", "seed");
    test_refused(LINEAR "'positions':[-1]}", "/positions", "-1");
    test_refused(LINEAR "'positions':[0.5]}", "/positions", "0.5");
    test_refused(LINEAR "'len':2,'dim':3}", "/dim", "makes it 2");
    test_refused(R "'p0':[1,2],'w1':[[1,2,3],[4,5,6]],'b1':[0,0],'len':2}", "/w1", "[2,3]");
    test_refused(R "'dim':64,'seed':0,'positions':[1099511627776]}", "/positions", "steps");
}
