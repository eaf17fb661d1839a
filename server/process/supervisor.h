/* Tells the service manager that started this process how it is doing: the protocol of sd_notify(3), one datagram for
 * each message. Without a service manager, nothing is sent. */
#ifndef SERVER_PROCESS_SUPERVISOR_H
#define SERVER_PROCESS_SUPERVISOR_H

#include <stdint.h>
#include <sys/un.h>

struct supervisor {
    int fd; /* -1: there is no service manager */
    struct sockaddr_un address;
    unsigned n_address;
    uint64_t watchdog_ms; /* it ends a process that is silent for this long; 0: it does not watch */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment. A wrong value is treated as absent: a
 * server that cannot report still serves. */
void supervisor_init(struct supervisor *supervisor);
void supervisor_drop(struct supervisor *supervisor);

/* Sends "READY=1", "STOPPING=1" or "WATCHDOG=1"; never waits. A failure is ignored. */
void supervisor_say(const struct supervisor *supervisor, const char *message);

#endif
