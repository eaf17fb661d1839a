/* Owns reading the certificate and key, at the start and on reload. */
#define _GNU_SOURCE /* explicit_bzero, RTLD_DEFAULT */
#include "server/transport/connections.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 }; /* a chain of certificates has some ten thousand bytes */

/* The whole text, of *n_bytes bytes; NULL: errno gives the reason. */
static char *read_text(const char *path, size_t *n_bytes)
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
    *n_bytes = used;
    if (n == 0)
        return text;
    free(text);
    errno = reason;
    return NULL;
}

/* "-----BEGIN … -----" is what the library looks for; a file in another form it would only call an error. */
static char *read_pem(const char *flag, const char *path, const char *what, char *error, size_t n_error)
{
    size_t n = 0;
    char *text = read_text(path, &n);
    const char *begin = text ? strstr(text, "-----BEGIN ") : NULL;
    bool is_text = text && strlen(text) == n; /* the library would read it to its first byte 0 */
    if (is_text && begin && strstr(begin, what))
        return text;
    snprintf(error, n_error, "--tls-%s %.200s: %s%s", flag, path,
             is_text ? "there is no PEM block in it that is a "
             : text  ? "it has a byte 0, so it is no PEM"
                     : strerror(errno),
             is_text ? what : "");
    if (text)
        explicit_bzero(text, FILE_BYTES_MAX);
    free(text);
    return NULL;
}

bool tls_read(struct tls *tls, const char *cert_path, const char *key_path, char *error, size_t n_error)
{
    *tls = (struct tls){.cert = NULL};
    if (!*cert_path && !*key_path)
        return true;
    if (!*cert_path || !*key_path) {
        snprintf(error, n_error, "--tls-%s is given without --tls-%s; TLS needs both", *cert_path ? "cert" : "key",
                 *cert_path ? "key" : "cert");
        return false;
    }
    tls->cert = read_pem("cert", cert_path, "CERTIFICATE", error, n_error);
    tls->key = tls->cert ? read_pem("key", key_path, "PRIVATE KEY", error, n_error) : NULL;
    if (!tls->key) {
        tls_drop(tls);
        return false;
    }
    tls_reserve_numbers();
    return true;
}

static void wipe(struct tls *tls)
{
    if (tls->key)
        explicit_bzero(tls->key, strlen(tls->key));
    free(tls->key);
    free(tls->cert);
}

/* ---- Reading again ---------------------------------------------------------------------------------------------- */

/* 0.9.75 gives every session the credentials of the daemon's start, but reports a connection before its handshake, when
 * the session can be given others. A session only points to its credentials, and its end is not reported, so all of
 * them are kept until the process ends. They take some kilobytes, and certificates change a few times a year. */
struct tls_renewed {
    struct tls_renewed *before;
    struct tls files;
    gnutls_certificate_credentials_t credentials;
};

static bool is_same(const struct tls *a, const struct tls *b)
{
    return strcmp(a->cert, b->cert) == 0 && strcmp(a->key, b->key) == 0;
}

/* Whether the chain can be parsed. It is checked first because GnuTLS (3.7.9) leaks credentials whose chain cannot
 * be. */
static int read_chain(const gnutls_datum_t *pem)
{
    gnutls_x509_crt_t *chain;
    unsigned n = 0;
    int status = gnutls_x509_crt_list_import2(&chain, &n, pem, GNUTLS_X509_FMT_PEM, 0);
    if (status < 0)
        return status;
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    return GNUTLS_E_SUCCESS;
}

