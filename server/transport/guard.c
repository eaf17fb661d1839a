/* Owns recv() and send(), and with them the bytes that the daemon sees of a connection, and the count of those it
 * sends.
 *
 * The problem: libmicrohttpd 0.9.75 accepts heads that proxies read otherwise (two lengths, blanks before a colon, bare
 * LF), which is how requests are smuggled past a proxy; it has no hook before its parser. The idea: in a dynamically
 * linked program the program's own recv() is found before the C library's, so every byte passes here first. transport.h
 * describes what the daemon gets in place of a bad head.
 *
 * Invariants: the daemon sees whole heads and whole chunk lines only, in the form in which head.c has checked them; a
 * refusal goes the normal way, after the answers before it; bytes of bodies are received directly into the daemon's
 * buffer and are not copied. recv() may return fewer bytes than asked for only if the socket is empty, since the daemon
 * then waits for the next edge.
 *
 * A connection is found by its descriptor in a table of pages that are never freed, so a look-up needs no lock. Where
 * another library is asked for recv() (sanitizers, tests), the next one in order is called, not the C library's.
 *
 * RFC 9112, §11.2 has the attack; tests/http has a corpus of heads, each with what must become of it. */
#define _GNU_SOURCE /* RTLD_NEXT, explicit_bzero */
#include "server/transport/connections.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KEPT_MAX = 16 * 1024,      /* bytes received but not passed on; larger than any head that is not refused yet */
    CLOSING_MAX = 64,          /* bytes passed to the daemon after a refusal */
    SWALLOWED_MAX = 512 * 1024 /* bytes read and dropped after a refusal: with unread bytes the close would be a reset,
                                  and the client could lose the refusal */
};
_Static_assert((size_t)HEAD_COST_MAX < KEPT_MAX, "a head or line not refused yet, and the next byte, must fit");

/* ---- The phase of a connection, and its deadline there, which deadlines.c checks --------------------------------- */

static uint64_t phase_seconds(const struct options *options, enum http_phase phase)
{
    switch (phase) {
    case HTTP_PHASE_NEW:
    case HTTP_PHASE_HEAD: return options->header_timeout;
    case HTTP_PHASE_BODY: return options->body_timeout;
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_ANSWER: break;
    }
    return options->connection_timeout;
}

/* The deadline of the first head began with the connection: its first line does not extend it. */
void http_phase(struct http *http, struct http_connection *connection, enum http_phase phase)
{
    bool goes_on = phase == HTTP_PHASE_HEAD && connection->phase == HTTP_PHASE_NEW;
    uint64_t now = clock_coarse();
    connection->phase = phase;
    connection->progress_at = connection->window_at = now;
    connection->n_window = 0;
    atomic_store(&connection->place->is_cut, false);
    /* The coarse clock cannot order connections of the same few milliseconds. One that sends a body is closed for
     * another client only if none without a request is there. */
    accept_waits(connection->place, phase == HTTP_PHASE_ANSWER ? 0
                                    : phase == HTTP_PHASE_BODY ? now + ACCEPT_SILENCE_NS + ACCEPT_LATER
                                                               : clock_now());
    if (!goes_on)
        connection->deadline = now + phase_seconds(http->options, phase) * CLOCK_SECOND;
    /* Only half closed, so that a request already on its way is still read and answered. */
    if (phase == HTTP_PHASE_IDLE && http->is_draining)
        shutdown(connection->fd, SHUT_RD);
}

void http_received(struct http_connection *connection, size_t n_bytes)
{
    uint64_t now = clock_coarse(), window_ms = (now - connection->window_at) / CLOCK_MS;
    connection->progress_at = now;
    connection->n_window += n_bytes;
    if (connection->phase == HTTP_PHASE_BODY &&
        connection->n_window >= connection->daemon->http->options->min_rate * window_ms / 1000)
        accept_waits(connection->place, now + ACCEPT_SILENCE_NS + ACCEPT_LATER);
}

bool http_has_unsent(int fd)
{
    int n = 0;
    return ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0;
}

