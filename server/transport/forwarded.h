/* Finds the client behind proxies from the X-Forwarded-For header. Plain strings, no sockets. */
#ifndef SERVER_TRANSPORT_FORWARDED_H
#define SERVER_TRANSPORT_FORWARDED_H

#include "server/process/networks.h"

/* The state after the lines read so far; all fields but proxies start at zero. */
struct forwarded {
    const struct networks *proxies; /* trusted proxies */
    enum { FORWARDED_NOBODY, FORWARDED_PROXIES, FORWARDED_CLIENT, FORWARDED_JUNK } kind;
    struct address client;
};

/* Reads one line of the header; call it in the order of the lines. Each proxy appends the address of its own client, so
 * the last address that is not a trusted proxy is the client. A client can forge everything before it. */
void forwarded_take(struct forwarded *forwarded, const char *line);

/* The client, if the lines name one. If all addresses are trusted proxies, the first of them is the client. */
bool forwarded_client(const struct forwarded *forwarded, struct address *client);

#endif
