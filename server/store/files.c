/* Owns drafts: how they are written, and what a crash leaves of them. */
#define _GNU_SOURCE /* O_CLOEXEC, flock */
#include "server/store/store.h"

#include "server/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#define DRAFT ".posenc-"

enum { DRAFT_DIGITS = 16 };

void files_close(int fd)
{
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
}

bool files_have_no_locks(void) { return errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS; }

bool files_read(int fd, char *bytes, size_t room, size_t *n)
{
    ssize_t got = 1;
    *n = 0;
    while (got > 0 && *n < room) {
        got = read(fd, bytes + *n, room - *n);
        *n += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno == EINTR)
            got = 1;
    }
    return got >= 0;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return false;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* A unique name, also among several servers on the same folder. */
static void print_draft(char *draft)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid();
    snprintf(draft, FILES_DRAFT_BYTES, DRAFT "%0*llx", DRAFT_DIGITS, (unsigned long long)random);
}

/* The file is locked while it is written, because files_clean takes an unlocked file for one that a crash has left. On
 * a file system without locks it removes nothing. */
bool files_write_draft(int dir, char draft[FILES_DRAFT_BYTES], const char *bytes, size_t n, struct stat *status)
{
    struct stat unwanted;
    print_draft(draft);
    int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool done = flock(fd, LOCK_EX | LOCK_NB) == 0 || files_have_no_locks();
    done = done && write_all(fd, bytes, n) && fsync(fd) == 0 && fstat(fd, status ? status : &unwanted) == 0;
    if (!done)
        files_close(fd);
    done = done && close(fd) == 0;
    int kept = errno;
    if (!done)
        unlinkat(dir, draft, 0);
    errno = kept;
    return done;
}

/* ---- After a crash --------------------------------------------------------------------------------------------- */

static bool is_draft(const char *file)
{
    const char *digits = file + strlen(DRAFT);
    return strncmp(file, DRAFT, strlen(DRAFT)) == 0 && strlen(digits) == DRAFT_DIGITS &&
           strspn(digits, "0123456789abcdef") == DRAFT_DIGITS;
}

static bool remove_draft(int dir, const char *draft)
{
    int fd = openat(dir, draft, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    bool done = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(dir, draft, 0) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

bool files_clean(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    size_t n_removed = 0;
    if (!entries)
        return false;
    while ((entry = readdir(entries)))
        n_removed += is_draft(entry->d_name) && remove_draft(dirfd(entries), entry->d_name);
    closedir(entries);
    if (n_removed > 0)
        log_info("weights: %zu half-written files of a crash are removed from %s", n_removed, folder);
    return true;
}
