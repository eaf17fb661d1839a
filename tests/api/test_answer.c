/* Answers beside their numbers: order, what is printed in one piece, who is hurried. */
#include "api/replies/replies.h"
#include "tests/api/ask.h"

/* Data is ordered by element size, so that each tensor is aligned: slopes and bias alike here, then by name. */
TEST(test_safetensors_order)
{
    struct answer a = post(
        "/encode",
        "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4,\"dtype\":\"f16\",\"outputs\":[\"sin\",\"cos\",\"inv_freq\"],"
        "\"format\":\"safetensors\"}");
    const char *inv_freq = strstr(a.body + 8, "\"inv_freq\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}");
    const char *cosines = strstr(a.body + 8, "\"cos\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[16,28]}");
    const char *sines = strstr(a.body + 8, "\"sin\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[28,40]}");
    assert_true(inv_freq && inv_freq < cosines && cosines < sines);
    answer_drop(&a);
}

TEST(test_small_json_is_one_piece)
{
    struct answer a = post("/rotate", "{\"scheme\":\"rope\",\"offset\":1,\"q\":[[1,0]]}");
    assert_int_equal(a.reply->body->n_pieces, 1);
    assert_int_equal(a.reply->pace, API_PACE_READY);
    assert_answer(a, 200,
                  WORDS("\"tensors\":{\"q\":{\"dtype\":\"f32\",\"shape\":[1,2],\"data\":[[0.5403023,0.84147096]]}}}"));
    a = post("/encode", "{\"scheme\":\"rope\",\"len\":2,\"head_dim\":4,\"data\":false}");
    assert_int_equal(a.reply->body->length, a.n); /* no numbers: the length is known before the text is printed */
    assert_answer(a, 200, WORDS("\"cos\":{\"dtype\":\"f32\",\"shape\":[2,2]}"));
}

/* A caller that must not block is sent to a worker if planning takes long, and only then. */
TEST(hurried_callers_do_not_wait)
{
    static const char *const slow[] = {
        "{\"scheme\":\"rope\",\"segments\":[{\"type\":\"text\",\"len\":200000}],\"data\":false}",
        "{\"scheme\":\"rope\",\"segments\":[{\"type\":\"video\",\"grid\":[10,100,100]}],\"data\":false}",
        "{\"scheme\":\"sinusoidal\",\"dim\":65536,\"len\":1,\"data\":false}",
        "{\"scheme\":\"rope\",\"lens\":[9000,9000],\"data\":false}",
    };
    const char *quick = "{\"scheme\":\"rope\",\"len\":1000000,\"head_dim\":128,\"data\":false}";
    const struct api_host local = {.max_body = 1 << 20, .max_answer = 1ULL << 40, .commit = "test"};
    struct api_call call = {.method = "POST", .path = "/encode", .must_not_block = true};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        call.body = slow[i];
        call.body_bytes = strlen(slow[i]);
        struct api_request *rest = NULL;
        struct api_reply *reply = NULL;
        assert_int_equal(api_read(&local, &call, &rest, &reply), API_ELSEWHERE);
        assert_non_null(rest); /* it has been read and checked, and a worker only builds the answer */
        assert_null(api_answer(&local, &call));
        call.must_not_block = false;
        assert_int_equal(api_read(&local, &call, &rest, &reply), API_READ);
        struct answer built = gather(api_build(rest));
        struct answer whole = gather(api_answer(&local, &call));
        assert_int_equal(whole.status, 200);
        assert_int_equal(built.status, 200);
        assert_string_equal(built.body, whole.body);
        answer_drop(&built);
        answer_drop(&whole);
        call.must_not_block = true;
    }
    call.body = quick;
    call.body_bytes = strlen(quick);
    struct api_reply *reply = api_answer(&local, &call);
    assert_non_null(reply);
    assert_int_equal(reply->status, 200);
    api_reply_free(reply);
}

TEST(an_empty_text_is_no_lack_of_memory)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    struct answer empty = gather(api_reply_text(200, "text/plain", &text));
    assert_int_equal(empty.n, 0);
    assert_answer(empty, 200, NULL);
    text.state = API_TEXT_NO_MEMORY;
    assert_answer(gather(api_reply_text(200, "text/plain", &text)), 503, NULL);
}
