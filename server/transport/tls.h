/* The certificate and its key, as the files contain them. GnuTLS checks them: for the HTTP library at the start, and
 * here on reload. */
#ifndef SERVER_TRANSPORT_TLS_H
#define SERVER_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct tls_renewed;

struct tls {
    char *cert, *key;                    /* PEM texts read at the start; NULL: none */
    struct tls_renewed *_Atomic renewed; /* credentials read since then, newest first; NULL: none */
};

/* Reads both files ("" and "": none, plain HTTP). False: error[] of n_error bytes gives the reason. */
bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error);

/* Reads the files again. If they have changed and are valid, new clients get them; otherwise nothing changes. Logs the
 * result. One call at a time, on any thread but the loops'. */
void tls_reread(struct tls *tls, const char *cert_path, const char *key_path);

/* Gives a connection's GnuTLS session the newest credentials, before its handshake. Any thread. */
void tls_dress(const struct tls *tls, void *session);

/* Call it before the first handshake: when memory is short, one connection then fails instead of the process. */
void tls_reserve_numbers(void);

void tls_drop(struct tls *tls); /* wipes the key */

#endif
