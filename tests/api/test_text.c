/* Text that grows, JSON strings and values, nested lists of elements in any split. */
#include "api/numbers/numbers.h"
#include "api/text.h"
#include "tests/api/ask.h"

#include <math.h>
#include <printf.h>

static struct api_text text;

static void assert_text(const char *expected)
{
    assert_int_equal(text.state, API_TEXT_FINE);
    api_text_add(&text, "", 1);
    assert_string_equal(text.bytes, expected);
    api_text_drop(&text);
    text.state = API_TEXT_FINE;
}

TEST(test_limits)
{
    api_text_init(&text, 8);
    api_text_put(&text, "12345678");
    assert_int_equal(text.state, API_TEXT_FINE);
    api_text_put(&text, "9");
    assert_int_equal(text.state, API_TEXT_FULL);
    api_text_put(&text, "");
    assert_int_equal(text.state, API_TEXT_FULL); /* a failure is remembered */
    assert_int_equal(text.n, 8);
    api_text_drop(&text);
}

TEST(test_strings)
{
    static const char *const cases[][2] = {
        {"", "\"\""},
        {"a\"b\\c/\n\r\t\x01\x7f", "\"a\\\"b\\\\c/\\n\\r\\t\\u0001\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xff", "\"a\xef\xbf\xbd\""},                                               /* no lead byte */
        {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},                 /* surrogate */
        {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                                 /* cut short */
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* beyond U+10FFFF */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        api_text_init(&text, 1000);
        api_text_string(&text, cases[i][0]);
        assert_text(cases[i][1]);
    }
}

static void assert_elements(const uint64_t *shape, unsigned rank, const char *expected)
{
    static const int32_t values[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                     12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    struct api_elements e;
    api_elements_init(&e, PE_I32, shape, rank, API_DIGITS_SHORTEST);
    for (size_t step = 1; step <= e.count; step++) {
        char out[1024];
        size_t used = 0;
        for (uint64_t first = 0; first < e.count; first += step) {
            size_t n = e.count - first < step ? (size_t)(e.count - first) : step;
            char piece[2048];
            size_t bytes = api_elements_print(&e, values + first, first, n, piece);
            assert_true(bytes <= n * e.width);
            memcpy(out + used, piece, bytes);
            used += bytes;
        }
        out[used] = '\0';
        assert_string_equal(out, expected);
    }
}

TEST(test_elements)
{
    assert_elements(NULL, 0, "0");
    assert_elements((uint64_t[]){1}, 1, "[0]");
    assert_elements((uint64_t[]){5}, 1, "[0,1,2,3,4]");
    assert_elements((uint64_t[]){2, 3}, 2, "[[0,1,2],[3,4,5]]");
    assert_elements((uint64_t[]){3, 1}, 2, "[[0],[1],[2]]");
    assert_elements((uint64_t[]){1, 1, 1, 1}, 4, "[[[[0]]]]");
    assert_elements((uint64_t[]){2, 2, 2}, 3, "[[[0,1],[2,3]],[[4,5],[6,7]]]");
    assert_elements((uint64_t[]){2, 1, 3}, 3, "[[[0,1,2]],[[3,4,5]]]");
    assert_elements((uint64_t[]){1, 2, 1, 2}, 4, "[[[[0,1]],[[2,3]]]]");
}

/* Rows that repeat the previous row, shift it by one, or differ from it in one place: printed whole or in pieces, they
 * equal the rows printed number by number. */
TEST(test_rows_like_those_before)
{
    enum { ROW = 9, ROWS = 2 * 7 * ROW }; /* so that each place differs in each kind of row */
    static const float odd[] = {-INFINITY, 0.0f, -0.0f, 1e-30f, 0.1f, -123.456f, NAN, 3.4e38f};
    float values[ROWS][ROW];
    uint32_t r = 1;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < ROW; j++)
            values[i][j] = odd[(r = r * 1664525u + 1013904223u) >> 29];
        if (i > 0 && i % 7 < 5)
            memcpy(&values[i][i % 7 < 3], &values[i - 1][0], sizeof(float) * (i % 7 < 3 ? ROW - 1 : ROW));
        if (i % 7 == 2 || i % 7 == 4)
            values[i][i / 7 % ROW] = odd[i % 8];
    }
    for (int digits = -1; digits <= 2; digits += 3) {
        struct api_elements e;
        api_elements_init(&e, PE_F32, (uint64_t[]){2, ROWS / 2, ROW}, 3, digits);
        static char single[ROWS * ROW * 64], out[ROWS * ROW * 64];
        size_t n_single = 0;
        for (uint64_t i = 0; i < e.count; i++)
            n_single += api_elements_print(&e, &values[0][0] + i, i, 1, single + n_single);
        for (size_t step = 2; step <= e.count; step++) {
            size_t used = 0;
            for (uint64_t first = 0; first < e.count; first += step) {
                size_t n = e.count - first < step ? (size_t)(e.count - first) : step;
                used += api_elements_print(&e, &values[0][0] + first, first, n, out + used);
            }
            assert_int_equal(used, n_single);
            assert_memory_equal(out, single, used);
        }
    }
}

extern const struct pe_translation api_zh_rows[];
extern const size_t api_n_zh_rows;

/* A format and its translation take the same arguments, wherever they print them. */
TEST(test_translated_formats)
{
    enum { MOST = 12 };
    size_t n_formats = 0;
    for (size_t i = 0; i < api_n_zh_rows; i++) {
        int english[MOST], chinese[MOST];
        if (strstr(api_zh_rows[i].english, "%-encoded")) /* no format */
            continue;
        size_t n = parse_printf_format(api_zh_rows[i].english, MOST, english);
        assert_int_equal(n, parse_printf_format(api_zh_rows[i].chinese, MOST, chinese));
        assert_in_range(n, 0, MOST);
        assert_memory_equal(english, chinese, n * sizeof *english);
        n_formats += n > 0;
        assert_string_equal(pe_text_in(PE_ZH, api_zh_rows[i].english), api_zh_rows[i].chinese);
    }
    assert_in_range(n_formats, 150, api_n_zh_rows);
}
