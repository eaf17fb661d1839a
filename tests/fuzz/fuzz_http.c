/* Connections: the input is everything that a client sends on one connection to the whole server in this process: its
 * loop, libmicrohttpd below it, a worker. The client sends, waits until the server is idle, shuts down its side, and
 * disconnects. It must receive whole HTTP messages, the same wherever the bytes were split on their way. Afterwards the
 * server has no connection, no stream and no descriptor left, within a fixed number of turns of the loop. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include "tests/fuzz/answers.h"
#include "server/exchange/exchange.h"
#include "server/transport/connections.h"
#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 20, TURNS_MAX = 2000000, INPUT_MAX = 4096, MESSAGES_MAX = 400, QUIET_TURNS = 2 };

static struct options options;
static struct api_host host;
static struct loop *loop;
static struct transport_loop serving;
static struct transport transport = {.loops = &serving, .n = 1, .events = &exchange_events};
static struct exchanges *exchanges;
static struct http *http;
static const struct http_door open_door; /* no tokens, no TLS */
static struct sockaddr_un door;
static socklen_t door_bytes = sizeof door;

static int listener(void)
{
    door = (struct sockaddr_un){.sun_family = AF_UNIX}; /* the kernel chooses a name */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&door, sizeof door.sun_family) == 0 && listen(fd, 1) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&door, &door_bytes) == 0);
    return fd;
}

static void start(void)
{
    char *const words[] = {"posencd",      "--max-body", "64KiB", "--max-answer", "64KiB", "--workers", "1",
                           "--io-threads", "1",          NULL};
    char *const environment[] = {NULL};
    char error[OPTIONS_TEXT_BYTES];
    REQUIRE(options_read(&options, 9, words, environment, error) == OPTIONS_RUN);
    host = small_host();
    host.max_body = options.max_body;
    host.max_answer = options.max_answer;
    host.max_work = 1 << 20;
    jobs_set_workers(1);
    loop = loop_new(64);
    REQUIRE(loop);
    struct answers *answers = answers_new(options.answer_cache);
    REQUIRE(answers);
    exchanges = exchanges_new(&options, &host, loop, answers);
    REQUIRE(exchanges);
    serving = (struct transport_loop){.loop = loop, .self = exchanges};
    REQUIRE(transport_begin(&transport, &options, &host, &open_door, listener()));
    http = serving.http;
}

SETUP(signal(SIGPIPE, SIG_IGN), log_setup(LOG_FORMAT_JSON, LOG_INFO, open("/dev/null", O_WRONLY | O_CLOEXEC)),
      pe_gemm_setup(), metrics_setup("", "", ""), start())

/* ---- The client ------------------------------------------------------------------------------------------------ */

struct client {
    int fd;
    bool is_over; /* the server has closed */
    size_t n;
    char *answer; /* ANSWER_BYTES + 1 */
};

/* Receives the available bytes; another turn receives the rest. Returns whether there were any. */
static bool receive(struct client *c)
{
    size_t before = c->n;
    ssize_t got = recv(c->fd, c->answer + c->n, ANSWER_BYTES - c->n, MSG_DONTWAIT);
    c->n += got > 0 ? (size_t)got : 0;
    c->is_over |= got == 0 || (got < 0 && errno != EAGAIN);
    c->answer[c->n] = '\0';
    return c->n > before;
}

static bool is_busy(void)
{
    bool busy = http->n_suspended > 0;
    if (busy)
        sched_yield(); /* to the worker */
    for (size_t i = 0; i < HTTP_N_DAEMONS; i++) {
        uint64_t ms = 1;
        const struct http_daemon *daemon = &http->daemons[i];
        busy |= daemon->driven.wants_run || (daemon_timeout(daemon->library, &ms) && ms == 0);
    }
    return busy;
}

/* Runs the loop until nothing has happened for two turns. */
static void settle(struct client *c)
{
    unsigned n_turns = 0;
    for (int n_quiet = 0; n_quiet < QUIET_TURNS && !c->is_over; n_turns++) {
        loop_turn(loop);
        n_quiet = receive(c) || is_busy() ? 0 : n_quiet + 1;
        REQUIRE(n_turns < TURNS_MAX);
    }
}

static void send_part(struct client *c, const uint8_t *data, size_t n)
{
    if (n > 0 && !c->is_over && send(c->fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
        c->is_over = true;
    settle(c);
}

static void leave(struct client *c)
{
    unsigned n_turns = 0;
    shutdown(c->fd, SHUT_WR);
    settle(c);
    close(c->fd);
    for (; transport_n_open(&transport, true) > 0 || http->n_suspended > 0; n_turns++) {
        for (size_t i = 0; i < HTTP_N_DAEMONS; i++)
            http->daemons[i].driven.wants_run = true;
        loop_turn(loop);
        REQUIRE(n_turns < TURNS_MAX);
    }
    REQUIRE(exchanges->n_streams == 0 && LIST_EMPTY(&http->connections) && LIST_EMPTY(&http->newcomers));
}

/* ---- What came back -------------------------------------------------------------------------------------------- */

/* The messages as status and checksum of the body, to compare two conversations. */
struct messages {
    size_t n;
    unsigned status[MESSAGES_MAX];
    uint64_t sum[MESSAGES_MAX];
};

static uint64_t sum_of(const char *bytes, size_t n)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (uint8_t)bytes[i]) * 0x100000001b3;
    return sum;
}

struct head {
    unsigned status;
    bool is_chunked, has_length, has_id;
    size_t length;
    const char *body;
};

