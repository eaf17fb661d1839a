/* Owns calls on stream sockets that fail as on a busy network or under signals: fewer bytes than requested, would
 * block, interrupted, reset. The server's own recv() (server/transport/guard.c) calls the one here. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { KIND_SHORT = 1, KIND_INTERRUPTED = 2, KIND_AGAIN = 4, KIND_RESET = 8, N_KINDS = 4, FDS_MAX = 4096 };

/* ---- Edges ------------------------------------------------------------------------------------------------------- */

/* An edge-triggered caller takes a short or refused call as "wait for the next edge". The kernel does not know of the
 * simulated refusal and would never report one. Setting the same watch again makes it report the socket. */
static struct {
    int epoll;
    struct epoll_event event;
} watches[FDS_MAX];

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    NEXT(epoll_ctl)
    if (fd >= 0 && fd < FDS_MAX && op != EPOLL_CTL_DEL) {
        watches[fd].epoll = epoll;
        watches[fd].event = *event;
    }
    return next(epoll, op, fd, event);
}

static void look_again(int fd)
{
    int kept = errno;
    if (fd >= 0 && fd < FDS_MAX && watches[fd].event.events & EPOLLET)
        epoll_ctl(watches[fd].epoll, EPOLL_CTL_MOD, fd,
                  &(struct epoll_event){watches[fd].event.events, watches[fd].event.data});
    errno = kept;
}

/* ---- Chance ------------------------------------------------------------------------------------------------------ */

static uint32_t chance(uint32_t n)
{
    static _Thread_local uint64_t state = 0x9e3779b97f4a7c15u;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t n = sizeof type;
    int kept = errno;
    bool is = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
    errno = kept;
    return is;
}

/* One of the requested kinds, or 0. */
static int kind_of_fault(int fd)
{
    uint32_t permille = (uint32_t)atomic_load(&faults->net_permille);
    if (permille == 0 || chance(1000) >= permille || !is_stream(fd))
        return 0;
    int kinds = (int)atomic_load(&faults->net_kinds), kind = 0;
    for (int i = 0; i < 64 && !(kinds & kind); i++)
        kind = 1 << chance(N_KINDS);
    if (!(kinds & kind))
        return 0;
    atomic_fetch_add(&faults->net_hits, 1);
    return kind;
}

/* True: the real call is skipped; *n: the number of bytes it may transfer. */
static bool goes_wrong(int fd, size_t *n)
{
    int kind = kind_of_fault(fd);
    if (kind == KIND_SHORT && *n > 1)
        *n = 1 + (chance(2) ? 0 : chance((uint32_t)(*n < 4096 ? *n : 4096)));
    if (kind == KIND_RESET) /* the peer sees the reset too */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    if (kind)
        look_again(fd);
    errno = kind == KIND_INTERRUPTED ? EINTR : kind == KIND_AGAIN ? EAGAIN : ECONNRESET;
    return kind > KIND_SHORT;
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    NEXT(recv)
    return goes_wrong(fd, &n) ? -1 : next(fd, bytes, n, flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    NEXT(send)
    return goes_wrong(fd, &n) ? -1 : next(fd, bytes, n, flags);
}

/* A short call sends from the first part that is not empty. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    NEXT(sendmsg)
    struct msghdr less = *message;
    while (less.msg_iovlen > 1 && less.msg_iov->iov_len == 0)
        less.msg_iov++, less.msg_iovlen--;
    size_t n = less.msg_iovlen ? less.msg_iov->iov_len : 0, before = n;
    if (goes_wrong(fd, &n))
        return -1;
    if (n == before)
        return next(fd, message, flags);
    struct iovec part = {less.msg_iov->iov_base, n};
    less.msg_iov = &part;
    less.msg_iovlen = 1;
    return next(fd, &less, flags);
}

ssize_t writev(int fd, const struct iovec *parts, int n_parts)
{
    NEXT(writev)
    size_t n = n_parts > 0 ? parts[0].iov_len : 0, before = n;
    if (goes_wrong(fd, &n))
        return -1;
    struct iovec part = {n_parts > 0 ? parts[0].iov_base : NULL, n};
    return n == before ? next(fd, parts, n_parts) : next(fd, &part, 1);
}
