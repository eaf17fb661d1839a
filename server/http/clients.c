/* Owns the client number of a connection, which is computed from the peer's address. */
#include "server/http/internal.h"

/* If the peer is gone, the number is that of an unknown client, never 0. */
uint64_t http_peer(int fd)
{
    struct address address;
    return address_of_peer(fd, &address) ? address_number(&address) : 1;
}

void http_know_peer(struct http_connection *connection)
{
    struct address address;
    if (connection->is_known)
        return;
    bool is_there = address_of_peer(connection->fd, &address);
    connection->is_known = true;
    connection->peer = is_there ? address_number(&address) : 1;
    connection->is_proxy = is_there && networks_have(&connection->daemon->http->door->proxies, &address);
}
