/* Printing numbers: against libc with a search for the shortest precision, against what Python prints, and within the
 * promised buffer size. */
#include "api/numbers/numbers.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_RANDOM = 300000, TEXT_MAX = 400 };

/* One number, NUL-terminated; the room is exactly what the header asks for, and a guard stands
 * behind it. */
static const char *print_one(enum pe_dtype dtype, const void *src, int digits)
{
    static char text[TEXT_MAX];
    size_t room = api_number_width(dtype, digits) + 1;
    text[room] = '\x7f';
    char *end = api_numbers_print(text, dtype, src, 1, digits);
    assert_int_equal(text[room], '\x7f');
    assert_true((size_t)(end - text) < room);
    *end = '\0';
    return text;
}

/* ---- Printing, shortest ---- */

/* Significant digits of a number's text. */
static int digits_in(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (*text == '0' && n == 0))
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        n++;
    }
    return n - zeros;
}

/* Whether libc's nearest decimal of n digits gives x back; for a float both read as a float and as
 * a double first. */
static bool are_enough(int n, double x, bool is_float)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", n - 1, x);
    return is_float ? strtof(text, NULL) == (float)x && (float)strtod(text, NULL) == (float)x : strtod(text, NULL) == x;
}

TEST(real_constants)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        /* what Python prints: the ends of the range, powers of two (the lower neighbour is near),
         * ties, changes of form */
        {0x0000000000000000, "0.0"},
        {0x8000000000000000, "-0.0"},
        {0x0000000000000001, "5e-324"},
        {0x000fffffffffffff, "2.225073858507201e-308"},
        {0x0010000000000000, "2.2250738585072014e-308"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x430c6bf526340000, "1000000000000000.0"},
        {0x4341c37937e08000, "1e+16"},
        {0x437b69b4ba630f35, "1.2345678901234568e+17"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x3fd3333333333334, "0.30000000000000004"},
        {0x3f1a36e2eb1c432d, "0.0001"},
        {0x3f1a36371ea531a8, "9.999e-05"},
        {0x3ee4f8b588e368f1, "1e-05"},
        {0xbff8000000000000, "-1.5"},
        {0x7ff0000000000000, "\"Infinity\""},
        {0xfff0000000000000, "\"-Infinity\""},
        {0x7ff8000000000000, "\"NaN\""},
        {0xfff8000000000001, "\"NaN\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[API_NUMBER_MAX];
        size_t n = (size_t)(api_real_print(text, double_of(cases[i].bits)) - text);
        assert_int_equal(n, strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, n);
        assert_string_equal(print_one(PE_F64, &cases[i].bits, API_DIGITS_SHORTEST), cases[i].text);
    }
}

