/* Sinusoidal encodings of several axes: each style against its formula, positions, refusals.
 *
 * The rows expected were computed with mpmath at 200 bits, W(base, i, d) = base^(-i/d), of blocks
 *     inter(p, F, base, s) = [cos if j % 2 else sin of p·s·W(base, 2·(j//2), F) for j < F]
 *     half(p, F, base)     = [sin(p·W(base, 2i, F)) for i < F/2] + [cos(p·W(base, 2i, F)) for i < F/2] */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define S "{'scheme':'sinusoidal','dim':8,"
#define GRID "'grid':[2,3]}"   /* row 5 is (1, 2) */
#define CUBE "'grid':[2,3,4]}" /* row 23 is (1, 2, 3) */
#define LAST ",'channels_first':false,"

static const double TOLERANCE = 1e-15;

TEST(axial_is_side_by_side)
{
    /* inter(1, 4) + inter(2, 4); inter(1, 4) + inter(2, 2) + inter(3, 2); half(2, 6, 100) + half(1, 2, 100) */
    const double two[] = {0.84147098480789651, 0.54030230586813972,  9.9998333341666647e-3, 0.99995000041666528,
                          0.9092974268256817,  -0.41614683654714239, 0.019998666693333079,  0.99980000666657778};
    const double three[] = {0.84147098480789651, 0.54030230586813972,  9.9998333341666647e-3, 0.99995000041666528,
                            0.9092974268256817,  -0.41614683654714239, 0.14112000805986722,   -0.98999249660044546};
    const double ordered[] = {0.9092974268256817, 0.4176768346258127,  0.092698500778727227, -0.41614683654714239,
                              0.9085956536419055, 0.99569422412373986, 0.84147098480789651,  0.54030230586813972};
    test_assert_row(S GRID, 5, two, 8, TOLERANCE);
    test_assert_row(S CUBE, 23, three, 8, TOLERANCE);
    test_assert_row(S "'axes_dim':[2,6],'axis_order':[1,0],'layout':'half','base':100," GRID, 5, ordered, 8, TOLERANCE);
    test_assert_row(S "'positions':[[7,1],[7,2]]}", 1, two, 8, TOLERANCE);
}

TEST(detr_begins_at_one)
{
    /* inter(2, 4, 20) + inter(3, 4, 20); inter(2/(2 + e), 4, 1e4, 2π) + inter(3/(3 + e), 4, 1e4, 2π) with the double e
     * = 1e-6; the same with 3.5 */
    const double plain[] = {0.9092974268256817,  -0.41614683654714239, 0.43245483895387,    0.90165559515004528,
                            0.14112000805986722, -0.98999249660044546, 0.62162881999249857, 0.78331194945228163};
    const double normalized[] = {-3.141591082789084e-6, 0.9999999999950652,     0.062790488175394641,
                                 0.99802673040089243,   -2.0943944042601961e-6, 0.99999999999780676,
                                 0.062790498626697409,  0.99802672974335247};
    const double scaled[] = {-0.35078158889069935, -0.93645730115970391, 0.034992837115062588, 0.99938756313586307,
                             -0.35078213515694346, -0.93645709653712158, 0.034992842944818514, 0.99938756293173834};
    test_assert_row(S "'style':'detr','temperature':20" LAST GRID, 5, plain, 8, TOLERANCE);
    test_assert_row(S "'style':'detr','normalize':true" LAST GRID, 5, normalized, 8, TOLERANCE);
    test_assert_row(S "'style':'detr','normalize':true,'angle_scale':3.5" LAST GRID, 5, scaled, 8, TOLERANCE);
    test_assert_row(S "'style':'detr','temperature':20,'positions':[[2],[3]]}", 0, plain, 8, TOLERANCE);
}

/* [dim, h, w] unless told otherwise: row j is channel j over the grid. */
TEST(detr_has_channels_first)
{
    const double ys[] = {sin(1), sin(1), sin(1), sin(2), sin(2), sin(2)};
    const double xs[] = {cos(1), cos(2), cos(3), cos(1), cos(2), cos(3)};
    test_assert_row(S "'style':'detr'," GRID, 0, ys, 6, TOLERANCE);
    test_assert_row(S "'style':'detr'," GRID, 5, xs, 6, TOLERANCE);
}

