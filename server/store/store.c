/* Owns what folder, bucket and cache have in common: lists of names, guards, digests, and files that are whole or not
 * there.
 *
 * The files are the hard part. A writer may end in the middle, by a crash or because the disk is full, and other
 * servers may look into the folder at any moment. So bytes go to a draft, a file under a random name beside the others.
 * When they are on disk (fsync), the caller renames it to its place, which POSIX does in one step: a reader finds the
 * old file or the new one.
 *
 * A crash leaves its draft, and the next server that starts on the folder removes it. It must not remove that of a
 * writer at work, perhaps of another machine. A process number means nothing there, and an age only guesses. So a draft
 * is locked (flock) from its creation until it has been renamed: the kernel drops the lock of a process that ends,
 * however it ends.
 *
 * Invariant: under a file's name are all bytes of one write; a draft that can be locked by another has no writer. On a
 * file system without locks no draft is removed, rather than a live one.
 *
 * "All File Systems Are Not Created Equal" (Pillai et al., OSDI 2014): which orders of write, fsync and rename survive
 * a crash. */
#define _GNU_SOURCE /* O_CLOEXEC, flock */
#include "server/store/store.h"
#include "server/auth/auth.h"
#include "server/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct store_entry *)left)->name, ((const struct store_entry *)right)->name);
}

struct store_entry *store_list_add(struct store_list *list, const char *name)
{
    if ((list->n & (list->n - 1)) == 0) { /* room doubles at each power of two */
        struct store_entry *more = realloc(list->entries, (list->n ? 2 * list->n : 1) * sizeof *more);
        if (!more)
            return NULL;
        list->entries = more;
    }
    struct store_entry *entry = &list->entries[list->n++];
    *entry = (struct store_entry){.version = ""};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return entry;
}

void store_list_sort(struct store_list *list)
{
    if (list->n > 1)
        qsort(list->entries, list->n, sizeof *list->entries, compare);
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct store_entry *)entry)->name);
}

const struct store_entry *store_list_find(const struct store_list *list, const char *name)
{
    return list->n > 0 ? bsearch(name, list->entries, list->n, sizeof *list->entries, compare_name) : NULL;
}

void store_list_drop(struct store_list *list)
{
    free(list->entries);
    *list = (struct store_list){0};
}

size_t store_place(const void *table, size_t n, const char *(*name_at)(const void *table, size_t i), const char *name,
                   bool *is_there)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(name_at(table, middle), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *is_there = low < n && strcmp(name_at(table, low), name) == 0;
    return low;
}

bool store_allows(const struct store_guard *guard, const char *sha256)
{
    return !guard->is_guarded || guard->allows(guard->self, sha256);
}

bool store_wants(const struct store_reading *reading, uint64_t n)
{
    return !reading->wants || reading->wants(reading->self, reading, n);
}

char *store_bytes_new(size_t n)
{
    return n < SIZE_MAX / 2 ? aligned_alloc(ALIGNMENT, (n + ALIGNMENT) / ALIGNMENT * ALIGNMENT) : NULL;
}

void store_digest(const char *bytes, size_t n, char *text)
{
    uint8_t sum[DIGEST_BYTES];
    digest_make(bytes, n, sum);
    digest_print(sum, text);
}

bool store_is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == STORE_DIGEST_BYTES - 1 && text[STORE_DIGEST_BYTES - 1] == '\0';
}

void store_free(struct store *store)
{
    if (!store)
        return;
    store->free(store->self);
    free(store);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

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

/* errno stays that of the failure. fd -1: there is none. */
static void drop_draft(int dir, const char *draft, int fd)
{
    int before = errno;
    if (fd >= 0)
        unlinkat(dir, draft, 0);
    errno = before;
    files_close(fd);
}

/* files_clean of another server may find the file between open and flock. Then it has lost its name once the lock is
 * free, and another one is opened. */
static int open_draft(int dir, char *draft)
{
    for (;;) {
        struct stat status;
        /* A unique name, also among several servers on the same folder. */
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            random = (uint64_t)getpid();
        snprintf(draft, FILES_DRAFT_BYTES, DRAFT "%0*llx", DRAFT_DIGITS, (unsigned long long)random);
        int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        bool is_locked = fd >= 0 && (flock(fd, LOCK_EX) == 0 || files_have_no_locks());
        bool is_known = is_locked && fstat(fd, &status) == 0;
        if (is_known && status.st_nlink > 0)
            return fd;
        if (!is_known) {
            drop_draft(dir, draft, fd);
            return -1;
        }
        close(fd);
    }
}

int files_write_draft(int dir, char draft[FILES_DRAFT_BYTES], const char *bytes, size_t n, struct stat *status)
{
    struct stat unwanted;
    int fd = open_draft(dir, draft);
    if (fd < 0)
        return -1;
    if (write_all(fd, bytes, n) && fsync(fd) == 0 && fstat(fd, status ? status : &unwanted) == 0)
        return fd;
    drop_draft(dir, draft, fd);
    return -1;
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
