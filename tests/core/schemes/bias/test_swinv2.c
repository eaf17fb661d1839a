/* Swin v2's window bias: coordinates by hand, seen through networks that pass one of them on; the network's
 * parts one by one; sizes and refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>

/* relu(c) - relu(-c) = c for one coordinate c of [y, x]: the bias is then 16·sigmoid(c). */
#define PASS_Y "'w1':[[1,0],[-1,0]],'b1':[0,0],'w2':[[1,-1]]"
#define PASS_X "'w1':[[0,1],[0,-1]],'b1':[0,0],'w2':[[1,-1]]"

static double sixteen(double x) { return 16 / (1 + exp(-x)); }

/* By hand: window of 8, from the query at the end of a line (key at distance 7) to itself. */
TEST(published_coordinates)
{
    const double coords[] = {0,           .3665118912, .5720690113, .7156137961,
                             .8260157656, .9157446432, .9913349305, 1.0566416671};
    double last[8], first[8], column[64];
    for (int j = 0; j < 8; j++) {
        last[j] = sixteen(coords[7 - j]); /* query minus key is positive for keys before it */
        first[j] = sixteen(-coords[j]);
    }
    for (int j = 0; j < 64; j++)
        column[j] = sixteen(coords[7 - j / 8]);
    test_assert_row("{'scheme':'swinv2','len':8," PASS_X "}", 7, last, 8, 1e-8);
    test_assert_row("{'scheme':'swinv2','len':8," PASS_X "}", 0, first, 8, 1e-8);
    test_assert_row("{'scheme':'swinv2','grid':[8,1]," PASS_Y "}", 7, last, 8, 1e-8);
    test_assert_row("{'scheme':'swinv2','grid':[8,8]," PASS_Y "}", 63, column, 64, 1e-8);
}

/* An axis of length 1 has coordinate 0, also if the pretraining window's axis has length 1. */
TEST(an_axis_of_one)
{
    const double middle[] = {8, 8, 8};
    test_assert_row("{'scheme':'swinv2','len':3," PASS_Y "}", 1, middle, 3, 0);
    test_assert_row("{'scheme':'swinv2','len':3,'pretrained_grid':[1,1]," PASS_X "}", 1, middle, 3, 0);
}

/* Distances are measured in the pretraining window: 5 of 11 steps as 8·5/11; 0 stands for the grid's own. */
TEST(a_pretrained_window)
{
    const double c = log2(1 + 8 * 5.0 / 11) / 3, wide[] = {sixteen(c),
                                                           sixteen(log2(1 + 8 * 4.0 / 11) / 3),
                                                           sixteen(log2(1 + 8 * 3.0 / 11) / 3),
                                                           sixteen(log2(1 + 8 * 2.0 / 11) / 3),
                                                           sixteen(log2(1 + 8 * 1.0 / 11) / 3),
                                                           8};
    test_assert_row("{'scheme':'swinv2','grid':[1,6],'pretrained_grid':[1,12]," PASS_X "}", 5, wide, 6, 1e-14);
    const double own[] = {sixteen(log2(9) / 3), sixteen(log2(5) / 3), 8};
    test_assert_row("{'scheme':'swinv2','len':3,'pretrained_grid':[12,0]," PASS_X "}", 2, own, 3, 1e-14);
}

/* Coordinates 0: hidden = relu(b1), and w2 has no bias; two heads. */
TEST(the_network)
{
    const double one[] = {sixteen(3)}, other[] = {sixteen(-0.5)}, none[] = {0}, all[] = {16};
#define NETWORK "'w1':[[1,1],[1,1],[1,1]],'b1':[2,-5,1],'w2':[[1,7,1],[0.5,7,-1.5]]"
    test_assert_row("{'scheme':'swinv2','len':1," NETWORK "}", 0, one, 1, 1e-14);
    test_assert_row("{'scheme':'swinv2','len':1," NETWORK "}", 1, other, 1, 1e-14);
#define SURE "'w1':[[1,1]],'b1':[1],'w2':[[-1e30],[1e30]]"
    test_assert_row("{'scheme':'swinv2','len':1," SURE "}", 0, none, 1, 0);
    test_assert_row("{'scheme':'swinv2','len':1," SURE "}", 1, all, 1, 0);
}

TEST(refusals)
{
    test_refused("{'scheme':'swinv2','len':3,'w1':[[1,2]]}", "/b1", "[1]");
    test_refused("{'scheme':'swinv2','len':3,'w1':[[1,2,3]],'b1':[1],'w2':[[1]]}", "/w1", "[1,2]");
    test_refused("{'scheme':'swinv2','len':3,'w1':[[1,2]],'b1':[1],'w2':[[1,2]]}", "/w2", "[1,1]");
    test_refused("{'scheme':'swinv2','len':3,'hidden':512," PASS_X "}", "/hidden", "2");
    test_refused("{'scheme':'swinv2','len':3,'num_heads':8," PASS_X "}", "/num_heads", "1");
    test_refused("{'scheme':'swinv2','grid':[3,3],'pretrained_grid':[8]}", "/pretrained_grid", "[h,w]");
    test_refused("{'scheme':'swinv2','grid':[3,3],'pretrained_grid':[8,8.5]}", "/pretrained_grid", "8.5");
    test_refused("{'scheme':'swinv2','grid':[2,2,2]}", "/grid", "3 axes");
}
