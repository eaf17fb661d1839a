/* Keys of calls: two calls that differ in any one thing the language looks at have different keys. */
#include "server/exchange/exchange.h"
#include "tests/support/cmocka.h"

#include <string.h>

static bool is_same_key(const struct api_call *a, const struct api_call *b)
{
    struct call_key one, other;
    assert_true(call_key_make(a, &one) && call_key_make(b, &other));
    return one.n == other.n && memcmp(one.bytes, other.bytes, one.n) == 0;
}

static struct api_call filled(void)
{
    struct api_call call = {.body = "{}", .body_bytes = 2};
    for (size_t i = 0; i < API_N_TEXTS; i++)
        call.texts[i] = "same";
    return call;
}

TEST(every_text_is_in_the_key)
{
    const char *const others[] = {"other", "sam", "", NULL};
    struct api_call call = filled();
    assert_true(is_same_key(&call, &call));
    for (size_t i = 0; i < API_N_TEXTS; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            struct api_call changed = call;
            changed.texts[i] = others[k];
            assert_false(is_same_key(&call, &changed));
        }
}

/* A text moved from one place to the next one is another request. */
TEST(neighbours_do_not_run_together)
{
    for (size_t i = 0; i + 1 < API_N_TEXTS; i++) {
        struct api_call here = {.body = NULL}, there = {.body = NULL};
        here.texts[i] = "text";
        there.texts[i + 1] = "text";
        assert_false(is_same_key(&here, &there));
    }
}

TEST(the_body_is_in_the_key)
{
    struct api_call call = filled(), shorter = call, other = call;
    shorter.body_bytes = 1;
    other.body = "[]";
    assert_false(is_same_key(&call, &shorter));
    assert_false(is_same_key(&call, &other));
}

/* What a call has beside its texts and its body: nothing of it changes the bytes of an answer that is kept. A new
 * member belongs in API_TEXTS, or, with that reason, here. */
struct known {
    enum api_access access;      /* whoever may not ask is refused before the cache is looked at */
    const char *client;          /* only the answer to a PUT has it */
    uint64_t turn;               /* whose turn it is changes no byte */
    bool is_foreign, is_unasked; /* refused before the cache is looked at */
    const char *texts[API_N_TEXTS], *body;
    size_t body_bytes;
    const struct api_route *route; /* follows from the path */
    enum pe_lang lang;             /* follows from the query and Accept-Language */
    bool has_lang, body_is_ours, is_completed, must_not_block;
};
_Static_assert(sizeof(struct known) == sizeof(struct api_call), "a member of api_call that this test does not know");

TEST(a_name_and_a_number_mean_one_text)
{
    struct api_call call = {.method = "GET", .accept = "text/html", .inference_header = "7"};
    assert_string_equal(call.texts[API_METHOD], "GET");
    assert_string_equal(call.texts[API_ACCEPT], "text/html");
    assert_string_equal(call.texts[API_INFERENCE_HEADER], "7");
    assert_null(call.texts[API_PATH]);
}
