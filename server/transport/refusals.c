/* Owns the refusals that are written to the socket, because the daemon cannot send them.
 *
 * The daemon accepts no response before a request is complete, and closes a slow connection without an answer. As
 * nothing has been sent on the connection since its last answer ended, a refusal can be written to its socket; then the
 * connection is closed. */
#include "server/transport/connections.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

enum { RAW_HEAD_MAX = 4096, RAW_BODY_MAX = 4096 };

/* Sixteen hexadecimal digits from a mixed counter: unique in this process, and very likely among processes. */
void http_make_id(struct http *http, char *id)
{
    uint64_t z = http->id_seed + 0x9e3779b97f4a7c15u * ++http->n_ids;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    for (int i = 15; i >= 0; i--, z >>= 4) /* printf takes half a microsecond for it */
        id[i] = "0123456789abcdef"[z & 15];
    id[16] = '\0';
}

static bool send_raw(const struct http *http, int fd, const char *id, const struct api_reply *reply)
{
    if (http->door->tls.cert)
        return false;
    _Alignas(64) char body[RAW_BODY_MAX];
    char head[RAW_HEAD_MAX];
    size_t n_body = 0;
    if (reply->body->n_pieces == 1 && reply->body->piece_max <= sizeof body)
        n_body = api_reply_piece(reply, 0, body);
    int n_head = snprintf(head, sizeof head,
                          "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                          "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n",
                          reply->status, daemon_reason(reply->status), reply->content_type, n_body, id);
    for (size_t i = 0; i < reply->n_headers; i++)
        n_head += snprintf(head + n_head, sizeof head - (size_t)n_head, "%s: %s\r\n", reply->headers[i].name,
                           reply->headers[i].value); /* of a refusal: a few, each shorter than SAID_AGAIN_MAX */
    n_head += snprintf(head + n_head, sizeof head - (size_t)n_head, "Connection: close\r\n\r\n");
    send(fd, head, (size_t)n_head, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
    send(fd, body, n_body, MSG_DONTWAIT | MSG_NOSIGNAL);
    return true;
}

bool transport_refuse(struct http_connection *connection, const char *id, const struct api_reply *reply)
{
    return send_raw(connection->daemon->http, connection->fd, id, reply);
}

/* Counts it first: a client that has received it may ask another loop for the metric. */
void http_refuse_values(struct http *http, int fd, int status, enum metrics_id counted, const char *format,
                        va_list values)
{
    const struct api_call unread = {.path = NULL};
    char detail[REFUSED_DETAIL_BYTES], id[17];
    vsnprintf(detail, sizeof detail, format, values);
    http_make_id(http, id);
    struct api_reply *reply = api_refuse(http->host, &unread, status, detail);
    metrics_add(counted, 1);
    send_raw(http, fd, id, reply);
    api_reply_free(reply);
}

void http_refuse(struct http *http, int fd, int status, enum metrics_id counted, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    http_refuse_values(http, fd, status, counted, format, values);
    va_end(values);
}