TEST(float_constants)
{
    static const struct {
        uint32_t bits;
        const char *text;
    } cases[] = {
        {0x80000000, "-0.0"},
        {0x00000001, "1e-45"},
        {0x00800000, "1.1754944e-38"},
        {0x7f7fffff, "3.4028235e+38"},
        {0x3dcccccd, "0.1"},
        {0x3f0a5140, "0.5403023"},
        {0x4b800000, "16777216.0"},
        {0x5a0e1bc9, "9999999000000000.0"},
        {0x5a0e1bca, "1e+16"},
        {0x3c23d657, "0.009999833"},
        {0x3727c5ac, "1e-05"},
        {0xff800000, "\"-Infinity\""},
        /* 7.038531e-26 lies inside the interval of this number, but the double nearest it is the
         * interval's end */
        {0x15ae43fd, "7.0385307e-26"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(print_one(PE_F32, &cases[i].bits, API_DIGITS_SHORTEST), cases[i].text);
}

/* The text gives x back, a digit less does not, and the digits are libc's: the nearest of their
 * number. Only below a power of two, where the interval is shorter on one side, there may be a text
 * that libc's nearest of that length is not. */
static void assert_shortest(const char *text, double x, bool is_float, bool lower_near)
{
    int n = digits_in(text);
    double back = strtod(text, NULL);
    char nearest[40];
    assert_true(is_float ? (float)back == (float)x && strtof(text, NULL) == (float)x : back == x);
    assert_true(n == 1 || !are_enough(n - 1, x, is_float));
    if (lower_near && !are_enough(n, x, is_float))
        return;
    snprintf(nearest, sizeof nearest, "%.*e", n - 1, x);
    assert_true(strtod(nearest, NULL) == back);
}

TEST(random_doubles)
{
    for (int i = 0; i < N_RANDOM; i++) {
        uint64_t bits = i % 4 ? random_bits() : random_bits() >> (random_bits() & 63) << (random_bits() & 63);
        double x = double_of(bits);
        if (isfinite(x) && x != 0)
            assert_shortest(print_one(PE_F64, &x, API_DIGITS_SHORTEST), x, false, bits << 12 == 0);
    }
}

TEST(random_floats)
{
    for (int i = 0; i < N_RANDOM; i++) {
        uint32_t bits = (uint32_t)random_bits();
        float x = float_of(bits);
        if (isfinite(x) && x != 0)
            assert_shortest(print_one(PE_F32, &x, API_DIGITS_SHORTEST), (double)x, true, bits << 9 == 0);
    }
}

static uint16_t narrow(enum pe_dtype dtype, const char *text)
{
    double x = strtod(text, NULL);
    uint16_t bits;
    pe_convert(dtype, &bits, PE_F64, &x, 1);
    return bits;
}

/* Every pattern of a 16-bit format gives itself back, and libc's decimals with a digit less do
 * not. */
static void assert_all_shortest(enum pe_dtype dtype, uint16_t infinity, uint16_t fraction)
{
    for (uint32_t pattern = 0; pattern < 65536; pattern++) {
        uint16_t bits = (uint16_t)pattern;
        const char *text = print_one(dtype, &bits, API_DIGITS_SHORTEST);
        if ((bits & infinity) == infinity) {
            assert_string_equal(text, bits & fraction ? "\"NaN\"" : bits >> 15 ? "\"-Infinity\"" : "\"Infinity\"");
            continue;
        }
        assert_int_equal(narrow(dtype, text), bits);
        double x;
        char less[40];
        pe_convert(PE_F64, &x, dtype, &bits, 1);
        int n = digits_in(text);
        if (n > 1) {
            snprintf(less, sizeof less, "%.*e", n - 2, x);
            assert_int_not_equal(narrow(dtype, less), bits);
        }
        if (n > 0 && bits & fraction) {
            snprintf(less, sizeof less, "%.*e", n - 1, x);
            assert_true(strtod(less, NULL) == strtod(text, NULL));
        }
    }
}

TEST(every_f16) { assert_all_shortest(PE_F16, 0x7c00, 0x03ff); }

TEST(every_bf16) { assert_all_shortest(PE_BF16, 0x7f80, 0x007f); }

/* ---- Printing, fixed digits and whole rows ---- */

static void assert_fixed(enum pe_dtype dtype, const void *src, double x, int digits)
{
    char expected[TEXT_MAX];
    snprintf(expected, sizeof expected, digits ? "%.*f" : "%.*f.0", digits, x);
    const char *text = expected[0] == '-' && !strpbrk(expected, "123456789") ? expected + 1 : expected;
    assert_string_equal(print_one(dtype, src, digits), text);
}

TEST(fixed_digits)
{
    for (int i = 0; i < N_RANDOM / 4; i++) {
        double wide = double_of(random_bits()),
               near = ldexp((double)(int64_t)random_bits(), -(int)(random_bits() % 100));
        double tie = (double)(random_bits() % 4096) / (double)(1 << random_bits() % 13); /* ends in 5 at some digit */
        float single = float_of((uint32_t)random_bits());
        int digits = i % (API_DIGITS_MAX + 1);
        assert_fixed(PE_F64, &near, near, digits);
        assert_fixed(PE_F64, &tie, tie, digits);
        if (isfinite(wide))
            assert_fixed(PE_F64, &wide, wide, digits);
        if (isfinite(single))
            assert_fixed(PE_F32, &single, (double)single, digits);
    }
}

TEST(fixed_constants)
{
    const double x[] = {0.5, 1.5, 2.5, -0.001, 0.125, 0.375, 9.996, -1e308, (double)NAN, 3.0};
    assert_string_equal(print_one(PE_F64, &x[0], 0), "0.0");
    assert_string_equal(print_one(PE_F64, &x[1], 0), "2.0");
    assert_string_equal(print_one(PE_F64, &x[2], 0), "2.0");
    assert_string_equal(print_one(PE_F64, &x[3], 2), "0.00");
    assert_string_equal(print_one(PE_F64, &x[4], 2), "0.12");
    assert_string_equal(print_one(PE_F64, &x[5], 2), "0.38");
    assert_string_equal(print_one(PE_F64, &x[6], 2), "10.00");
    assert_int_equal(strlen(print_one(PE_F64, &x[7], 17)), 1 + 309 + 1 + 17);
    assert_int_equal(api_number_width(PE_F64, 17), 1 + 309 + 1 + 17);
    assert_string_equal(print_one(PE_F64, &x[8], 3), "\"NaN\"");
    assert_string_equal(print_one(PE_F64, &x[9], 0), "3.0");
}

TEST(integers)
{
    const int64_t i64[] = {INT64_MIN, -100000000, -1, 0, 9, 10, 99999999, 100000000, INT64_MAX};
    const uint64_t u64[] = {0, UINT64_MAX, UINT64_C(10000000000000000)};
    const uint8_t truth[] = {1, 0, 0};
    const int8_t i8[] = {-128, 127, 0, -1};
    char text[300];
    *api_numbers_print(text, PE_I64, i64, 9, API_DIGITS_SHORTEST) = '\0';
    assert_string_equal(text, "-9223372036854775808,-100000000,-1,0,9,10,99999999,100000000,9223372036854775807");
    *api_numbers_print(text, PE_U64, u64, 3, 2) = '\0';
    assert_string_equal(text, "0,18446744073709551615,10000000000000000");
    *api_numbers_print(text, PE_BOOL, truth, 3, API_DIGITS_SHORTEST) = '\0';
    assert_string_equal(text, "true,false,false");
    *api_numbers_print(text, PE_I8, i8, 4, API_DIGITS_SHORTEST) = '\0';
    assert_string_equal(text, "-128,127,0,-1");
    *api_integer_print(text, -42) = '\0';
    assert_string_equal(text, "-42");
}

/* Rows of every dtype and length in a buffer of exactly the promised size (a sanitizer or the guard detects one byte
 * too many), and the same whether printed at once or one by one. */
TEST(rows_stay_in_their_room)
{
    for (int i = 0; i < 20000; i++) {
        enum pe_dtype dtype = (enum pe_dtype)(i % PE_N_DTYPES);
        int digits = (int)(random_bits() % (API_DIGITS_MAX + 2)) - 1;
        size_t n = random_bits() % 6, size = pe_dtype_size(dtype), at = 0;
        uint64_t src[6];
        for (size_t j = 0; j < 6; j++)
            src[j] = random_bits() | (i & 64 ? UINT64_C(0x8000800080008000) : 0);
        size_t room = n * (api_number_width(dtype, digits) + 1);
        char *text = malloc(room + 1);
        assert_non_null(text);
        text[room] = '\x7f';
        size_t n_bytes = (size_t)(api_numbers_print(text, dtype, src, n, digits) - text);
        for (size_t j = 0; j < n; j++) {
            const char *one = print_one(dtype, (const char *)src + j * size, digits);
            assert_memory_equal(text + at, one, strlen(one));
            at += strlen(one) + (j + 1 < n);
        }
        assert_int_equal(at, n_bytes);
        assert_int_equal(text[room], '\x7f');
        free(text);
    }
}