/* ---- The peer ---------------------------------------------------------------------------------------------------- */

/* If the peer is gone, the number is that of an unknown client, never 0. */
uint64_t http_peer(int fd)
{
    struct address address;
    return address_of_peer(fd, &address) ? address_number(&address) : 1;
}

void http_know_peer(struct http_connection *connection)
{
    if (connection->is_known)
        return;
    const struct address *address = &connection->address;
    connection->is_known = true;
    connection->has_address = address_of_peer(connection->fd, &connection->address);
    connection->peer = connection->has_address ? address_number(address) : 1;
    connection->is_proxy = connection->has_address && networks_have(&connection->daemon->http->door->proxies, address);
}

/* ---- Connections by descriptor ----------------------------------------------------------------------------------- */

enum { PAGE = 1024, N_PAGES = 1024 };

struct page {
    struct http_connection *_Atomic of[PAGE];
};
static struct page *_Atomic pages[N_PAGES]; /* allocated at first use, and kept */

static struct http_connection *connection_of(int fd)
{
    struct page *page = fd >= 0 && fd < PAGE * N_PAGES ? atomic_load(&pages[fd / PAGE]) : NULL;
    return page ? atomic_load_explicit(&page->of[fd % PAGE], memory_order_relaxed) : NULL;
}

/* Two loops may create the same page at the same time: the later one is dropped. */
static struct page *page_of(int fd)
{
    struct page *_Atomic *place = &pages[fd / PAGE], *page = atomic_load(place);
    if (page)
        return page;
    struct page *made = calloc(1, sizeof *made);
    if (!made || atomic_compare_exchange_strong(place, &page, made))
        return made;
    free(made);
    return page;
}

bool http_guard_begin(struct http_connection *connection, void *tls_session)
{
    int fd = connection->fd;
    connection->guard.tls = tls_session;
    struct page *page = fd < PAGE * N_PAGES ? page_of(fd) : NULL;
    if (page)
        atomic_store_explicit(&page->of[fd % PAGE], connection, memory_order_relaxed);
    return page;
}

void http_guard_end(struct http_connection *connection)
{
    int fd = connection->fd;
    if (connection_of(fd) == connection)
        atomic_store_explicit(&atomic_load(&pages[fd / PAGE])->of[fd % PAGE], NULL, memory_order_relaxed);
    /* The bytes are wiped, because a token may be among them. */
    if (connection->guard.held)
        explicit_bzero(connection->guard.held, connection->guard.n_held);
    free(connection->guard.held);
    connection->guard.held = NULL;
}

bool http_guard_is_full(const struct http_guard *guard) { return guard->n_sound > 0; }

/* ---- Judging ----------------------------------------------------------------------------------------------------- */

static void refuse(struct http_guard *guard, struct http_refusal refusal, const char *closing)
{
    guard->state = GUARD_REFUSED;
    guard->refusal = refusal;
    guard->closing = closing;
}

/* HEAD stays HEAD, because its answer has no body. Any other method is replaced by "?", as it may not have been
 * valid. */
static size_t judge_head(struct http_guard *guard, char *bytes, size_t n)
{
    struct head_scan *head = &guard->head;
    if (bytes[0] == '\r' && !guard->had_empty_line && (n < 2 || bytes[1] == '\n')) {
        guard->had_empty_line = n >= 2;
        return n >= 2 ? 2 : 0;
    }
    if (!head_scan(head, bytes, n))
        return 0;
    if (head->refusal.status) {
        refuse(guard, head->refusal,
               head->is_head ? "HEAD " HTTP_GUARD_TARGET " HTTP/1.1\r\n\r\n"
                             : "? " HTTP_GUARD_TARGET " HTTP/1.1\r\n\r\n");
        return 0;
    }
    size_t n_head = head->n_judged;
    guard->n_body = head->length;
    guard->chunks = (struct chunk_scan){.n_room = HEAD_COST_MAX - n_head - head->n_extra};
    guard->state = head->is_chunked ? GUARD_CHUNKS : guard->n_body ? GUARD_BODY : GUARD_HEAD;
    *head = (struct head_scan){0};
    guard->had_empty_line = false;
    return n_head;
}

