/* FIRE: a network small enough to follow by hand, both sides of the threshold, sizes and refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>

/* bias = 2·max(x, 0) - 3·max(0.5 - x, 0) + 0.25 */
#define WEIGHTS "'w1':[[1],[-1]],'b1':[0,0.5],'w2':[[2,-3]],'b2':[0.25]"

static double bias_at(double c, double distance, double reach)
{
    double x = log(1 + c * distance) / (log(1 + c * reach) + 1e-6);
    return 2 * x - 3 * fmax(0.5 - x, 0) + 0.25;
}

TEST(both_sides_of_the_threshold)
{
    double row[4];
    for (int q = 0; q < 4; q++) {
        for (int k = 0; k < 4; k++)
            row[k] = bias_at(0.5, fabs((double)(q - k)), fmax(q, 1.5));
        test_assert_row("{'scheme':'fire','c':-0.5,'init_l':3,'l_mult':-0.5,'len':4," WEIGHTS "}", (uint64_t)q, row, 4,
                        1e-14);
    }
    for (int k = 0; k < 4; k++)
        row[k] = bias_at(0.1, fabs(1e6 - k), 1e6);
    test_assert_row("{'scheme':'fire','q_positions':[1000000],'k_positions':[0,1,2,3]," WEIGHTS "}", 0, row, 4, 1e-14);
}

TEST(refusals)
{
    test_refused("{'scheme':'fire','len':2}", "/w1", "\"seed\"");
    test_refused("{'scheme':'fire','len':2,'num_heads':2," WEIGHTS "}", "/num_heads", "makes it 1");
    test_refused("{'scheme':'fire','len':2,'hidden':3," WEIGHTS "}", "/hidden", "makes it 2");
    test_refused("{'scheme':'fire','len':2,'w1':[[1],[2]],'b1':[1],'w2':[[1,2]],'b2':[0]}", "/b1", "[2]");
    test_refused("{'scheme':'fire','len':2,'w1':[[1],[2]],'b1':[1,2],'w2':[[1,2]]}", "/b2", "seed");
}
