/* Who has asked a proxy, by what it says in X-Forwarded-For. Plain strings, no sockets. */
#ifndef SERVER_HTTP_FORWARDED_H
#define SERVER_HTTP_FORWARDED_H

#include "server/networks.h"

/* What the lines taken so far say; begin with all zero but proxies. */
struct forwarded {
    const struct networks *proxies; /* that are believed */
    enum { FORWARDED_NOBODY, FORWARDED_PROXIES, FORWARDED_CLIENT, FORWARDED_JUNK } kind;
    struct address client;
};

/* One line of the header, in their order. Each proxy adds at the end whom it has been asked by, so the last address
 * that is no proxy of ours is the client: what stands before it is as the client likes. */
void forwarded_take(struct forwarded *forwarded, const char *line);

/* The client, if the lines name one. Where all they name are proxies of ours, it is the first of them. */
bool forwarded_client(const struct forwarded *forwarded, struct address *client);

#endif
