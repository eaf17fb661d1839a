/* /analyze and /diagnose in api/: what the host is told and asked for, what happens without memory and when nobody
 * waits any more. What is found, and tags, are tested over a socket; refusals are in tests/cases/refused_api.jsonl. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

#define ROTATED                                                                                                        \
    "{\"scheme\":\"rope\",\"layout\":\"interleaved\",\"offset\":5,\"q\":[[1,2,3,4]],\"q_out\":[[3.160435,1.7975838,"   \
    "-0.107937716,4.0949593]]}"
#define ROWS "{\"scheme\":\"sinusoidal\",\"dim\":256,\"len\":4096,\"metrics\":[\"bounds\"]}"

/* ---- What the host provides ---- */

static struct {
    char names[256];
    uint64_t searched, lent, most, limit;
} seen;

static void on_step(const char *metric)
{
    size_t used = strlen(seen.names);
    snprintf(seen.names + used, sizeof seen.names - used, "%s ", metric ? metric : "end");
}

static void on_search(uint64_t n) { seen.searched += n; }

static bool take(const struct api_host *of, uint64_t n)
{
    if (n > seen.limit - seen.lent)
        return false;
    seen.lent += n;
    seen.most = seen.lent > seen.most ? seen.lent : seen.most;
    return true;
}

static void give(const struct api_host *of, uint64_t n) { seen.lent -= n; }

TEST(each_step_is_reported)
{
    struct api_host telling = host;
    char searched[64];
    telling.metric_step = on_step;
    telling.hypotheses_searched = on_search;
    memset(&seen, 0, sizeof seen);
    struct answer a = gather(post_to(
        &telling, "/analyze",
        "{\"configs\":[{\"scheme\":\"rope\"},{\"scheme\":\"sinusoidal\"}],\"len\":4,\"metrics\":[\"bounds\"]}"));
    assert_string_equal(seen.names, "bounds end bounds end ");
    assert_answer(a, 200, NULL);
    memset(&seen, 0, sizeof seen);
    a = gather(post_to(&telling, "/diagnose", ROTATED));
    assert_string_equal(seen.names, "diagnose end ");
    snprintf(searched, sizeof searched, "\"searched\":%llu", (unsigned long long)seen.searched);
    assert_true(seen.searched > 1 && a.reply->is_repeatable);
    assert_answer(a, 200, WORDS(searched, "\"layout_swapped\"", "\"pointer\":\"/layout\"", "\"detail_zh\""));
}

/* With so much memory in all, of which so much is free. */
static void assert_lent(const char *path, const char *json, uint64_t all, uint64_t is_free, int status,
                        const char *words)
{
    struct api_host lending = host;
    memset(&seen, 0, sizeof seen);
    lending.max_memory = all;
    seen.limit = is_free;
    lending.take_memory = take;
    lending.give_memory = give;
    alloc_watch();
    struct answer a = gather(post_to(&lending, path, json));
    if (strcmp(path, "/analyze") == 0)
        assert_true(status != 200 ? alloc_peak() < 1 << 20 : seen.most >= (uint64_t)alloc_peak());
    assert_true(seen.lent < 1 << 20); /* what was computed from is no longer there */
    assert_answer(a, status, WORDS(words));
    assert_int_equal(seen.lent, 0);
}

TEST(memory_is_taken_first_and_given_back)
{
    assert_lent("/analyze", ROWS, 64 << 20, 64 << 20, 200, "bounds");
    assert_lent("/analyze", ROWS, 4 << 20, 4 << 20, 413, "--max-memory");
    assert_lent("/analyze", ROWS, 64 << 20, 4 << 20, 503, "try again later");
    assert_lent("/diagnose", ROTATED, 256 << 20, 256 << 20, 200, "explained");
    assert_lent("/diagnose", ROTATED, 1000, 1000, 413, "--max-memory");
}

static bool always_gone(void *caller)
{
    (void)caller;
    return true;
}

TEST(an_answer_that_nobody_wants)
{
    static const char *const calls[][2] = {{"/analyze", ROWS}, {"/diagnose", ROTATED}};
    for (size_t i = 0; i < 2; i++) {
        struct api_call call = {
            .method = "POST", .path = calls[i][0], .body = calls[i][1], .body_bytes = strlen(calls[i][1])};
        pe_watch(always_gone, NULL);
        struct answer a = gather(api_answer(&host, &call));
        pe_watch(NULL, NULL);
        assert_int_equal(a.status, 503);
        assert_false(a.reply->is_repeatable);
        answer_drop(&a);
        call.must_not_block = true;
        assert_null(api_answer(&host, &call));
    }
}
