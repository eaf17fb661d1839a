/* Coordinates and frequencies that are measured from waves, with their errors: waves are computed here. */
#include "core/diagnosis/measure/profile.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <math.h>

enum { PAIRS = 32, ROWS_MAX = 256 };

static float waves[3][PAIRS * ROWS_MAX];

/* z of a profile whose numbers are rounded to a dtype. */
static struct pe_sheet sheet_of(const struct pe_profile *p, enum pe_dtype dtype)
{
    for (size_t k = 0; k < p->n_pairs; k++)
        for (size_t i = 0; i < p->n_rows; i++) {
            double phase = pe_profile_phase(p, i, k);
            waves[0][k * p->n_rows + i] = (float)pe_round_to(dtype, cos(phase));
            waves[1][k * p->n_rows + i] = (float)pe_round_to(dtype, sin(phase));
            waves[2][k * p->n_rows + i] = 1;
        }
    double u = dtype == PE_BF16 ? 0x1p-8 : 0x1p-24;
    return (struct pe_sheet){waves[0], waves[1], waves[2], p->n_rows, p->n_pairs, 3 * u};
}

/* base 10000, 32 pairs; rows at `first`, `first` + step, … */
static void fill(struct pe_profile *p, unsigned n_axes, size_t n, double first, double step)
{
    assert_true(pe_profile_new(p, n_axes, n, PAIRS));
    for (size_t k = 0; k < PAIRS; k++) {
        p->axis[k] = (unsigned char)(k % n_axes);
        p->w[k] = pow(10000, -(double)(k / n_axes) * n_axes / PAIRS);
    }
    for (unsigned a = 0; a < n_axes; a++)
        for (size_t i = 0; i < n; i++)
            p->x[a * n + i] = first + step * (double)(i + a);
}

/* x = 4000 where 0 is believed: within 1e-6 of float32 tables but for float32's angles, within 0.05 of bfloat16's. */
TEST(coordinates_far_from_the_believed_ones)
{
    const struct {
        enum pe_dtype dtype;
        double most;
    } cases[] = {{PE_F32, 1e-6}, {PE_BF16, 0.05}};
    for (size_t c = 0; c < 2; c++) {
        struct pe_profile true_one, believed, found;
        double work = 0;
        fill(&true_one, 1, 4, 4000, 0);
        fill(&believed, 1, 4, 0, 0);
        fill(&found, 1, 4, 0, 0);
        struct pe_sheet sheet = sheet_of(&true_one, cases[c].dtype);
        assert_int_equal(pe_measure_coordinates(&sheet, &believed, &found, &work), 4);
        for (size_t i = 0; i < 4; i++) {
            assert_true(fabs(found.x[i] - 4000) <= cases[c].most);
            assert_true(fabs(found.x[i] - 4000) <= found.x_error[i]);
        }
        assert_true(work > 0 && work < 1e5);
        pe_profile_drop(&true_one);
        pe_profile_drop(&believed);
        pe_profile_drop(&found);
    }
}

/* Two axes whose rows are elsewhere than believed; random phases have no coordinates. */
TEST(coordinates_of_axes_and_of_noise)
{
    struct pe_profile true_one, believed, found;
    double work = 0;
    fill(&true_one, 2, 40, 3.5, 1.25);
    fill(&believed, 2, 40, 0, 1);
    fill(&found, 2, 40, 0, 0);
    struct pe_sheet sheet = sheet_of(&true_one, PE_F32);
    assert_int_equal(pe_measure_coordinates(&sheet, &believed, &found, &work), 40);
    for (size_t i = 0; i < 80; i++)
        assert_true(fabs(found.x[i] - true_one.x[i]) <= 1e-5 && found.x_error[i] < 1e-3);
    for (size_t i = 0; i < 40 * PAIRS; i++) {
        double phase = (double)(random_bits() >> 11) * 0x1p-53 * 2 * PI;
        waves[0][i] = (float)cos(phase);
        waves[1][i] = (float)sin(phase);
    }
    assert_int_equal(pe_measure_coordinates(&sheet, &believed, &found, &work), 0);
    pe_profile_drop(&true_one);
    pe_profile_drop(&believed);
    pe_profile_drop(&found);
}

/* Rows 0 … n-1 of pairs of base 500000, where 10000 is believed. */
TEST(frequencies_sharpen_with_the_rows)
{
    const size_t lengths[] = {16, 64, 256};
    for (size_t c = 0; c < 3; c++) {
        struct pe_profile true_one, believed, found;
        double work = 0;
        fill(&true_one, 1, lengths[c], 0, 1);
        fill(&believed, 1, lengths[c], 0, 1);
        fill(&found, 1, lengths[c], 0, 1);
        for (size_t k = 0; k < PAIRS; k++)
            true_one.w[k] = pow(500000, -(double)k / PAIRS);
        struct pe_sheet sheet = sheet_of(&true_one, PE_F32);
        assert_int_equal(pe_measure_frequencies(&sheet, &believed, &found, &work), PAIRS);
        for (size_t k = 0; k < PAIRS; k++) {
            assert_true(fabs(found.w[k] - true_one.w[k]) <= 2e-6 / (double)lengths[c]);
            assert_true(fabs(found.w[k] - true_one.w[k]) <= found.w_error[k]);
        }
        pe_profile_drop(&true_one);
        pe_profile_drop(&believed);
        pe_profile_drop(&found);
    }
}