static size_t judge_body(struct http_guard *guard, size_t n)
{
    size_t taken = n < guard->n_body ? n : (size_t)guard->n_body;
    guard->n_body -= taken;
    guard->state = guard->n_body ? GUARD_BODY : GUARD_HEAD;
    return taken;
}

#define LAST_TRAILER HTTP_GUARD_TRAILER ": 1\r\n\r\n"

/* Wherever the chunk breaks off, the daemon gets a valid end. */
static size_t judge_chunks(struct http_guard *guard, const char *bytes, size_t n)
{
    struct chunk_scan *chunks = &guard->chunks;
    size_t taken = chunk_scan(chunks, bytes, n);
    if (chunks->refusal.status)
        refuse(guard, chunks->refusal,
               chunks->at == CHUNK_TRAILER    ? LAST_TRAILER
               : chunks->at == CHUNK_DATA_END ? "\r\n0\r\n" LAST_TRAILER
                                              : "0\r\n" LAST_TRAILER);
    else if (chunks->at == CHUNK_DONE)
        guard->state = GUARD_HEAD;
    return taken;
}

/* The number of these bytes that may be passed to the daemon. */
static size_t judge(struct http_guard *guard, char *bytes, size_t n)
{
    size_t at = 0;
    for (size_t taken = 1; taken > 0 && at < n && guard->state != GUARD_REFUSED; at += taken)
        taken = guard->state == GUARD_HEAD   ? judge_head(guard, bytes + at, n - at)
                : guard->state == GUARD_BODY ? judge_body(guard, n - at)
                                             : judge_chunks(guard, bytes + at, n - at);
    return at;
}

/* ---- Handing on -------------------------------------------------------------------------------------------------- */

typedef ssize_t receive(int fd, void *bytes, size_t n, int flags);
typedef ssize_t receive_tls(void *session, void *bytes, size_t n);
typedef int tls_descriptor(void *session);
typedef ssize_t send_bytes(int fd, const void *bytes, size_t n, int flags);
typedef ssize_t send_message(int fd, const struct msghdr *message, int flags);

/* The functions that would be called without ours. They are not always the libraries' own: sanitizers and tests
 * interpose theirs. */
static receive *next_recv;
static receive_tls *next_record_recv;
static tls_descriptor *descriptor_of;
static send_bytes *next_send;
static send_message *next_sendmsg;
static pthread_once_t next_once = PTHREAD_ONCE_INIT;

static void find_next(void)
{
    *(void **)&next_send = dlsym(RTLD_NEXT, "send");
    *(void **)&next_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    *(void **)&next_recv = dlsym(RTLD_NEXT, "recv");
    *(void **)&next_record_recv = dlsym(RTLD_NEXT, "gnutls_record_recv");
    *(void **)&descriptor_of = dlsym(RTLD_NEXT, "gnutls_transport_get_int");
}

static ssize_t receive_raw(int fd, void *bytes, size_t n, int flags)
{
    pthread_once(&next_once, find_next);
    return next_recv ? next_recv(fd, bytes, n, flags) : recvfrom(fd, bytes, n, flags, NULL, NULL);
}

enum { TLS_AGAIN = -28, TLS_INTERRUPTED = -52, TLS_PULL_ERROR = -54 }; /* GnuTLS's numbers */

/* Behaves like recv(), with or without TLS. */
static ssize_t receive_next(const struct http_connection *connection, void *bytes, size_t n)
{
    if (!connection->guard.tls)
        return receive_raw(connection->fd, bytes, n, 0);
    ssize_t got = next_record_recv(connection->guard.tls, bytes, n);
    if (got >= 0)
        return got;
    errno = got == TLS_AGAIN || got == TLS_INTERRUPTED ? EAGAIN : ECONNRESET;
    return -1;
}

