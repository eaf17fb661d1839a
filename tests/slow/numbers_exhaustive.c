/* Every finite f32 pattern: its shortest text gives it back, read as a float and as a double first,
 * and no text with a digit less does. Run as `numbers_exhaustive [stride [start]]`: stride 1 takes
 * all 2139095040 non-negative patterns, a few minutes; larger odd ones are samples. The sign is
 * printed apart and needs no pattern of its own. Also, what is printed together is what is printed one by one, and is
 * read back together.
 *
 * Texts are read by our own reader, which its tests hold against strtod; libc, ten times slower, is
 * asked where only it can tell (a double that is the middle of two floats) and as a control of one
 * pattern in a thousand. */
#include "api/numbers/numbers.h"
#include "api/numbers/numbers_powers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_FINITE = 0x7f800000, TEXT_MAX = 40 };

/* The significant digits of text without trailing zeros, and the power of ten that the last one
 * counts. */
static uint64_t digits_of(const char *text, int *exponent)
{
    uint64_t digits = 0;
    int point = 0;
    *exponent = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '.') {
            point = 1;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*text - '0');
        *exponent -= point;
    }
    if (*text)
        *exponent += atoi(text + 1);
    for (; digits && digits % 10 == 0; digits /= 10)
        ++*exponent;
    return digits;
}

static bool libc_gives(uint64_t digits, int exponent, float x)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
    return strtof(text, NULL) == x && (float)strtod(text, NULL) == x;
}

/* Whether digits × 10^exponent is read as x both ways. Rounding twice differs from rounding once
 * only in the middle of two floats, where the low half of a double is zeros. */
static bool gives(uint64_t digits, int exponent, float x, bool control)
{
    double value = api_decimal_value(digits, exponent);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (control || bits << 36 == 0)
        return libc_gives(digits, exponent, x);
    return (float)value == x;
}

/* The two neighbours of the digits, cut by one place, are the only candidates: any other is further
 * from x. */
static bool is_right(uint32_t pattern)
{
    char text[API_NUMBER_MAX];
    float x;
    int exponent;
    bool control = pattern % 1021 == 0;
    memcpy(&x, &pattern, sizeof x);
    *api_numbers_print(text, PE_F32, &x, 1, API_DIGITS_SHORTEST) = '\0';
    uint64_t digits = digits_of(text, &exponent), less = digits / 10;
    if (!gives(digits, exponent, x, control))
        return false;
    return digits < 10 || (!gives(less, exponent + 1, x, control) && !gives(less + 1, exponent + 1, x, control));
}

static bool reads_back(const char *text, const char *end, const float *x, size_t n)
{
    static struct api_doubles out;
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    out.n = 0;
    bool is_same = api_numbers_read(&text, end, &out, shape, &rank) == API_READ_OK && text == end && out.n == n;
    for (size_t i = 0; is_same && i < n; i++) {
        float back = (float)out.values[i];
        is_same = memcmp(&back, &x[i], sizeof back) == 0;
    }
    return is_same;
}

/* A batch of patterns from `first` on, every second one negative, printed together and one by one, and read. */
static bool batch_is_as_ones(uint32_t first, uint32_t stride)
{
    enum { N = 256 };
    static char together[N * 32] = "[", single[N * 32];
    float x[N];
    char *end = single;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t pattern = (first + i * stride) % N_FINITE | (i & 1) << 31;
        memcpy(&x[i], &pattern, sizeof pattern);
        end = api_numbers_print(end, PE_F32, &x[i], 1, API_DIGITS_SHORTEST);
        *end++ = ',';
    }
    char *end_together = api_numbers_print(together + 1, PE_F32, x, N, API_DIGITS_SHORTEST);
    size_t n = (size_t)(end_together - together - 1);
    *end_together++ = ']';
    return n + 1 == (size_t)(end - single) && memcmp(together + 1, single, n) == 0 &&
           reads_back(together, end_together, x, N);
}

int main(int argc, char **argv)
{
    uint32_t stride = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    uint32_t start = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    unsigned long long passed = 0, failed = 0;
    for (uint64_t bits = start; bits < N_FINITE; bits += stride ? stride : 1) {
        if (is_right((uint32_t)bits) && (passed % 256 || batch_is_as_ones((uint32_t)bits, stride))) {
            passed++;
        } else if (failed++ < 20) {
            fprintf(stderr, "failed: 0x%08x\n", (unsigned)bits);
        }
    }
    printf("%llu passed, %llu failed\n", passed, failed);
    return failed != 0;
}
