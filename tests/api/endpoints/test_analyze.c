/* /analyze in api/: how a request becomes configurations, which field an error names, what the answer consists of. The
 * numbers are tested over a socket. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <stdio.h>

static struct answer analyze(const char *json) { return post("/analyze", json); }

static void assert_refused(const char *json, int status, const char *pointer, const char *words)
{
    char place[200];
    snprintf(place, sizeof place, "\"pointer\":\"%s\"", pointer);
    struct answer a = analyze(json);
    if (a.status != status || (*pointer ? !strstr(a.body, place) : strstr(a.body, "\"pointer\"") != NULL) ||
        !strstr(a.body, words))
        fail_msg("%s: %d %s, not %d %s with %s", json, a.status, a.body, status, place, words);
    answer_drop(&a);
}

/* ---- Configurations ---- */

TEST(configurations_and_their_defaults)
{
    static const struct {
        const char *json, *words[4], *absent;
    } cases[] = {
        {"{\"scheme\":\"rope\",\"len\":4,\"head_dim\":8}",
         {"{\"configs\":[{\"scheme\":\"rope\",\"head_dim\":8", "\"results\":[{\"", "\"tensors\":{"},
         "head_dim\":64"},
        {"{\"configs\":[{\"scheme\":\"rope\",\"base\":500.0},{\"scheme\":\"rope\"}],\"len\":4,\"head_dim\":8,"
         "\"base\":77.0}",
         {"\"head_dim\":8,\"rotary_dim\":8,\"rotary_offset\":0,\"base\":500.0",
          "\"head_dim\":8,\"rotary_dim\":8,\"rotary_offset\":0,\"base\":77.0"},
         NULL},
        /* An object is replaced as a whole. */
        {"{\"scheme\":\"rope\",\"len\":4,\"scaling\":{\"type\":\"linear\",\"factor\":4.0},"
         "\"configs\":[{},{\"scaling\":{\"type\":\"default\"}}]}",
         {"\"factor\":4.0", "\"scaling\":{\"type\":\"default\"}"},
         "\"type\":\"default\",\"factor\""},
        {"{\"configs\":[{\"preset\":\"llama-3.1\"},{\"scheme\":\"sinusoidal\",\"dim\":8}],\"len\":4}",
         {"\"type\":\"llama3\"", "\"scheme\":\"sinusoidal\",\"dim\":8"},
         NULL},
        /* A tensor may be of one configuration or of all. */
        {"{\"scheme\":\"learned\",\"configs\":[{\"table\":[[1,2],[3,4]],\"len\":2},{\"len\":1}],"
         "\"table\":{\"dtype\":\"f64\",\"shape\":[1,2],\"data\":[5,6]},\"metrics\":[\"bounds\"]}",
         {"\"bounds\":{\"value\":4.0", "\"bounds\":{\"value\":6.0"},
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer a = analyze(cases[i].json);
        for (const char *const *word = cases[i].words; *word; word++)
            if (a.status != 200 || !strstr(a.body, *word))
                fail_msg("%s: %d without %s: %s", cases[i].json, a.status, *word, a.body);
        if (cases[i].absent && strstr(a.body, cases[i].absent))
            fail_msg("%s: %s in %s", cases[i].json, cases[i].absent, a.body);
        answer_drop(&a);
    }
}

/* The same configurations alone: each result is a part of the answer to all. */
TEST(an_entry_is_analysed_as_alone)
{
    struct answer both =
        analyze("{\"configs\":[{\"scheme\":\"rope\",\"head_dim\":8},{\"scheme\":\"sinusoidal\",\"dim\":"
                "6}],\"len\":9,\"metrics\":[\"bounds\"]}");
    static const char *const alone[] = {"{\"scheme\":\"rope\",\"head_dim\":8,\"len\":9,\"metrics\":[\"bounds\"]}",
                                        "{\"len\":9,\"configs\":[{\"scheme\":\"sinusoidal\",\"dim\":6}],\"metrics\":["
                                        "\"bounds\"]}"};
    for (size_t i = 0; i < 2; i++) {
        struct answer one = analyze(alone[i]);
        char *begin = strstr(one.body, "\"results\":[") + strlen("\"results\":["),
             *end = strstr(begin, "],\"tensors\"");
        *end = '\0';
        assert_non_null(strstr(both.body, begin));
        answer_drop(&one);
    }
    answer_drop(&both);
}

/* A scheme with seeded weights has a field of the endpoint's name. */
TEST(the_seed_belongs_to_both)
{
    struct answer common = analyze("{\"scheme\":\"learned\",\"len\":4,\"dim\":4,\"seed\":3,\"metrics\":[\"bounds\"]}");
    struct answer own = analyze("{\"configs\":[{\"scheme\":\"learned\",\"seed\":3}],\"len\":4,\"dim\":4,\"metrics\":["
                                "\"bounds\"]}");
    struct answer other = analyze("{\"configs\":[{\"scheme\":\"learned\",\"seed\":4}],\"len\":4,\"dim\":4,\"metrics\":["
                                  "\"bounds\"]}");
    assert_int_equal(common.status, 200);
    assert_string_equal(common.body, own.body);
    assert_string_not_equal(own.body, other.body);
    answer_drop(&common);
    answer_drop(&own);
    answer_drop(&other);
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"seed\":3}],\"len\":4}", 422, "/configs/0/seed",
                   "about the whole request");
    assert_refused("{\"scheme\":\"rope\",\"seed\":3,\"len\":4,\"metrics\":[\"bounds\"]}", 422, "/seed", "seed");
}

