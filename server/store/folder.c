/* Owns the files of a folder: NAME.safetensors, written under a temporary name and then renamed. */
#define _GNU_SOURCE /* O_CLOEXEC, flock */
#include "server/store/folder.h"

#include "api/api.h"
#include "server/log.h"
#include "server/loop/clock.h"
#include "server/loop/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".safetensors"
#define DRAFT ".posenc-"
#define LOCK ".posenc-lock"

enum { FILE_NAME_BYTES = API_WEIGHT_NAME_MAX + sizeof SUFFIX, DRAFT_DIGITS = 16 };

/* Another server holds the lock while it compares and renames: milliseconds, unless it was stopped in that moment. */
#define LOCK_PATIENCE (5 * CLOCK_SECOND)

struct folder {
    struct store store; /* must be first: store_free frees it */
    char path[];
};

static void print_file(char *file, const char *name) { snprintf(file, FILE_NAME_BYTES, "%s" SUFFIX, name); }

static int open_folder(const struct folder *folder) { return open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

/* Closes fd and keeps the errno of the earlier failure. */
static void close_quietly(int fd)
{
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
}

static enum store_result fail(char *why)
{
    if (errno == ENOMEM)
        return STORE_NO_MEMORY;
    snprintf(why, STORE_WHY_BYTES, "%s", strerror(errno));
    return STORE_FAILED;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* A file that is replaced by renaming has another inode, one that is written in place another size or time. */
static void print_version(char *version, const struct stat *status)
{
    snprintf(version, STORE_VERSION_BYTES, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%09ld", (uint64_t)status->st_ino,
             (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
}

/* Network file systems compare with the server when a file is opened, so the status is that of now. O_NONBLOCK: a pipe
 * in the folder must not block the server. Links are followed, because mounted configuration uses them. */
static int open_file(int dir, const char *name, struct stat *status)
{
    char file[FILE_NAME_BYTES];
    print_file(file, name);
    int fd = openat(dir, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, status) != 0) {
        close_quietly(fd);
        return -1;
    }
    if (fd >= 0 && !S_ISREG(status->st_mode)) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Reads at most room bytes; *n: how many there were. */
static bool read_all(int fd, char *bytes, size_t room, size_t *n)
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

static enum store_result read_open(int fd, const struct stat *status, struct store_reading *reading, char *why)
{
    if (reading->n_max < (uint64_t)status->st_size)
        return STORE_TOO_LARGE;
    size_t n = (size_t)status->st_size;
    char *bytes = store_bytes_new(n);
    if (!bytes)
        return STORE_NO_MEMORY;
    if (read_all(fd, bytes, n + 1, &reading->n) && reading->n == n) { /* one byte too many: its end */
        reading->bytes = bytes;
        store_digest(bytes, n, reading->digest);
        return STORE_DONE;
    }
    bool changes = reading->n != n;
    enum store_result result = changes ? STORE_FAILED : fail(why);
    if (changes)
        snprintf(why, STORE_WHY_BYTES, "its size changes while it is read");
    free(bytes);
    return result;
}

/* A link that leads nowhere is not a missing file: whoever swaps its target has not finished. */
static bool is_missing(int dir, const char *name)
{
    char file[FILE_NAME_BYTES];
    struct stat status;
    print_file(file, name);
    return fstatat(dir, file, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static enum store_result read_in(int dir, const char *name, struct store_reading *reading, char *why)
{
    struct stat status;
    int fd = open_file(dir, name, &status);
    int reason = errno;
    if (fd < 0 && reason == ENOENT && is_missing(dir, name))
        return STORE_ABSENT;
    errno = reason;
    if (fd < 0)
        return fail(why);
    print_version(reading->found, &status);
    bool is_same = strcmp(reading->found, reading->version) == 0;
    enum store_result result = is_same ? STORE_SAME : read_open(fd, &status, reading, why);
    close(fd);
    return result;
}

static enum store_result folder_read(void *self, const char *name, struct store_reading *reading, char *why)
{
    int dir = open_folder(self);
    if (dir < 0)
        return fail(why);
    enum store_result result = read_in(dir, name, reading, why);
    close(dir);
    return result;
}

/* ---- Listing --------------------------------------------------------------------------------------------------- */

/* Extracts the name of the weights from the file's name. False: not one of our files; unfinished files, which begin
 * with a dot, are not either. */
static bool name_of(const char *file, char *name)
{
    size_t n = strlen(file), n_suffix = strlen(SUFFIX);
    if (n <= n_suffix || n - n_suffix > API_WEIGHT_NAME_MAX || strcmp(file + n - n_suffix, SUFFIX) != 0)
        return false;
    memcpy(name, file, n - n_suffix);
    name[n - n_suffix] = '\0';
    return api_weight_name_is_valid(name);
}

static bool list_add(struct store_list *list, int dir, const char *name)
{
    if ((list->n & (list->n - 1)) == 0) { /* room doubles at each power of two */
        struct store_entry *more = realloc(list->entries, (list->n ? 2 * list->n : 1) * sizeof *more);
        if (!more)
            return false;
        list->entries = more;
    }
    struct store_entry *entry = &list->entries[list->n];
    struct stat status;
    int fd = open_file(dir, name, &status);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    if (fd < 0)
        snprintf(entry->version, sizeof entry->version, "errno %d",
                 errno); /* it is there, and reading it says why not */
    else
        print_version(entry->version, &status);
    close_quietly(fd);
    list->n++;
    return true;
}

/* With an incomplete list, the other files would look deleted. */
static bool list_all(DIR *entries, int dir, struct store_list *list)
{
    const struct dirent *entry;
    char name[STORE_NAME_BYTES];
    while (errno = 0, (entry = readdir(entries)))
        if (name_of(entry->d_name, name) && !list_add(list, dir, name))
            return errno = ENOMEM, false;
    return errno == 0;
}

static enum store_result folder_list(void *self, struct store_list *list, char *why)
{
    const struct folder *folder = self;
    DIR *entries = opendir(folder->path);
    *list = (struct store_list){0};
    if (!entries)
        return fail(why);
    bool done = list_all(entries, dirfd(entries), list);
    enum store_result result = done ? STORE_DONE : fail(why);
    closedir(entries);
    if (!done)
        store_list_drop(list);
    store_list_sort(list);
    return result;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

static bool has_no_locks(void) { return errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS; }

/* The file stays in the folder: if it were removed, two servers could hold locks of two files of that name. Network
 * file systems lock only what is open for writing, so the folder itself does not serve. A file system without locks is
 * used without. Returns the descriptor to close, -1: errno. */
static int lock(int dir)
{
    uint64_t end = clock_now() + LOCK_PATIENCE;
    int fd = openat(dir, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && !has_no_locks()) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_now() > end) {
            close_quietly(fd);
            return -1;
        }
        jobs_wait();
    }
    return fd;
}

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
static void print_draft(char *draft, size_t room)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid();
    snprintf(draft, room, DRAFT "%0*llx", DRAFT_DIGITS, (unsigned long long)random);
}

/* The file is locked while it is written, because clean takes an unlocked file for one that a crash has left. On a file
 * system without locks it removes nothing. The bytes reach the disk before the name does. */
static bool write_draft(int dir, const char *draft, const struct store_writing *writing, struct stat *status)
{
    int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool done = flock(fd, LOCK_EX | LOCK_NB) == 0 || has_no_locks();
    done = done && write_all(fd, writing->bytes, writing->n) && fsync(fd) == 0 && fstat(fd, status) == 0;
    if (!done)
        close_quietly(fd);
    return done && close(fd) == 0;
}

/* Whether the guard allows to change the file as it is on the disk now; call it with the lock. */
static enum store_result check(int dir, const char *name, const struct store_guard *guard, bool *is_there, char *why)
{
    struct store_reading reading = {.version = "", .sha256 = "", .n_max = UINT64_MAX};
    struct stat status;
    char file[FILE_NAME_BYTES];
    print_file(file, name);
    *is_there = fstatat(dir, file, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*is_there && errno != ENOENT)
        return fail(why);
    if (!guard->is_guarded)
        return STORE_DONE;
    enum store_result result = read_in(dir, name, &reading, why);
    if (result == STORE_DONE || result == STORE_ABSENT)
        result = store_allows(guard, result == STORE_DONE ? reading.digest : NULL) ? STORE_DONE : STORE_GUARDED;
    free(reading.bytes);
    return result;
}

static enum store_result rename_draft(int dir, const char *draft, const char *name, struct store_writing *writing,
                                      char *why)
{
    char file[FILE_NAME_BYTES];
    print_file(file, name);
    int locked = lock(dir);
    if (locked < 0)
        return fail(why);
    enum store_result result = check(dir, name, &writing->guard, &writing->was_there, why);
    if (result == STORE_DONE && renameat(dir, draft, dir, file) != 0)
        result = fail(why);
    close(locked);
    return result;
}

static enum store_result write_in(int dir, const char *name, struct store_writing *writing, char *why)
{
    char draft[32];
    struct stat status;
    print_draft(draft, sizeof draft);
    bool is_written = write_draft(dir, draft, writing, &status);
    enum store_result result = is_written ? rename_draft(dir, draft, name, writing, why) : fail(why);
    if (result == STORE_DONE) {
        print_version(writing->made, &status);
        fsync(dir); /* some file systems do not support this; the file itself is on disk */
    } else {
        unlinkat(dir, draft, 0);
    }
    return result;
}

static enum store_result folder_write(void *self, const char *name, struct store_writing *writing, char *why)
{
    int dir = open_folder(self);
    if (dir < 0)
        return fail(why);
    enum store_result result = write_in(dir, name, writing, why);
    close(dir);
    return result;
}

static enum store_result remove_in(int dir, const char *name, const struct store_guard *guard, char *why)
{
    char file[FILE_NAME_BYTES];
    bool is_there;
    print_file(file, name);
    int locked = lock(dir);
    if (locked < 0)
        return fail(why);
    enum store_result result = check(dir, name, guard, &is_there, why);
    if (result == STORE_DONE && unlinkat(dir, file, 0) != 0)
        result = errno == ENOENT ? STORE_ABSENT : fail(why);
    close(locked);
    if (result == STORE_DONE)
        fsync(dir);
    return result;
}

static enum store_result folder_remove(void *self, const char *name, const struct store_guard *guard, char *why)
{
    int dir = open_folder(self);
    if (dir < 0)
        return fail(why);
    enum store_result result = remove_in(dir, name, guard, why);
    close(dir);
    return result;
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

/* False: errno. */
static bool clean(const struct folder *folder)
{
    DIR *entries = opendir(folder->path);
    const struct dirent *entry;
    size_t n_removed = 0;
    if (!entries)
        return false;
    while ((entry = readdir(entries)))
        n_removed += is_draft(entry->d_name) && remove_draft(dirfd(entries), entry->d_name);
    closedir(entries);
    if (n_removed > 0)
        log_info("weights: %zu half-written files of a crash are removed from %s", n_removed, folder->path);
    return true;
}

static void folder_free(void *self) { (void)self; }

struct store *folder_store_new(const char *path)
{
    size_t n = strlen(path) + 1;
    struct folder *folder = malloc(sizeof *folder + n);
    if (!folder)
        return NULL;
    memcpy(folder->path, path, n);
    folder->store = (struct store){.self = folder,
                                   .flag = "--weights-dir",
                                   .place = folder->path,
                                   .list = folder_list,
                                   .read = folder_read,
                                   .write = folder_write,
                                   .remove = folder_remove,
                                   .free = folder_free};
    if (clean(folder))
        return &folder->store;
    int kept = errno;
    free(folder);
    errno = kept;
    return NULL;
}