/* 2π given as its double is what the config prints for 2π itself. */
TEST(two_pi_is_two_pi)
{
    const double at_row_5[] = {-3.141591082789084e-6,  0.9999999999950652,  0.062790488175394641, 0.99802673040089243,
                               -2.0943944042601961e-6, 0.99999999999780676, 0.062790498626697409, 0.99802672974335247};
    test_assert_row(S "'style':'detr','normalize':true,'angle_scale':6.283185307179586" LAST GRID, 5, at_row_5, 8,
                    1e-21);
}

TEST(columns_first_and_sines_first)
{
    /* half(2, 4) + half(1, 4); s(1) + s(2) + c(1) + c(2) and s(1) + c(1) + s(2) + c(2) of p·100^(-i/2), i < 2 */
    const double mae[] = {0.9092974268256817,  0.019998666693333079,  -0.41614683654714239, 0.99980000666657778,
                          0.84147098480789651, 9.9998333341666647e-3, 0.54030230586813972,  0.99995000041666528};
    const double timm[] = {0.84147098480789651, 0.099833416646828152, 0.9092974268256817,   0.19866933079506122,
                           0.54030230586813972, 0.99500416527802577,  -0.41614683654714239, 0.98006657784124163};
    const double turned[] = {0.84147098480789651, 0.099833416646828152, 0.54030230586813972,  0.99500416527802577,
                             0.9092974268256817,  0.19866933079506122,  -0.41614683654714239, 0.98006657784124163};
    test_assert_row(S "'style':'mae'," GRID, 5, mae, 8, TOLERANCE);
    test_assert_row(S "'style':'timm','temperature':100," GRID, 5, timm, 8, TOLERANCE);
    test_assert_row(S "'style':'timm','base':100," GRID, 5, timm, 8, TOLERANCE);
    test_assert_row(S "'style':'timm','base':100,'interleave_sin_cos':true," GRID, 5, turned, 8, TOLERANCE);
}

TEST(multidim_and_vjepa)
{
    /* (inter(1, 4) + inter(2, 4))[:7]; half(1, 4) + half(2, 4); half(1, 4) + half(2, 2) + half(3, 2); (half(1, 4) +
     * half(2, 4) + half(3, 4))[:8] */
    const double cut[] = {0.84147098480789651, 0.54030230586813972,  9.9998333341666647e-3, 0.99995000041666528,
                          0.9092974268256817,  -0.41614683654714239, 0.019998666693333079};
    const double two[] = {0.84147098480789651, 9.9998333341666647e-3, 0.54030230586813972,  0.99995000041666528,
                          0.9092974268256817,  0.019998666693333079,  -0.41614683654714239, 0.99980000666657778};
    const double three[] = {0.84147098480789651, 9.9998333341666647e-3, 0.54030230586813972, 0.99995000041666528,
                            0.9092974268256817,  -0.41614683654714239,  0.14112000805986722, -0.98999249660044546};
    test_assert_row("{'scheme':'sinusoidal','dim':7,'style':'multidim'," GRID, 5, cut, 7, TOLERANCE);
    test_assert_row(S "'style':'vjepa'," GRID, 5, two, 8, TOLERANCE);
    test_assert_row(S "'style':'vjepa'," CUBE, 23, three, 8, TOLERANCE);
    test_assert_row(S "'style':'vjepa','uniform_power':true," CUBE, 23, two, 8, TOLERANCE);
}

