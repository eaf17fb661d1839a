/* Conversions: every code of the narrow dtypes both ways, ties to even, one rounding from double. */
#include "tests/support/kernel_sets.h"
#include "tests/support/narrow_truth.h"

#include <math.h>
#include <string.h>

TEST(every_code_reads_back)
{
    for (EACH_NARROW_TRUTH)
        for (uint32_t code = 0; code < 2 * narrow_sign(t); code++) {
            double x = pe_element(t->dtype, &code, 0), right = narrow_value(t, code);
            if (isnan(right)) {
                assert_true(isnan(x) && isnan(pe_round_to(t->dtype, x)));
                continue;
            }
            assert_true(x == right && signbit(x) == signbit(right));
            assert_int_equal(pe_bits(t->dtype, x), code);
        }
}

/* The middle between neighbours goes to the even one, and the nearest doubles beside the middle to their own side:
 * rounding through float would get these wrong. Beyond the last number is infinity, or NaN. */
TEST(middles_go_to_even)
{
    for (EACH_NARROW_TRUTH)
        for (uint32_t code = 0; code <= narrow_last(t); code++) {
            double middle = narrow_middle(t, code), below = nextafter(middle, 0), above = nextafter(middle, 1e300);
            uint32_t even = code + code % 2;
            assert_int_equal(pe_bits(t->dtype, middle), even);
            assert_int_equal(pe_bits(t->dtype, below), code);
            assert_int_equal(pe_bits(t->dtype, above), code + 1);
            assert_int_equal(pe_bits(t->dtype, -middle), narrow_sign(t) | even);
            assert_int_equal(narrow_code(t, middle), even); /* the search that other tests ask */
            assert_int_equal(narrow_code(t, -above), narrow_sign(t) | (code + 1));
        }
}

TEST(far_beyond_the_range)
{
    for (EACH_NARROW_TRUTH) {
        assert_int_equal(pe_bits(t->dtype, 1e300), narrow_last(t) + 1);
        assert_int_equal(pe_bits(t->dtype, -(double)INFINITY), narrow_sign(t) | (narrow_last(t) + 1));
        assert_int_equal(pe_bits(t->dtype, 1e-300), 0);
        assert_int_equal(pe_bits(t->dtype, -1e-300), narrow_sign(t));
        assert_true(isnan(pe_round_to(t->dtype, (double)NAN)));
    }
}

/* What a row states follows from the bits of its type. */
TEST(rows_of_reals)
{
    for (EACH_NARROW_TRUTH) {
        const struct pe_real_type *type = pe_real_type(t->dtype);
        assert_int_equal(type->fraction_bits, t->fraction);
        assert_true(type->unit == ldexp(1, -t->fraction - 1));
        assert_true(type->largest == narrow_size(t, narrow_last(t)));
        assert_true(type->least == narrow_size(t, 1) && type->least_normal == narrow_size(t, 1U << t->fraction));
        assert_int_equal(pe_dtype_size(t->dtype), (1 + t->fraction + t->exponent) / 8);
        assert_non_null(pe_narrow_type(t->dtype));
    }
    assert_true(pe_real_type(PE_F32)->unit == 0x1p-24 && pe_real_type(PE_F64)->unit == 0x1p-53);
    assert_true(pe_real_type(PE_I32)->unit == 0 && !pe_narrow_type(PE_F32) && !pe_narrow_type(PE_U8));
}

TEST(places_are_one_apart)
{
    for (EACH_NARROW_TRUTH)
        for (uint32_t code = 0; code < narrow_last(t); code++) {
            int64_t place = pe_place(t->dtype, narrow_value(t, code));
            assert_int_equal(pe_place(t->dtype, narrow_value(t, code + 1)), place + 1);
            assert_int_equal(pe_place(t->dtype, -narrow_value(t, code)), -place);
        }
    assert_int_equal(pe_place(PE_F64, -5e-324), -1);
}

