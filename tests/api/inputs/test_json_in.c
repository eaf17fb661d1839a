/* JSON to fields: lists of numbers are extracted, tensors are read, drawn or copied when they are asked for. What is
 * refused is in tests/cases/refused_api.jsonl. */
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <math.h>
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

static void assert_refused(const char *text, int status, const char *pointer, const char *words)
{
    if (read_json(text))
        fail_msg("accepted: %.100s", text);
    if (problem.status != status || strcmp(problem.error.pointer, pointer) != 0 || !strstr(problem.error.detail, words))
        fail_msg("%.100s: %d %s %s", text, problem.status, problem.error.pointer, problem.error.detail);
    api_request_drop(&request);
}

TEST(test_kinds)
{
    assert_true(read_json("{\"i\":-3,\"r\":2.5,\"s\":\"a\\u00e9\",\"t\":true,\"o\":{\"x\":1,\"y\":null},\"l\":[\"a\","
                          "null],\"e\":[],\"z\":null}"));
    assert_int_equal(request.n_fields, 7); /* null is not given */
    assert_int_equal(field("i")->integer, -3);
    assert_true(field("r")->real == 2.5);
    assert_string_equal(field("s")->string, "a\xc3\xa9");
    assert_true(field("t")->boolean);
    assert_int_equal(field("o")->object.n, 1);
    assert_int_equal(field("l")->list.n, 2);
    assert_int_equal(field("l")->list.items[1].kind, PE_NULL);
    assert_int_equal(field("e")->kind, PE_LIST);
    assert_int_equal(field("e")->list.n, 0);
    api_request_drop(&request);
}

TEST(test_lifting)
{
    assert_true(read_json(
        " {\"a\":[1,2.5,\"NaN\"],\"b\":[7],\"c\":[[1,2],[3,4],[5,6]],\"d\":{\"x\":[8]},\"m\":[[9],\"w\",[10]]}"));
    const struct pe_value *a = field("a"), *c = field("c"), *m = field("m");
    assert_int_equal(a->kind, PE_ARRAY);
    assert_true(a->from_text);
    assert_int_equal(a->array.dtype, PE_F64);
    assert_true(((const double *)a->array.data)[1] == 2.5);
    assert_true(isnan(((const double *)a->array.data)[2]));
    assert_true(*(const double *)field("b")->array.data == 7);
    assert_int_equal(c->array.rank, 2);
    assert_int_equal(c->array.shape[0], 3);
    assert_true(((const double *)c->array.data)[5] == 6);
    assert_true(*(const double *)field("d")->object.fields[0].value.array.data == 8);
    assert_int_equal(m->kind, PE_LIST);
    assert_int_equal(m->list.n, 3);
    assert_true(*(const double *)m->list.items[2].array.data == 10);
    api_request_drop(&request);
}

TEST(test_tokens_are_words)
{
    assert_true(read_json("{\"tokens\":[\"NaN\",\"Infinity\"],\"positions\":[\"NaN\"]}"));
    assert_int_equal(field("tokens")->kind, PE_LIST);
    assert_string_equal(field("tokens")->list.items[0].string, "NaN");
    assert_int_equal(field("positions")->kind, PE_ARRAY);
    api_request_drop(&request);
    assert_true(read_json("{\"tokens\":[5]}")); /* a list of one integer is always a stand-in */
    assert_true(*(const double *)field("tokens")->array.data == 5);
    api_request_drop(&request);
}

TEST(test_tensors)
{
    assert_true(
        read_json("{\"q\":{\"dtype\":\"f16\",\"shape\":[2,2],\"data\":[1,2,3,65504]},\"k\":{\"data\":[[1],[2]]},"
                  "\"i\":{\"dtype\":\"i8\",\"data\":[-128,127]},\"s\":{\"shape\":[],\"dtype\":\"f64\",\"data\":3},"
                  "\"z\":{\"shape\":[0,4],\"data\":[]},\"data\":false}"));
    const struct pe_tensor *q = &field("q")->array, *k = &field("k")->array;
    assert_int_equal(q->dtype, PE_F16);
    assert_int_equal(q->rank, 2);
    assert_int_equal(((const uint16_t *)q->data)[3], 0x7bff);
    assert_false(field("q")->from_text);
    assert_true(field("k")->from_text);
    assert_int_equal(k->rank, 2);
    assert_int_equal(((const int8_t *)field("i")->array.data)[0], -128);
    assert_int_equal(field("s")->array.rank, 0);
    assert_int_equal(field("z")->array.shape[1], 4);
    assert_int_equal(field("data")->kind, PE_BOOLEAN); /* the request's own member of this name */
    api_request_drop(&request);
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

TEST(test_large_list)
{
    char *text = repeated("{\"a\":[0", ",1.5", 1000000, "]}");
    assert_true(read_json(text));
    assert_int_equal(field("a")->array.shape[0], 1000001);
    assert_true(((const double *)field("a")->array.data)[1000000] == 1.5);
    api_request_drop(&request);
    free(text);
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

TEST(test_drawn)
{
    assert_true(read_json("{\"table\":{\"shape\":[2,2],\"seed\":0},\"o\":{\"seed\":1,\"scheme\":\"t5\"},"
                          "\"hf_config\":{\"seed\":3,\"l\":{\"shape\":[1]}}}"));
    const struct pe_tensor *table = &field("table")->array;
    /* By NumPy from the generator's definition, as in tests/core/request/test_weights.c. */
    const float expected[] = {0x1.9022d6p-6f, -0x1.02f77ap-6f, -0x1.ec8d4cp-6f, -0x1.cd95e2p-6f};
    assert_int_equal(table->dtype, PE_F32);
    assert_true(table->rank == 2 && table->shape[0] == 2 && table->shape[1] == 2);
    assert_memory_equal(table->data, expected, sizeof expected);
    assert_false(field("table")->from_text);
    assert_int_equal(request.drawing.n, 4);
    assert_int_equal(field("o")->kind, PE_OBJECT);
    assert_int_equal(field("hf_config")->kind, PE_OBJECT);
    api_request_drop(&request);
}

TEST(test_too_many_to_draw)
{
    assert_refused("{\"q\":{\"shape\":[1048577],\"seed\":1}}", 413, "/q", "1048576");
    assert_refused("{\"q\":{\"shape\":[1048576],\"seed\":1},\"k\":{\"shape\":[1],\"seed\":1}}", 413, "/k", "1048576");
}

/* A thread that must not wait leaves many numbers to a worker, before any is drawn. */
TEST(test_drawn_later)
{
    api_request_init(&request, PE_ENCODE);
    request.drawing.max_at_once = 8;
    const char *text = "{\"q\":{\"shape\":[4],\"seed\":1},\"k\":{\"shape\":[5],\"seed\":1}}";
    assert_false(api_json_read(&request, text, strlen(text), "", &problem));
    assert_true(request.is_late);
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
