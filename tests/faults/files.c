/* Owns calls on regular files that fail as on full and broken disks: read, write, sync, create and rename. Standard
 * streams never fail, because tests keep the log in a file. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool hits(void)
{
    return faults_hit(&faults->file_armed, &faults->file_count, &faults->file_first, &faults->file_burst,
                      &faults->file_failed);
}

static bool is_file(int fd)
{
    struct stat about;
    return fd > STDERR_FILENO && atomic_load_explicit(&faults->file_armed, memory_order_relaxed) &&
           fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
}

static bool fails(void)
{
    int reason = (int)atomic_load(&faults->file_errno);
    if (!reason || !hits())
        return false;
    errno = reason;
    return true;
}

/* If no errno is set, every second call is interrupted, and the others transfer half of the bytes. */
static bool moves_less(size_t *n)
{
    int reason = (int)atomic_load(&faults->file_errno);
    bool is_hit = hits();
    errno = reason ? reason : EINTR;
    if (!is_hit || reason || atomic_load(&faults->file_failed) % 2)
        return is_hit;
    *n = *n > 1 ? *n / 2 : *n;
    return false;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    NEXT(write)
    return is_file(fd) && moves_less(&n) ? -1 : next(fd, bytes, n);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    NEXT(read)
    return is_file(fd) && moves_less(&n) ? -1 : next(fd, bytes, n);
}

int fsync(int fd)
{
    NEXT(fsync)
    return is_file(fd) && fails() ? -1 : next(fd);
}

/* The descriptor is closed nevertheless, as on Linux. */
int close(int fd)
{
    NEXT(close)
    bool is_broken = is_file(fd) && fails();
    int closed = next(fd);
    if (is_broken)
        errno = (int)atomic_load(&faults->file_errno);
    return is_broken ? -1 : closed;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    NEXT(renameat)
    return atomic_load(&faults->file_armed) && fails() ? -1 : next(from_dir, from, to_dir, to);
}

int unlinkat(int dir, const char *name, int flags)
{
    NEXT(unlinkat)
    return atomic_load(&faults->file_armed) && fails() ? -1 : next(dir, name, flags);
}

int openat(int dir, const char *name, int flags, ...)
{
    NEXT(openat)
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return atomic_load(&faults->file_armed) && fails() ? -1 : next(dir, name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    NEXT(open)
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return atomic_load(&faults->file_armed) && fails() ? -1 : next(name, flags, mode);
}
