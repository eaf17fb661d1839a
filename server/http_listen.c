/* Owns the opening of the listening socket. */
#define _GNU_SOURCE /* SOCK_NONBLOCK, SOCK_CLOEXEC */
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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

int http_listen(const char *host, unsigned port, char *url, char *error, size_t n_error)
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
    else
        print_url(fd, host, url);
    freeaddrinfo(found);
    return fd;
}
