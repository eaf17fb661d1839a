/* Owns the opening of the listening socket. */
#define _GNU_SOURCE /* SOCK_NONBLOCK, SOCK_CLOEXEC */
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 }; /* connections the kernel keeps while the loop is busy; it may have a lower limit of its own */

static int open_one(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* a restart need not wait for old connections to fade */
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* What the kernel has loaded; it may load others when they are asked for. */
static void print_available(char *text, size_t n_bytes)
{
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
    if (!file || !fgets(text, (int)n_bytes, file))
        snprintf(text, n_bytes, "not known");
    text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Accepted connections take it from the listening socket. */
static bool set_congestion(int fd, const char *name, char *error, size_t n_error)
{
    if (!*name || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return true;
    char available[128];
    int reason = errno;
    print_available(available, sizeof available);
    snprintf(error, n_error, "--tcp-cc %.60s: cannot be used (%s); this system has: %s", name, strerror(reason),
             available);
    return false;
}

/* The URL has the port of the socket, which the kernel chose if 0 was asked for, and the host as the user wrote it. */
static void print_url(int fd, const char *host, char *url)
{
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    unsigned port = 0;
    if (getsockname(fd, (struct sockaddr *)&own, &n) == 0)
        port = own.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)(void *)&own)->sin6_port)
                                         : ntohs(((struct sockaddr_in *)(void *)&own)->sin_port);
    snprintf(url, HTTP_URL_BYTES, strchr(host, ':') ? "http://[%.255s]:%u" : "http://%.255s:%u", host, port);
}

int http_listen(const char *host, unsigned port, const char *congestion, char *url, char *error, size_t n_error)
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
    if (fd >= 0)
        print_url(fd, host, url);
    return fd;
}
