/* Owns the reading of certificate and key. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "server/http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 }; /* a chain of certificates has some ten thousand */

/* The whole text, NULL: errno says why not. */
static char *read_text(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : calloc(1, FILE_BYTES_MAX + 1);
    size_t used = 0;
    ssize_t n = text ? 1 : -1;
    while (n > 0 && used < FILE_BYTES_MAX) {
        n = read(fd, text + used, FILE_BYTES_MAX - used);
        used += n > 0 ? (size_t)n : 0;
    }
    int reason = n > 0 ? EFBIG : errno;
    if (fd >= 0)
        close(fd);
    if (n == 0)
        return text;
    free(text);
    errno = reason;
    return NULL;
}

/* "-----BEGIN … -----" is what the library looks for; a file in another form it would only call an error. */
static char *read_pem(const char *flag, const char *path, const char *what, char *error, size_t n_error)
{
    char *text = read_text(path);
    const char *begin = text ? strstr(text, "-----BEGIN ") : NULL;
    if (begin && strstr(begin, what))
        return text;
    snprintf(error, n_error, "--tls-%s %.200s: %s%s", flag, path,
             text ? "there is no PEM block in it that is a " : strerror(errno), text ? what : "");
    if (text)
        explicit_bzero(text, FILE_BYTES_MAX);
    free(text);
    return NULL;
}

bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error)
{
    *tls = (struct tls){NULL, NULL};
    if (!*cert_path && !*key_path)
        return true;
    if (!*cert_path || !*key_path) {
        snprintf(error, n_error, "--tls-%s is given without --tls-%s; TLS wants both", *cert_path ? "cert" : "key",
                 *cert_path ? "key" : "cert");
        return false;
    }
    tls->cert = read_pem("cert", cert_path, "CERTIFICATE", error, n_error);
    tls->key = tls->cert ? read_pem("key", key_path, "PRIVATE KEY", error, n_error) : NULL;
    if (tls->key)
        return true;
    tls_drop(tls);
    return false;
}

void tls_drop(struct tls *tls)
{
    if (tls->key)
        explicit_bzero(tls->key, strlen(tls->key));
    free(tls->key);
    free(tls->cert);
    *tls = (struct tls){NULL, NULL};
}