TEST(refusals_name_the_field)
{
    assert_refused("{\"configs\":[]}", 422, "/configs", "1 to 8");
    assert_refused("{\"configs\":{\"scheme\":\"rope\"}}", 422, "/configs", "list");
    assert_refused("{\"configs\":[1,2]}", 422, "/configs", "list");
    assert_refused("{\"configs\":[{},{},{},{},{},{},{},{},{}],\"scheme\":\"rope\",\"len\":4}", 422, "/configs",
                   "has 9");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"len\":4},\"rope\"]}", 422, "/configs/1", "objects");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\"},{\"scheme\":\"rope\",\"base\":-1}],\"len\":4}", 422,
                   "/configs/1/base", "base is -1");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\"},{\"scheme\":\"rope\"}],\"len\":4,\"base\":-1}", 422, "/base",
                   "base is -1");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"len\":4,\"lang\":\"zh\"}]}", 422, "/configs/0/lang", "beside");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"len\":4,\"format\":\"npz\"}]}", 422, "/configs/0/format",
                   "beside");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"len\":4,\"metrics\":[\"bounds\"]}]}", 422,
                   "/configs/0/metrics", "beside");
    assert_refused("{\"configs\":[{\"scheme\":\"rope\",\"len\":4,\"configs\":[]}]}", 422, "/configs/0/configs",
                   "beside");
    assert_refused("{\"configs\":[{\"len\":4}]}", 422, "/configs/0/scheme", "scheme");
    assert_refused("{\"len\":4}", 422, "/scheme", "scheme");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"slice\":[1]}", 422, "/slice", "whole");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"reduce\":\"mean\"}", 422, "/reduce", "whole");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"lang\":\"fr\"}", 422, "/lang", "\\\"zh\\\"");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"lang\":4}", 422, "/lang", "\\\"zh\\\"");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"metrics\":[\"bound\"]}", 422, "/metrics/0", "bounds");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"metric\":[\"bounds\"]}", 422, "/metric", "metrics");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"weights\":\"w\"}", 422, "/weights", "stored");
    assert_refused("{\"configs\":[{\"scheme\":\"learned\",\"len\":4,\"weights\":{\"name\":\"w\"}}]}", 422,
                   "/configs/0/weights/name", "stored");
    assert_refused("{\"scheme\":\"rope\",\"len\":1099511627776}", 413, "", "16384");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"outputs\":[],\"format\":\"npy\"}", 406, "/outputs", "npy");
    assert_refused("{\"scheme\":\"rope\",\"len\":4,\"outputs\":[],\"format\":\"png\"}", 406, "", "no tensor");
}

/* ---- A lone tensor, queries ---- */

