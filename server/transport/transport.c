/* Owns what the server's start and end have to do with connections: whom it serves (the door), where it listens, and
 * all loops' daemons together. */
#include "server/transport/connections.h"

#include <stdlib.h>

/* ---- Whom it serves ---------------------------------------------------------------------------------------------- */

bool door_open(struct http_door *door, const struct options *options, char error[TOKENS_ERROR_BYTES])
{
    if (!networks_parse(options->trusted_proxy, &door->proxies, error, TOKENS_ERROR_BYTES) ||
        !tls_read(&door->tls, options->tls_cert, options->tls_key, error, TOKENS_ERROR_BYTES))
        return false;
    if (*options->token_file)
        door->tokens = tokens_new(options->token_file, error);
    return !*options->token_file || door->tokens;
}

void door_reread(struct http_door *door, const struct options *options)
{
    if (door->tokens)
        tokens_reread(door->tokens);
    if (door->tls.cert)
        tls_reread(&door->tls, options->tls_cert, options->tls_key);
}

void door_close(struct http_door *door)
{
    tokens_free(door->tokens);
    tls_drop(&door->tls);
}

/* ---- Where it listens -------------------------------------------------------------------------------------------- */

int transport_listen(const struct options *options, struct http_door *door, char *url, char *error, size_t n_error)
{
    if (*options->socket)
        return http_listen_unix(options->socket, url, error, n_error);
    int fd = http_listen(options->host, (unsigned)options->port, door->tls.cert, options->tcp_cc, url, error, n_error);
    bool is_beyond = fd >= 0 && http_is_beyond_loopback(fd);
    door->checks_host = !door->tokens && !is_beyond;
    if (!door->tokens && is_beyond)
        log_warn("listening beyond this machine without --token-file: whoever reaches %s may use it", url);
    return fd;
}

/* ---- All loops together ------------------------------------------------------------------------------------------ */

bool transport_begin(struct transport *transport, const struct options *options, const struct api_host *host,
                     const struct http_door *door, int listen_fd)
{
    transport->accept = accept_new(transport->loops[0].loop, listen_fd, options->max_connections);
    if (!transport->accept)
        return false;
    for (size_t i = 0; i < transport->n; i++) {
        struct transport_loop *of = &transport->loops[i];
        of->http = http_new(options, host, door, of->loop, transport->accept, transport->events, of->self);
        if (!of->http)
            return false;
    }
    if (accept_begin(transport->accept, transport->loops, transport->n))
        return true;
    log_error("no memory to accept connections");
    return false;
}

size_t transport_n_open(const struct transport *transport, bool with_late)
{
    return with_late ? accept_n_open(transport->accept) : accept_n_early(transport->accept);
}

/* Connections that are handed out here reach the loops before the call to drain does. */
void transport_drain(struct transport *transport)
{
    accept_take_queue(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_drain(transport->loops[i].http);
}

void transport_close(struct transport *transport)
{
    accept_close(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_close(transport->loops[i].http);
}

void transport_stop(struct transport *transport)
{
    if (transport->accept)
        accept_close(transport->accept);
    for (size_t i = 0; i < transport->n; i++)
        http_stop(transport->loops[i].http);
}

void transport_free(struct transport *transport)
{
    for (size_t i = 0; i < transport->n; i++)
        http_free(transport->loops[i].http);
    accept_free(transport->accept);
}
