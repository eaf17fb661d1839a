/* Owns the file through which a test states which calls shall fail. */
#include "tests/faults/faults.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct faults own;
struct faults *faults = &own;

/* Runs before main and before any other thread; the counts so far are copied into the file. */
static void __attribute__((constructor)) map_control(void)
{
    const char *path = getenv("FAULTS_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) {
        fputs("faults: FAULTS_CONTROL cannot be mapped\n", stderr);
        abort();
    }
    faults = mapped;
    atomic_store(&faults->live_blocks, atomic_load(&own.live_blocks));
    atomic_store(&faults->live_bytes, atomic_load(&own.live_bytes));
}
