/* Owns the files of a folder: NAME and a suffix, written under a temporary name and then renamed.
 *
 * rename() replaces a file in one step (POSIX), so a reader has the old file or the new one, and a crash leaves a draft
 * that store.c removes. Several servers may share the folder, also over NFS: a change that depends on what is there
 * (If-Match) compares and renames under a lock on one file beside the others, which holds for milliseconds.
 *
 * A version is inode, size and time of a file: a list of thousands of files costs one stat each, and only what has
 * changed is read. An incomplete list is an error and not a short list, since missing names would look like deleted
 * files. */
#define _GNU_SOURCE /* O_CLOEXEC, flock */
#include "server/store/store.h"

#include "api/api.h"
#include "server/loop/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK ".posenc-lock"

enum { FILE_NAME_BYTES = API_WEIGHT_NAME_MAX + FOLDER_SUFFIX_BYTES };

/* Another server holds the lock while it compares and renames: milliseconds, unless it was stopped in that moment. */
#define LOCK_PATIENCE (5 * CLOCK_SECOND)

struct folder {
    struct store store; /* must be first: store_free frees it */
    char suffix[FOLDER_SUFFIX_BYTES];
    char path[];
};

/* The folder, open. */
struct opened {
    int fd;
    const char *suffix;
};

static void print_file(char *file, const struct opened *dir, const char *name)
{
    snprintf(file, FILE_NAME_BYTES, "%s%s", name, dir->suffix);
}

static struct opened open_folder(const struct folder *folder)
{
    return (struct opened){open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder->suffix};
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
static int open_file(const struct opened *dir, const char *name, struct stat *status)
{
    char file[FILE_NAME_BYTES];
    print_file(file, dir, name);
    int fd = openat(dir->fd, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, status) != 0) {
        files_close(fd);
        return -1;
    }
    if (fd >= 0 && !S_ISREG(status->st_mode)) {
        close(fd);
        errno = S_ISDIR(status->st_mode) ? EISDIR : ENXIO; /* as open() gives for a socket */
        return -1;
    }
    return fd;
}

/* reason: errno of open_file. */
static bool is_no_file(int reason) { return reason == EISDIR || reason == ENXIO; }

/* The version of what cannot be opened. Reading it gives the reason. */
static void print_no_version(char *version, int reason) { snprintf(version, STORE_VERSION_BYTES, "errno %d", reason); }

