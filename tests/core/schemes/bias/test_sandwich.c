/* Sandwich: reference values, the product of two sinusoidal encodings, masks, refusals. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>

TEST(values_of_the_specification)
{
    const double row[] = {96, 93.140525709, 64.230034348, 45.815182052};
    test_assert_row("{'scheme':'sandwich','num_heads':12,'q_positions':[0],'k_positions':[0,1,10,100]}", 0, row, 4,
                    1e-9);
    const double run[] = {93.140525709, 96, 93.140525709};
    test_assert_row("{'scheme':'sandwich','num_heads':12,'len':3}", 1, run, 3, 1e-9);
    const double last[] = {93.140525709 / 12, 8, 93.140525709 / 12};
    test_assert_row("{'scheme':'sandwich','num_heads':12,'len':3}", 34, last, 3, 1e-10);
}

/* PE(q)·PE(k) of the sinusoidal scheme, at real positions, in f32 as in f64. */
TEST(is_a_product_of_encodings)
{
    struct test_request r, s;
    size_t n, m;
    struct pe_plan *pe = test_plan(&r, "{'scheme':'sinusoidal','dim':24,'positions':[0.1,7.3,-500,1000.7]}");
    struct pe_plan *plan =
        test_plan(&s, "{'scheme':'sandwich','num_heads':1,'bar_dim':24,'positions':[0.1,7.3,-500,1000.7]}");
    double *rows = test_values(pe, 0, &n), *bias = test_values(plan, 0, &m);
    assert_int_equal(m, 16);
    for (size_t i = 0; i < 16; i++) {
        double product = 0;
        for (size_t c = 0; c < 24; c++)
            product += rows[i / 4 * 24 + c] * rows[i % 4 * 24 + c];
        assert_true(fabs(bias[i] - product / 8) < 1e-6);
    }
    free(rows);
    free(bias);
    pe_plan_free(pe);
    pe_plan_free(plan);
    test_request_drop(&r);
    test_request_drop(&s);
}

TEST(refusals)
{
    test_refused("{'scheme':'sandwich','len':3,'bar_dim':7}", "/bar_dim", "even");
    test_refused("{'scheme':'sandwich','len':3,'base':0}", "/base", "0.001");
    test_refused("{'scheme':'sandwich','len':3,'key_mask':[1]}", "/key_mask", "3");
}
