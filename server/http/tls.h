/* The certificate and its key, as the files have them; what they are worth GnuTLS says: to the HTTP library at the
 * start, to us when they are read again. */
#ifndef SERVER_HTTP_TLS_H
#define SERVER_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct tls_renewed;

struct tls {
    char *cert, *key;                    /* PEM texts of the start; NULL: none */
    struct tls_renewed *_Atomic renewed; /* what has been read since, the newest first; NULL: nothing */
};

/* Reads both files ("" and "": none, plain HTTP). False: error[] of n_error bytes says why. */
bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error);

/* Reads them again: what has changed and is good is shown to clients that come from now on; what is not is left alone.
 * The log says which. One call at a time, on any thread but the loops'. */
void tls_reread(struct tls *tls, const char *cert_path, const char *key_path);

/* Lets a connection's GnuTLS session, before its handshake, show what has been read last. Any thread. */
void tls_dress(const struct tls *tls, void *session);

/* Before the first handshake: short of memory one connection ends, not the process. */
void tls_reserve_numbers(void);

void tls_drop(struct tls *tls); /* wipes the key */

#endif