/* Returns GnuTLS's code; GNUTLS_E_SUCCESS: the credentials were created. */
static int dress_up(struct tls_renewed *renewed)
{
    gnutls_datum_t cert = {(unsigned char *)renewed->files.cert, (unsigned)strlen(renewed->files.cert)};
    gnutls_datum_t key = {(unsigned char *)renewed->files.key, (unsigned)strlen(renewed->files.key)};
    int status = read_chain(&cert);
    if (status == GNUTLS_E_SUCCESS)
        status = gnutls_certificate_allocate_credentials(&renewed->credentials);
    if (status == GNUTLS_E_SUCCESS)
        status = gnutls_certificate_set_x509_key_mem(renewed->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    return status < 0 ? status : GNUTLS_E_SUCCESS;
}

static void renewed_free(struct tls_renewed *renewed)
{
    if (renewed->credentials)
        gnutls_certificate_free_credentials(renewed->credentials);
    wipe(&renewed->files);
    free(renewed);
}

static void keep_old(struct tls_renewed *renewed, const char *why)
{
    log_error("%s; new connections use the certificate that was read before", why);
    renewed_free(renewed);
}

void tls_reread(struct tls *tls, const char *cert_path, const char *key_path)
{
    char error[512];
    struct tls_renewed *newest = atomic_load(&tls->renewed), *renewed = calloc(1, sizeof *renewed);
    if (!renewed) {
        log_error("no memory to read --tls-cert and --tls-key again");
        return;
    }
    if (!tls_read(&renewed->files, cert_path, key_path, error, sizeof error)) {
        keep_old(renewed, error);
        return;
    }
    if (is_same(&renewed->files, newest ? &newest->files : tls)) {
        renewed_free(renewed);
        return;
    }
    int status = dress_up(renewed);
    if (status != GNUTLS_E_SUCCESS) {
        snprintf(error, sizeof error, "--tls-cert and --tls-key, read again: %s", gnutls_strerror(status));
        keep_old(renewed, error);
        return;
    }
    renewed->before = newest;
    atomic_store(&tls->renewed, renewed);
    log_info("--tls-cert and --tls-key read again: new connections are shown the new certificate");
}

void tls_dress(const struct tls *tls, void *session)
{
    struct tls_renewed *newest = atomic_load(&tls->renewed);
    if (newest && session)
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, newest->credentials);
}

/* ---- The end ---------------------------------------------------------------------------------------------------- */

void tls_drop(struct tls *tls)
{
    for (struct tls_renewed *renewed = atomic_load(&tls->renewed), *before; renewed; renewed = before) {
        before = renewed->before;
        renewed_free(renewed);
    }
    wipe(tls);
    *tls = (struct tls){.cert = NULL};
}

/* ---- Memory for large numbers ------------------------------------------------------------------------------------ */

/* Owns a reserve of memory for the large numbers of TLS.
 *
 * GnuTLS refuses a handshake for which it has no memory, but it computes with GMP, which ends the process. The numbers
 * of a handshake are small and short-lived, so when malloc fails they are allocated from a reserve. */

enum { SLOT_BYTES = 8192, N_SLOTS = 64 }; /* a product of two numbers for RSA with 16384 bits is half as long */

static _Alignas(64) char slots[N_SLOTS][SLOT_BYTES]; /* takes physical memory only once it is used */
static _Atomic uint64_t used;                        /* one bit per slot */

static bool is_slot(const void *block)
{
    return (const char *)block >= slots[0] && (const char *)block < slots[0] + sizeof slots;
}

static void *take_slot(size_t n)
{
    uint64_t seen = atomic_load(&used);
    while (n <= SLOT_BYTES && ~seen) {
        int i = __builtin_ctzll(~seen);
        if (atomic_compare_exchange_weak(&used, &seen, seen | UINT64_C(1) << i))
            return slots[i];
    }
    log_error("no memory for a TLS handshake: %zu bytes", n);
    log_flush_all(1000);
    abort(); /* as GMP would do: its callers cannot handle a failure */
}

static void *allocate(size_t n)
{
    void *block = malloc(n);
    return block ? block : take_slot(n);
}

/* The numbers may be parts of keys, so they are wiped. */
static void release(void *block, size_t n)
{
    if (!is_slot(block)) {
        free(block);
        return;
    }
    explicit_bzero(block, n);
    atomic_fetch_and(&used, ~(UINT64_C(1) << (((char *)block - slots[0]) / SLOT_BYTES)));
}

static void *resize(void *block, size_t n_before, size_t n)
{
    void *moved = is_slot(block) ? NULL : realloc(block, n);
    if (moved)
        return moved;
    if (is_slot(block) && n <= SLOT_BYTES)
        return block;
    moved = allocate(n);
    memcpy(moved, block, n < n_before ? n : n_before);
    release(block, n_before);
    return moved;
}

/* GMP's header is not needed, nor is the library if there is no TLS. */
void tls_reserve_numbers(void)
{
    typedef void set_functions(void *(*)(size_t), void *(*)(void *, size_t, size_t), void (*)(void *, size_t));
    set_functions *set = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "__gmp_set_memory_functions");
    if (set)
        set(allocate, resize, release);
}
