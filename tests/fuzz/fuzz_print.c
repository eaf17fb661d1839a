/* The writer against printf and strtod. The first byte is the number of digits (from 18 on: the shortest), the rest are
 * doubles, which are also narrowed to f32, f16 and bf16, and once more taken as f32 bit by bit. Every instruction set
 * writes the same bytes. The shortest text reads back as its number, also by way of a double; no shorter text does, and
 * no text of the same length is nearer. Fixed digits equal printf's. printf and strtod check about one number in every
 * two lists. */
#include "tests/fuzz/laws.h"
#include "core/numeric/numeric.h"
#include "api/numbers/numbers.h"

#include <math.h>

enum { NUMBERS_MAX = 32, ONE = 400, ROOM = NUMBERS_MAX * ONE };

static enum pe_isa best;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    best = pe_isa();
    return 0;
}

static double number_at(enum pe_dtype dtype, const void *src, size_t i)
{
    double x;
    pe_convert(PE_F64, &x, dtype, (const char *)src + i * pe_dtype_size(dtype), 1);
    return x;
}

/* ---- The shortest ---- */

/* Whether the text reads back as this number, both directly in its dtype and by way of a double. f16 and bf16 have no
 * strtod. */
static bool is_back(const char *text, enum pe_dtype dtype, double x)
{
    double read = strtod(text, NULL), narrowed;
    uint64_t bits = 0;
    if (dtype == PE_F32 && memcmp(&(float){strtof(text, NULL)}, &(float){(float)x}, sizeof(float)) != 0)
        return false;
    pe_convert(dtype, &bits, PE_F64, &read, 1);
    pe_convert(PE_F64, &narrowed, dtype, &bits, 1);
    return memcmp(&narrowed, &x, sizeof x) == 0;
}

/* Significant digits: without sign, point, exponent and zeros at either end. */
static int n_digits(const char *text)
{
    int n = 0, n_zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0'))
            continue;
        n_zeros = *text == '0' ? n_zeros + 1 : 0;
        n++;
    }
    return n - n_zeros;
}

static void check_shortest(const char *text, enum pe_dtype dtype, double x)
{
    char other[64];
    REQUIRE(strlen(text) <= 24 && strpbrk(text, ".e") && is_back(text, dtype, x));
    int n = n_digits(text);
    if (n > 1) {
        snprintf(other, sizeof other, "%.*e", n - 2, x);
        REQUIRE(!is_back(other, dtype, x));
    }
    snprintf(other, sizeof other, "%.*e", n > 0 ? n - 1 : 0, x);
    if (!is_back(other, dtype, x))
        return;
    long double mine = strtold(text, NULL), nearest = strtold(other, NULL);
    REQUIRE(fabsl(mine - (long double)x) <= fabsl(nearest - (long double)x));
}

/* ---- Digits ---- */

static void check_digits(const char *text, double x, int digits)
{
    char other[ONE];
    snprintf(other, sizeof other, "%.*f", digits, x);
    if (digits == 0)
        strcat(other, ".0");
    const char *expected = other[0] == '-' && other[strspn(other, "-0.")] == '\0' ? other + 1 : other;
    REQUIRE(strcmp(text, expected) == 0);
}

/* ---- Lists ---- */

static void check_one(const char *text, enum pe_dtype dtype, double x, int digits)
{
    if (isnan(x) || isinf(x))
        REQUIRE(strcmp(text, isnan(x) ? "\"NaN\"" : x > 0 ? "\"Infinity\"" : "\"-Infinity\"") == 0);
    else if (digits == API_DIGITS_SHORTEST)
        check_shortest(text, dtype, x);
    else
        check_digits(text, x, digits);
}

static void check_list(enum pe_dtype dtype, const void *src, size_t n, int digits)
{
    static char text[ROOM + 1], base[ROOM + 1];
    size_t width = api_number_width(dtype, digits);
    REQUIRE(width < ONE);
    REQUIRE(pe_kernels_use(PE_ISA_BASE));
    char *end = api_numbers_print(base, dtype, src, n, digits);
    REQUIRE(pe_kernels_use(best));
    REQUIRE(api_numbers_print(text, dtype, src, n, digits) - text == end - base);
    REQUIRE(memcmp(text, base, (size_t)(end - base)) == 0);
    text[end - base] = '\0';
    char *word = text;
    for (size_t i = 0; i < n; i++) {
        char *comma = strchr(word, ',');
        REQUIRE(!comma == (i == n - 1));
        if (comma)
            *comma = '\0';
        REQUIRE(strlen(word) <= width);
        if (is_one_of(2 * (unsigned)n))
            check_one(word, dtype, number_at(dtype, src, i), digits);
        word += strlen(word) + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double doubles[NUMBERS_MAX];
    static uint64_t narrow[NUMBERS_MAX];
    if (size < 9)
        return 0;
    int digits = data[0] % 36 <= API_DIGITS_MAX ? data[0] % 36 : API_DIGITS_SHORTEST;
    size_t n = (size - 1) / sizeof(double) < 12 ? (size - 1) / sizeof(double) : 12;
    memcpy(doubles, data + 1, n * sizeof(double));
    check_list(PE_F64, doubles, n, digits);
    static const enum pe_dtype narrower[] = {PE_F32, PE_F16, PE_BF16};
    for (size_t i = 0; i < 3; i++) {
        if (!is_one_of(3))
            continue;
        pe_convert(narrower[i], narrow, PE_F64, doubles, n);
        check_list(narrower[i], narrow, n, digits);
    }
    if (is_one_of(3))
        check_list(PE_F32, doubles, 2 * n, digits);
    return 0;
}
