/* pe_call of posenc.h: the bytes of the service, read in pieces of any size, in constant memory; what is refused; and
 * what it leaves alone of the program: its locale, its jansson, other threads and the parent of a fork. The rows of
 * tests/cases are compared with a server's bytes in tests/http/catalogue/test_call.py. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

#include <jansson.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The whole body, read n bytes at a time; with a zero byte behind it. Owned. */
static char *read_all(struct pe_reply *reply, size_t step, size_t *n)
{
    char *body = calloc(1, 1);
    ptrdiff_t got;
    *n = 0;
    do {
        body = realloc(body, *n + step + 1);
        assert_non_null(body);
        got = pe_reply_read(reply, body + *n, step);
        assert_true(got >= 0 && (size_t)got <= step);
        *n += (size_t)got;
    } while (got > 0);
    body[*n] = '\0';
    return body;
}

static struct pe_reply *call_json(const char *target, const char *json)
{
    return pe_call("POST", target, "application/json", json, strlen(json), 0, 0);
}

static void assert_call(struct pe_reply *reply, int status, const char *type, const char *words)
{
    size_t n;
    assert_non_null(reply);
    char *body = read_all(reply, 4096, &n), length[24];
    if (pe_reply_status(reply) != status || !strstr(body, words))
        fail_msg("%d, expected %d and %s: %.400s", pe_reply_status(reply), status, words, body);
    assert_string_equal(pe_reply_type(reply), type);
    assert_string_equal(pe_reply_header(reply, "content-type"), type);
    snprintf(length, sizeof length, "%zu", n);
    if (pe_reply_header(reply, "Content-Length"))
        assert_string_equal(pe_reply_header(reply, "Content-Length"), length);
    free(body);
    pe_reply_free(reply);
}

static const char problem[] = "application/problem+json", plain_json[] = "application/json";

#define ROTATED                                                                                                        \
    "{\"scheme\":\"rope\",\"layout\":\"interleaved\",\"offset\":5,\"q\":[[1,2,3,4]],\"q_out\":[[3.160435,1.7975838,"   \
    "-0.107937716,4.0949593]]}"

