/* Facts about this process and this machine, read from the operating system. */
#ifndef SERVER_PROCESS_PROCESS_H
#define SERVER_PROCESS_PROCESS_H

#include <stdint.h>

struct process_figures {
    double cpu_seconds, started_at; /* user + system; seconds since the epoch */
    uint64_t resident_bytes, virtual_bytes, n_fds, fds_max;
};

void process_read(struct process_figures *figures); /* a value that cannot be read is 0 */

/* Number of processors this process may use: those in its affinity mask, or fewer if its control group has a smaller
 * quota. ≥ 1. */
unsigned process_n_cores(void);

/* Parses the quota of a control group's cpu.max ("200000 100000"): processors, rounded up; 0: no quota ("max 100000")
 * or unreadable. */
unsigned process_quota_parse(const char *text);

/* Bytes of memory that the control groups of this process allow (version 1 or 2; the least of the group and those above
 * it); UINT64_MAX: no limit. root is put before the paths of the system's files: "", or in tests a folder with copies
 * of them. */
uint64_t process_memory_limit(const char *root);

/* Bytes that the limits of address space (ulimit -v) leave, and of a stack (ulimit -s); UINT64_MAX: no limit. */
uint64_t process_address_room(void);
uint64_t process_stack_limit(void);

/* Raises the limit of open descriptors to n if it is lower; returns the resulting limit. */
uint64_t process_raise_fds(uint64_t n);

#endif