static enum store_result read_open(int fd, const struct stat *status, struct store_reading *reading, char *why)
{
    if (!store_wants(reading, (uint64_t)status->st_size))
        return STORE_UNWANTED;
    size_t n = (size_t)status->st_size;
    char *bytes = store_bytes_new(n);
    if (!bytes)
        return STORE_NO_MEMORY;
    if (files_read(fd, bytes, n + 1, &reading->n) && reading->n == n) { /* one byte too many: its end */
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
static bool is_missing(const struct opened *dir, const char *name)
{
    char file[FILE_NAME_BYTES];
    struct stat status;
    print_file(file, dir, name);
    return fstatat(dir->fd, file, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static enum store_result read_in(const struct opened *dir, const char *name, struct store_reading *reading, char *why)
{
    struct stat status;
    int fd = open_file(dir, name, &status);
    int reason = errno;
    if (fd < 0 && reason == ENOENT && is_missing(dir, name))
        return STORE_ABSENT;
    if (fd < 0 && is_no_file(reason)) {
        print_no_version(reading->found, reason);
        snprintf(why, STORE_WHY_BYTES, reason == EISDIR ? "it is a folder" : "it is no file");
        return STORE_NO_FILE;
    }
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
    struct opened dir = open_folder(self);
    if (dir.fd < 0)
        return fail(why);
    enum store_result result = read_in(&dir, name, reading, why);
    close(dir.fd);
    return result;
}

/* ---- Listing --------------------------------------------------------------------------------------------------- */

/* Extracts the name of what is stored from the file's name. False: not one of our files; unfinished files, which begin
 * with a dot, are not either. */
static bool name_of(const char *file, const char *suffix, char *name)
{
    size_t n = strlen(file), n_suffix = strlen(suffix);
    if (n <= n_suffix || n - n_suffix > API_WEIGHT_NAME_MAX || strcmp(file + n - n_suffix, suffix) != 0)
        return false;
    memcpy(name, file, n - n_suffix);
    name[n - n_suffix] = '\0';
    return api_weight_name_is_valid(name);
}

static bool list_add(struct store_list *list, const struct opened *dir, const char *name)
{
    struct store_entry *entry = store_list_add(list, name);
    if (!entry)
        return false;
    struct stat status;
    int fd = open_file(dir, name, &status);
    if (fd < 0)
        print_no_version(entry->version, errno);
    else
        print_version(entry->version, &status);
    files_close(fd);
    return true;
}

/* With an incomplete list, the other files would look deleted. */
static bool list_all(DIR *entries, const struct opened *dir, struct store_list *list)
{
    const struct dirent *entry;
    char name[STORE_NAME_BYTES];
    while (errno = 0, (entry = readdir(entries)))
        if (name_of(entry->d_name, dir->suffix, name) && !list_add(list, dir, name))
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
    bool done = list_all(entries, &(struct opened){dirfd(entries), folder->suffix}, list);
    enum store_result result = done ? STORE_DONE : fail(why);
    closedir(entries);
    if (!done)
        store_list_drop(list);
    store_list_sort(list);
    return result;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

/* The file stays in the folder: if it were removed, two servers could hold locks of two files of that name. Network
 * file systems lock only what is open for writing, so the folder itself does not serve. A file system without locks is
 * used without. Returns the descriptor to close, -1: errno. */
static int lock(int dir)
{
    uint64_t end = clock_now() + LOCK_PATIENCE;
    job_wait_begin();
    int fd = openat(dir, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && !files_have_no_locks()) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_now() > end) {
            files_close(fd);
            return -1;
        }
        job_wait_on();
    }
    return fd;
}

/* Whether the guard allows to change the file as it is on the disk now; call it with the lock. A pipe, which may be
 * replaced, counts as no file, and so does a folder, which may not. */
static enum store_result check(const struct opened *dir, const char *name, const struct store_guard *guard,
                               bool *is_there, char *why)
{
    struct store_reading reading = {.version = "", .sha256 = ""};
    struct stat status;
    char file[FILE_NAME_BYTES];
    print_file(file, dir, name);
    *is_there = fstatat(dir->fd, file, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*is_there && errno != ENOENT)
        return fail(why);
    bool is_folder = *is_there && S_ISDIR(status.st_mode);
    if (!guard->is_guarded)
        return is_folder ? STORE_NO_FILE : STORE_DONE;
    enum store_result result = read_in(dir, name, &reading, why);
    if (result == STORE_NO_FILE)
        result = !store_allows(guard, NULL) ? STORE_GUARDED : is_folder ? STORE_NO_FILE : STORE_DONE;
    else if (result == STORE_DONE || result == STORE_ABSENT)
        result = store_allows(guard, result == STORE_DONE ? reading.digest : NULL) ? STORE_DONE : STORE_GUARDED;
    free(reading.bytes);
    return result;
}

static enum store_result rename_draft(const struct opened *dir, const char *draft, const char *name,
                                      struct store_writing *writing, char *why)
{
    char file[FILE_NAME_BYTES];
    print_file(file, dir, name);
    int locked = lock(dir->fd);
    if (locked < 0)
        return fail(why);
    enum store_result result = check(dir, name, &writing->guard, &writing->was_there, why);
    if (result == STORE_DONE && renameat(dir->fd, draft, dir->fd, file) != 0)
        result = fail(why);
    close(locked);
    return result;
}

static enum store_result write_in(const struct opened *dir, const char *name, struct store_writing *writing, char *why)
{
    char draft[FILES_DRAFT_BYTES];
    struct stat status;
    int fd = files_write_draft(dir->fd, draft, writing->bytes, writing->n, &status);
    if (fd < 0)
        return fail(why);
    enum store_result result = rename_draft(dir, draft, name, writing, why);
    if (result == STORE_DONE) {
        print_version(writing->made, &status);
        fsync(dir->fd); /* some file systems do not support this; the file itself is on disk */
    } else {
        unlinkat(dir->fd, draft, 0);
    }
    close(fd);
    return result;
}

static enum store_result folder_write(void *self, const char *name, struct store_writing *writing, char *why)
{
    struct opened dir = open_folder(self);
    if (dir.fd < 0)
        return fail(why);
    enum store_result result = write_in(&dir, name, writing, why);
    close(dir.fd);
    return result;
}

static enum store_result remove_in(const struct opened *dir, const char *name, const struct store_guard *guard,
                                   char *why)
{
    char file[FILE_NAME_BYTES];
    bool is_there;
    print_file(file, dir, name);
    int locked = lock(dir->fd);
    if (locked < 0)
        return fail(why);
    enum store_result result = check(dir, name, guard, &is_there, why);
    if (result == STORE_NO_FILE)
        result = STORE_ABSENT;
    else if (result == STORE_DONE && unlinkat(dir->fd, file, 0) != 0)
        result = errno == ENOENT ? STORE_ABSENT : fail(why);
    close(locked);
    if (result == STORE_DONE)
        fsync(dir->fd);
    return result;
}

static enum store_result folder_remove(void *self, const char *name, const struct store_guard *guard, char *why)
{
    struct opened dir = open_folder(self);
    if (dir.fd < 0)
        return fail(why);
    enum store_result result = remove_in(&dir, name, guard, why);
    close(dir.fd);
    return result;
}

static void folder_free(void *self) { (void)self; }

struct store *folder_store_new(const char *path, const char *suffix)
{
    size_t n = strlen(path) + 1;
    struct folder *folder = malloc(sizeof *folder + n);
    if (!folder)
        return NULL;
    memcpy(folder->path, path, n);
    snprintf(folder->suffix, sizeof folder->suffix, "%s", suffix);
    folder->store = (struct store){.self = folder,
                                   .flag = "--weights-dir",
                                   .place = folder->path,
                                   .list = folder_list,
                                   .read = folder_read,
                                   .write = folder_write,
                                   .remove = folder_remove,
                                   .free = folder_free};
    if (files_clean(path))
        return &folder->store;
    int kept = errno;
    free(folder);
    errno = kept;
    return NULL;
}