TEST(a_lone_npy_is_refused_by_name)
{
    static const char head[] = "\x93NUMPY\1\0??{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
    char body[sizeof head + 3] = {0};
    memcpy(body, head, sizeof head - 1);
    body[8] = sizeof head - 1 - 10;
    body[9] = 0;
    struct api_call call = {.method = "POST",
                            .path = "/analyze",
                            .query = "scheme=rope&len=4",
                            .content_type = "application/x-npy",
                            .body = body,
                            .body_bytes = sizeof body};
    assert_answer(gather(api_answer(&host, &call)), 422, WORDS("\"/q\""));
}

static struct answer query(const char *text)
{
    struct api_call call = {.method = "GET", .path = "/analyze", .query = text};
    return gather(api_answer(&host, &call));
}

TEST(a_query_says_the_same)
{
    struct answer posted =
        analyze("{\"scheme\":\"rope\",\"len\":4,\"head_dim\":8,\"metrics\":[\"bounds\"],\"outputs\":[]}");
    static const char *const queries[] = {
        "scheme=rope&len=4&head_dim=8&metrics=bounds&outputs=[]",
        "metrics=%5B%22bounds%22%5D&scheme=rope&len=4&head_dim=8&outputs=%5B%5D",
        "configs=[{%22scheme%22:%22rope%22}]&len=4&head_dim=8&metrics=bounds&outputs=[]",
        "request={%22scheme%22:%22rope%22,%22len%22:4,%22head_dim%22:8,%22metrics%22:[%22bounds%22]}&outputs=[]"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct answer asked = query(queries[i]);
        assert_int_equal(asked.status, 200);
        assert_string_equal(asked.body, posted.body);
        answer_drop(&asked);
    }
    answer_drop(&posted);
}

/* ---- Tags ---- */

TEST(a_tag_names_all_that_the_answer_depends_on)
{
    static const char *const queries[] = {
        "scheme=rope&len=4",
        "scheme=rope&len=5",
        "scheme=rope&len=4&head_dim=32",
        "scheme=rope&len=4&metrics=bounds",
        "scheme=rope&len=4&outputs=[]",
        "scheme=rope&len=4&lang=zh",
        "scheme=rope&len=4&format=npz",
        "scheme=rope&len=4&digits=3",
        "scheme=rope&len=4&dtype=f64",
        "configs=[{%22scheme%22:%22rope%22},{%22scheme%22:%22rope%22}]&len=4",
        "configs=[{%22scheme%22:%22rope%22},{%22scheme%22:%22rope%22,%22len%22:5}]&len=4",
        "configs=[{%22scheme%22:%22rope%22,%22len%22:5},{%22scheme%22:%22rope%22}]&len=4",
        "scheme=learned&table=[[1,2]]&len=1",
        "scheme=learned&table=[[1,3]]&len=1",
    };
    enum { N = sizeof queries / sizeof *queries };
    char tags[N][64];
    for (size_t i = 0; i < N; i++) {
        struct answer a = query(queries[i]);
        if (a.status != 200)
            fail_msg("%s: %s", queries[i], a.body);
        snprintf(tags[i], sizeof tags[i], "%s", header_of(&a, "ETag"));
        answer_drop(&a);
        for (size_t j = 0; j < i; j++)
            if (strcmp(tags[i], tags[j]) == 0)
                fail_msg("%s and %s have one tag", queries[i], queries[j]);
        struct api_call again = {.method = "GET", .path = "/analyze", .query = queries[i], .if_none_match = tags[i]};
        struct answer unchanged = gather(api_answer(&host, &again));
        assert_int_equal(unchanged.status, 304);
        assert_string_equal(header_of(&unchanged, "ETag"), tags[i]);
        assert_non_null(strstr(header_of(&unchanged, "Vary"), "Accept-Language"));
        answer_drop(&unchanged);
    }
}

/* ---- What the host provides ---- */

static struct {
    char names[512];
    size_t n_open;
    uint64_t lent, most, limit;
} seen;

static void on_step(const char *metric)
{
    size_t used = strlen(seen.names);
    if (metric)
        snprintf(seen.names + used, sizeof seen.names - used, "%s ", metric);
    seen.n_open += metric ? 1 : (size_t)-1;
}

static bool take(uint64_t n)
{
    if (n > seen.limit - seen.lent)
        return false;
    seen.lent += n;
    seen.most = seen.lent > seen.most ? seen.lent : seen.most;
    return true;
}

static void give(uint64_t n) { seen.lent -= n; }

