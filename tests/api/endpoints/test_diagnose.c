/* /diagnose in api/: what a lone tensor is, what the host is asked for, what happens without memory. What is found in
 * which tensor is tested over a socket. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

#define ROTATED                                                                                                        \
    "{\"scheme\":\"rope\",\"layout\":\"interleaved\",\"offset\":5,\"q\":[[1,2,3,4]],\"q_out\":[[3.160435,1.7975838,"   \
    "-0.107937716,4.0949593]]}"

static struct answer ask_host(const struct api_host *of, const char *json)
{
    struct api_call call = {.method = "POST", .path = "/diagnose", .body = json, .body_bytes = strlen(json)};
    return gather(api_answer(of, &call));
}

TEST(the_answer_names_what_differs)
{
    assert_answer(post("/diagnose", ROTATED), 200,
                  WORDS("{\"explained\":true", "\"code\":\"layout_swapped\"", "\"pointer\":\"/layout\"",
                        "\"layout\":\"half\"", "\"detail_zh\""));
}

/* An .npy file of one number NaN, or of zeros if its type has none. */
static void assert_lone(const char *type, const char *shape, size_t n, size_t size, const char *pointer)
{
    char body[512] = "", head[256], place[64];
    int length = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", type, shape);
    memcpy(body, "\x93NUMPY\1\0", 8);
    body[8] = (char)length;
    memcpy(body + 10, head, (size_t)length);
    memset(body + 10 + length, type[1] == 'f' ? 0xff : 0, n * size);
    struct api_call call = {.method = "POST",
                            .path = "/diagnose",
                            .content_type = "application/x-npy",
                            .body = body,
                            .body_bytes = 10 + (size_t)length + n * size};
    snprintf(place, sizeof place, "\"pointer\":\"/%s", pointer);
    assert_answer(gather(api_answer(&host, &call)), 422, WORDS(place));
}

TEST(a_lone_tensor_has_a_name)
{
    assert_lone("<f4", "(2, 2)", 4, 4, "encoding");
    assert_lone("<f4", "(1, 2, 2)", 4, 4, "bias");
    assert_lone("<f8", "(1, 1, 2, 2)", 4, 8, "encoding");
    assert_lone("<i8", "(1, 1, 2, 2)", 4, 8, "position_ids");
    assert_lone("|u1", "(1, 2, 2)", 4, 1, "position_ids");
}

static struct {
    char names[64];
    uint64_t searched, lent, limit;
} seen;

static void on_step(const char *metric)
{
    size_t used = strlen(seen.names);
    snprintf(seen.names + used, sizeof seen.names - used, "%s ", metric ? metric : "end");
}

static void on_search(uint64_t n) { seen.searched += n; }

static bool take(uint64_t n)
{
    if (n > seen.limit - seen.lent)
        return false;
    seen.lent += n;
    return true;
}

static void give(uint64_t n) { seen.lent -= n; }

TEST(the_host_is_told)
{
    struct api_host telling = host;
    char searched[64];
    telling.metric_step = on_step;
    telling.hypotheses_searched = on_search;
    memset(&seen, 0, sizeof seen);
    struct answer a = ask_host(&telling, ROTATED);
    assert_string_equal(seen.names, "diagnose end ");
    snprintf(searched, sizeof searched, "\"searched\":%llu", (unsigned long long)seen.searched);
    assert_true(seen.searched > 1 && strstr(a.body, searched));
    assert_true(a.reply->is_repeatable);
    answer_drop(&a);
}

TEST(memory_is_taken_first_and_given_back)
{
    struct api_host lending = host;
    lending.take_memory = take;
    lending.give_memory = give;
    memset(&seen, 0, sizeof seen);
    lending.max_memory = seen.limit = 256 << 20;
    assert_answer(ask_host(&lending, ROTATED), 200, NULL);
    assert_int_equal(seen.lent, 0);
    lending.max_memory = seen.limit = 1000;
    assert_answer(ask_host(&lending, ROTATED), 413, WORDS("--max-memory"));
    assert_int_equal(seen.lent, 0);
}

/* Each allocation in turn: the answer is the same, or there is none. */
static void fail_each(const char *path, const char *body)
{
    long before = alloc_count();
    struct answer whole = post(path, body);
    long n = alloc_count() - before, step = n / 500 + 1; /* hundreds of hypotheses allocate alike */
    assert_int_equal(whole.status, 200);
    for (long k = 0; k < n; k += k < 200 ? 1 : step) {
        struct api_call call = {.method = "POST", .path = path, .body = body, .body_bytes = strlen(body)};
        alloc_fail_at(k);
        struct api_reply *reply = api_answer(&host, &call);
        alloc_fail_at(-1);
        struct answer a = gather(reply);
        bool same = a.status == 200 && strcmp(a.body, whole.body) == 0;
        if (a.status != 503 && !same)
            fail_msg("%s, allocation %ld of %ld: %d %s", path, k, n, a.status, a.body);
        answer_drop(&a);
    }
    answer_drop(&whole);
}

TEST(every_allocation_may_fail) { fail_each("/diagnose", ROTATED); }

TEST(so_may_those_of_two_matrices)
{
    fail_each("/diagnose", "{\"w_believed\":[[1,2],[3,4],[5,6],[7,8]],\"w_found\":[[2,4],[10,12],[6,8],[14,16]],"
                           "\"num_heads\":1}");
    fail_each("/diagnose", "{\"w_believed\":[[1],[2],[3],[4]],\"w_found\":[[3],[4],[1],[2]],\"num_heads\":2}");
}

TEST(so_may_those_of_a_probe_and_of_what_is_typed)
{
    fail_each("/diagnose/probe", "{\"scheme\":\"rope\",\"head_dim\":4,\"layout\":\"half\",\"len\":3}");
    fail_each("/diagnose", "{\"scheme\":\"rope\",\"head_dim\":4,\"values\":[{\"tensor\":\"cos\",\"position\":1,"
                           "\"channel\":0,\"value\":\"0.5403\"}]}");
}

static bool always_gone(void *caller)
{
    (void)caller;
    return true;
}

TEST(an_answer_that_nobody_wants)
{
    struct api_call call = {.method = "POST",
                            .path = "/diagnose",
                            .body = ROTATED,
                            .body_bytes = sizeof ROTATED - 1,
                            .is_gone = always_gone};
    struct answer a = gather(api_answer(&host, &call));
    assert_int_equal(a.status, 503);
    assert_false(a.reply->is_repeatable);
    answer_drop(&a);
    call.must_not_block = true;
    assert_null(api_answer(&host, &call));
}
