/* Owns the opening of the listening socket, on an address or a path. */
#define _GNU_SOURCE /* SOCK_NONBLOCK, SOCK_CLOEXEC */
#include "server/transport/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 1024
}; /* connections that the kernel queues while the loop is busy; the kernel may have a lower limit */

static int open_one(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
               sizeof on); /* a restart need not wait until old connections have expired */
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Accepted connections inherit it from the listening socket. */
static bool set_congestion(int fd, const char *name, char *error, size_t n_error)
{
    if (!*name || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return true;
    char available[128];
    int reason = errno;
    /* Lists the algorithms that the kernel has loaded; it may load others on request. */
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
    if (!file || !fgets(available, (int)(sizeof available), file))
        snprintf(available, sizeof available, "not known");
    available[strcspn(available, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(error, n_error, "--tcp-cc %.60s: cannot be used (%s); this system has: %s", name, strerror(reason),
             available);
    return false;
}

/* If the system's default is to pace connections (BBR), connections within this computer would be slowed down as if
 * they shared a bottleneck: without pacing they carry up to half as much again. Failure is ignored. */
static void avoid_pacing(int fd)
{
    char name[16] = "";
    socklen_t n = sizeof name - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) || strncmp(name, "bbr", 3) != 0)
        return;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* The URL has the socket's actual port, which the kernel chose if 0 was requested, and the host as the user wrote
 * it. */
static void print_url(int fd, const char *host, bool is_tls, char *url)
{
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    unsigned port = 0;
    if (getsockname(fd, (struct sockaddr *)&own, &n) == 0)
        port = own.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)(void *)&own)->sin6_port)
                                         : ntohs(((struct sockaddr_in *)(void *)&own)->sin_port);
    snprintf(url, HTTP_URL_BYTES, strchr(host, ':') ? "http%s://[%.255s]:%u" : "http%s://%.255s:%u", is_tls ? "s" : "",
             host, port);
}

int http_listen(const char *host, unsigned port, bool is_tls, const char *congestion, char *url, char *error,
                size_t n_error)
{
    char service[16];
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host, service, &hints, &found);
    if (failed) {
        snprintf(error, n_error, "--host %.255s: %s", host, gai_strerror(failed));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next)
        fd = open_one(address);
    if (fd < 0)
        snprintf(error, n_error, "cannot listen on %.255s port %u: %s", host, port, strerror(errno));
    freeaddrinfo(found);
    if (fd >= 0 && !set_congestion(fd, congestion, error, n_error)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0 && !*congestion && !http_is_beyond_loopback(fd))
        avoid_pacing(fd);
    if (fd >= 0)
        print_url(fd, host, is_tls, url);
    return fd;
}

bool http_is_beyond_loopback(int fd)
{
    struct sockaddr_storage own = {0};
    socklen_t n = sizeof own;
    getsockname(fd, (struct sockaddr *)&own, &n);
    if (own.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)(void *)&own)->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
    const struct in6_addr *address = &((struct sockaddr_in6 *)(void *)&own)->sin6_addr;
    bool is_mapped = IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == IN_LOOPBACKNET;
    return own.ss_family == AF_INET6 && !is_mapped && !IN6_IS_ADDR_LOOPBACK(address);
}

/* ---- Unix sockets ---------------------------------------------------------------------------------------------- */

static struct stat bound; /* the socket that this process created */

/* The file's mode is 0660, whatever the umask is: connecting requires the right to write. Only one thread runs at this
 * point. */
static bool bind_path(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(0117);
    int failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    int reason = errno;
    umask(before);
    errno = reason;
    return !failed;
}

/* A socket whose server ended without removing it refuses connections. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_refused =
        fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return is_refused;
}

static bool listen_path(int fd, const struct sockaddr_un *address)
{
    bool is_bound = bind_path(fd, address);
    if (!is_bound && errno == EADDRINUSE && is_stale(address))
        is_bound = unlink(address->sun_path) == 0 && bind_path(fd, address);
    else if (!is_bound && errno != EADDRINUSE)
        return false;
    else if (!is_bound)
        errno = EADDRINUSE; /* is_stale may have changed errno */
    return is_bound && lstat(address->sun_path, &bound) == 0 && listen(fd, BACKLOG) == 0;
}

int http_listen_unix(const char *path, char *url, char *error, size_t n_error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(error, n_error, "--socket has %zu bytes; allowed: at most %zu", strlen(path),
                 sizeof address.sun_path - 1);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && listen_path(fd, &address)) {
        snprintf(url, HTTP_URL_BYTES, "unix:%s", path);
        return fd;
    }
    snprintf(error, n_error, "cannot listen on --socket %.107s: %s", path,
             errno == EADDRINUSE ? "somebody serves there, or it is no socket" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

void transport_unlisten(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && about.st_dev == bound.st_dev && about.st_ino == bound.st_ino)
        unlink(path);
}
