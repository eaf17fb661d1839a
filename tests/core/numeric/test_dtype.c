/* Conversions: every 16-bit pattern both ways, ties to even, one rounding from double. */
#include "tests/support/kernel_sets.h"

#include <math.h>

TEST(every_f16_reads_back)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double x = pe_f16_value((uint16_t)bits);
        if (isnan(x))
            assert_true(isnan(pe_f16_value(pe_f16_round(x))));
        else
            assert_int_equal(pe_f16_round(x), bits);
    }
}

TEST(every_bf16_reads_back)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double x = pe_bf16_value((uint16_t)bits);
        if (isnan(x))
            assert_true(isnan(pe_bf16_value(pe_bf16_round(x))));
        else
            assert_int_equal(pe_bf16_round(x), bits);
    }
}

/* The middle between neighbours goes to the even one, and the nearest doubles beside the middle to their own side:
 * rounding through float would get these wrong. */
static void assert_middles(uint16_t (*round_to)(double), double (*value)(uint16_t), uint16_t last)
{
    for (uint16_t bits = 0; bits < last; bits++) {
        double low = value(bits), high = value((uint16_t)(bits + 1)), middle = low + (high - low) / 2;
        assert_int_equal(round_to(middle), bits % 2 ? bits + 1 : bits);
        assert_int_equal(round_to(nextafter(middle, -1)), bits);
        assert_int_equal(round_to(nextafter(middle, (double)INFINITY)), bits + 1);
        assert_int_equal(round_to(-middle), 0x8000 | (bits % 2 ? bits + 1 : bits));
    }
}

TEST(middles_go_to_even)
{
    assert_middles(pe_f16_round, pe_f16_value, 0x7bff);
    assert_middles(pe_bf16_round, pe_bf16_value, 0x7f7f);
    assert_int_equal(pe_f16_round(65520), 0x7c00);
    assert_int_equal(pe_f16_round(nextafter(65520, 0)), 0x7bff);
    assert_int_equal(pe_f16_round(1e300), 0x7c00);
    assert_int_equal(pe_bf16_round(-1e300), 0xff80);
    assert_int_equal(pe_f16_round(1e-300), 0);
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

/* Rows to f16 and bf16 on every instruction set: each value is converted as if alone, and a middle is detected at any
 * place. */
TEST(rows_narrow_as_single_values)
{
    enum { N = 37, ROUNDS = 20000 };
    uint32_t state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        float from[N];
        size_t n = (size_t)round % N + 1;
        bool middle_f16 = false, middle_bf16 = false;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = state = state * 1664525u + 1013904223u;
            uint32_t low = (bits >> 3) % 61 == 0 ? 0x1000u : (bits >> 3) % 67 == 0 ? 0x8000u : bits & 0x1fff;
            union {
                uint32_t u;
                float f;
            } x = {.u = (bits & 0x80000000u) | (((bits >> 8) % 60 + 90) << 23) | (bits & 0x7e0000u) | low};
            from[i] = x.f;
            middle_f16 |= pe_f16_is_middle(x.f);
            middle_bf16 |= pe_bf16_is_middle(x.f);
        }
        for (EACH_KERNEL_SET) {
            uint16_t to[N + 1];
            to[n] = 0xbeef;
            assert_int_equal(pe_f16_narrow(from, n, to), middle_f16);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(to[i], pe_f16_round((double)from[i]));
            assert_int_equal(pe_bf16_narrow(from, n, to), middle_bf16);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(to[i], pe_bf16_round((double)from[i]));
            assert_int_equal(to[n], 0xbeef);
        }
    }
}