/* After a refusal the other bytes are dropped, and the bytes that close the request take their place. */
static void put_closing(struct http_guard *guard)
{
    if (guard->state != GUARD_REFUSED)
        return;
    explicit_bzero(guard->held + guard->n_sound, guard->n_held - guard->n_sound);
    guard->n_swallowed += guard->n_held - guard->n_sound;
    guard->n_held = guard->n_sound;
    size_t n = guard->closing ? strlen(guard->closing) : 0;
    if (n)
        memcpy(guard->held + guard->n_held, guard->closing, n);
    guard->n_sound = guard->n_held += n;
    guard->closing = NULL;
}

/* An incomplete head that is held back counts as a head: its deadline runs. */
static void note_head(struct http_connection *connection)
{
    if (connection->phase == HTTP_PHASE_IDLE && connection->guard.n_held && connection->guard.held[0] != '\r')
        http_phase(connection->daemon->http, connection, HTTP_PHASE_HEAD);
}

/* Stores bytes that have been received but not passed on. Without memory the connection ends. */
static bool keep(struct http_connection *connection, const char *bytes, size_t n)
{
    struct http_guard *guard = &connection->guard;
    if (!guard->held && !(guard->held = malloc(KEPT_MAX + CLOSING_MAX))) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        guard->state = GUARD_REFUSED;
        guard->closing = NULL;
        shutdown(connection->fd, SHUT_RDWR);
        return false;
    }
    if (guard->state != GUARD_REFUSED) {
        memcpy(guard->held, bytes, n);
        guard->n_held = n;
    }
    put_closing(guard);
    note_head(connection);
    return true;
}

/* Passes on as many of the stored bytes as are allowed. */
static size_t give(struct http_guard *guard, char *to, size_t room)
{
    size_t n = guard->n_sound < room ? guard->n_sound : room;
    if (n == 0)
        return 0;
    memcpy(to, guard->held, n);
    memmove(guard->held, guard->held + n, guard->n_held - n);
    guard->n_held -= n;
    explicit_bzero(guard->held + guard->n_held, n);
    guard->n_sound -= n;
    if (guard->n_held == 0) {
        free(guard->held);
        guard->held = NULL;
    }
    return n;
}

/* Receives bytes and appends them to the stored ones. */
static ssize_t receive_more(struct http_connection *connection)
{
    struct http_guard *guard = &connection->guard;
    ssize_t got = receive_next(connection, guard->held + guard->n_held, KEPT_MAX - guard->n_held);
    if (got <= 0)
        return got;
    guard->n_held += (size_t)got;
    guard->n_sound += judge(guard, guard->held + guard->n_sound, guard->n_held - guard->n_sound);
    put_closing(guard);
    note_head(connection);
    return got;
}

/* If the daemon gets fewer bytes than it asked for, it takes the socket as empty and waits for the next event. So fewer
 * bytes are returned only when the socket is really empty. In the usual case, whole heads and parts of bodies, the
 * bytes are received directly into the daemon's buffer. */
static ssize_t receive_guarded(struct http_connection *connection, char *to, size_t room)
{
    struct http_guard *guard = &connection->guard;
    size_t n = 0;
    while ((n += give(guard, to + n, room - n)) < room) {
        ssize_t got = guard->n_held ? receive_more(connection) : receive_next(connection, to + n, room - n);
        if (got <= 0)
            return n ? (ssize_t)n : got;
        if (guard->n_held)
            continue;
        size_t n_sound = judge(guard, to + n, (size_t)got);
        if (n_sound == (size_t)got)
            return (ssize_t)(n + n_sound);
        n += n_sound;
        bool is_held = true;
        if (!guard->closing && guard->state == GUARD_REFUSED)
            guard->n_swallowed += (size_t)got;
        else
            is_held = keep(connection, to + n, (size_t)got - n_sound);
        explicit_bzero(to + n, (size_t)got - n_sound); /* the daemon does not know that these bytes are in its buffer */
        if (!is_held)
            return n ? (ssize_t)n : 0;
        if (guard->n_swallowed > SWALLOWED_MAX)
            break;
    }
    if (n == 0)
        errno = EAGAIN;
    return n ? (ssize_t)n : -1;
}

