/* JSON to fields: what is lifted out of the text, what it costs, and what is drawn or copied when it is asked for.
 * What is read and what is refused is in tests/cases. */
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

static struct api_request request;
static struct api_problem problem;

static bool read_json(const char *text)
{
    api_request_init(&request, PE_ENCODE);
    problem = (struct api_problem){0};
    return api_json_read(&request, text, strlen(text), "", &problem);
}

static const struct pe_value *field(const char *name)
{
    const struct pe_value *value = api_request_find(&request, name);
    assert_non_null(value);
    return value;
}

/* Repeats the text n times between two others. */
static char *repeated(const char *before, const char *text, size_t n, const char *after)
{
    size_t length = strlen(text);
    char *all = malloc(strlen(before) + n * length + strlen(after) + 1), *p = all + sprintf(all, "%s", before);
    for (size_t i = 0; i < n; i++, p += length)
        memcpy(p, text, length);
    strcpy(p, after);
    return all;
}

TEST(test_origin)
{
    const char *text = "{\"a\":[1,2,3],\"b\":[[1],[2]]}"; /* skeleton {"a":[0],"b":[1]} */
    struct api_scan scan;
    api_scan_init(&scan);
    assert_true(api_scan_text(&scan, text, strlen(text), "", &problem));
    assert_int_equal(scan.skeleton_bytes, 17);
    assert_memory_equal(scan.skeleton, "{\"a\":[0],\"b\":[1]}", 17);
    static const size_t places[][2] = {{0, 0},  {5, 5},   {6, 5},   {7, 5},   {8, 12},
                                       {9, 13}, {13, 17}, {14, 17}, {16, 26}, {17, 27}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        assert_int_equal(api_scan_origin(&scan, places[i][0]), places[i][1]);
    api_scan_drop(&scan);
}

/* A tree has a block of its arena, not an allocation for each node, and text without lists of numbers is read in
 * place. */
TEST(test_small_is_cheap)
{
    const char *text = "{\"scheme\":\"rope\",\"len\":1,\"base\":5e5,\"layout\":\"half\",\"outputs\":[\"cos\",\"sin\"]}";
    struct api_scan scan;
    api_scan_init(&scan);
    assert_true(api_scan_text(&scan, text, strlen(text), "", &problem));
    assert_ptr_equal(scan.skeleton, text);
    assert_int_equal(scan.skeleton_bytes, strlen(text));
    api_scan_drop(&scan);
    long before = alloc_count();
    assert_true(read_json(text));
    assert_in_range(alloc_count() - before, 1, 2);
    api_request_drop(&request);
}

/* The memory of such a tree is counted against --max-memory before planning. */
TEST(test_tree_is_counted)
{
    static const char *const items[] = {",{\"a\":1}", ",\"ab\"", ",true"};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        char *text = repeated("{\"a\":[\"b\"", items[i], 10000, "]}");
        long before = alloc_bytes();
        assert_true(read_json(text));
        long counted = (long)request.arena.n_bytes, taken = alloc_bytes() - before;
        assert_in_range(counted, taken / 2, taken);
        api_request_drop(&request);
        free(text);
    }
}

/* ---- Drawn from a seed ---- */

/* Alone, and together with those before it. */
TEST(test_too_many_to_draw)
{
    static const struct {
        const char *text, *pointer;
    } cases[] = {{"{\"q\":{\"shape\":[1048577],\"seed\":1}}", "/q"},
                 {"{\"q\":{\"shape\":[1048576],\"seed\":1},\"k\":{\"shape\":[1],\"seed\":1}}", "/k"}};
    for (size_t i = 0; i < 2; i++) {
        assert_false(read_json(cases[i].text));
        assert_int_equal(problem.status, 413);
        assert_string_equal(problem.error.pointer, cases[i].pointer);
        assert_non_null(strstr(problem.error.detail, "1048576"));
        api_request_drop(&request);
    }
}

/* A thread that must not wait leaves many numbers to a worker: those beyond what it may draw at once. */
TEST(test_drawn_later)
{
    api_request_init(&request, PE_ENCODE);
    request.drawing.max_at_once = 8;
    const char *text = "{\"q\":{\"shape\":[4],\"seed\":1},\"k\":{\"shape\":[5],\"seed\":1}}";
    assert_true(api_json_read(&request, text, strlen(text), "", &problem));
    assert_true(request.draws_first);
    assert_int_equal(request.drawing.n_waiting, 5);
    api_request_fill(&request);
    assert_false(request.draws_first);
    float k[5];
    pe_seed_fill(1, "k", 0.02, 0, 5, k);
    assert_memory_equal(api_request_find(&request, "k")->array.data, k, sizeof k);
    api_request_drop(&request);
}

/* Tensors wait until api_request_fill; the numbers of a parameter, which is checked before, do not. */
TEST(test_drawn_when_asked)
{
    float q[4], positions[3];
    api_request_init(&request, PE_ROTATE);
    request.fills_later = true;
    request.drawing.max_at_once = 3;
    const char *text =
        "{\"q\":{\"shape\":[2,2],\"seed\":1,\"std\":1},\"positions\":{\"shape\":[3],\"seed\":2,\"std\":1}}";
    pe_seed_fill(1, "q", 1, 0, 4, q);
    pe_seed_fill(2, "positions", 1, 0, 3, positions);
    assert_true(api_json_read(&request, text, strlen(text), "", &problem));
    assert_true(request.drawing.n == 7 && request.drawing.n_waiting == 4);
    assert_memory_equal(field("positions")->array.data, positions, sizeof positions);
    memset((void *)field("q")->array.data, 0, sizeof q); /* theirs alone */
    api_request_fill(&request);
    assert_memory_equal(field("q")->array.data, q, sizeof q);
    assert_true(request.drawing.n_waiting == 0);
    api_request_drop(&request);
}

/* So do copies of stored tensors whose address does not suit them. */
TEST(test_copied_when_asked)
{
    static char bytes[12];
    struct pe_tensor odd = {.dtype = PE_F32, .rank = 2, .shape = {1, 2}, .data = bytes + 1};
    static const char *const names[] = {"table", "positions"};
    static const char file;
    api_request_init(&request, PE_ENCODE);
    request.fills_later = true;
    request.stored = (const void *)&file; /* which is not looked at */
    for (size_t i = 0; i < 2; i++) {
        bytes[1] = 1;
        assert_true(api_request_add_tensor(&request, names[i], &odd, 0, &problem));
        bytes[1] = 2;
        api_request_fill(&request);
        assert_int_equal(*(const char *)field(names[i])->array.data, i == 0 ? 2 : 1);
    }
    api_request_drop(&request);
}