static struct answer ask_host(const struct api_host *of, const char *json)
{
    struct api_call call = {.method = "POST", .path = "/analyze", .body = json, .body_bytes = strlen(json)};
    return gather(api_answer(of, &call));
}

TEST(each_metric_is_reported)
{
    struct api_host counting = host;
    counting.metric_step = on_step;
    memset(&seen, 0, sizeof seen);
    struct answer a = ask_host(&counting, "{\"configs\":[{\"scheme\":\"rope\"},{\"scheme\":\"sinusoidal\"}],\"len\":4,"
                                          "\"metrics\":[\"bounds\"]}");
    assert_int_equal(a.status, 200);
    assert_string_equal(seen.names, "bounds bounds ");
    assert_int_equal(seen.n_open, 0);
    answer_drop(&a);
}

TEST(memory_is_taken_first)
{
    static const char json[] = "{\"scheme\":\"sinusoidal\",\"dim\":256,\"len\":4096,\"metrics\":[\"bounds\"]}";
    struct api_host lending = host;
    lending.max_memory = seen.limit = 64 << 20;
    lending.take_memory = take;
    lending.give_memory = give;
    memset(&seen, 0, sizeof seen);
    seen.limit = lending.max_memory;
    alloc_watch();
    struct answer a = ask_host(&lending, json);
    assert_int_equal(a.status, 200);
    assert_true(seen.most >= 4096 * 256 * sizeof(double) && seen.most >= (uint64_t)alloc_peak());
    assert_true(seen.lent < 1 << 20); /* the rows are no longer there */
    answer_drop(&a);
    assert_int_equal(seen.lent, 0);
    lending.max_memory = seen.limit = 4 << 20;
    alloc_watch();
    assert_answer(ask_host(&lending, json), 413, WORDS("--max-memory"));
    assert_true(alloc_peak() < 1 << 20);
    assert_int_equal(seen.lent, 0);
    lending.max_memory = 64 << 20;
    assert_answer(ask_host(&lending, json), 503, WORDS("try again later"));
    assert_int_equal(seen.lent, 0);
}

TEST(the_work_has_a_limit)
{
    struct api_host small = host;
    small.max_analysis = 1000;
    assert_answer(ask_host(&small, "{\"scheme\":\"rope\",\"head_dim\":64,\"len\":64,\"metrics\":[\"bounds\"]}"), 413,
                  WORDS("--max-analysis", "1.8e+06", "1e+03"));
}

TEST(every_allocation_may_fail)
{
    static const char json[] = "{\"configs\":[{\"scheme\":\"learned\",\"table\":[[1,2],[3,4]],\"len\":2},{\"scheme\":"
                               "\"rope\",\"head_dim\":8}],\"len\":4,\"lang\":\"zh\"}";
    long before = alloc_count();
    struct answer whole = analyze(json);
    long n = alloc_count() - before;
    assert_int_equal(whole.status, 200);
    for (long k = 0; k < n; k++) {
        struct api_call call = {.method = "POST", .path = "/analyze", .body = json, .body_bytes = sizeof json - 1};
        alloc_fail_at(k);
        struct api_reply *reply = api_answer(&host, &call);
        alloc_fail_at(-1);
        struct answer a = gather(reply);
        if (a.status != 503 && (a.status != 200 || strcmp(a.body, whole.body) != 0))
            fail_msg("allocation %ld: %d %s", k, a.status, a.body);
        answer_drop(&a);
    }
    answer_drop(&whole);
}

static bool always_gone(void *caller)
{
    (void)caller;
    return true;
}

TEST(an_answer_that_nobody_wants)
{
    static const char json[] = "{\"scheme\":\"sinusoidal\",\"dim\":64,\"len\":4096}";
    struct api_call call = {
        .method = "POST", .path = "/analyze", .body = json, .body_bytes = sizeof json - 1, .is_gone = always_gone};
    struct answer a = gather(api_answer(&host, &call));
    assert_int_equal(a.status, 503);
    assert_false(a.reply->is_repeatable);
    answer_drop(&a);
    struct api_call hurried = {
        .method = "POST", .path = "/analyze", .body = json, .body_bytes = sizeof json - 1, .must_not_block = true};
    assert_null(api_answer(&host, &hurried));
}
