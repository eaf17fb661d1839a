/* What stands between a connection's socket and the daemon: every byte the daemon receives has passed here, so that it
 * only ever sees heads and frames that are sound and whole.
 *
 * 0.9.75 has no hook for this: its option for other transports is TLS alone. But it calls recv() as any program does,
 * and in a program linked dynamically the program's own recv() comes first (ELF, as for malloc()). http_guard_works
 * says whether it does here. With TLS the same holds for gnutls_record_recv(), which gives the bytes deciphered.
 *
 * A head is held back until it is whole. When one is refused, the daemon is given another in its place, whose target no
 * client can send, and nothing after it: so the refusal takes the common way, behind the answers of requests sent
 * before, with its JSON and its log line, and then the connection closes. When the frame of a chunked body is refused,
 * its end is given instead, with a trailer no client can send. */
#ifndef SERVER_HTTP_GUARD_H
#define SERVER_HTTP_GUARD_H

#include "server/http/head.h"

#define HTTP_GUARD_TARGET "?"
#define HTTP_GUARD_TRAILER "?"

struct http_connection;

struct http_guard {
    void *tls; /* the connection's GnuTLS session, NULL without TLS */
    enum { GUARD_HEAD, GUARD_BODY, GUARD_CHUNKS, GUARD_REFUSED } state;
    bool had_empty_line;         /* before this head; one is allowed */
    struct head_scan head;       /* of the request that is arriving */
    struct chunk_scan chunks;    /* its body, if that is chunked */
    uint64_t n_body;             /* its body's bytes still to come, if it is not */
    struct http_refusal refusal; /* once refused; closing is what the daemon is still to be given */
    const char *closing;
    char *kept; /* n_kept bytes not yet given, of which the first n_sound may be; NULL if there are none */
    size_t n_kept, n_sound;
    size_t n_swallowed; /* since the refusal */
};

bool http_guard_works(void);
struct http_connection *http_guard_connection(int fd);                        /* that is guarded; NULL: none */
bool http_guard_begin(struct http_connection *connection, void *tls_session); /* false: no memory */
void http_guard_end(struct http_connection *connection);
/* Whether it has bytes that the daemon has had no room for yet. */
bool http_guard_is_full(const struct http_guard *guard);

#endif
