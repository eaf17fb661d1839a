/* Reads the web page's files from a folder. */
#define _GNU_SOURCE /* O_DIRECTORY, O_CLOEXEC, memmem */
#include "server/page/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char start_file[] = "index.html", build[] = "dev";

enum { FILE_BYTES_MAX = 4 * 1024 * 1024, STEP_BYTES = 256 };

/* ---- Names ----------------------------------------------------------------------------------------------------- */

static const char word_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

bool page_folder_name_is_valid(const char *name)
{
    for (;; name++) {
        size_t n = strspn(name, word_letters);
        if (n == 0 || n >= STEP_BYTES || *name == '.')
            return false;
        name += n;
        if (*name != '/')
            return *name == '\0';
    }
}

/* ---- Opening --------------------------------------------------------------------------------------------------- */

/* Opens what dir has under a name, and closes dir. */
static int step_into(int dir, const char *name, int flags)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags), kept = errno;
    close(dir);
    errno = kept;
    return fd;
}

/* Step by step, so that no link on the way leads out of the folder. O_NONBLOCK: a pipe must not block the server. */
static int open_file(const char *folder, const char *name)
{
    char step[STEP_BYTES];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        snprintf(step, sizeof step, "%.*s", (int)(slash - name), name);
        fd = step_into(fd, step, O_DIRECTORY);
    }
    return fd < 0 ? -1 : step_into(fd, name, 0);
}

/* Size of a regular file that is not too large; -1 with errno. */
static ssize_t size_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -1;
    errno = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
    return S_ISREG(status.st_mode) && status.st_size <= FILE_BYTES_MAX ? (ssize_t)status.st_size : -1;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* A file that is shorter by now ends earlier. */
static bool read_all(int fd, char *bytes, size_t *n)
{
    size_t used = 0;
    for (ssize_t got = 1; used < *n && got != 0;) {
        got = read(fd, bytes + used, *n - used);
        if (got < 0 && errno != EINTR)
            return false;
        used += got > 0 ? (size_t)got : 0;
    }
    *n = used;
    return true;
}

/* index.html states where the files are: in place of BUILD, as embed.sh does it. The text becomes shorter. */
static void name_build(char *text, size_t *n)
{
    static const char sign[] = "/ui/BUILD";
    const size_t n_kept = strlen("/ui/"), n_sign = strlen(sign), n_less = n_sign - n_kept - strlen(build);
    char *at = text;
    while ((at = memmem(at, *n - (size_t)(at - text), sign, n_sign))) {
        memcpy(at + n_kept, build, strlen(build));
        at += n_sign;
        memmove(at - n_less, at, *n - (size_t)(at - text));
        *n -= n_less;
        at -= n_less;
    }
}

bool page_folder_read(void *self, const char *name, char **bytes, size_t *n)
{
    int fd = page_folder_name_is_valid(name) ? open_file(self, name) : -1;
    ssize_t size = fd < 0 ? -1 : size_of(fd);
    bool is_there = size >= 0;
    *n = is_there ? (size_t)size : 0;
    *bytes = is_there ? malloc(*n + 1) : NULL; /* one more, as a file may be empty */
    if (*bytes && !read_all(fd, *bytes, n)) {
        free(*bytes);
        *bytes = NULL;
        is_there = false;
    }
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
    if (*bytes && strcmp(name, start_file) == 0)
        name_build(*bytes, n);
    return is_there;
}

bool page_folder_open(struct api_page *page, const char *folder, char error[PAGE_FOLDER_ERROR_BYTES])
{
    char *bytes;
    size_t n;
    *page = (struct api_page){.build = build, .read = page_folder_read, .self = (void *)(uintptr_t)folder};
    bool fine = page_folder_read(page->self, start_file, &bytes, &n);
    if (fine)
        free(bytes);
    else
        snprintf(error, PAGE_FOLDER_ERROR_BYTES, "--ui-dir %.200s: %s cannot be read there: %s", folder, start_file,
                 strerror(errno));
    return fine;
}
