/* Reading numbers: single ones against strtod, arrays for their shapes and refusals, and the cost
 * of hostile text. */
#include "api/numbers/numbers.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_RANDOM = 500000 };

/* Reads text as [text] from memory that ends where the text does. */
static enum api_read read_one(const char *number, double *x)
{
    size_t n = strlen(number);
    char *text = malloc(n + 2);
    assert_non_null(text);
    text[0] = '[';
    memcpy(text + 1, number, n);
    text[n + 1] = ']';
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    const char *p = text;
    enum api_read result = api_numbers_read(&p, text + n + 2, &out, shape, &rank);
    if (result == API_READ_OK) {
        assert_ptr_equal(p, text + n + 2);
        assert_true(rank == 1 && shape[0] == 1 && out.n == 1);
        *x = out.values[0];
    } else {
        assert_ptr_equal(p, text);
        assert_int_equal(out.n, 0);
    }
    free(out.values);
    free(text);
    return result;
}

static void assert_reads_as_strtod(const char *text)
{
    double x = (double)NAN, expected = strtod(text, NULL);
    if (isinf(expected)) {
        assert_int_equal(read_one(text, &x), API_READ_OTHER);
        return;
    }
    assert_int_equal(read_one(text, &x), API_READ_OK);
    assert_memory_equal(&x, &expected, sizeof x);
}

/* The ends of the range, ends and middles of the subnormal range; ties of doubles, exactly and by a hair; many digits,
 * leading and trailing zeros. */
TEST(hard_numbers)
{
    char cases[] =
        "0 -0 0.0 -0.0e5 0e999999999999999999999 1 -1.5E+3 1e-400 -1e-400 1e400 -1e309 1.7976931348623157e308 "
        "1.7976931348623158e308 1.7976931348623159e308 179769313486231580793728971405e279 5e-324 "
        "2.4703282292062327e-324 2.4703282292062328e-324 2.2250738585072011e-308 2.2250738585072012e-308 "
        "2.225073858507201e-308 4.9406564584124654e-324 7.4109846876186981e-324 9007199254740993 9007199254740993.0 "
        "9007199254740993.00000000000000000000000001 9007199254740992.99999999999999999999999999 9007199254740995 "
        "900719925474099.3e1 9007199254740993e0 18014398509481990 "
        "1.00000000000000011102230246251565404236316680908203125 "
        "1.00000000000000011102230246251565404236316680908203124 45035996273704985e-1 45035996273704985e-10 "
        "0.500000000000000166533453693773481063544750213623046875 8.5e22 1e23 1e22 9.5e-23 "
        "0.000000000000000000000000000000000000000000001234567890123456789 12345678901234567890 "
        "12345678901234567891234 "
        "100000000000000000000000000000 1000000000000000000000000000000000000001e-39 "
        "123456789012345678901234567890e-320 "
        "0.00000000000000000000000000000000000000000000000000000000000000000000e308 6.02214076e23 0.1 3.14159265358979";
    for (char *number = strtok(cases, " "); number; number = strtok(NULL, " "))
        assert_reads_as_strtod(number);
}

/* The exact middle between a double and the next, and that with a last digit more: the longest
 * there are have 767 digits. */
TEST(middles)
{
    char text[1400];
    for (int i = 0; i < 20000; i++) {
        double x = double_of(random_bits() >> (i % 3 ? 1 : 12)); /* any, or below the normal range */
        long double middle = (long double)x + ((long double)nextafter(x, (double)INFINITY) - (long double)x) / 2;
        if (!isfinite(x) || !isfinite(nextafter(x, (double)INFINITY)))
            continue;
        int n = snprintf(text, sizeof text - 200, "%.*Le", i % 2 ? 1000 : 30, middle);
        assert_reads_as_strtod(text);
        char *e = strchr(text, 'e'), exponent[12];
        snprintf(exponent, sizeof exponent, "%s", e);
        snprintf(e, sizeof text - (size_t)n, "%0*d%s", 1 + i % 90, 1, exponent); /* zeros and a one behind */
        assert_reads_as_strtod(text);
    }
}

TEST(random_texts)
{
    char text[80];
    for (int i = 0; i < N_RANDOM; i++) {
        double x = double_of(random_bits());
        if (!isfinite(x))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(random_bits() % 25), x);
        assert_reads_as_strtod(text);
        snprintf(text, sizeof text, "%" PRIu64 "e%d", random_bits() >> random_bits() % 64,
                 (int)(random_bits() % 700) - 360);
        assert_reads_as_strtod(text);
        snprintf(text, sizeof text, "%.*f", i % 25, ldexp((double)(uint32_t)random_bits(), -(i % 64)));
        assert_reads_as_strtod(text);
    }
}

