/* Owns send() and sendmsg(), and so counts the bytes that each connection's socket has accepted.
 *
 * For TCP the kernel reports how much the peer has received (TCP_INFO); for a Unix socket it does not. But it queues
 * little for a reader, so the bytes are accepted about as fast as they are read. The HTTP library does not report how
 * much it has sent either, so its calls are intercepted here, in the same way as in guard.c. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "server/transport/transport.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef ssize_t send_bytes(int fd, const void *bytes, size_t n, int flags);
typedef ssize_t send_message(int fd, const struct msghdr *message, int flags);

/* The functions that would be called without ours. They are not always the C library's: sanitizers and tests interpose
 * theirs. */
static send_bytes *next_send;
static send_message *next_sendmsg;
static pthread_once_t next_once = PTHREAD_ONCE_INIT;

static void find_next(void)
{
    *(void **)&next_send = dlsym(RTLD_NEXT, "send");
    *(void **)&next_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
}

static ssize_t count(int fd, ssize_t n)
{
    struct http_connection *connection = n > 0 ? http_guard_connection(fd) : NULL;
    if (connection)
        connection->n_sent += (uint64_t)n;
    return n;
}

/* The C names differ from the symbols, as in guard.c. */
ssize_t http_sent_send(int fd, const void *bytes, size_t n, int flags) __asm__("send")
    __attribute__((visibility("default")));
ssize_t http_sent_sendmsg(int fd, const struct msghdr *message, int flags) __asm__("sendmsg")
    __attribute__((visibility("default")));

ssize_t http_sent_send(int fd, const void *bytes, size_t n, int flags)
{
    pthread_once(&next_once, find_next);
    return count(fd, next_send ? next_send(fd, bytes, n, flags) : sendto(fd, bytes, n, flags, NULL, 0));
}

ssize_t http_sent_sendmsg(int fd, const struct msghdr *message, int flags)
{
    pthread_once(&next_once, find_next);
    return count(fd, next_sendmsg ? next_sendmsg(fd, message, flags) : syscall(SYS_sendmsg, fd, message, flags));
}

bool http_sent_works(void)
{
    send_bytes *ours = http_sent_send;
    send_message *our_messages = http_sent_sendmsg;
    void *found = dlsym(RTLD_DEFAULT, "send"), *found_messages = dlsym(RTLD_DEFAULT, "sendmsg");
    return found && memcmp(&ours, &found, sizeof found) == 0 && found_messages &&
           memcmp(&our_messages, &found_messages, sizeof found_messages) == 0;
}
