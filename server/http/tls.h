/* The certificate and its key, as the files have them; what they are worth the HTTP library's TLS says. */
#ifndef SERVER_HTTP_TLS_H
#define SERVER_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct tls {
    char *cert, *key; /* PEM texts; NULL: none */
};

/* Reads both files ("" and "": none, plain HTTP). False: error[] of n_error bytes says why. */
bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error);
void tls_drop(struct tls *tls); /* wipes the key */

#endif