/* Every number of digits before and behind the point, with 0 to 39 characters between its end and that of the text: all
 * reads of several bytes at once stop at the text's end. */
TEST(every_length)
{
    static const char digits[] = "8190734561238905671284365097214365870912";
    for (int i = 0; i < 22 * 22; i++) {
        int whole = 1 + i % 22, behind = i / 22;
        char number[60], text[120];
        sprintf(number, "-%.*s%s%.*s", whole, digits, behind ? "." : "", behind, digits);
        double expected = strtod(number, NULL), x;
        assert_int_equal(read_one(number, &x), API_READ_OK);
        assert_memory_equal(&x, &expected, sizeof x);
        for (int more = 1; more < 40; more++) {
            size_t n = (size_t)sprintf(text, "[%s,%.*s]", number, more, digits);
            char *copy = malloc(n);
            struct api_doubles out = {0};
            uint64_t shape[PE_RANK_MAX];
            unsigned rank;
            assert_non_null(copy);
            const char *p = memcpy(copy, text, n);
            assert_int_equal(api_numbers_read(&p, copy + n, &out, shape, &rank), API_READ_OK);
            assert_true(p == copy + n && out.n == 2);
            assert_memory_equal(out.values, &expected, sizeof expected);
            free(out.values);
            free(copy);
        }
    }
}

/* A million digits are read in one pass, and a million zeros before or behind the point do not give a wrong
 * exponent. */
TEST(very_long_numbers)
{
    enum { N = 1000000 };
    char *text = malloc(N + 40);
    double x;
    assert_non_null(text);
    memset(text, '0', N);
    text[1] = '.';
    snprintf(text + N, 40, "25e%d", N);
    assert_int_equal(read_one(text, &x), API_READ_OK);
    assert_true(x == 25);
    memset(text, '9', N);
    snprintf(text + N, 40, "e-%d", N);
    assert_int_equal(read_one(text, &x), API_READ_OK);
    assert_true(x == 1);
    memset(text, '0', N);
    memcpy(text, "9007199254740993.0", 18); /* a tie, decided a million digits later */
    strcpy(text + N, "1");
    assert_int_equal(read_one(text, &x), API_READ_OK);
    assert_true(x == 9007199254740994.0);
    free(text);
}

TEST(wrong_numbers)
{
    static const char *const cases[] = {
        "",         " ",          "+1",    ".5",   "1.",   "1.e5",    "01",      "-01",
        "00",       "-",          "--1",   "1e",   "1e+",  "1E-",     "0x10",    "1_0",
        "1a",       "Infinity",   "NaN",   "nan",  "inf",  "\"nan\"", "\"Inf\"", "\"+Infinity\"",
        "\" NaN\"", "\"NaN",      "\"1\"", "null", "true", "{}",      "[]",      "1,",
        ",1",       "1,,2",       "1 2",   "[1",   "[1],", "1;2",     "\f1",     "1\v",
        "1e400",    "\"Infinity", "\"\"",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double x;
        if (read_one(cases[i], &x) != API_READ_OTHER)
            fail_msg("[%s] was not refused", cases[i]);
    }
}

TEST(every_prefix_is_refused)
{
    const char whole[] = "[[-1.5e-3, \"-Infinity\"], [12345678.125, 0]]";
    for (size_t n = 1; n < sizeof whole; n++) {
        char *text = malloc(n);
        assert_non_null(text);
        memcpy(text, whole, n);
        struct api_doubles out = {0};
        uint64_t shape[PE_RANK_MAX];
        unsigned rank = 99;
        const char *p = text;
        enum api_read expected = n == sizeof whole - 1 ? API_READ_OK : API_READ_OTHER;
        assert_int_equal(api_numbers_read(&p, text + n, &out, shape, &rank), expected);
        assert_int_equal(rank, expected == API_READ_OK ? 2 : 99);
        free(out.values);
        free(text);
    }
}

