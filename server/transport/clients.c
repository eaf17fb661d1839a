/* Owns the client number of a connection, which is computed from the peer's address. */
#include "server/transport/internal.h"

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