static void read_header(struct head *head, const char *line, const char *end)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));
    REQUIRE(colon && colon > line);
    for (const char *c = line; c < end; c++)
        REQUIRE((unsigned char)*c >= 0x20 && (c > colon || *c != ' '));
    if (strncasecmp(line, "Content-Length:", 15) == 0) {
        REQUIRE(!head->has_length);
        head->has_length = true;
        head->length = strtoul(line + 15, NULL, 10);
    }
    head->is_chunked |= strncasecmp(line, "Transfer-Encoding: chunked", 26) == 0;
    head->has_id |= strncasecmp(line, "X-Request-Id:", 13) == 0;
}

/* Reads the head at p; false: the head is not ours. libmicrohttpd itself answers a request that it cannot parse, and
 * then closes; its error pages are not checked. */
static bool read_head(struct head *head, const char *p)
{
    *head = (struct head){.status = 0};
    REQUIRE(strncmp(p, "HTTP/1.", 7) == 0 && sscanf(p + 8, " %3u ", &head->status) == 1);
    const char *end = strstr(p, "\r\n\r\n"), *line = strstr(p, "\r\n");
    REQUIRE(end && head->status >= 100 && head->status <= 599);
    bool is_ours = head->status == 100;
    for (const char *l = line; l && l < end; l = strstr(l + 2, "\r\n"))
        is_ours |= strncasecmp(l + 2, "X-Request-Id:", 13) == 0;
    for (; is_ours && line < end; line = strstr(line + 2, "\r\n"))
        read_header(head, line + 2, strstr(line + 2, "\r\n"));
    head->body = end + 4;
    return is_ours;
}

/* The end of a chunked body; NULL: the body is incomplete. */
static const char *skip_chunks(const char *p, const char *end)
{
    for (;;) {
        char *after;
        size_t n = strtoul(p, &after, 16);
        if (after == p || strncmp(after, "\r\n", 2) != 0 || n + 4 > (size_t)(end - after))
            return NULL;
        REQUIRE(strncmp(after + 2 + n, "\r\n", 2) == 0);
        p = after + 4 + n;
        if (n == 0)
            return p;
    }
}

/* The end of the message's body. An answer to HEAD has a length and no body: then another message, or nothing, follows.
 * NULL: the body is truncated. */
static const char *skip_body(const struct head *head, const char *end)
{
    size_t left = (size_t)(end - head->body);
    bool is_bare = left == 0 || strncmp(head->body, "HTTP/1.", 7) == 0;
    if (head->status < 200 || head->status == 204 || head->status == 304 || is_bare)
        return head->body;
    if (head->is_chunked)
        return skip_chunks(head->body, end);
    if (!head->has_length)
        return end; /* of HTTP/1.0, up to the end of the connection */
    return head->length <= left ? head->body + head->length : NULL;
}

static void read_messages(struct messages *messages, const struct client *c)
{
    struct head head;
    messages->n = 0;
    for (const char *p = c->answer, *end = c->answer + c->n; p < end && messages->n < MESSAGES_MAX;) {
        bool is_ours = read_head(&head, p);
        if (head.status == 100) { /* sent only to a client that has not sent the body yet */
            p = head.body;
            continue;
        }
        messages->status[messages->n] = head.status;
        messages->sum[messages->n++] = 0;
        if (!is_ours)
            return;
        p = skip_body(&head, end);
        REQUIRE(p);
        messages->sum[messages->n - 1] = head.is_chunked ? 1 : sum_of(head.body, (size_t)(p - head.body));
    }
}

/* ---- The talk -------------------------------------------------------------------------------------------------- */

/* Usually the first bytes are there when the connection is accepted, which saves a turn; for one input in 8 they arrive
 * later. */
static void enter(struct client *c)
{
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    REQUIRE(c->fd >= 0 && connect(c->fd, (struct sockaddr *)&door, door_bytes) == 0);
    bool is_silent = is_one_of(8);
    for (unsigned n_turns = 0; is_silent && transport_n_open(&transport, true) == 0; n_turns++) {
        loop_turn(loop);
        REQUIRE(n_turns < TURNS_MAX);
    }
}

static void talk(const uint8_t *data, size_t size, size_t cut, struct messages *messages)
{
    static char answer[ANSWER_BYTES + 1];
    struct client c = {.answer = answer};
    answer[0] = '\0';
    enter(&c);
    send_part(&c, data, cut);
    send_part(&c, data + cut, size - cut);
    leave(&c);
    REQUIRE(c.n < ANSWER_BYTES);
    read_messages(messages, &c);
    if (is_one_of(16))
        log_flush();
}

/* libmicrohttpd 0.9.75: after its "100 Continue" to a request without a body it requests the answer too early if more
 * bytes are already there, and closes without an answer; whether they are there depends on the cut. */
static bool expects(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 7 <= size; i++)
        if (strncasecmp((const char *)data + i, "Expect", 6) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct messages whole, cut;
    if (size > INPUT_MAX)
        return 0;
    talk(data, size, size, &whole);
    if (size > 1 && is_one_of(16) && !expects(data, size)) {
        talk(data, size, 1 + sum_of((const char *)data, size) % (size - 1), &cut);
        REQUIRE(whole.n == cut.n);
        for (size_t i = 0; i < whole.n; i++)
            REQUIRE(whole.status[i] == cut.status[i] && whole.sum[i] == cut.sum[i]);
    }
    return 0;
}