/* float32: f32(1/f32(base^e)), times f32(p): with the C library's float functions. */
TEST(float32_is_the_recipe)
{
    static const char *const styles[] = {"axial", "mae", "multidim", "vjepa", "timm"};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        char json[256];
        float slow = 1.0f / (float)pow(10000, 0.25);
        snprintf(json, sizeof json, "{'scheme':'sinusoidal','dim':16,'arith':'float32','style':'%s','grid':[3,3000]}",
                 styles[i]);
        struct test_request r;
        size_t n;
        struct pe_plan *plan = test_plan(&r, json);
        double *v = test_values(plan, 0, &n), wanted = sin((double)(2999.0f * slow));
        bool found = false;
        for (size_t j = 0; j < 16; j++)
            found |= fabs(v[2999 * 16 + j] - wanted) <= 3.1e-8;
        assert_true(found);
        free(v);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

TEST(laws)
{
    test_assert_laws(S GRID);
    test_assert_laws(S "'grid':[40]}");
    test_assert_laws(S "'style':'axial','len':5}");
    test_assert_laws(
        S "'axes_dim':[3,5],'axis_order':[1,0],'odd':'truncate','flip_sin_to_cos':true,'angle_scale':-2.5," GRID);
    test_assert_laws(S "'style':'detr','normalize':true,'grid':[17,40]}");
    test_assert_laws(S "'style':'detr','normalize':true,'arith':'float32','order':'merge','grid':[4,6]}");
    test_assert_laws(S "'style':'detr','positions':[[0.5,2],[3,-4]]}");
    test_assert_laws(S "'style':'mae'," GRID);
    test_assert_laws(S "'style':'timm','temperature':50,'interleave_sin_cos':true," GRID);
    test_assert_laws(S "'style':'timm'," GRID);
    test_assert_laws(S "'style':'multidim'," CUBE);
    test_assert_laws(S "'style':'vjepa','uniform_power':true," CUBE);
}

static const struct {
    const char *json, *pointer, *word;
} refusals[] = {
    {S "'style':'mae','len':4}", "/style", "several axes"},
    {S "'axes_dim':[8],'len':4}", "/axes_dim", "several axes"},
    {S "'axis_order':[0],'len':4}", "/axis_order", "several axes"},
    {S "'style':'detr'," CUBE, "/style", "encodes 2 axes, the sequence has 3"},
    {S "'style':'vjepa','grid':[4]}", "/style", "encodes 2 or 3 axes"},
    {"{'scheme':'sinusoidal','dim':6,'style':'detr'," GRID, "/dim", "multiple of 4"},
    {"{'scheme':'sinusoidal','dim':6,'style':'mae'," GRID, "/dim", "multiple of 4"},
    {"{'scheme':'sinusoidal','dim':6,'style':'timm'," GRID, "/dim", "multiple of 4"},
    {"{'scheme':'sinusoidal','dim':12,'style':'vjepa'," CUBE, "/dim", "multiple of 8"},
    {S "'axes_dim':[4,2]," GRID, "/axes_dim", "adds up to 6"},
    {S "'axes_dim':[8]," GRID, "/axes_dim", "needed: 2"},
    {S "'axes_dim':[3.5,4.5]," GRID, "/axes_dim", "integers"},
    {S "'axis_order':[1,1]," GRID, "/axis_order", "once"},
    {S "'axis_order':[0,2]," GRID, "/axis_order", "once"},
    {S "'style':'detr','angle_scale':3," GRID, "/angle_scale", "normalize"},
    {S "'style':'detr','normalize':true,'positions':[[1],[2]]}", "/normalize", "grid"},
    {S "'style':'detr','base':100," GRID, "/base", "needs style=axial|mae|timm|multidim|vjepa"},
    {S "'style':'detr','temperature':1," GRID, "/temperature", "is 1"},
    {S "'style':'timm','temperature':5,'base':6," GRID, "/temperature", "exclude"},
    {S "'style':'mae','layout':'half'," GRID, "/layout", "needs style=axial"},
    {S "'style':'mae','angle_scale':2," GRID, "/angle_scale", "needs style=axial|detr"},
    {S "'normalize':true," GRID, "/normalize", "needs style=detr"},
    {S "'style':'mae','axes_dim':[4,4]," GRID, "/axes_dim", "needs style=axial"},
    {S "'style':'vjepa','uniform_power':true," GRID, "/uniform_power", "3 axes"},
    {S "'freq_shift':2," GRID, "/freq_shift", "below 2"},
    {S "'freq_shift':3.999,'base':0.001,'len':4}", "/base", "2^51"},
};

TEST(what_is_refused)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        test_refused(refusals[i].json, refusals[i].pointer, refusals[i].word);
}