TEST(arrays)
{
    static const struct {
        const char *text;
        enum api_read result;
        unsigned rank;
        uint64_t shape[PE_RANK_MAX];
    } cases[] = {
        {"[1]", API_READ_OK, 1, {1}},
        {"[ 1 ,\t2\r\n, 3 ] ", API_READ_OK, 1, {3}},
        {"[[1,2,3],[4,5,6]]", API_READ_OK, 2, {2, 3}},
        {"[ [ [ 1 ] , [ 2 ] ] ]", API_READ_OK, 3, {1, 2, 1}},
        {"[[[[[[[[1,2]]]]]]]]", API_READ_OK, 8, {1, 1, 1, 1, 1, 1, 1, 2}},
        {"[\"NaN\",\"Infinity\",\"-Infinity\"]", API_READ_OK, 1, {3}},
        {"[[1,2],[3]]", API_READ_RAGGED, 0, {0}},
        {"[[1],[2,3]]", API_READ_RAGGED, 0, {0}},
        {"[1,[2]]", API_READ_RAGGED, 0, {0}},
        {"[[1],2]", API_READ_RAGGED, 0, {0}},
        {"[[1],[[2]]]", API_READ_RAGGED, 0, {0}},
        {"[[[1],[2]],[[3]]]", API_READ_RAGGED, 0, {0}},
        {"[[[1,2]],[[3],[4]]]", API_READ_RAGGED, 0, {0}},
        {"[[1,2],[3],\"x\"]", API_READ_OTHER, 0, {0}},
        {"[[1,2],[3]", API_READ_OTHER, 0, {0}},
        {"[[[[[[[[[1]]]]]]]]]", API_READ_DEEP, 0, {0}},
        {"[1,\"NaN\",null]", API_READ_OTHER, 0, {0}},
        {"[[],[1]]", API_READ_OTHER, 0, {0}},
        {"[[1][2]]", API_READ_OTHER, 0, {0}},
        {"[[1],]", API_READ_OTHER, 0, {0}},
        {"[[1 2]]", API_READ_OTHER, 0, {0}},
    };
    struct api_doubles out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].text;
        uint64_t shape[PE_RANK_MAX] = {0}, count = 1;
        unsigned rank = 0;
        size_t before = out.n;
        assert_int_equal(api_numbers_read(&p, p + strlen(p), &out, shape, &rank), cases[i].result);
        assert_int_equal(rank, cases[i].rank);
        assert_memory_equal(shape, cases[i].shape, sizeof shape);
        for (unsigned j = 0; j < rank; j++)
            count *= shape[j];
        assert_int_equal(out.n - before, rank ? count : 0);
        assert_true(rank ? p[-1] == ']' : p == cases[i].text);
    }
    assert_true(out.values[0] == 1 && out.values[4] == 1 && out.values[9] == 6); /* one after the other */
    free(out.values);
}

/* A caller that enters an array after a refusal reads nested brackets around a long row in no more than eight
 * passes. */
TEST(going_inside_stays_linear)
{
    enum { DEPTH = 100000, N = 2 * DEPTH };
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    for (size_t i = DEPTH; i < N; i++)
        text[i] = i & 1 ? ',' : '1';
    text[N - 1] = 'x';
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    for (const char *p = text; p < text + N && *p == '['; p++)
        assert_true(api_numbers_read(&p, text + N, &out, shape, &rank) != API_READ_OK);
    assert_true(out.n == 0 && out.room <= N);
    free(out.values);
    free(text);
}

/* A list that cannot grow stays unchanged, with the numbers of the previous arrays. */
TEST(failed_growth_changes_nothing)
{
    enum { N = 5000 };
    char text[2 * N + 2] = "[";
    for (int i = 0; i < N; i++)
        memcpy(text + 1 + 2 * i, "7,", 2);
    text[2 * N] = ']';
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX] = {99};
    unsigned rank = 99;
    const char *first = "[1,2]", *p = text;
    assert_int_equal(api_numbers_read(&first, first + 5, &out, shape, &rank), API_READ_OK);
    for (int k = 0; k < 2; k++) {
        alloc_fail_at(k);
        assert_int_equal(api_numbers_read(&p, text + 2 * N + 1, &out, shape, &rank), API_READ_NO_MEMORY);
        alloc_fail_at(-1);
        assert_true(p == text && rank == 1 && shape[0] == 2);
        assert_true(out.n == 2 && out.values[0] == 1 && out.values[1] == 2);
    }
    assert_int_equal(api_numbers_read(&p, text + 2 * N + 1, &out, shape, &rank), API_READ_OK);
    assert_true(out.n == 2 + N && out.values[1 + N] == 7 && out.room <= 2 + N + 1);
    free(out.values);
}
