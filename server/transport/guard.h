/* A filter between a connection's socket and the daemon. Every byte that the daemon receives passes through it, so the
 * daemon only sees heads and chunks that are valid and complete.
 *
 * 0.9.75 has no hook for this: its only option for other transports is TLS. But it calls recv() as any program does,
 * and in a dynamically linked program the program's own recv() takes precedence (ELF, as for malloc()).
 * http_guard_works checks whether this is the case. With TLS the same holds for gnutls_record_recv(), which returns the
 * decrypted bytes.
 *
 * A head is held back until it is complete. If it is refused, the daemon gets another head instead, whose target no
 * client can send, and no bytes after it. So the refusal takes the normal path: it follows the answers to earlier
 * requests, has its JSON and its log line, and then the connection closes. If a chunk of a body is refused, the daemon
 * gets the end of the body instead, with a trailer that no client can send. */
#ifndef SERVER_TRANSPORT_GUARD_H
#define SERVER_TRANSPORT_GUARD_H

#include "server/transport/head.h"

#define HTTP_GUARD_TARGET "?"
#define HTTP_GUARD_TRAILER "?"

struct http_connection;

struct http_guard {
    void *tls; /* the connection's GnuTLS session, NULL without TLS */
    enum { GUARD_HEAD, GUARD_BODY, GUARD_CHUNKS, GUARD_REFUSED } state;
    bool had_empty_line;         /* one empty line is allowed before a head */
    struct head_scan head;       /* state of the head that is arriving */
    struct chunk_scan chunks;    /* state of its body, if that is chunked */
    uint64_t n_body;             /* bytes of its body still to arrive, if it is not chunked */
    struct http_refusal refusal; /* set by a refusal; closing: the bytes that the daemon still has to get */
    const char *closing;
    char *kept; /* n_kept bytes not yet passed on, of which the first n_sound may be; NULL if there are none */
    size_t n_kept, n_sound;
    size_t n_swallowed; /* bytes dropped since the refusal */
};

bool http_guard_works(void);
struct http_connection *http_guard_connection(int fd); /* the guarded connection on this descriptor; NULL: none */
bool http_guard_begin(struct http_connection *connection, void *tls_session); /* false: no memory */
void http_guard_end(struct http_connection *connection);
/* Whether it holds bytes for which the daemon had no room yet. */
bool http_guard_is_full(const struct http_guard *guard);

#endif
