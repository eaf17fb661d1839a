/* /limits states the host's limits and the rights of the call; /cmaps is one constant document. */
#include "tests/api/ask.h"

static struct answer ask_as(const char *path, enum api_access access)
{
    struct api_call call = {.method = "GET", .path = path, .access = access};
    return gather(api_answer(&host, &call));
}

static void has(const struct answer *a, const char *words)
{
    if (!strstr(a->body, words))
        fail_msg("%s is missing in %.300s", words, a->body);
}

TEST(test_limits_of_the_host)
{
    struct answer a = ask_as("/limits", API_ACCESS_OPEN);
    assert_int_equal(a.status, 200);
    has(&a, "{\"max_body\":1048576,\"max_answer\":67108864,\"max_work\":1073741824,\"max_analysis\":1099511627776,");
    has(&a, "\"picture_side\":8192,\"configs\":8,\"position\":1099511627776,");
    has(&a, "\"/weights/{name}\":[\"GET\",\"HEAD\",\"PUT\",\"DELETE\"]");
    assert_string_equal(header_of(&a, "Cache-Control"), "no-store");
    assert_false(a.reply->is_repeatable);
    answer_drop(&a);
}

TEST(test_rights)
{
    static const struct {
        enum api_access access;
        const char *words;
    } rights[] = {{API_ACCESS_OPEN, "\"private\":false,\"may_write\":true"},
                  {API_ACCESS_NONE, "\"private\":true,\"may_write\":false"},
                  {API_ACCESS_WRONG, "\"private\":true,\"may_write\":false"},
                  {API_ACCESS_READ, "\"private\":true,\"may_write\":false"},
                  {API_ACCESS_WRITE, "\"private\":true,\"may_write\":true"}};
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        struct answer a = ask_as("/limits", rights[i].access);
        assert_int_equal(a.status, 200);
        has(&a, rights[i].words);
        answer_drop(&a);
    }
}

TEST(test_colours_are_one_document)
{
    struct answer a = ask_as("/cmaps", API_ACCESS_NONE), b = ask_as("/cmaps", API_ACCESS_NONE);
    assert_int_equal(a.status, 200);
    has(&a, "{\"cmaps\":[{\"name\":\"viridis\",\"colors\":[\"#440154\",");
    has(&a, "{\"name\":\"gray\",\"colors\":[\"#000000\",\"#010101\",");
    assert_true(a.reply->is_repeatable);
    assert_ptr_equal(a.reply->body->bytes, b.reply->body->bytes);
    answer_drop(&a);
    answer_drop(&b);
}