/* The C names differ from the symbols, because the C library may define its own recv() inline, and because GnuTLS's
 * header is then not needed. */
ssize_t http_guard_recv(int fd, void *bytes, size_t n, int flags) __asm__("recv")
    __attribute__((visibility("default")));
ssize_t http_guard_recv_tls(void *session, void *bytes, size_t n) __asm__("gnutls_record_recv")
    __attribute__((visibility("default")));

/* GnuTLS itself also calls recv(), and receives encrypted bytes, not heads. */
ssize_t http_guard_recv(int fd, void *bytes, size_t n, int flags)
{
    struct http_connection *connection = flags == 0 && n > 0 ? connection_of(fd) : NULL;
    bool is_guarded = connection && !connection->guard.tls;
    return is_guarded ? receive_guarded(connection, bytes, n) : receive_raw(fd, bytes, n, flags);
}

ssize_t http_guard_recv_tls(void *session, void *bytes, size_t n)
{
    pthread_once(&next_once, find_next);
    struct http_connection *connection = connection_of(descriptor_of(session));
    if (!connection || connection->guard.tls != session)
        return next_record_recv(session, bytes, n);
    ssize_t got = receive_guarded(connection, bytes, n);
    return got >= 0 ? got : errno == EAGAIN ? TLS_AGAIN : TLS_PULL_ERROR;
}

/* If the HTTP library was built without GnuTLS, it does not look up the second name. */
bool http_guard_works(void)
{
    receive *ours = http_guard_recv;
    receive_tls *ours_tls = http_guard_recv_tls;
    void *found = dlsym(RTLD_DEFAULT, "recv"), *found_tls = dlsym(RTLD_DEFAULT, "gnutls_record_recv");
    return found && memcmp(&ours, &found, sizeof found) == 0 &&
           (!found_tls || memcmp(&ours_tls, &found_tls, sizeof found_tls) == 0);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* The bytes that each connection's socket has accepted are counted. For TCP the kernel reports how much the peer has
 * received (TCP_INFO); for a Unix socket it does not. But it queues little for a reader, so the bytes are accepted
 * about as fast as they are read. The HTTP library does not report how much it has sent either, so send() and sendmsg()
 * are intercepted as recv() is. */

static ssize_t count(int fd, ssize_t n)
{
    struct http_connection *connection = n > 0 ? connection_of(fd) : NULL;
    if (connection)
        connection->n_sent += (uint64_t)n;
    return n;
}

/* The C names differ from the symbols, as in guard.c. */
ssize_t http_sent_send(int fd, const void *bytes, size_t n, int flags) __asm__("send")
    __attribute__((visibility("default")));
ssize_t http_sent_sendmsg(int fd, const struct msghdr *message, int flags) __asm__("sendmsg")
    __attribute__((visibility("default")));

ssize_t http_sent_send(int fd, const void *bytes, size_t n, int flags)
{
    pthread_once(&next_once, find_next);
    return count(fd, next_send ? next_send(fd, bytes, n, flags) : sendto(fd, bytes, n, flags, NULL, 0));
}

ssize_t http_sent_sendmsg(int fd, const struct msghdr *message, int flags)
{
    pthread_once(&next_once, find_next);
    return count(fd, next_sendmsg ? next_sendmsg(fd, message, flags) : syscall(SYS_sendmsg, fd, message, flags));
}

bool http_sent_works(void)
{
    send_bytes *ours = http_sent_send;
    send_message *our_messages = http_sent_sendmsg;
    void *found = dlsym(RTLD_DEFAULT, "send"), *found_messages = dlsym(RTLD_DEFAULT, "sendmsg");
    return found && memcmp(&ours, &found, sizeof found) == 0 && found_messages &&
           memcmp(&our_messages, &found_messages, sizeof found_messages) == 0;
}
