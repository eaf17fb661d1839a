/* Names of stored weights and entries of their folder. The input is the name of a file in the folder. The file is
 * listed if and only if it is NAME.safetensors with a valid name; then it can be read and removed by that name, and no
 * other file changes. As a name in a URL path, the input selects a stored file or a refusal, never another place of the
 * file system. */
#define _GNU_SOURCE /* O_PATH */
#include "tests/fuzz/laws.h"
#include "api/api.h"
#include "server/weights/weights_folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[64];
enum { FDS_MORE = 16 }; /* libFuzzer may open descriptors for a symbolizer */

static int dir = -1, next_fd = -1;

static void remove_folder(void) { rmdir(folder); }

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    snprintf(folder, sizeof folder, "%s/posenc-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(folder));
    atexit(remove_folder);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    next_fd = dup(dir);
    REQUIRE(dir >= 0 && next_fd >= 0);
    close(next_fd);
    return 0;
}

/* The rule again, letter by letter: [A-Za-z0-9][A-Za-z0-9._-]{0,127}. */
static bool is_name(const char *name, size_t n)
{
    if (n < 1 || n > 128 || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '.' && name[i] != '_' && name[i] != '-')
            return false;
    return true;
}

static size_t name_length(const char *file)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(file), n_suffix = sizeof suffix - 1;
    bool fits = n > n_suffix && strcmp(file + n - n_suffix, suffix) == 0;
    return fits && is_name(file, n - n_suffix) ? n - n_suffix : 0;
}

static void check_listed(const char *name)
{
    char bytes[8];
    size_t n = sizeof bytes - 1;
    uint64_t size = 0;
    REQUIRE(weights_folder_size(folder, name, &size) && size == 2);
    REQUIRE(weights_folder_read(folder, name, bytes, &n) && n == 2 && memcmp(bytes, "xy", 2) == 0);
    REQUIRE(weights_folder_remove(folder, name));
}

/* A file of that name in the folder, listed or not. */
static void check_entry(const char *file)
{
    int fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return; /* not a possible file name */
    REQUIRE(write(fd, "xy", 2) == 2);
    close(fd);
    char **names, name[200];
    size_t n, n_name = name_length(file);
    snprintf(name, sizeof name, "%.*s", (int)n_name, file);
    REQUIRE(weights_folder_list(folder, &names, &n) && n == (n_name > 0));
    REQUIRE(n == 0 || strcmp(names[0], name) == 0);
    weights_folder_list_free(names, n);
    if (n)
        check_listed(name);
    REQUIRE(unlinkat(dir, file, 0) == (n ? -1 : 0));
}

static void check_draft(void)
{
    REQUIRE(weights_folder_clean(folder) == 0);
    int fd = dup(dir);
    REQUIRE(fd >= 0 && fd < next_fd + FDS_MORE); /* nothing is left open */
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *file = text_of(data, size < 300 ? size : 300);
    REQUIRE(api_weight_name_is_valid(file) == is_name(file, strlen(file)));
    if (*file && !strchr(file, '/'))
        check_entry(file);
    if (*file == '.' || is_one_of(8))
        check_draft();
    free(file);
    return 0;
}
