/* jansson's parser when memory runs out: a correct tree or none, never a token that has lost a byte. */
#include "api/json/json.h"
#include "api/limits.h"

#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4800, LENGTH_MAX = 1100, BURST_MAX = 4, FOR_EVER = 1000000 };

/* The parser's buffer grows at powers of two, so every length of string and number is tried. */
static size_t print_text(char *text, int length)
{
    int n = 0;
    n += snprintf(text, TEXT_MAX, "{\"%0*d\":[\"%0*d\",", length, 7, length, 8);
    n += snprintf(text + n, (size_t)(TEXT_MAX - n), "0.%0*d,{\"a\":null,", length, 9);
    n += snprintf(text + n, (size_t)(TEXT_MAX - n), "\"\\\"%0*d\\\\\":true}]}", length, 5);
    return (size_t)n;
}

static json_t *load(struct api_arena *arena, const char *text, size_t n, bool *no_memory)
{
    struct api_json_error error;
    json_t *root = api_json_load(arena, text, n, 0, &error);
    *no_memory = !root && error.no_memory;
    return root;
}

/* Whether an allocation failed on demand. */
static bool fails_at(const char *text, size_t n, const json_t *right, long k, long burst)
{
    bool no_memory;
    struct api_arena arena = {0};
    long before = alloc_count();
    alloc_fail_burst(k, burst);
    json_t *root = load(&arena, text, n, &no_memory);
    alloc_fail_at(-1);
    bool is_hit = alloc_count() - before > k;
    assert_true(is_hit ? no_memory : json_equal(root, right));
    api_arena_drop(&arena);
    return is_hit;
}

TEST(test_every_allocation_fails)
{
    static const long bursts[BURST_MAX] = {1, 2, 3, FOR_EVER};
    char text[TEXT_MAX];
    for (int length = 1; length <= LENGTH_MAX; length += length < 140 ? 1 : 37) {
        bool no_memory;
        struct api_arena arena = {0};
        size_t n = print_text(text, length);
        json_t *right = load(&arena, text, n, &no_memory);
        assert_non_null(right);
        for (int i = 0; i < BURST_MAX; i++) {
            long k = 0;
            while (fails_at(text, n, right, k, bursts[i]))
                k++;
            assert_true(k > 0);
        }
        api_arena_drop(&arena);
    }
}

TEST(test_what_is_wrong_is_still_said)
{
    struct api_json_error error;
    struct api_arena arena = {0};
    assert_null(api_json_load(&arena, "[1,]", 4, 0, &error));
    assert_false(error.no_memory);
    assert_int_equal(error.status, 400);
    assert_int_equal(error.at, 3);
    api_arena_drop(&arena);
}

/* Rows of empty objects take the most memory of all texts of this length. */
TEST(test_a_tree_has_its_bound)
{
    enum { N = 30000 };
    static char text[3 * N + 2];
    struct api_json_error error;
    struct api_arena arena = {0};
    for (size_t i = 0; i < N; i++)
        memcpy(text + 1 + 3 * i, "{},", 3);
    text[0] = '[';
    text[3 * N] = ']';
    assert_null(api_json_load(&arena, text, 3 * N + 1, 0, &error));
    assert_false(error.no_memory);
    assert_int_equal(error.status, 413);
    assert_true(arena.n_bytes <= API_TREE_FACTOR * sizeof text + 2 * API_TREE_MIN);
    api_arena_drop(&arena);
}
