/* Names of stored weights and entries of their folder. The input is the name of a file in the folder. The file is
 * listed if and only if it is NAME.safetensors with a valid name; then it can be read and removed by that name, and no
 * other file changes. As a name in a URL path, the input selects a stored file or a refusal, never another place of the
 * file system. */
#define _GNU_SOURCE /* O_PATH */
#include "tests/fuzz/laws.h"
#include "api/api.h"
#include "server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[64];
enum { FDS_MORE = 16 }; /* libFuzzer may open descriptors for a symbolizer */

static int dir = -1, next_fd = -1;
static struct store *store;

static void remove_folder(void)
{
    store_free(store);
    unlinkat(dir, ".posenc-lock", 0);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    snprintf(folder, sizeof folder, "%s/posenc-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(folder));
    atexit(remove_folder);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    next_fd = dup(dir);
    store = folder_store_new(folder, ".safetensors");
    REQUIRE(dir >= 0 && next_fd >= 0 && store);
    close(next_fd);
    return 0;
}

static size_t name_length(const char *file)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(file), n_suffix = sizeof suffix - 1;
    bool fits = n > n_suffix && strcmp(file + n - n_suffix, suffix) == 0;
    return fits && is_plain_name(file, n - n_suffix, 128) ? n - n_suffix : 0;
}

static void check_listed(const char *name)
{
    char why[STORE_WHY_BYTES];
    struct store_guard none = {.is_guarded = false};
    struct store_reading reading = {.version = "", .sha256 = ""};
    REQUIRE(store->read(store->self, name, &reading, why) == STORE_DONE);
    REQUIRE(reading.n == 2 && memcmp(reading.bytes, "xy", 2) == 0);
    free(reading.bytes);
    REQUIRE(store->remove(store->self, name, &none, why) == STORE_DONE);
}

/* A file of that name in the folder, listed or not. */
static void check_entry(const char *file)
{
    int fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return; /* not a possible file name */
    REQUIRE(write(fd, "xy", 2) == 2);
    close(fd);
    char name[200], why[STORE_WHY_BYTES];
    struct store_list list;
    size_t n_name = name_length(file);
    snprintf(name, sizeof name, "%.*s", (int)n_name, file);
    REQUIRE(store->list(store->self, &list, why) == STORE_DONE && list.n == (n_name > 0));
    REQUIRE(list.n == 0 || strcmp(list.entries[0].name, name) == 0);
    size_t n = list.n;
    store_list_drop(&list);
    if (n)
        check_listed(name);
    REQUIRE(unlinkat(dir, file, 0) == (n ? -1 : 0));
}

static void check_draft(void)
{
    struct store *again = folder_store_new(folder, ".safetensors"); /* removes drafts */
    REQUIRE(again);
    store_free(again);
    int fd = dup(dir);
    REQUIRE(fd >= 0 && fd < next_fd + FDS_MORE); /* nothing is left open */
    close(fd);
}

TEXT_TARGET(file, size)
{
    if (size > 300)
        file[300] = '\0';
    REQUIRE(api_weight_name_is_valid(file) == is_plain_name(file, strlen(file), 128));
    if (*file && !strchr(file, '/'))
        check_entry(file);
    if (*file == '.' || is_one_of(8))
        check_draft();
}
