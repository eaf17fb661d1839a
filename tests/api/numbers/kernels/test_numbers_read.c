/* Reading many numbers together gives the same values as the scalar code and strtod, on every instruction set; no byte
 * behind the text is read. */
#include "api/numbers/numbers.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* n bytes that end where the memory does: a byte read behind them ends the test. */
static char *text_at_the_end(size_t n)
{
    static char *pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 4 * page;
    if (!pages) {
        pages = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(pages, MAP_FAILED);
        assert_int_equal(mprotect(pages + size, page, PROT_NONE), 0);
    }
    assert_true(n <= size);
    return pages + size - n;
}

struct reading {
    enum api_read result;
    size_t n_used;
    struct api_doubles out;
};

static struct reading read_with(enum pe_isa isa, const char *text, size_t n)
{
    struct reading reading = {.n_used = 0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    const char *p = text;
    assert_true(pe_kernels_use(isa));
    reading.result = api_numbers_read(&p, text + n, &reading.out, shape, &rank);
    reading.n_used = (size_t)(p - text);
    return reading;
}

static bool is_same(const struct reading *a, const struct reading *b)
{
    return a->result == b->result && a->n_used == b->n_used && a->out.n == b->out.n &&
           (a->out.n == 0 || memcmp(a->out.values, b->out.values, a->out.n * sizeof(double)) == 0);
}

static void assert_all_read_alike(const char *text, size_t n)
{
    enum pe_isa best = pe_isa();
    char *at_end = text_at_the_end(n);
    memcpy(at_end, text, n);
    struct reading scalar = read_with(PE_ISA_BASE, at_end, n);
    for (int isa = PE_ISA_BASE + 1; isa <= (int)best; isa++) {
        struct reading other = read_with((enum pe_isa)isa, at_end, n);
        if (!is_same(&scalar, &other))
            fail_msg("instruction set %d reads otherwise: %.*s", isa, (int)n, text);
        free(other.out.values);
    }
    assert_true(pe_kernels_use(best));
    free(scalar.out.values);
}

static char *digits_put(char *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *dst++ = (char)('0' + random_bits() % 10);
    return dst;
}

/* A number with the given counts of digits before and behind the point; invalid if it begins with a zero. */
static char *number_put(char *dst, size_t whole, size_t behind, bool has_exponent)
{
    if (random_bits() % 2)
        *dst++ = '-';
    dst = digits_put(dst, whole);
    if (whole > 1 && dst[-(ptrdiff_t)whole] == '0')
        dst[-(ptrdiff_t)whole] = '7';
    if (behind > 0)
        *dst++ = '.';
    dst = digits_put(dst, behind);
    return has_exponent ? dst + sprintf(dst, "%c%+d", "eE"[random_bits() % 2], (int)(random_bits() % 60) - 30) : dst;
}

static char *separator_put(char *dst)
{
    static const char *const separators[] = {",", ",", ",", ", ", " ,", ",\n\t", "\r\n,  "};
    return stpcpy(dst, separators[random_bits() % (sizeof separators / sizeof *separators)]);
}

/* Every number of digits before and behind the point, alone with what stands behind it at every distance from the
 * text's end, against strtod. */
TEST(every_length)
{
    enum pe_isa best = pe_isa();
    for (size_t i = 0; i < 22 * 22 * 8; i++) {
        size_t whole = 1 + i % 22, behind = i / 22 % 22;
        char number[80], text[400];
        *number_put(number, whole, behind, i % 8 == 7) = '\0';
        double expected = strtod(number, NULL);
        for (size_t more = 0; more < 40; more++) {
            size_t n = (size_t)sprintf(text, "[%s%s%.*s]", number, more ? "," : "", (int)more,
                                       "1234567890123456789012345678901234567890");
            char *at_end = text_at_the_end(n);
            memcpy(at_end, text, n);
            struct reading reading = read_with(best, at_end, n);
            assert_true(reading.result == API_READ_OK && reading.n_used == n && reading.out.n == 1 + (more > 0));
            assert_memory_equal(reading.out.values, &expected, sizeof expected);
            free(reading.out.values);
        }
    }
}

/* Arrays of numbers of all forms, then with one wrong character. */
TEST(many_are_as_one)
{
    static const char wrong[] = "0123456789.-+eE, []{}x\"\n/:\0\377";
    for (int i = 0; i < 60000; i++) {
        char text[40 * 64], *end = text;
        size_t most = i % 3 ? 9 : 21, n_numbers = 1 + random_bits() % 30;
        *end++ = '[';
        for (size_t j = 0; j < n_numbers; j++) {
            if (random_bits() % 40 == 0)
                end = stpcpy(end, "\"-Infinity\"");
            else
                end = number_put(end, 1 + random_bits() % (i % 2 ? 2 : most), random_bits() % most,
                                 random_bits() % 16 == 0);
            end = j + 1 < n_numbers ? separator_put(end) : end;
        }
        *end++ = ']';
        size_t n = (size_t)(end - text);
        assert_all_read_alike(text, n);
        text[1 + random_bits() % (n - 1)] = wrong[random_bits() % (sizeof wrong - 1)];
        assert_all_read_alike(text, n);
        assert_all_read_alike(text, 1 + random_bits() % n);
    }
}

/* Halves of a double's last place, and values next to them: only the nearest double is correct. */
TEST(near_ties_together)
{
    enum { N = 64 };
    for (int i = 0; i < 3000; i++) {
        char text[N * 48], *end = text;
        double expected[N];
        for (size_t j = 0; j < N; j++) {
            double x = ldexp((double)(random_bits() >> 11 | UINT64_C(1) << 52), -(int)(random_bits() % 70));
            *end++ = j ? ',' : '[';
            int digits = (int)(random_bits() % 5), n = snprintf(end, 40, "%.*g", 15 + digits, x);
            expected[j] = strtod(end, NULL);
            end += n;
        }
        *end++ = ']';
        struct reading reading = read_with(pe_isa(), text, (size_t)(end - text));
        assert_true(reading.result == API_READ_OK && reading.out.n == N);
        assert_memory_equal(reading.out.values, expected, sizeof expected);
        free(reading.out.values);
        assert_all_read_alike(text, (size_t)(end - text));
    }
}
