/* An answer made step by step is the answer made at once, whichever thread takes a step; what is left before its end
 * leaves nothing behind; and what is long is known before it is done. */
#include "tests/api/ask.h"

static const struct {
    const char *method, *path, *query, *body;
    int n_steps;   /* 0: opening it is the answer */
    int long_from; /* the first step that a worker should take; -1: none */
} rows[] = {
    {"GET", "/schemes/rope", NULL, NULL, 0, -1},
    {"GET", "/healthz", NULL, NULL, 0, -1},
    {"OPTIONS", "/encode", NULL, NULL, 1, -1},
    {"POST", "/encode", NULL, "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4}", 3, -1},
    {"GET", "/encode", "scheme=alibi&len=3&format=npz", NULL, 3, -1},
    {"POST", "/encode", NULL, "{\"scheme\":\"rop\"}", 2, -1},
    {"POST", "/encode", NULL, "{\"scheme\"", 1, -1},
    {"POST", "/encode", NULL, "{\"scheme\":\"sinusoidal\",\"len\":9,\"format\":\"png\"}", 3, 2},
    {"POST", "/rotate", NULL, "{\"scheme\":\"rope\",\"q\":[[1,2]]}", 3, -1},
    {"POST", "/rotate", NULL, "{\"scheme\":\"rope\",\"q\":{\"shape\":[4000,64],\"seed\":1}}", 4, 1},
    {"POST", "/analyze", NULL, "{\"scheme\":\"rope\",\"len\":8,\"metrics\":[\"bounds\"]}", 3, 0},
    {"POST", "/diagnose", NULL, "{\"scheme\":\"rope\",\"q\":[[1,2]],\"q_out\":[[1,2]]}", 3, 0},
    {"GET", "/zarr/scheme=rope&len=8/zarr.json", NULL, NULL, 3, -1},
    {"GET", "/zarr/scheme=rope&len=8/cos/0.0", NULL, NULL, 3, -1},
    {"POST", "/v2/models/rope/infer", NULL, "{\"inputs\":[],\"parameters\":{\"len\":2,\"head_dim\":4}}", 3, -1},
    {"POST", "/v2/models/nope/infer", NULL, "{}", 1, -1},
    {"PUT", "/weights/a", NULL, "{}", 1, 0},
    {"GET", "/weights", NULL, NULL, 1, 0},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static struct api_call call_of(size_t i)
{
    return (struct api_call){.method = rows[i].method,
                             .path = rows[i].path,
                             .query = rows[i].query,
                             .body = rows[i].body,
                             .body_bytes = rows[i].body ? strlen(rows[i].body) : 0};
}

static void assert_same(struct answer a, struct answer b)
{
    assert_int_equal(a.status, b.status);
    assert_string_equal(a.reply->content_type ? a.reply->content_type : "",
                        b.reply->content_type ? b.reply->content_type : "");
    assert_int_equal(a.reply->n_headers, b.reply->n_headers);
    for (size_t i = 0; i < a.reply->n_headers; i++)
        assert_string_equal(a.reply->headers[i].value, b.reply->headers[i].value);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.body, b.body, a.n);
    answer_drop(&a);
    answer_drop(&b);
}

static void test_same_answer(void **state)
{
    (void)state;
    struct api_host roomy = host;
    roomy.max_pictures = 1 << 20; /* both answers are there at a time */
    for (size_t i = 0; i < N_ROWS; i++) {
        struct api_call call = call_of(i);
        struct api_reply *reply;
        struct api_request *request = api_open(&roomy, &call, &reply);
        int n = 0, long_from = -1;
        for (; request && !reply; n++) {
            bool is_long = api_is_long(request);
            if (is_long && long_from < 0)
                long_from = n;
            reply = api_step(request, !is_long);
        }
        if (request)
            api_close(request);
        if (rows[i].long_from != long_from || (rows[i].n_steps != n && long_from != 0))
            fail_msg("%s: %d steps, long from %d", rows[i].path, n, long_from);
        assert_same(gather(reply), gather(api_answer(&roomy, &call)));
    }
}

/* The body of an answer outlives the request that it came from. */
static void test_left_on_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        for (int n = 0; n < 3; n++) {
            struct api_call call = call_of(i);
            struct api_reply *reply;
            struct api_request *request = api_open(&host, &call, &reply);
            for (int k = 0; k < n && request && !reply; k++)
                reply = api_step(request, false);
            if (request)
                api_close(request);
            api_reply_free(reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answer),
        cmocka_unit_test(test_left_on_the_way),
    };
    api_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
