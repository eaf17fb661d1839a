/* Every allocation of a request fails once: the answer is then 503, or the usual one, and nothing leaks. */
#include "tests/api/ask.h"
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

#define STORE "scheme=alibi&num_heads=2&len=10&outputs=bias&chunk=120"

static const struct {
    const char *method, *path, *query, *type; /* type: of the content; for /v2 the length of the JSON */
    const char *body;
    size_t n; /* 0: a string */
    int status;
} calls[] = {
    {"POST", "/encode", NULL, NULL, "{\"scheme\":\"rope\",\"len\":2,\"head_dim\":4,\"outputs\":[\"sin\",\"inv_freq\"]}",
     0, 200},
    {"POST", "/encode", NULL, NULL,
     "{\"scheme\":\"alibi\",\"num_heads\":2,\"slopes\":[1,2],\"positions\":[1,5],\"format\":\"raw\"}", 0, 200},
    {"POST", "/encode", "format=safetensors&scheme=rope&len=4", NULL, "", 0, 200},
    {"POST", "/encode", "format=npz&scheme=rope&len=4", NULL, "", 0, 200},
    {"POST", "/encode", "format=npy&outputs=cos&scheme=rope&scaling={}", NULL, "{\"len\":4}", 0, 200},
    {"POST", "/rotate", NULL, NULL,
     "{\"scheme\":\"rope\",\"q\":{\"dtype\":\"f16\",\"shape\":[1,2],\"data\":[1,2]},\"k\":[[1,2]]}", 0, 200},
    {"POST", "/rotate", NULL, "multipart/form-data; boundary=B", multipart, sizeof multipart - 1, 200},
    {"GET", "/encode", "scheme=alibi&len=3&slice=[1]&outputs=bias&format=png&cmap=magma&vmin=-1&zoom=2", NULL, "", 0,
     200},
    {"POST", "/encode", NULL, NULL, "{\"scheme\":\"alibi\",\"num_heads\":1,\"len\":150,\"outputs\":[\"bias\"]}", 0,
     200},
    {"POST", "/encode", "format=text&columns=2", NULL, "{\"scheme\":\"alibi\",\"len\":3,\"causal\":true}", 0, 200},
    {"POST", "/encode", NULL, NULL, "{\"scheme\":\"sinusoidal\",\"len\":8193,\"format\":\"png\"}", 0, 413},
    {"POST", "/encode", NULL, NULL, "{\"scheme\":\"rop\"}", 0, 422},
    {"POST", "/encode", NULL, NULL, "{\"scheme\"", 0, 400},
    {"POST", "/encode", NULL, NULL, "{\"q\":[[1],[2,3]]}", 0, 422},
    {"GET", "/schemes/rope", NULL, NULL, "", 0, 200},
    {"GET", "/schemes", NULL, NULL, "", 0, 200},
    {"GET", "/healthz", NULL, NULL, "", 0, 200},
    {"GET", "/metrics", NULL, NULL, "", 0, 200},
    {"GET", "/docs", NULL, NULL, "", 0, 200},
    {"GET", "/encode", "scheme=rope&len=4&format=raw", NULL, "", 0, 200},
    {"PUT", "/encode", NULL, NULL, "", 0, 405},
    {"POST", "/v2/models/none/infer", NULL, "314", inference, sizeof inference, 200},
    {"POST", "/v2/models/alibi/infer", NULL, NULL,
     "{\"inputs\":[{\"name\":\"key_mask\",\"shape\":[2],\"datatype\":\"BOOL\",\"data\":[true,false]}],\"parameters\":{"
     "\"slopes\":\"[1,2]\",\"num_heads\":2,\"len\":2}}",
     0, 200},
    {"POST", "/v2/models/rope/infer", NULL, "0", "\1\0\0\0\0\0\0", 8, 200},
    {"GET", "/v2/models", NULL, NULL, "", 0, 200},
    {"GET", "/v2/models/rope/config", NULL, NULL, "", 0, 200},
    {"GET", "/zarr/" STORE "/.zmetadata", NULL, NULL, "", 0, 200},
    {"GET", "/zarr/" STORE "/zarr.json", NULL, NULL, "", 0, 200},
    {"GET", "/zarr/" STORE "/bias/.zarray", NULL, NULL, "", 0, 200},
    {"GET", "/zarr/" STORE "/bias/1.3.0", NULL, NULL, "", 0, 200},
    {"GET", "/zarr/" STORE "/bias/9.9.9", NULL, NULL, "", 0, 404},
    {"POST", "/v2/repository/models/rope/load", NULL, NULL, "{\"parameters\":{\"config\":\"\"}}", 0, 501},
};

static struct api_reply *answer_call(size_t i)
{
    size_t n = calls[i].n ? calls[i].n : strlen(calls[i].body);
    struct api_call call = {.method = calls[i].method,
                            .path = calls[i].path,
                            .query = calls[i].query,
                            .content_type = calls[i].type,
                            .inference_header = calls[i].type,
                            .body = n ? calls[i].body : NULL,
                            .body_bytes = n};
    return api_answer(&host, &call);
}

TEST(test_each_allocation_fails)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        long before = alloc_count();
        struct api_reply *reply = answer_call(i);
        long n = alloc_count() - before;
        struct answer whole = gather(reply);
        assert_answer(whole, calls[i].status, NULL);
        assert_true(n > 0);
        for (long k = 1; k <= n; k++) {
            alloc_fail_at(k);
            reply = answer_call(i);
            alloc_fail_at(-1);
            if (reply->status != 503 && reply->status != calls[i].status)
                fail_msg("call %zu, allocation %ld: %d", i, k, reply->status);
            struct answer a = gather(reply);
            assert_true(a.n > 0);
            answer_drop(&a);
        }
    }
}

/* The reply made without any memory at all. */
TEST(test_no_memory)
{
    alloc_fail_at(1);
    struct api_reply *reply = answer_call(14);
    alloc_fail_at(-1);
    assert_answer(gather(reply), 503, WORDS("not enough memory"));
}

/* jansson then allocates through our allocator, so the test can make it fail. */
void tests_begin(void) { api_setup(); }