TEST(every_kind_of_request)
{
    assert_call(pe_call("GET", "/schemes/rope", NULL, NULL, 0, 0, 0), 200, plain_json, "\"name\":\"rope\"");
    assert_call(pe_call("GET", "/%73chemes/rope", NULL, NULL, 0, 0, 0), 200, plain_json, "\"name\":\"rope\"");
    assert_call(pe_call("GET", "http://localhost/encode?scheme=rope&len=3&head_dim=4", NULL, NULL, 0, 0, 0), 200,
                plain_json, "0.5403023");
    assert_call(call_json("/explain", "{\"preset\":\"llama-3.1\"}"), 200, plain_json, "\"layers\"");
    assert_call(call_json("/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), 200, plain_json, "\"id\":1");
    struct pe_reply *reply = call_json("/check", ROTATED);
    assert_string_equal(pe_reply_header(reply, "posenc-fits"), "?0");
    assert_null(pe_reply_header(reply, "X-None"));
    assert_null(pe_reply_header(reply, NULL));
    assert_call(reply, 200, plain_json, "\"layout_swapped\"");
    pe_reply_free(NULL);
}

/* The texts of the call need not last. */
TEST(only_the_body_is_borrowed)
{
    char method[] = "POST", target[] = "/encode?format=raw&outputs=cos", type[] = "application/json";
    const char body[] = "{\"scheme\":\"rope\",\"len\":2,\"head_dim\":2}";
    float cosines[2];
    struct pe_reply *reply = pe_call(method, target, type, body, sizeof body - 1, 0, 0);
    memset(method, 'x', sizeof method - 1);
    memset(target, 'x', sizeof target - 1);
    memset(type, 'x', sizeof type - 1);
    assert_int_equal(pe_reply_status(reply), 200);
    assert_string_equal(pe_reply_type(reply), "application/octet-stream");
    assert_int_equal(pe_reply_read(reply, cosines, sizeof cosines), sizeof cosines);
    assert_int_equal(pe_reply_read(reply, cosines, sizeof cosines), 0);
    assert_true(cosines[0] == 1 && cosines[1] == 0.540302305868139717f);
    pe_reply_free(reply);
}

TEST(what_needs_a_server_is_refused)
{
    static const char *const rows[][2] = {{"GET", "/metrics"},
                                          {"GET", "/healthz"},
                                          {"GET", "/readyz"},
                                          {"GET", "/"},
                                          {"GET", "/docs"},
                                          {"GET", "/ui/b/x.js"},
                                          {"GET", "/clients/posenc.py"},
                                          {"POST", "/experiments"},
                                          {"GET", "/experiments"},
                                          {"PUT", "/presets/x"},
                                          {"DELETE", "/presets/x"},
                                          {"PUT", "/weights/x"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_call(pe_call(rows[i][0], rows[i][1], NULL, NULL, 0, 0, 0), 404, problem, "needs a server (posencd)");
    assert_call(pe_call("GET", "/weights/x", NULL, NULL, 0, 0, 0), 404, problem, "no weights");
    assert_call(pe_call("GET", "/presets/none-such", NULL, NULL, 0, 0, 0), 404, problem, "none-such");
}

TEST(mistakes_are_sentences)
{
    assert_call(pe_call(NULL, NULL, NULL, NULL, 0, 0, 0), 400, problem, "not a path that starts with /");
    assert_call(pe_call(NULL, "/encode", NULL, NULL, 0, 0, 0), 405, problem, "does not take NULL; allowed: GET");
    assert_call(pe_call("GET", "/encode%0", NULL, NULL, 0, 0, 0), 400, problem, "two hexadecimal digits");
    assert_call(pe_call("GET", "/encod", NULL, NULL, 0, 0, 0), 404, problem, "nearest: /encode");
    assert_call(pe_call("POST", "/encode", plain_json, NULL, 1000, 0, 0), 400, problem, "detail");
    assert_call(call_json("/encode", "{\"scheme\":\"rope\",\"lenn\":2}"), 422, problem, "nearest: \\\"len\\\"");
    assert_call(call_json("/encode?lang=zh", "{\"scheme\":\"rope\",\"lenn\":2}"), 422, problem,
                "\xe6\x9c\xaa\xe7\x9f\xa5");                                              /* unknown */
    assert_call(call_json("/v2/models/no-such/infer", "{}"), 404, plain_json, "no-such"); /* as clients of /v2 expect */
    assert_call(pe_call("GET", "/encode?scheme=rope", NULL, NULL, 0, 0, 0), 422, problem,
                "missing"); /* English again */
}

TEST(limits_refuse)
{
    static const char rows[] = "{\"scheme\":\"sinusoidal\",\"dim\":256,\"len\":4096,\"metrics\":[\"bounds\"]}";
    assert_call(pe_call("POST", "/analyze", plain_json, rows, sizeof rows - 1, 64 << 10, 0), 413, problem,
                "--max-memory");
    assert_call(pe_call("POST", "/analyze", plain_json, rows, sizeof rows - 1, 0, 1000), 413, problem,
                "--max-analysis");
    assert_call(pe_call("POST", "/analyze", plain_json, rows, sizeof rows - 1, 256 << 20, 1e12), 200, plain_json,
                "bounds");
    static const char scores[] = "{\"scheme\":\"alibi\",\"len\":512,\"tokens\":[],\"q\":{\"shape\":[1,8,512,64],"
                                 "\"seed\":1},\"k\":{\"shape\":[1,8,512,64],\"seed\":2},\"outputs\":[\"scores\"]}";
    assert_call(pe_call("POST", "/attention", plain_json, scores, sizeof scores - 1, 0, 1000), 413, problem,
                "--max-work");
}

/* Any step gives the bytes of one read, and the memory in use does not grow with the answer. */
TEST(pieces_of_any_size)
{
    static const char body[] = "{\"scheme\":\"rope\",\"len\":20000,\"head_dim\":64,\"format\":\"npz\"}";
    size_t n, n_again;
    struct pe_reply *reply = call_json("/encode", body);
    char *whole = read_all(reply, 32 << 20, &n);
    pe_reply_free(reply);
    static const size_t steps[] = {7919, 65536, 1000003};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char *again = read_all(reply = call_json("/encode", body), steps[i], &n_again);
        assert_int_equal(n, n_again);
        assert_memory_equal(whole, again, n);
        pe_reply_free(reply);
        free(again);
    }
    free(whole);
    static char piece[1 << 20];
    alloc_watch();
    reply = call_json("/encode", "{\"scheme\":\"rope\",\"len\":400000,\"head_dim\":128,\"format\":\"raw\"}");
    for (n = 0; (n_again = (size_t)pe_reply_read(reply, piece, sizeof piece)) > 0;)
        n += n_again;
    pe_reply_free(reply);
    assert_int_equal(n, 2 * 400000 * 64 * sizeof(float));
    assert_true(alloc_peak() < 8 << 20);
}

/* ---- The program around it ---- */

static bool is_gone(void *n_asked) { return ++*(long *)n_asked >= 3; }

TEST(work_is_cancelled)
{
    static char piece[1 << 20];
    long n_asked = 0;
    pe_watch(is_gone, &n_asked);
    assert_call(call_json("/diagnose", ROTATED), 503, problem, "left before its answer was ready");
    pe_watch(NULL, NULL);
    struct pe_reply *reply = call_json("/encode", "{\"scheme\":\"rope\",\"len\":400000,\"format\":\"raw\"}");
    assert_int_equal(pe_reply_status(reply), 200);
    n_asked = 0;
    pe_watch(is_gone, &n_asked);
    ptrdiff_t n = 1;
    for (int i = 0; n > 0 && i < 1000; i++)
        n = pe_reply_read(reply, piece, sizeof piece);
    pe_watch(NULL, NULL);
    assert_true(n < 0);
    assert_true(pe_reply_read(reply, piece, sizeof piece) < 0); /* what is missing does not come back */
    pe_reply_free(reply);
}

/* Those of jansson, whose memory the program may draw from a place of its own. */
static long n_program;
static void *program_malloc(size_t n)
{
    char *place = malloc(n + 64);
    n_program += place != NULL;
    return place ? place + 64 : NULL;
}
static void program_free(void *place)
{
    n_program -= place != NULL;
    free(place ? (char *)place - 64 : NULL);
}

TEST(the_programs_own_jansson)
{
    static const char printed[] =
        "LlamaConfig {\n  \"model_type\": \"llama\", \"hidden_size\": 4096, \"num_attention_heads\": 32,"
        "\"num_hidden_layers\": 32, \"max_position_embeddings\": 8192, \"rope_theta\": 5e5}";
    json_set_alloc_funcs(program_malloc, program_free);
    json_t *before = json_pack("{s:[i,i]}", "a", 1, 2);
    long n_before = n_program;
    assert_true(n_before > 0);
    assert_call(call_json("/check", ROTATED), 200, plain_json, "layout");
    assert_call(pe_call("POST", "/explain", "text/plain", printed, sizeof printed - 1, 0, 0), 200, plain_json,
                "layers");
    assert_int_equal(n_program, n_before);
    json_t *after = json_pack("{s:i}", "b", 3);
    assert_true(n_program > n_before);
    json_decref(after);
    json_decref(before);
    assert_int_equal(n_program, 0);
    json_set_alloc_funcs(malloc, free);
}

TEST(the_programs_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    size_t i = 0;
    while (i < 4 && !setlocale(LC_ALL, names[i]))
        i++;
    locale_t of_thread = uselocale((locale_t)0);
    assert_call(call_json("/encode", "{\"scheme\":\"rope\",\"len\":2,\"base\":-0.5}"), 422, problem, "-0.5");
    assert_call(
        call_json("/analyze",
                  "{\"scheme\":\"rope\",\"len\":4,\"metrics\":[\"bounds\"],\"outputs\":[],\"format\":\"text\"}"),
        200, "text/plain; charset=utf-8", ".");
    assert_ptr_equal(uselocale((locale_t)0), of_thread);
    setlocale(LC_ALL, "C");
}

static const char *const requests[][2] = {{"/check", ROTATED},
                                          {"/encode", "{\"scheme\":\"rope\",\"len\":3000,\"format\":\"npz\"}"},
                                          {"/encode", "{\"scheme\":\"alibi\",\"len\":40,\"format\":\"png\"}"},
                                          {"/explain", "{\"preset\":\"gemma-3-27b\"}"},
                                          {"/encode?lang=zh", "{\"scheme\":\"rope\",\"lenn\":3}"},
                                          {"/schemes", "x"}};
enum { N_REQUESTS = sizeof requests / sizeof *requests, N_THREADS = 4, N_ROUNDS = 2, TRIES = 100 };

static struct {
    char *body;
    size_t n;
} expected[N_REQUESTS];

static struct pe_reply *request(size_t i)
{
    return *requests[i][1] == 'x' ? pe_call("GET", requests[i][0], NULL, NULL, 0, 0, 0)
                                  : call_json(requests[i][0], requests[i][1]);
}

/* Returns whether all answers are those of before. */
static bool all_are_same(size_t first)
{
    bool same = true;
    for (size_t i = 0; i < N_REQUESTS * N_ROUNDS; i++) {
        size_t at = (first + i) % N_REQUESTS, n;
        struct pe_reply *reply = request(at);
        char *body = read_all(reply, 10007, &n);
        same = same && n == expected[at].n && memcmp(body, expected[at].body, n) == 0;
        free(body);
        pe_reply_free(reply);
    }
    return same;
}

static void *work(void *first) { return all_are_same((size_t)(uintptr_t)first) ? first : NULL; }

TEST(any_number_of_threads_and_a_child)
{
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_REQUESTS; i++) {
        struct pe_reply *reply = request(i);
        expected[i].body = read_all(reply, 1 << 20, &expected[i].n);
        pe_reply_free(reply);
    }
    struct pe_reply *before = request(1);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)), 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        void *first;
        pthread_join(threads[i], &first);
        assert_int_equal((uintptr_t)first, i + 1);
    }
    pid_t child = fork();
    if (child == 0) {
        size_t n;
        char *body = read_all(before, 10007, &n); /* a reply that the parent has begun */
        _exit(!(n == expected[1].n && memcmp(body, expected[1].body, n) == 0 && all_are_same(0)));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pe_reply_free(before);
    for (size_t i = 0; i < N_REQUESTS; i++)
        free(expected[i].body);
}

static void fail_unless_memory(const char *body, const char *target, long k)
{
    if (!strstr(body, "not enough memory") && !strstr(body, "\xe5\x86\x85\xe5\xad\x98"))
        fail_msg("%s, allocation %ld: %s", target, k, body);
}

/* Each allocation of a call, or one of some, fails once: then there is no reply, or one that says so; nothing is left
 * behind. */
TEST(no_memory)
{
    for (size_t i = 0; i < N_REQUESTS; i++) {
        pe_reply_free(request(i)); /* what is made once */
        long before = alloc_count();
        pe_reply_free(request(i));
        long n = alloc_count() - before;
        assert_true(n > 0);
        for (long k = 0; k < n; k += 1 + n / TRIES) {
            size_t n_body;
            alloc_watch();
            alloc_fail_at(k);
            struct pe_reply *reply = request(i);
            alloc_fail_at(-1);
            if (!reply)
                continue;
            int status = pe_reply_status(reply);
            char *body = read_all(reply, 1 << 20, &n_body);
            if (status == 503)
                fail_unless_memory(body, requests[i][0], k);
            else
                assert_true(status == 200 || status == 422);
            free(body);
            pe_reply_free(reply);
        }
    }
}
