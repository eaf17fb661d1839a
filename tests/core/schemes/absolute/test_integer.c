/* integer: PE(p, j) = pe_scale · p, p/N or p/(N-1), each value rounded once. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>

#define I "{'scheme':'integer','dim':2,"

TEST(rows)
{
    test_assert_row(I "'positions':[5,-3]}", 1, (const double[]){-3, -3}, 2, 0);
    test_assert_row(I "'len':4,'offset':7,'pe_scale':0.5}", 3, (const double[]){5, 5}, 2, 0);
    test_assert_row(I "'len':8,'normalize':'length'}", 3, (const double[]){0.375, 0.375}, 2, 0);
    test_assert_row(I "'len':8,'normalize':'length_minus_one'}", 7, (const double[]){1, 1}, 2, 0);
    test_assert_row(I "'len':1,'normalize':'length_minus_one'}", 0, (const double[]){0, 0}, 2, 0);
    test_assert_row("{'scheme':'integer','dim':9,'len':2,'pe_scale':'sqrt_dim'}", 1,
                    (const double[]){3, 3, 3, 3, 3, 3, 3, 3, 3}, 9, 0);
}

/* 0.1 · 3 and 1/3 are not doubles: the one nearest to the product of the doubles, and to the quotient. */
TEST(one_rounding)
{
    const double product = 0x1.3333333333334p-2, third = 1.0 / 3;
    test_assert_row("{'scheme':'integer','dim':1,'positions':[3],'pe_scale':0.1}", 0, &product, 1, 0);
    test_assert_row("{'scheme':'integer','dim':1,'len':3,'normalize':'length'}", 1, &third, 1, 0);
}

TEST(refusals)
{
    test_refused(I "'len':2,'normalize':'lenght'}", "/normalize", "length");
    test_refused(I "'len':2,'pe_scale':'sqrt'}", "/pe_scale", "sqrt_dim");
    test_refused(I "'len':2,'pe_scale':1e13}", "/pe_scale", "1e12");
    test_refused(I "'grid':[2,2]}", "/grid", "one");
    test_refused(I "'positions':[9007199254740993]}", "/positions", "1099511627776");
}
