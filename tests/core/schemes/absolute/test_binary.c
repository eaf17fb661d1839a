/* binary: the bits of the position, stretched over the channels (seed 000: 252 is 11111100). */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#define B "{'scheme':'binary','dim':8,"

TEST(rows)
{
    test_assert_row(B "'positions':[0,252]}", 1, (const double[]){1, 1, 1, 1, 1, 1, 0, 0}, 8, 0);
    test_assert_row(B "'positions':[252],'bit_order':'lsb'}", 0, (const double[]){0, 0, 1, 1, 1, 1, 1, 1}, 8, 0);
    test_assert_row(B "'positions':[5],'low':-1}", 0, (const double[]){-1, -1, -1, -1, -1, 1, -1, 1}, 8, 0);
    /* three bits over eight channels: k(j) = 3j // 8 = 0 0 0 1 1 1 2 2 */
    test_assert_row(B "'positions':[6],'bits':3}", 0, (const double[]){1, 1, 1, 1, 1, 1, 0, 0}, 8, 0);
    /* min(dim, 32) bits: all of them in the largest allowed position */
    double ones[40];
    for (int i = 0; i < 40; i++)
        ones[i] = 1;
    test_assert_row("{'scheme':'binary','dim':40,'positions':[4294967295]}", 0, ones, 40, 0);
}

TEST(refusals)
{
    test_refused(B "'positions':[256]}", "/positions", "9 bits");
    test_refused(B "'positions':[3,-1]}", "/positions", "index 1");
    test_refused(B "'positions':[0.5]}", "/positions", "0.5");
    test_refused(B "'len':9,'bits':3}", "/len", "4 bits");
    test_refused(B "'len':2,'bits':0}", "/bits", "from 1");
    test_refused(B "'len':2,'bit_order':'big'}", "/bit_order", "msb");
}
