/* Pictures that nobody waits for, and pictures that nobody reads. What a client that leaves is given is in
 * test_leaving.c. */
#include "tests/api/ask.h"

struct client {
    int n_asked;
};

static bool is_gone(void *caller)
{
    ((struct client *)caller)->n_asked++;
    return false;
}

static const char *const requests[] = {
    "{\"scheme\":\"sinusoidal\",\"len\":4000,\"dim\":64,\"format\":\"png\"}",
    "{\"scheme\":\"sinusoidal\",\"len\":40000,\"dim\":64,\"format\":\"text\",\"columns\":1000}",
};

/* A call with must_not_block gets no picture, whatever its size; a matching tag needs no picture. */
TEST(test_hurried)
{
    const char *query = "scheme=sinusoidal&len=2&dim=2&format=png";
    struct api_call call = {.method = "GET", .path = "/encode", .query = query, .must_not_block = true};
    assert_null(api_answer(&host, &call));
    struct client drawn = {0}, client = {0};
    call.must_not_block = false;
    pe_watch(is_gone, &drawn);
    struct answer first = gather(api_answer(&host, &call));
    assert_int_equal(first.status, 200);
    call.if_none_match = header_of(&first, "ETag");
    pe_watch(is_gone, &client);
    assert_answer(gather(api_answer(&host, &call)), 304, NULL);
    pe_watch(NULL, NULL);
    assert_true(client.n_asked < drawn.n_asked); /* reading the request checks too, drawing no longer does */
    answer_drop(&first);
}

/* All pictures together are limited, a single one is not; a picture that has been read frees its room. */
TEST(test_pictures_that_nobody_reads)
{
    struct api_host small = host;
    struct api_reply *kept[3];
    for (size_t i = 0; i < 2; i++) { /* png, text */
        small.max_pictures = 1;
        kept[0] = post_to(&small, "/encode", requests[i]);
        assert_int_equal(kept[0]->status, 200);
        struct answer second = gather(post_to(&small, "/encode", requests[i]));
        assert_int_equal(second.status, 503);
        assert_string_equal(header_of(&second, "Retry-After"), "1");
        assert_non_null(strstr(second.body, "--buffer-memory"));
        answer_drop(&second);
        small.max_pictures = 2 * kept[0]->body->length;
        kept[1] = post_to(&small, "/encode", requests[i]);
        assert_int_equal(kept[1]->status, 200);
        assert_answer(gather(post_to(&small, "/encode", requests[i])), 503, WORDS("others"));
        small.max_pictures = 3 * kept[0]->body->length - 1; /* there is room, but too little */
        assert_answer(gather(post_to(&small, "/encode", requests[i])), 503, WORDS("others"));
        small.max_pictures++;
        kept[2] = post_to(&small, "/encode", requests[i]);
        assert_int_equal(kept[2]->status, 200);
        for (size_t j = 0; j < 3; j++)
            api_reply_free(kept[j]);
        small.max_pictures = 1;
        assert_answer(gather(post_to(&small, "/encode", requests[i])), 200, NULL);
    }
}
