/* Every allocation of a request fails once: the answer is then 503, or the usual one, and nothing leaks. */
#include "tests/api/ask.h"
#include "tests/support/rows.h"
#include "tests/support/alloc.h"

static const char multipart[] =
    "--B\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{\"scheme\":\"rope\"}\r\n"
    "--B\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n"
    "\x93NUMPY\x01\x00\x3b\x00{'descr': '>f4', 'fortran_order': True, 'shape': (1, 2), }\n"
    "\0\0\0\0\0\0\0\0\r\n--B--";

/* A tensor and words behind the JSON of an inference, whose outputs come back both ways. */
static const char inference[] =
    "{\"id\":\"i\",\"inputs\":[{\"name\":\"tokens\",\"shape\":[2],\"datatype\":\"BYTES\",\"parameters\":{"
    "\"binary_data_size\":10}},{\"name\":\"key_mask\",\"shape\":[1,2],\"datatype\":\"INT16\",\"parameters\":{"
    "\"binary_data_size\":4}}],\"outputs\":[{\"name\":\"probs\",\"parameters\":{\"binary_data\":true}},{\"name\":"
    "\"scores\"}],\"parameters\":{\"dim\":4,\"num_heads\":1}}"
    "\1\0\0\0a\1\0\0\0b\1\0\1";

static const struct {
    const char *path, *type; /* type: of the content; for /v2 the length of the JSON */
    const char *body;
    size_t n;
} binary[] = {
    {"/rotate", "multipart/form-data; boundary=B", multipart, sizeof multipart - 1},
    {"/v2/models/none/infer", "314", inference, sizeof inference},
    {"/v2/models/rope/infer", "0", "\1\0\0\0\0\0\0", 8},
};

/* Each allocation of the call in turn. */
static void fail_each(const char *name, const struct api_call *call, int status)
{
    long before = alloc_count();
    struct api_reply *reply = api_answer(&host, call);
    long n = alloc_count() - before;
    struct answer whole = gather(reply);
    assert_int_equal(whole.status, status);
    assert_true(n > 0);
    for (long k = 0; k <= n; k += k < 200 ? 1 : n / 500 + 1) { /* hundreds of hypotheses allocate alike */
        alloc_fail_at(k);
        reply = api_answer(&host, call);
        alloc_fail_at(-1);
        struct answer a = gather(reply);
        bool is_same = a.status == status && a.n == whole.n && memcmp(a.body, whole.body, a.n) == 0;
        if (a.n == 0 || (a.status != 503 && !is_same))
            fail_msg("%s, allocation %ld of %ld: %d %.300s", name, k, n, a.status, a.body);
        answer_drop(&a);
    }
    answer_drop(&whole);
}

/* Of rows, and of bodies that are no text. */
TEST(test_each_allocation_fails)
{
    json_t *rows = rows_of("unallocated"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *body = row_text(row, "body");
        const struct api_call call = {.method = row_text(row, "method"),
                                      .path = row_text(row, "path"),
                                      .query = row_text(row, "query"),
                                      .body = body,
                                      .body_bytes = body ? strlen(body) : 0};
        fail_each(row_text(row, "id"), &call, (int)json_integer_value(json_object_get(row, "status")));
    }
    json_decref(rows);
    for (size_t k = 0; k < sizeof binary / sizeof *binary; k++) {
        const struct api_call call = {.method = "POST",
                                      .path = binary[k].path,
                                      .content_type = binary[k].type,
                                      .inference_header = binary[k].type,
                                      .body = binary[k].body,
                                      .body_bytes = binary[k].n};
        fail_each(binary[k].path, &call, 200);
    }
}

/* The reply made without any memory at all. */
TEST(test_no_memory)
{
    struct api_call call = {.method = "GET", .path = "/schemes/rope"};
    alloc_fail_at(1);
    struct api_reply *reply = api_answer(&host, &call);
    alloc_fail_at(-1);
    assert_answer(gather(reply), 503, WORDS("not enough memory"));
}

/* jansson then allocates through our allocator, so the test can make it fail. */
