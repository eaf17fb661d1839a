/* Both ends of a bare connection: the limits of large answers and uploads, and the client that measures ours and peers.
 *
 *   bench_wire serve BYTES [CC]                "port N"; answers a GET with BYTES out of one hot block by a bare loop
 * of send(), and takes any other body by a bare loop of recv() bench_wire get PORT PATH TIMES [CC]        "seconds
 * bytes" of each of TIMES answers on one connection bench_wire put PORT PATH FILE TIMES [CC]   the same for posting
 * FILE, until the answer is there
 *
 * CC names the congestion control of our sockets, as cubic; without it the system's. A block of 256 KiB stays in the
 * second-level cache: neither end then waits for memory. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024, HEAD_MAX = 16 * 1024, ALIGNMENT = 2 * 1024 * 1024 };

static char block[BLOCK];
static const double seconds_max = 60; /* of one call: what is slower than that has told enough */

static void fail(const char *what)
{
    fprintf(stderr, "bench_wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Sockets ----------------------------------------------------------------------------------------------------- */

static int socket_new(const char *congestion)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0)
        fail("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)))
        fail(congestion);
    return fd;
}

static struct sockaddr_in local(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int connect_to(const char *port, const char *congestion)
{
    struct sockaddr_in address = local((unsigned)strtoul(port, NULL, 10));
    int fd = socket_new(congestion);
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    return fd;
}

static int send_all(int fd, const char *from, uint64_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, from, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return -1;
        from += sent;
        n -= (uint64_t)sent;
    }
    return 0;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

struct message {
    char head[HEAD_MAX + 1];
    size_t n_head;   /* with the empty line */
    size_t n_early;  /* bytes of the body that came with the head, right behind it */
    uint64_t length; /* Content-Length, 0 where there is none */
    int chunked;
};

/* Reads up to the empty line. 0: done; -1: the other side has gone. */
static int receive_head(int fd, struct message *m)
{
    size_t n = 0;
    const char *end = NULL;
    while (!end) {
        ssize_t got = n < HEAD_MAX ? recv(fd, m->head + n, HEAD_MAX - n, 0) : -1;
        if (got <= 0)
            return -1;
        n += (size_t)got;
        end = memmem(m->head, n, "\r\n\r\n", 4);
    }
    m->head[n] = '\0';
    m->n_head = (size_t)(end - m->head) + 4;
    m->n_early = n - m->n_head;
    m->head[m->n_head - 1] = '\0'; /* so that a body is not searched for headers */
    const char *length = strcasestr(m->head, "\ncontent-length:");
    m->length = length ? strtoull(length + 16, NULL, 10) : 0;
    m->chunked = strcasestr(m->head, "\ntransfer-encoding: chunked") != NULL;
    return 0;
}

/* The last seven bytes so far. No JSON holds a carriage return, so these seven end a chunked body and nothing else. */
static int is_last_chunk(char *tail, const char *piece, size_t n)
{
    size_t kept = n < 7 ? 7 - n : 0;
    memmove(tail, tail + 7 - kept, kept);
    memcpy(tail + kept, piece + n - (7 - kept), 7 - kept);
    return memcmp(tail, "\r\n0\r\n\r\n", 7) == 0;
}

static size_t receive(int fd)
{
    ssize_t got = recv(fd, block, BLOCK, 0);
    if (got <= 0)
        fail("answer cut short");
    return (size_t)got;
}

static uint64_t receive_chunks(int fd, const struct message *m)
{
    char tail[7] = "";
    uint64_t n = m->n_early;
    bool is_whole = n > 0 && is_last_chunk(tail, m->head + m->n_head, n);
    while (!is_whole) {
        size_t got = receive(fd);
        n += got;
        is_whole = is_last_chunk(tail, block, got);
    }
    return n;
}

static uint64_t receive_answer(int fd)
{
    static struct message m;
    if (receive_head(fd, &m))
        fail("no answer");
    if (strncmp(m.head, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "bench_wire: %.*s\n", (int)strcspn(m.head, "\r\n"), m.head);
        exit(1);
    }
    if (m.chunked)
        return receive_chunks(fd, &m);
    uint64_t n = m.n_early;
    while (n < m.length)
        n += receive(fd);
    return n;
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

static void exchange(int fd, const char *head, const char *body, uint64_t n_body, unsigned long times)
{
    double first = now();
    for (unsigned long i = 0; i < times && now() - first < seconds_max; i++) {
        double begun = now();
        if (send_all(fd, head, strlen(head)) || send_all(fd, body, n_body))
            fail("send");
        uint64_t n = receive_answer(fd);
        printf("%.9f %llu\n", now() - begun, (unsigned long long)(n_body ? n_body : n));
    }
}

static char *file_read(const char *path, uint64_t *n)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    *n = (uint64_t)ftell(file);
    rewind(file);
    char *body = malloc(*n + 1);
    if (!body || fread(body, 1, *n, file) != *n)
        fail(path);
    fclose(file);
    return body;
}

/* file: what is posted; NULL: a GET. */
static int client(const char *port, const char *path, const char *file, const char *times, const char *congestion)
{
    char head[4096];
    uint64_t n = 0;
    char *body = file ? file_read(file, &n) : NULL;
    int n_head = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\n", file ? "POST" : "GET", path);
    snprintf(head + n_head, sizeof head - (size_t)n_head,
             file ? "Content-Type: application/x-npy\r\nContent-Length: %llu\r\n\r\n" : "\r\n", (unsigned long long)n);
    exchange(connect_to(port, congestion), head, body, n, strtoul(times, NULL, 10));
    free(body);
    return 0;
}

/* ---- The bare server --------------------------------------------------------------------------------------------- */

static int send_blocks(int fd, uint64_t n)
{
    char head[128];
    int n_head = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n", (unsigned long long)n);
    if (send_all(fd, head, (size_t)n_head))
        return -1;
    for (; n > 0; n -= n < BLOCK ? n : BLOCK)
        if (send_all(fd, block, n < BLOCK ? n : BLOCK))
            return -1;
    return 0;
}

/* Into one buffer that is never given back, as a pool would: fresh pages cost more than the copy does. */
static int take_body(int fd, const struct message *m)
{
    static char *buffer;
    static uint64_t size;
    if (size < m->length) {
        free(buffer);
        size = (m->length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (!(buffer = aligned_alloc(ALIGNMENT, size)))
            fail("memory");
    }
    memcpy(buffer, m->head + m->n_head, m->n_early);
    for (uint64_t n = m->n_early; n < m->length;) {
        ssize_t got = recv(fd, buffer + n, m->length - n, 0);
        if (got <= 0)
            return -1;
        n += (uint64_t)got;
    }
    return send_blocks(fd, 0);
}

static _Noreturn void serve(uint64_t n_bytes, const char *congestion)
{
    static struct message m;
    struct sockaddr_in address = local(0);
    socklen_t size = sizeof address;
    int listener = socket_new(congestion);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("port %u\n", ntohs(address.sin_port));
    fflush(stdout);
    memset(block, 1, BLOCK);
    for (;;) {
        int fd = accept(listener, NULL, NULL), gone = fd < 0;
        while (!gone && !receive_head(fd, &m))
            gone = strncmp(m.head, "GET", 3) == 0 ? send_blocks(fd, n_bytes) : take_body(fd, &m);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "serve") == 0)
        serve(strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL);
    if (argc >= 5 && strcmp(argv[1], "get") == 0)
        return client(argv[2], argv[3], NULL, argv[4], argc > 5 ? argv[5] : NULL);
    if (argc >= 6 && strcmp(argv[1], "put") == 0)
        return client(argv[2], argv[3], argv[4], argv[5], argc > 6 ? argv[6] : NULL);
    fprintf(stderr, "usage: bench_wire serve BYTES [CC] | get PORT PATH TIMES [CC] | put PORT PATH FILE TIMES [CC]\n");
    return 2;
}
