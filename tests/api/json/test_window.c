/* A window contains the same bytes as the whole text at its place, for any start and width; JSON strings equal those of
 * api/text.c. */
#include "api/json/json.h"
#include "api/text.h"
#include "tests/support/cmocka.h"

#include <string.h>

/* Characters of one to four bytes and all that is escaped, at every distance from the beginning. */
static const char *const strings[] = {
    "", "a", "\"\\\n\r\t\x01\x7f", "é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀", "plain text without anything in it",
};

enum { LONGEST = 300 };

/* One of the strings, behind n letters. */
static void make(char *string, const char *end, size_t n)
{
    memset(string, 'x', n);
    strcpy(string + n, end);
}

TEST(strings_are_those_of_texts)
{
    char string[LONGEST], shown[6 * LONGEST];
    for (size_t s = 0; s < sizeof strings / sizeof *strings; s++)
        for (size_t n = 0; n < 140; n++) {
            struct api_text text;
            struct api_window window = {.room = sizeof shown, .dst = shown}, length = api_window_of_length();
            make(string, strings[s], n);
            api_text_init(&text, sizeof shown);
            api_text_string(&text, string);
            api_window_string(&window, string);
            api_window_string(&length, string);
            assert_int_equal(window.n, text.n);
            assert_memory_equal(shown, text.bytes, text.n);
            assert_int_equal(length.at, text.n);
            api_text_drop(&text);
        }
}

static void print_all(struct api_window *window)
{
    for (size_t s = 0; s < sizeof strings / sizeof *strings; s++) {
        api_window_put(window, s ? "," : "[");
        api_window_string(window, strings[s]);
    }
    api_window_put(window, "]");
}

TEST(every_window_shows_its_part)
{
    char whole[1000], shown[1000];
    struct api_window all = {.room = sizeof whole, .dst = whole};
    print_all(&all);
    assert_true(all.n > 150 && all.n < sizeof whole && all.at == all.n);
    for (size_t first = 0; first < all.n; first++)
        for (size_t room = 1; room <= all.n - first; room += 1 + room / 8) {
            struct api_window window = {.first = first, .room = room, .dst = shown};
            memset(shown, '~', sizeof shown);
            print_all(&window);
            assert_true(api_window_is_full(&window));
            assert_memory_equal(shown, whole + first, room);
            assert_int_equal(shown[room], '~');
        }
}

TEST(what_is_skipped_has_passed)
{
    char shown[4];
    struct api_window window = {.first = 10, .room = 2, .dst = shown};
    assert_true(api_window_skip(&window, 7));
    assert_false(api_window_skip(&window, 4));
    assert_true(api_window_skip(&window, 3));
    assert_int_equal(window.at, 10);
    api_window_put(&window, "abc");
    assert_memory_equal(shown, "ab", 2);
    assert_false(api_window_skip(&window, UINT64_MAX));
}
