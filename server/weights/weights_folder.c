/* Owns the files of stored weights: NAME.safetensors, written under a temporary name and then renamed. */
#define _GNU_SOURCE /* scandir's versions, O_CLOEXEC */
#include "server/weights/weights_folder.h"

#include "api/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".safetensors"
#define DRAFT ".posenc-"

enum { FILE_NAME_BYTES = API_WEIGHT_NAME_MAX + sizeof SUFFIX, DRAFT_DIGITS = 16 };

static void print_file(char *file, const char *name) { snprintf(file, FILE_NAME_BYTES, "%s" SUFFIX, name); }

static int open_folder(const char *folder) { return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

/* Closes fd and keeps the errno of the earlier failure. */
static void close_quietly(int fd)
{
    int kept = errno;
    close(fd);
    errno = kept;
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

static int is_ours(const struct dirent *entry)
{
    char name[API_WEIGHT_NAME_MAX + 1];
    return name_of(entry->d_name, name);
}

static int compare(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

void weights_folder_list_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

bool weights_folder_list(const char *folder, char ***names, size_t *n)
{
    struct dirent **entries;
    int n_entries = scandir(folder, &entries, is_ours, NULL);
    if (n_entries < 0)
        return false;
    char **list = calloc((size_t)n_entries + 1, sizeof *list);
    bool done = list;
    *n = 0;
    for (int i = 0; i < n_entries; i++) {
        char name[API_WEIGHT_NAME_MAX + 1];
        if (done && name_of(entries[i]->d_name, name) && (done = (list[*n] = strdup(name))))
            ++*n;
        free(entries[i]);
    }
    free(entries);
    if (!done)
        return weights_folder_list_free(list, *n),
               errno = ENOMEM, false; /* with an incomplete list, the other files would look deleted */
    qsort(list, *n, sizeof *list, compare);
    *names = list;
    return true;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* O_NONBLOCK: a pipe in the folder must not block the server. Links are followed, because mounted configuration uses
 * them. */
static int open_file(const char *folder, const char *name, struct stat *status)
{
    char file[FILE_NAME_BYTES];
    print_file(file, name);
    int dir = open_folder(folder), fd = dir < 0 ? -1 : openat(dir, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (dir >= 0)
        close_quietly(dir);
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode))) {
        errno = EINVAL;
        close_quietly(fd);
        return -1;
    }
    return fd;
}

bool weights_folder_size(const char *folder, const char *name, uint64_t *n)
{
    struct stat status;
    int fd = open_file(folder, name, &status);
    if (fd < 0)
        return false;
    *n = (uint64_t)status.st_size;
    close(fd);
    return true;
}

bool weights_folder_read(const char *folder, const char *name, char *bytes, size_t *n)
{
    struct stat status;
    int fd = open_file(folder, name, &status);
    size_t room = *n + 1, used = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && used < room) {
        got = read(fd, bytes + used, room - used);
        used += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (fd >= 0)
        close_quietly(fd);
    *n = used;
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
static void print_draft(char *draft, size_t room)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid();
    snprintf(draft, room, DRAFT "%0*llx", DRAFT_DIGITS, (unsigned long long)random);
}

/* The file is locked while it is written, because weights_folder_clean takes an unlocked file for one that a crash has
 * left. On a file system without locks it removes nothing. */
static bool write_draft(int dir, const char *draft, const char *bytes, size_t n)
{
    int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool done = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP;
    done = done && write_all(fd, bytes, n) && fsync(fd) == 0;
    if (!done)
        close_quietly(fd);
    return done && close(fd) == 0;
}

/* The bytes reach the disk before the name does, and the name before the answer is sent (rename(2), fsync(2) of
 * both). */
bool weights_folder_write(const char *folder, const char *name, const char *bytes, size_t n)
{
    char file[FILE_NAME_BYTES], draft[32];
    print_file(file, name);
    print_draft(draft, sizeof draft);
    int dir = open_folder(folder);
    if (dir < 0)
        return false;
    bool done = write_draft(dir, draft, bytes, n) && renameat(dir, draft, dir, file) == 0;
    int kept = errno;
    if (done)
        fsync(dir); /* some file systems do not support this; the file itself is on disk */
    else
        unlinkat(dir, draft, 0);
    close(dir);
    errno = kept;
    return done;
}

bool weights_folder_remove(const char *folder, const char *name)
{
    char file[FILE_NAME_BYTES];
    print_file(file, name);
    int dir = open_folder(folder);
    if (dir < 0)
        return false;
    bool done = unlinkat(dir, file, 0) == 0 || errno == ENOENT;
    int kept = errno;
    if (done)
        fsync(dir);
    close(dir);
    errno = kept;
    return done;
}

/* ---- After a crash --------------------------------------------------------------------------------------------- */

static int is_draft(const struct dirent *entry)
{
    const char *digits = entry->d_name + strlen(DRAFT);
    return strncmp(entry->d_name, DRAFT, strlen(DRAFT)) == 0 && strlen(digits) == DRAFT_DIGITS &&
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

size_t weights_folder_clean(const char *folder)
{
    struct dirent **entries;
    int dir = open_folder(folder), n_entries = dir < 0 ? -1 : scandir(folder, &entries, is_draft, NULL);
    size_t n_removed = 0;
    for (int i = 0; i < n_entries; i++) {
        n_removed += remove_draft(dir, entries[i]->d_name);
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    if (dir >= 0)
        close(dir);
    return n_removed;
}
