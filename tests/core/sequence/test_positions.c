/* Positions on axes: the position of each row, and stretches that agree with it. */
#include "core/waves/waves.h"
#include "tests/support/cmocka.h"

/* Rows of a grid [3, 4], row by row, and in blocks of 2 by 2 of a grid [4, 6]. */
TEST(grids)
{
    const struct pe_positions row = {.n = 12, .inner = 4, .size = 3}, col = {.n = 12, .inner = 1, .size = 4};
    for (uint64_t i = 0; i < 12; i++) {
        assert_true(pe_position_at(&row, i) == (double)(i / 4));
        assert_true(pe_position_at(&col, i) == (double)(i % 4));
    }
    const double rows[24] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3, 2, 2, 3, 3};
    const double cols[24] = {0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5};
    const struct pe_positions r = {.n = 24, .inner = 12, .size = 2, .step = 2, .merge = 2};
    const struct pe_positions c = {.n = 24, .inner = 4, .size = 3, .step = 1, .merge = 2};
    for (uint64_t i = 0; i < 24; i++) {
        assert_true(pe_position_at(&r, i) == rows[i]);
        assert_true(pe_position_at(&c, i) == cols[i]);
    }
}

TEST(shifted_and_listed)
{
    const double list[3] = {-0.5, 7, 2};
    const struct pe_positions listed = {.n = 6, .list = list, .inner = 1, .size = 3};
    const struct pe_positions shifted = {.n = 6, .start = -1.5, .inner = 2, .size = 3};
    assert_true(pe_position_at(&listed, 4) == 7 && pe_position_at(&shifted, 3) == -0.5);
    assert_true(pe_positions_last(&listed) == 7 && pe_positions_last(&shifted) == 0.5);
    assert_true(pe_positions_largest(&shifted) == 1.5);
    assert_false(pe_positions_are_integers(&listed));
    assert_false(pe_positions_are_integers(&shifted));
}

/* Every stretch has the positions that it states, and ends no later than requested. */
static void assert_stretches(const struct pe_positions *p)
{
    for (uint64_t i = 0; i < p->n; i++)
        for (size_t most = 1; most <= p->n - i; most++) {
            int step = -1;
            size_t n = pe_positions_stretch(p, i, most, &step);
            assert_true(n >= 1 && n <= most && (step == 0 || step == 1));
            for (size_t k = 0; k < n; k++)
                assert_true(pe_position_at(p, i + k) == pe_position_at(p, i) + (double)k * step);
        }
}

TEST(stretches)
{
    const double list[] = {3, 3, 3, 4, 5, 6, 0.1, 1.1, 2.1, 2.1, -4, -3};
    const struct pe_positions all[] = {
        {.n = 9, .start = -3},
        {.n = 9, .start = 0.1},
        {.n = 12, .list = list},
        {.n = 12, .inner = 4, .size = 3},
        {.n = 12, .start = -1.5, .inner = 1, .size = 4},
        {.n = 24, .inner = 12, .size = 2, .step = 2, .merge = 2},
        {.n = 24, .inner = 4, .size = 3, .step = 1, .merge = 2},
        {.n = 12, .list = list, .inner = 2, .size = 6},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        assert_stretches(&all[k]);
    int step;
    assert_int_equal(pe_positions_stretch(&all[0], 0, 9, &step), 9); /* the fast cases are not missed */
    assert_int_equal(step, 1);
    assert_int_equal(pe_positions_stretch(&all[3], 4, 12, &step), 4);
    assert_int_equal(step, 0);
    assert_int_equal(pe_positions_stretch(&all[2], 2, 10, &step), 4);
    assert_int_equal(step, 1);
}
