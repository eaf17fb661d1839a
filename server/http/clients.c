/* Owns who is at the other end of a connection: the number that stands for its address. */
#include "server/http/internal.h"

/* Of one that is gone: nobody's, but somebody's. */
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
