/* Owns the connection to the service manager (systemd with Type=notify and WatchdogSec). */
#define _GNU_SOURCE /* SOCK_CLOEXEC, SOCK_NONBLOCK */
#include "server/process/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool number_of(const char *variable, uint64_t *value)
{
    const char *text = getenv(variable);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && !*end;
}

/* The variables are inherited by every process below the service; the watchdog waits for one of them only. */
static uint64_t watchdog_ms(void)
{
    uint64_t us, pid;
    if (!number_of("WATCHDOG_USEC", &us) || (number_of("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid()))
        return 0;
    return us / 1000;
}

/* A path, or with @ a name that is in no folder: Linux writes that with a zero byte in place of the @. */
static bool set_address(struct supervisor *supervisor, const char *name)
{
    struct sockaddr_un *address = &supervisor->address;
    size_t n = strlen(name);
    if ((*name != '/' && *name != '@') || n < 2 || n >= sizeof address->sun_path)
        return false;
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, n);
    supervisor->n_address = (unsigned)(offsetof(struct sockaddr_un, sun_path) + n);
    if (*name == '@')
        address->sun_path[0] = '\0';
    return true;
}

void supervisor_init(struct supervisor *supervisor)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *supervisor = (struct supervisor){.fd = -1};
    if (!name || !set_address(supervisor, name))
        return;
    supervisor->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (supervisor->fd >= 0)
        supervisor->watchdog_ms = watchdog_ms();
}

void supervisor_drop(struct supervisor *supervisor)
{
    if (supervisor->fd >= 0)
        close(supervisor->fd);
    supervisor->fd = -1;
}

void supervisor_say(const struct supervisor *supervisor, const char *message)
{
    if (supervisor->fd < 0)
        return;
    const struct sockaddr *address = (const struct sockaddr *)&supervisor->address;
    (void)!sendto(supervisor->fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, address,
                  supervisor->n_address);
}
