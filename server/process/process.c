/* Owns the queries to the operating system: process figures, processors and their quota, descriptor limit. */
#define _GNU_SOURCE /* SOCK_CLOEXEC, SOCK_NONBLOCK, sched_getaffinity */
#include "server/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

atomic_int_fast64_t metrics_values[METRICS_N_IDS];

static void read_memory(struct process_figures *figures)
{
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return;
    unsigned long long n_virtual = 0, n_resident = 0;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (fscanf(file, "%llu %llu", &n_virtual, &n_resident) == 2) {
        figures->virtual_bytes = n_virtual * page_bytes;
        figures->resident_bytes = n_resident * page_bytes;
    }
    fclose(file);
}

static void read_fds(struct process_figures *figures)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        figures->fds_max = limit.rlim_cur;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    for (const struct dirent *entry; (entry = readdir(directory));)
        figures->n_fds += entry->d_name[0] != '.';
    figures->n_fds -= 1; /* minus the descriptor of the directory itself */
    closedir(directory);
}

static double to_seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

/* Field 22 of the process's stat line is its start in clock ticks since boot; the boot time is now minus the uptime.
 * Fields are counted from the end of the name, which is in parentheses and may contain any character. */
static void read_start(struct process_figures *figures)
{
    char line[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return;
    size_t n = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[n] = '\0';
    const char *at = strrchr(line, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    unsigned long long ticks = 0;
    struct timespec now, up;
    if (!at || sscanf(at, "%llu", &ticks) != 1 || clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return;
    double boot = (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) * 1e-9;
    figures->started_at = boot + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void process_read(struct process_figures *figures)
{
    *figures = (struct process_figures){0};
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        figures->cpu_seconds = to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
    read_memory(figures);
    read_fds(figures);
    read_start(figures);
}

unsigned process_quota_parse(const char *text)
{
    unsigned long long quota = 0, period = 0;
    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || quota == 0 || period == 0)
        return 0;
    unsigned long long n = (quota + period - 1) / period;
    return n > 4096 ? 4096 : (unsigned)n;
}

/* Inside a container the control group's own directory is mounted as the root, so this one path is enough. Outside a
 * container the file does not exist, and no quota applies. */
static unsigned read_quota(void)
{
    char line[64] = "";
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!file)
        return 0;
    bool is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    return is_read ? process_quota_parse(line) : 0;
}

unsigned process_n_cores(void)
{
    cpu_set_t allowed;
    unsigned n = 1, quota = read_quota();
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        n = (unsigned)CPU_COUNT(&allowed);
    if (quota > 0 && quota < n)
        n = quota;
    return n > 0 ? n : 1;
}

/* ---- The memory of control groups ------------------------------------------------------------------------------ */

enum { GROUP_PATH_BYTES = 1024 };

/* "max" and a missing file are no limit. Version 1 prints one near 2^63 if there is none. */
static uint64_t read_limit(const char *folder, const char *group, const char *file)
{
    char path[2 * GROUP_PATH_BYTES];
    unsigned long long n = 0;
    snprintf(path, sizeof path, "%s%s/%s", folder, group, file);
    FILE *opened = fopen(path, "re");
    if (!opened)
        return UINT64_MAX;
    bool is_number = fscanf(opened, "%llu", &n) == 1;
    fclose(opened);
    return is_number ? n : UINT64_MAX;
}

/* The least limit of this group and all above it; group is cut meanwhile. Inside a container its own group is mounted
 * as the root, where the path need not exist. */
static uint64_t least_limit(const char *folder, char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t limit = read_limit(folder, group, file);
        least = limit < least ? limit : least;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Whether a list such as "cpu,memory" has the word memory. */
static bool has_memory(const char *list)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == 6 && strncmp(list, "memory", 6) == 0)
            return true;
    }
    return false;
}

uint64_t process_memory_limit(const char *root)
{
    char folder[GROUP_PATH_BYTES], line[GROUP_PATH_BYTES];
    uint64_t least = UINT64_MAX;
    snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
    FILE *file = fopen(folder, "re");
    while (file && fgets(line, sizeof line, file)) { /* hierarchy:controllers:/path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        bool is_second = strcmp(controllers, ":") == 0;
        if (!is_second && !has_memory(controllers + 1))
            continue;
        snprintf(folder, sizeof folder, "%.900s/sys/fs/cgroup%s", root, is_second ? "" : "/memory");
        uint64_t limit = least_limit(folder, group, is_second ? "memory.max" : "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (file)
        fclose(file);
    return least;
}

static uint64_t soft_limit(__rlimit_resource_t resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

uint64_t process_address_room(void)
{
    struct process_figures now;
    uint64_t limit = soft_limit(RLIMIT_AS);
    if (limit == UINT64_MAX)
        return limit;
    process_read(&now);
    return limit > now.virtual_bytes ? limit - now.virtual_bytes : 0;
}

/* OpenBLAS starts a thread for each processor when it is loaded, each with a buffer, and asks again without end while
 * it gets none; it would then neither compute nor let the process end. It reads its environment only at that time.
 * Without /proc the program goes on. */
void process_start_without_blas_threads(char **argv)
{
    static const char *const name = "OPENBLAS_NUM_THREADS";
    const char *given = getenv(name);
    if (process_address_room() == UINT64_MAX || (given && strcmp(given, "1") == 0) || setenv(name, "1", 1) != 0)
        return;
    execv("/proc/self/exe", argv);
}

uint64_t process_stack_limit(void) { return soft_limit(RLIMIT_STACK); }

uint64_t process_raise_fds(uint64_t n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return n;
    if (limit.rlim_cur >= n)
        return limit.rlim_cur;
    struct rlimit wanted = {.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        limit = wanted;
    return limit.rlim_cur;
}

/* ---- The service manager (systemd with Type=notify and WatchdogSec) ---------------------------------------------- */

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