TEST(integers_saturate)
{
    const double from[] = {1e30, -1e30, (double)NAN, 2.9, -2.9};
    int64_t i64[5];
    uint8_t u8[5];
    int8_t i8[5];
    pe_convert(PE_I64, i64, PE_F64, from, 5);
    pe_convert(PE_U8, u8, PE_F64, from, 5);
    pe_convert(PE_I8, i8, PE_F64, from, 5);
    assert_true(i64[0] == INT64_MAX && i64[1] == INT64_MIN && i64[2] == 0 && i64[3] == 2 && i64[4] == -2);
    assert_true(u8[0] == 255 && u8[1] == 0 && u8[2] == 0 && u8[3] == 2 && u8[4] == 0);
    assert_true(i8[0] == 127 && i8[1] == -128 && i8[3] == 2);
}

TEST(names_and_sizes)
{
    for (enum pe_dtype d = 0; d < PE_N_DTYPES; d++) {
        assert_int_equal(pe_dtype_find(pe_dtype_name(d)), d);
        assert_true(pe_dtype_size(d) >= 1 && pe_dtype_size(d) <= 8);
    }
    assert_int_equal(pe_dtype_find("f8"), PE_DTYPE_NONE);
    assert_true(pe_dtype_is_real(PE_BF16) && !pe_dtype_is_real(PE_I64) && !pe_dtype_is_real(PE_DTYPE_NONE));
}

TEST(shapes_do_not_overflow)
{
    uint64_t n, big[] = {1ULL << 32, 1ULL << 31, 2}, fine[] = {1ULL << 31, 1ULL << 31};
    assert_false(pe_shape_count(big, 3, &n));
    assert_true(pe_shape_count(fine, 2, &n));
    assert_true(n == 1ULL << 62);
    assert_true(pe_shape_count(NULL, 0, &n) && n == 1);
}

/* Rows to narrow dtypes on every instruction set: each value is converted as if alone, and a middle is detected at any
 * place. */
static void check_row(const struct narrow_truth *t, const float *from, size_t n)
{
    const struct pe_narrow_type *type = pe_narrow_type(t->dtype);
    size_t size = pe_dtype_size(t->dtype), end = n * size;
    bool has_middle = false;
    for (size_t i = 0; i < n; i++)
        has_middle |= type->is_middle(from[i]);
    for (EACH_KERNEL_SET) {
        unsigned char to[80];
        float back[40];
        memset(to, 0xbe, sizeof to);
        type->narrow(from, n, to);
        type->widen(to, n, back);
        assert_int_equal(type->has_middle(from, n), has_middle);
        for (size_t i = 0; i < n; i++) {
            uint64_t code = 0;
            memcpy(&code, to + i * size, size);
            assert_int_equal(code, pe_bits(t->dtype, (double)from[i]));
            assert_int_equal(code, narrow_code(t, (double)from[i]));
            double x = narrow_value(t, (uint32_t)code);
            assert_true(isnan(x) ? isnan(back[i]) : (double)back[i] == x);
        }
        assert_int_equal(to[end], 0xbe);
    }
}

TEST(rows_narrow_as_single_values)
{
    enum { N = 37, ROUNDS = 8000 };
    uint32_t state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        float from[N];
        size_t n = (size_t)round % N + 1;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = state = state * 1664525u + 1013904223u;
            const uint32_t middles[] = {0x1000, 0x8000, 0x80000, 0x100000};
            uint32_t low = (bits >> 3) % 13 == 0 ? middles[(bits >> 7) % 4] : bits & 0x1fff;
            union {
                uint32_t u;
                float f;
            } x = {.u = (bits & 0x80000000u) | (((bits >> 8) % 60 + 90) << 23) | (bits & 0x600000u) | low};
            from[i] = x.f;
        }
        for (EACH_NARROW_TRUTH)
            check_row(t, from, n);
    }
}

/* A float is a middle where it is one by the definition. */
TEST(middles_are_known)
{
    for (EACH_NARROW_TRUTH)
        for (uint32_t code = 0; code < narrow_last(t); code++) {
            float middle = (float)narrow_middle(t, code), number = (float)narrow_size(t, code);
            assert_true(pe_narrow_type(t->dtype)->is_middle(middle));
            assert_true(pe_narrow_type(t->dtype)->is_middle(-middle));
            assert_false(pe_narrow_type(t->dtype)->is_middle(nextafterf(middle, 0)));
            assert_false(pe_narrow_type(t->dtype)->is_middle(nextafterf(middle, 1e30f)));
            assert_false(pe_narrow_type(t->dtype)->is_middle(number));
        }
}
