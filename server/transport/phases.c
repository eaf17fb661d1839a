/* Owns the phase of a connection (new, idle, head, body, answer), its deadline there, and its peer. deadlines.c checks
 * whether that is over. */
#include "server/transport/connections.h"

#include <inttypes.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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
