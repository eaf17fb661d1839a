/* .npy files: versions, orders, and headers that are truncated, wrong or unusual. */
#include "api/inputs/inputs.h"
#include "tests/api/ask.h"

static struct api_arena arena;
static struct api_problem problem;
static struct pe_tensor tensor;

/* A file of this version with this dict and n bytes of data. */
static size_t build(char *out, int version, const char *dict, const void *data, size_t n)
{
    size_t length = strlen(dict), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        out[i] = (char)(length >> 8 * (i - 8) & 0xff);
    memcpy(out + prefix, dict, length);
    memcpy(out + prefix + length, data, n);
    return prefix + length + n;
}

static bool parse(const char *bytes, size_t n)
{
    struct api_npy_file file = {.bytes = bytes, .n = n, .what = "the body", .pointer = "/q"};
    return api_npy_parse(&arena, &file, &tensor, &problem);
}

static bool parse_dict(int version, const char *dict, const void *data, size_t n)
{
    static char file[70000];
    return parse(file, build(file, version, dict, data, n));
}

static const float six[] = {0, 1, 2, 3, 4, 5};

static void assert_six(const float *expected)
{
    assert_int_equal(tensor.dtype, PE_F32);
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.shape[0], 2);
    assert_int_equal(tensor.shape[1], 3);
    assert_memory_equal(tensor.data, expected, sizeof six);
    api_arena_drop(&arena);
}

TEST(test_versions)
{
    for (int version = 1; version <= 3; version++) {
        assert_true(
            parse_dict(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", six, sizeof six));
        assert_six(six);
    }
    assert_true(parse_dict(1, "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", six, sizeof six));
    assert_six(six);
}

TEST(test_orders)
{
    static const float columns[] = {0, 3, 1, 4, 2, 5};
    assert_true(parse_dict(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", columns, sizeof columns));
    assert_six(six);
    unsigned char swapped[sizeof six];
    for (size_t i = 0; i < sizeof six; i++)
        swapped[i] = ((const unsigned char *)six)[i ^ 3];
    assert_true(
        parse_dict(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n", swapped, sizeof swapped));
    assert_six(six);
    for (size_t i = 0; i < sizeof six; i++)
        swapped[i] = ((const unsigned char *)columns)[i ^ 3];
    assert_true(parse_dict(1, "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n", swapped, sizeof swapped));
    assert_six(six);
}

TEST(test_three_axes_in_fortran_order)
{
    int16_t data[24], expected[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                expected[(i * 3 + j) * 4 + k] = (int16_t)(100 * i + 10 * j + k);
                data[i + 2 * (j + 3 * k)] = (int16_t)(100 * i + 10 * j + k);
            }
    assert_true(parse_dict(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }\n", data, sizeof data));
    assert_memory_equal(tensor.data, expected, sizeof expected);
    api_arena_drop(&arena);
}

TEST(test_shapes)
{
    assert_true(parse_dict(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", "12345678", 8));
    assert_int_equal(tensor.rank, 0);
    assert_true(parse_dict(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n", "abc", 3));
    assert_int_equal(tensor.shape[0], 3);
    assert_true(parse_dict(1, "{'descr': '|b1', 'fortran_order': True, 'shape': (0, 5), }\n", "", 0));
    assert_int_equal(tensor.rank, 2);
    api_arena_drop(&arena);
}

#define DICT(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

TEST(test_refused_headers)
{
    static const struct {
        const char *dict;
        int status;
    } cases[] = {
        {DICT("'<f4'", "False", "(2,)"), 400}, /* wrong size: 24 bytes are sent */
        {DICT("'<f4'", "False", "(7,)"), 400},
        {DICT("'<f4'", "False", "(6)"), 400}, /* no tuple */
        {DICT("'<f4'", "False", "(6,,)"), 400},
        {DICT("'<f4'", "False", "(-6,)"), 400},
        {DICT("'<f4'", "False", "(99999999999999999999,)"), 400},
        {DICT("'<f4'", "False", "(4294967296, 4294967296)"), 400},
        {DICT("'<f4'", "False", "(4611686018427387904,)"), 400},
        {DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,6)"), 400},
        {DICT("'<f4'", "0", "(6,)"), 400},
        {DICT("[('a', '<f4')]", "False", "(6,)"), 400},
        {DICT("'|O'", "False", "(3,)"), 422},
        {DICT("'<c8'", "False", "(3,)"), 422},
        {DICT("'<V2'", "False", "(12,)"), 422},
        {DICT("'|f4'", "False", "(6,)"), 422},
        {DICT("'f4'", "False", "(6,)"), 422},
        {DICT("''", "False", "(6,)"), 422},
        {DICT("'<f4'", "False", "(6,), 'shape': (6,)"), 400},
        {DICT("'<f4'", "False", "(6,), 'more': 1"), 400},
        {"{'descr': '<f4', 'fortran_order': False}", 400},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (6,)}", 400},
        {"{'descr': '<f4", 400},
        {"{'descr", 400},
        {"{", 400},
        {"", 400},
        {"{}x", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse_dict(1, cases[i].dict, six, sizeof six))
            fail_msg("accepted: %s", cases[i].dict);
        if (problem.status != cases[i].status || strcmp(problem.error.pointer, "/q") != 0)
            fail_msg("%s: %d %s", cases[i].dict, problem.status, problem.error.detail);
    }
}

/* Every prefix of a file is refused, and none is read beyond its end (the copy is as long as it says). */
TEST(test_truncated)
{
    char file[256];
    size_t n = build(file, 2, DICT("'<f4'", "True", "(2, 3)"), six, sizeof six);
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + !cut);
        memcpy(copy, file, cut);
        assert_false(parse(copy, cut));
        assert_int_equal(problem.status, 400);
        free(copy);
    }
    file[6] = 4;
    assert_false(parse(file, n));
    memcpy(file + 6, "\x02\x00\xff\xff\xff\xff", 6);
    assert_false(parse(file, n));
}
