/* Printing many numbers together gives the same text as one by one, on every instruction set, within the promised
 * buffer size. */
#include "api/numbers/numbers.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number or one of its neighbours, with either sign. */
static float near_one_of(uint32_t choice, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return float_of((bits + choice % 9 - 4) | (choice & 32 ? UINT32_C(1) << 31 : 0));
}

/* f32 of these kinds: any pattern; near one; with few digits; where forms and neighbours change; special ones among
 * them. */
static float float_of_kind(int kind)
{
    static const float odd[] = {0.0f,          -0.0f,   INFINITY,      -INFINITY, NAN,         1e-45f,
                                3.4028235e38f, 0.0001f, 9.9999997e-5f, 1e8f,      99999992.0f, 16777216.0f};
    static const float powers[16] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1e0f, 1e1f,
                                     1e2f,  1e3f,  1e4f,  1e5f,  1e6f,  1e7f,  1e8f, 1e9f};
    uint32_t bits = (uint32_t)random_bits();
    switch (kind) {
    case 0: return float_of(bits);
    case 1: return (float)(int32_t)bits * 0x1p-31f;
    case 2: return (float)(int)(bits % 20001 - 10000) * 0.125f;
    case 3: return (float)(int)(bits % 2000001 - 1000000) / 1000.0f;
    case 4: return ldexpf((float)(int32_t)bits, (int)(bits % 60) - 60);
    case 5: return near_one_of(bits, ldexpf(1, (int)(bits / 64 % 50) - 20));
    case 6: return near_one_of(bits, powers[bits / 64 % 16]);
    default: return bits & 8 ? odd[bits / 16 % (sizeof odd / sizeof *odd)] : (float)(int32_t)bits * 0x1p-31f;
    }
}

/* Numbers printed together give the same text as one by one, by scalar code, with a comma between. */
static void assert_as_ones(const float *src, size_t n, int digits)
{
    size_t room = n * (api_number_width(PE_F32, digits) + 1), at = 0;
    char *text = malloc(room + 1), one[128];
    assert_non_null(text);
    text[room] = '\x7f';
    size_t n_bytes = (size_t)(api_numbers_print(text, PE_F32, src, n, digits) - text);
    for (size_t i = 0; i < n; i++) {
        size_t n_one = (size_t)(api_numbers_print(one, PE_F32, &src[i], 1, digits) - one);
        one[n_one] = ',';
        assert_true(at + n_one <= n_bytes);
        assert_memory_equal(text + at, one, n_one + (i + 1 < n));
        at += n_one + (i + 1 < n);
    }
    assert_int_equal(at, n_bytes);
    assert_int_equal(text[room], '\x7f');
    free(text);
}

TEST(many_are_as_one)
{
    enum { N = 61, ROUNDS = 6000 };
    enum pe_isa best = pe_isa();
    for (int i = 0; i < ROUNDS; i++) {
        float src[N];
        int digits = i % 5 < 3 ? API_DIGITS_SHORTEST : i / 5 % 9;
        size_t n = i % 3 ? N : (size_t)i / 3 % N + 1;
        for (size_t j = 0; j < n; j++)
            src[j] = float_of_kind(i % 8);
        for (int isa = 0; isa <= (int)best; isa++) {
            assert_true(pe_kernels_use((enum pe_isa)isa));
            assert_as_ones(src, n, digits);
        }
    }
}
