/* /experiments in api/: how an answer ends when the client leaves and when memory is missing. What is trained is tested
 * over a socket. */
#include "tests/api/ask.h"
#include "tests/support/alloc.h"

/* A clock of the test: the client leaves at a certain reading of it. */
static struct {
    long n_readings, leaves_at;
    int n_ended;
    bool is_done;
    uint64_t n_steps;
} seen;

static uint64_t now_ms(void) { return (uint64_t)seen.n_readings++; }

static bool is_gone(void *caller)
{
    (void)caller;
    return seen.n_readings > seen.leaves_at;
}

static bool begin(uint64_t turn)
{
    (void)turn;
    return true;
}

static void end(bool is_done, uint64_t n_steps)
{
    seen.n_ended++;
    seen.is_done = is_done;
    seen.n_steps = n_steps;
}

enum { STEPS = 2, NEVER = 1 << 30 };

static struct api_reply *asked(const char *accept)
{
    static const char body[] = "{\"steps\":2,\"train_len\":16,\"eval_len\":16,\"configs\":[{\"scheme\":\"alibi\"}]}";
    static struct api_host own;
    own = host;
    own.experiments = 1;
    own.experiment_ms = NEVER;
    own.now_ms = now_ms;
    own.experiment_begin = begin;
    own.experiment_end = end;
    struct api_call call = {
        .method = "POST", .path = "/experiments", .body = body, .body_bytes = sizeof body - 1, .accept = accept};
    struct api_reply *reply = api_answer(&own, &call);
    assert_int_equal(reply->status, 200);
    return reply;
}

/* The body, whose reader leaves at one reading of the clock, while the n_failing allocations from the one numbered
 * failing are refused. */
static const char *read_all(const char *accept, long leaves_at, long failing, long n_failing)
{
    static char body[1 << 16], piece[1 << 14];
    struct api_reply *reply = asked(accept);
    size_t n_body = 0, n;
    assert_true(reply->body->piece_max <= sizeof piece);
    seen.n_readings = seen.n_ended = 0;
    seen.leaves_at = leaves_at;
    alloc_fail_burst(failing, n_failing);
    pe_watch(is_gone, NULL);
    for (uint64_t i = 0; (n = api_reply_piece(reply, i, piece)) > 0; i++) {
        assert_true(n_body + n < sizeof body);
        memcpy(body + n_body, piece, n);
        n_body += n;
    }
    pe_watch(NULL, NULL);
    alloc_fail_at(-1);
    body[n_body] = '\0';
    api_reply_free(reply);
    assert_int_equal(seen.n_ended, 1);
    return body;
}

static bool has_event(const char *body, const char *name)
{
    char words[64] = "{\"event\":\"";
    return strstr(body, strcat(strcat(words, name), "\"")) != NULL;
}

/* Leaves at each reading of the clock in turn. The last two make the last event; the one before them comes before the
 * last evaluation. */
TEST(who_leaves_during_the_last_evaluation_has_not_seen_the_end)
{
    assert_true(has_event(read_all(NULL, NEVER, -1, 0), "done"));
    assert_true(seen.is_done && seen.n_steps == STEPS);
    long n = seen.n_readings;
    assert_true(n > 6);
    for (long at = 0; at < n; at++) {
        assert_int_equal(has_event(read_all(NULL, at, -1, 0), "done"), at >= n - 2);
        assert_int_equal(seen.is_done, at >= n - 2);
    }
}

static const char *last_event(const char *body)
{
    const char *last = body;
    for (const char *at = body; (at = strstr(at, "{\"event\":")); at++)
        last = at;
    return last;
}

/* Whatever is refused, the last event is `done` or `error`, and no event is torn: a body that just ended would look
 * complete. */
static void assert_ends(const char *body, const char *close)
{
    const char *last = last_event(body);
    size_t n = strlen(body), n_close = strlen(close);
    assert_true(n > n_close && strcmp(body + n - n_close, close) == 0);
    assert_int_equal(has_event(last, "done"), seen.is_done);
    assert_true(seen.is_done || (has_event(last, "error") && strstr(last, "\"status\":503,\"detail\":\"")));
    for (const char *at = body; (at = strstr(at + 1, "{\"event\":"));)
        assert_true(at[-1] == ' ' || at[-1] == '\n');
}

static int fail_each(const char *accept, long n_failing, const char *close)
{
    int n_errors = 0;
    for (long n = 0; n < 1000; n++) {
        assert_ends(read_all(accept, NEVER, n, n_failing), close);
        if (seen.is_done)
            return n_errors;
        n_errors++;
    }
    fail();
    return 0;
}

TEST(missing_memory_is_an_event)
{
    for (long burst = 1; burst < 1 << 20; burst *= 1 << 10) {
        assert_true(fail_each(NULL, burst, "}\n") > 3);
        assert_true(fail_each("text/event-stream", burst, "}\n\n") > 3);
    }
}
