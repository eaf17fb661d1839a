/* Configuration files. The reader is compared with jansson: every accepted text is JSON with the same members, and
 * every flat object of supported values is accepted. Then the options: a file that is accepted, printed by
 * --print-config and read again, prints the same. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/laws.h"
#include "server/process/process.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

static int file = -1;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    file = memfd_create("config", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return 0;
}

/* ---- The reader ---- */

struct members {
    const json_t *object; /* NULL: not JSON to jansson, which knows UTF-8 */
    size_t n;
};

static bool agrees(const json_t *value, const char *text)
{
    if (json_is_string(value))
        return strcmp(json_string_value(value), text) == 0;
    if (json_is_boolean(value))
        return strcmp(json_is_true(value) ? "true" : "false", text) == 0;
    return json_is_number(value) && json_number_value(value) == strtod(text, NULL);
}

static bool take(void *self, const char *key, const char *value, char *error)
{
    struct members *members = self;
    (void)error;
    members->n++;
    REQUIRE(!members->object || agrees(json_object_get(members->object, key), value));
    return true;
}

/* The number of members that are not null; SIZE_MAX if one has a value that a configuration may not contain. */
static size_t n_simple(json_t *object, const char *text)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    if (!json_is_object(object) || json_object_size(object) > 64 || strstr(text, "\\u"))
        return SIZE_MAX;
    json_object_foreach(object, key, value)
    {
        bool is_long = strlen(key) > 60 || (json_is_string(value) && json_string_length(value) > 1000);
        if (is_long || json_is_object(value) || json_is_array(value))
            return SIZE_MAX;
        n += !json_is_null(value);
    }
    return n;
}

static void check_reader(const char *text, size_t n)
{
    char error[CONFIG_FILE_ERROR_BYTES] = "";
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    size_t n_members = n_simple(object, text);
    struct members members = {.object = object};
    bool is_read = config_file_parse(text, n, take, &members, error);
    REQUIRE(is_read || strncmp(error, "line ", 5) == 0);
    REQUIRE(is_read || n_members == SIZE_MAX || strlen(text) < n || n > 1000);
    REQUIRE(!is_read || n_members == SIZE_MAX || members.n == n_members);
    json_decref(object);
}

/* ---- The options ---- */

static bool read_options(struct options *options, const char *text, size_t n)
{
    char *const words[] = {"posencd", "--config", path, NULL}, *const environment[] = {NULL};
    char error[OPTIONS_TEXT_BYTES] = "";
    REQUIRE(pwrite(file, text, n, 0) == (ssize_t)n && ftruncate(file, (off_t)n) == 0); /* the host keeps its page */
    bool is_read = options_read(options, 3, words, environment, error) == OPTIONS_RUN;
    REQUIRE(is_read || *error);
    return is_read;
}

static char *print_options(const struct options *options, size_t *n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n);
    REQUIRE(out);
    options_print_config(options, out);
    fclose(out);
    return text;
}

static void check_options(const char *text, size_t size)
{
    struct options options, again;
    if (read_options(&options, text, size) && is_one_of(4)) {
        size_t n, n_again;
        char *printed = print_options(&options, &n);
        REQUIRE(read_options(&again, printed, n));
        char *printed_again = print_options(&again, &n_again);
        REQUIRE(n == n_again && memcmp(printed, printed_again, n) == 0);
        REQUIRE(strcmp(options.host, again.host) == 0 && strcmp(options.weights_dir, again.weights_dir) == 0);
        options_drop(&again);
        free(printed);
        free(printed_again);
    }
    options_drop(&options);
}

TEXT_TARGET(text, size)
{
    check_reader(text, size);
    check_options(text, size);
}
