/* safetensors bodies: the rules of the reference reader, each broken in turn. */
#include "api/inputs/inputs.h"
#include "tests/api/ask.h"

#include <stdio.h>

static struct api_request request;
static struct api_problem problem;

static size_t build(char *out, const char *header, size_t n_data)
{
    size_t n = strlen(header);
    for (unsigned i = 0; i < 8; i++)
        out[i] = (char)(n >> 8 * i & 0xff);
    memcpy(out + 8, header, n);
    for (size_t i = 0; i < n_data; i++)
        out[8 + n + i] = (char)i;
    return 8 + n + n_data;
}

static bool read_bytes(const char *bytes, size_t n)
{
    struct api_received body = {.bytes = bytes, .n = n, .parameters = ""};
    api_request_init(&request, PE_ROTATE);
    return api_safetensors_read(&request, &body, &problem);
}

TEST(test_read)
{
    /* Lengths of padding shift the data over every alignment; misaligned tensors are copied. */
    for (int pad = 0; pad < 8; pad++) {
        char header[400], file[600];
        snprintf(
            header, sizeof header,
            "{\"k\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]},\"e\":{\"dtype\":\"F64\",\"shape\":[0],"
            "\"data_offsets\":[16,16]},\"q\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]},"
            "\"__metadata__\":{\"request\":\"{\\\"scheme\\\":\\\"rope\\\"}\",\"format\":\"pt\"}}%*s",
            pad, "");
        size_t n = build(file, header, 19);
        assert_true(read_bytes(file, n));
        assert_int_equal(request.n_fields, 4);
        const struct pe_tensor *q = &api_request_find(&request, "q")->array;
        assert_int_equal((uintptr_t)q->data % 8, 0);
        assert_memory_equal(q->data, file + n - 19, 16);
        assert_int_equal(q->shape[1], 2);
        assert_int_equal(api_request_find(&request, "e")->array.shape[0], 0);
        assert_string_equal(api_request_find(&request, "scheme")->string, "rope");
        api_request_drop(&request);
    }
}

#define ENTRY(dtype, shape, offsets)                                                                                   \
    "\""                                                                                                               \
    "q\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define SECOND(offsets) ",\"r\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" offsets "}"

TEST(test_refused)
{
    static const struct {
        const char *header;
        int status;
        const char *words;
    } cases[] = {
        /* each with 8 bytes of data */
        {"{" ENTRY("\"F32\"", "[2]", "[0,4]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[1]", "[0,4]") "}", 400, "behind its last"},
        {"{" ENTRY("\"F32\"", "[3]", "[0,12]") "}", 400, "pass the end"},
        {"{" ENTRY("\"F32\"", "[1]", "[4,8]") "}", 400, "hole"},
        {"{" ENTRY("\"F32\"", "[1]", "[4,0]") "}", 400, "hole"},
        {"{" ENTRY("\"U8\"", "[4]", "[0,4]") SECOND("[2,6]") "}", 400, "overlap"},
        {"{" ENTRY("\"U8\"", "[4]", "[0,4]") SECOND("[0,4]") "}", 400, "overlap"},
        {"{" ENTRY("\"F32\"", "[4294967296,4294967296]", "[0,8]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[4611686018427387904]", "[0,0]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[-2]", "[0,8]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[2.0]", "[0,8]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "2", "[0,8]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 400, "shape"},
        {"{" ENTRY("\"F32\"", "[2]", "[0,8,8]") "}", 400, "two integers"},
        {"{" ENTRY("\"F32\"", "[2]", "[0]") "}", 400, "two integers"},
        {"{" ENTRY("\"F8_E4M3\"", "[8]", "[0,8]") "}", 422, "dtype"},
        {"{" ENTRY("4", "[8]", "[0,8]") "}", 400, "exactly"},
        {"{\"q\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8],\"x\":1}}", 400, "exactly"},
        {"{\"q\":[1]}", 400, "exactly"},
        {"{" ENTRY("\"U8\"", "[8]", "[0,8]") "," ENTRY("\"U8\"", "[8]", "[0,8]") "}", 400, "duplicate"},
        {"{" ENTRY("\"U8\"", "[8]", "[0,8]") ",\"__metadata__\":{\"a\":1}}", 400, "string"},
        {"{" ENTRY("\"U8\"", "[8]", "[0,8]") ",\"__metadata__\":3}", 400, "object"},
        {"{" ENTRY("\"U8\"", "[8]", "[0,8]") ",\"__metadata__\":{\"request\":\"{\"}}", 400, "__metadata__.request"},
        {"{" ENTRY("\"U8\"", "[8]", "[0,8]") ",\"__metadata__\":{\"request\":\"{\\\"q\\\":1}\"}}", 400, "twice"},
        {"{}", 400, "behind its last"},
        {"[]", 400, "{"},
        {" {}", 400, "{"},
        {"{", 400, "header"},
        {"{\"\xff\":1}", 400, "header"},
        {"", 400, "{"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char file[1000];
        if (read_bytes(file, build(file, cases[i].header, 8)))
            fail_msg("accepted: %s", cases[i].header);
        if (problem.status != cases[i].status || !strstr(problem.error.detail, cases[i].words))
            fail_msg("%s: %d %s", cases[i].header, problem.status, problem.error.detail);
        api_request_drop(&request);
    }
}

TEST(test_truncated)
{
    char file[300];
    size_t n = build(file, "{" ENTRY("\"F32\"", "[2]", "[0,8]") "}  ", 8);
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + !cut);
        memcpy(copy, file, cut);
        assert_false(read_bytes(copy, cut));
        assert_int_equal(problem.status, 400);
        api_request_drop(&request);
        free(copy);
    }
    memset(file, 0xff, 8); /* a header of 2^64-1 bytes */
    assert_false(read_bytes(file, n));
    assert_int_equal(problem.status, 400);
    api_request_drop(&request);
}

TEST(test_header_limit)
{
    size_t n = 2u << 20;
    char *file = malloc(8 + n);
    memset(file, ' ', 8 + n);
    for (unsigned i = 0; i < 8; i++)
        file[i] = (char)(n >> 8 * i & 0xff);
    file[8] = '{';
    assert_false(read_bytes(file, 8 + n));
    assert_int_equal(problem.status, 413);
    api_request_drop(&request);
    free(file);
}
