/* Owns the connections of one loop that have not sent anything yet. Their first bytes, inspected but left in the socket
 * (MSG_PEEK), decide which daemon gets them.
 *
 * libmicrohttpd has one size of connection memory for a daemon, and it is also the size of its reads. Small requests
 * want 10 KiB, so that thousands of idle connections are cheap; an upload wants 1 MiB, which makes it three times as
 * fast. So each loop has two daemons, and a connection that begins with the head of a large body goes to the second. A
 * connection that has not sent a byte has not even the 10 KiB: it is a descriptor in a list, with a deadline. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "server/transport/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct newcomer {
    struct loop_call call; /* must be first: the message from the accepting loop to this one */
    struct http *http;
    LIST_ENTRY(newcomer) link;
    struct loop_watch *watch; /* while no bytes have arrived */
    struct accept_place *place;
    bool is_late;      /* as a connection's; counted here until a daemon has it */
    uint64_t deadline; /* ns */
};

/* Removes it from the list; its descriptor stays open. */
static void forget(struct newcomer *newcomer)
{
    loop_watch_free(newcomer->watch);
    if (newcomer->is_late)
        accept_count_late(newcomer->http->accept, -1);
    if (newcomer->link.le_prev) /* not if it has arrived when the loop ends */
        LIST_REMOVE(newcomer, link);
    free(newcomer);
}

static void turn_away(struct newcomer *newcomer)
{
    int fd = newcomer->place->fd;
    accept_closed(newcomer->place);
    forget(newcomer);
    close(fd);
}

/* 0.9.75 closes a socket that it rejects, usually without having called us for that connection. */
static void hand_over(struct newcomer *newcomer, enum http_daemon_kind kind)
{
    struct accept_place *place = newcomer->place;
    uint64_t client = kind == HTTP_BULK ? http_peer(place->fd) : 0;
    if (kind == HTTP_BULK && !admission_take_spare(client, newcomer->http->daemons[kind].memory))
        kind = HTTP_SMALL; /* which also receives large bodies, but more slowly */
    struct http_daemon *daemon = &newcomer->http->daemons[kind];
    uint64_t n_ended = daemon->http->n_ended, deadline = newcomer->deadline;
    forget(newcomer);
    daemon->driven.wants_run = true;
    daemon->http->newcomer_deadline = deadline;
    daemon->http->newcomer_client = client;
    daemon->http->newcomer_place = place;
    accept_waits(place, 0); /* a descriptor that the daemon rejects is closed before we know */
    if (!daemon_add(daemon->library, place->fd)) {
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        if (daemon->http->n_ended == n_ended) {
            admission_give_for(client, daemon->memory);
            accept_closed(place);
        }
    }
    daemon->http->newcomer_deadline = 0;
}

enum {
    PEEK_BYTES = 2048,
    SPARE_S = 1 /* time that a connection in a spare place has to send its head, instead of --header-timeout */
};

static void look(void *self)
{
    struct newcomer *newcomer = self;
    char first[PEEK_BYTES];
    ssize_t n = recv(newcomer->place->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    bool must_wait = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (must_wait && !newcomer->watch)
        newcomer->watch = loop_watch_new(newcomer->http->loop, newcomer->place->fd, LOOP_READABLE, look, newcomer);
    bool is_bulky = n > 0 && !newcomer->http->door->tls.cert && http_begins_bulky(first, (size_t)n);
    explicit_bzero(first, n > 0 ? (size_t)n : 0); /* wiped, because a token may be among these bytes */
    if (n > 0)
        hand_over(newcomer, is_bulky ? HTTP_BULK : HTTP_SMALL);
    else if (!must_wait || !newcomer->watch)
        turn_away(newcomer);
}

static void arrive(struct loop_call *call)
{
    struct newcomer *newcomer = (struct newcomer *)call;
    struct http *http = newcomer->http;
    if (http->is_stopping) {
        turn_away(newcomer);
        return;
    }
    newcomer->is_late = http->is_draining;
    if (newcomer->is_late)
        accept_count_late(http->accept, 1);
    LIST_INSERT_HEAD(&http->newcomers, newcomer, link);
    uint64_t now = clock_now();
    newcomer->deadline = now + (newcomer->place->is_spare ? SPARE_S : http->options->header_timeout) * CLOCK_SECOND;
    look(newcomer);
}

void http_take(struct http *http, struct accept_place *place, bool is_here)
{
    struct newcomer *newcomer = calloc(1, sizeof *newcomer);
    if (!newcomer) {
        int fd = place->fd;
        metrics_add(METRICS_REJECTED_MEMORY, 1);
        accept_closed(place);
        close(fd);
        return;
    }
    newcomer->call.fire = arrive;
    newcomer->http = http;
    newcomer->place = place;
    if (is_here)
        arrive(&newcomer->call);
    else
        loop_post(http->loop, &newcomer->call);
}

void http_turn_away(struct http *http, int fd)
{
    http_refuse(http, fd, REFUSED_CONNECTION, http->options->max_connections);
}

void newcomers_sweep(struct http *http, uint64_t now)
{
    for (struct newcomer *newcomer = LIST_FIRST(&http->newcomers), *next; newcomer; newcomer = next) {
        next = LIST_NEXT(newcomer, link);
        if (now <= newcomer->deadline)
            continue;
        if (newcomer->place->is_spare)
            http_turn_away(http, newcomer->place->fd);
        else
            http_refuse(http, newcomer->place->fd, REFUSED_SLOW_HEAD, http->options->header_timeout);
        turn_away(newcomer);
    }
}

void newcomers_drain(struct http *http)
{
    for (struct newcomer *newcomer = LIST_FIRST(&http->newcomers), *next; newcomer; newcomer = next) {
        next = LIST_NEXT(newcomer, link);
        shutdown(newcomer->place->fd,
                 SHUT_RD); /* bytes that have arrived can still be read; otherwise the daemon sees the end */
        look(newcomer);
    }
}

void newcomers_stop(struct http *http)
{
    while (!LIST_EMPTY(&http->newcomers))
        turn_away(LIST_FIRST(&http->newcomers));
}
