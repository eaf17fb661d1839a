/* Owns the table of options and the precedence of flag, environment and file.
 *
 * An option is one row (options_list.h): field, type, default, range, unit, text. Its flag, its environment variable,
 * its key in the file, the help and the printed configuration follow from the row's name. A value is checked the same
 * way wherever it is from, and its source is remembered, for errors and for the log at the start. A service in
 * Kubernetes that is called posenc defines POSENC_PORT=tcp://…, which is ignored by its form. */
#include "server/process/process.h"

#include "core/inside.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernels_words[] = {"auto", "base", "avx2", "avx512", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const switch_words[] = {"on", "off", NULL};
static const char *const level_words[] = {"error", "warn", "info", NULL};

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

const struct options_row options_rows[OPTIONS_N] = {
#define OPTION(TYPE, name, ...)                                                                                        \
    [OPTION_##                                                                                                         \
        name] = {.key = #name, .type = OPTIONS_TYPE_##TYPE, .offset = offsetof(struct options, name), __VA_ARGS__},
#include "server/process/options_list.h"
#undef OPTION
};

/* The number of flags that may be repeated. */
enum {
    IS_LIST_COUNT = 0,
    IS_LIST_SECONDS = 0,
    IS_LIST_BYTES = 0,
    IS_LIST_WORD = 0,
    IS_LIST_TEXT = 0,
    IS_LIST_TEXTS = 1,
    IS_LIST_NETWORKS = 1,
#define OPTION(TYPE, name, ...) +IS_LIST_##TYPE
    N_LISTS = 0
#include "server/process/options_list.h"
#undef OPTION
};

const struct options_action_flag options_actions[OPTIONS_N_ACTIONS] = {
    {"print-config", OPTIONS_PRINT_CONFIG, "print all options as JSON for --config, and exit"},
    {"print-man", OPTIONS_PRINT_MAN, "print the manual page posencd(8), and exit"},
    {"store-sweep", OPTIONS_SWEEP,
     "remove the blobs of --store that no name refers to and that are a day old, and exit"},
    {"help", OPTIONS_HELP, "print this help, and exit"},
    {"version", OPTIONS_VERSION, "print the version, and exit"},
};

static bool is_repeatable(const struct options_row *row)
{
    return row->type == OPTIONS_TYPE_TEXTS || row->type == OPTIONS_TYPE_NETWORKS;
}

bool options_is_text(const struct options_row *row) { return row->type == OPTIONS_TYPE_TEXT || is_repeatable(row); }

const char *options_fallback(const struct options_row *row) { return row->fallback ? row->fallback : ""; }

/* ---- Names ----------------------------------------------------------------------------------------------------- */

static void print_key(char *dst, const struct options_row *row) { snprintf(dst, OPTIONS_NAME_BYTES, "%s", row->key); }

/* max_body → max-body */
static void print_flag(char *dst, const struct options_row *row)
{
    print_key(dst, row);
    for (; *dst; dst++)
        if (*dst == '_')
            *dst = '-';
}

struct options_name options_flag(const struct options_row *row)
{
    struct options_name flag;
    print_flag(flag.text, row);
    return flag;
}

/* max_body → POSENC_MAX_BODY */
static void print_variable(char *dst, const struct options_row *row)
{
    snprintf(dst, OPTIONS_NAME_BYTES, "POSENC_%.50s", row->key);
    for (; *dst; dst++)
        *dst = (char)toupper((unsigned char)*dst);
}

typedef void print_name(char *dst, const struct options_row *row);

static const struct options_row *row_find(print_name *print, const char *name, size_t n)
{
    char own[OPTIONS_NAME_BYTES];
    for (size_t i = 0; i < OPTIONS_N; i++) {
        print(own, &options_rows[i]);
        if (strlen(own) == n && strncmp(own, name, n) == 0)
            return &options_rows[i];
    }
    return NULL;
}

/* Writes `; nearest: "max_body"`, or nothing if no name is near. */
static void print_nearest(char *dst, size_t n_bytes, print_name *print, const char *name)
{
    char own[OPTIONS_N][OPTIONS_NAME_BYTES];
    const char *names[(int)OPTIONS_N + (int)OPTIONS_N_ACTIONS + 1];
    size_t n = 0;
    for (size_t i = 0; i < OPTIONS_N; i++) {
        print(own[i], &options_rows[i]);
        names[n++] = own[i];
    }
    for (size_t i = 0; i < OPTIONS_N_ACTIONS && print == print_flag; i++)
        names[n++] = options_actions[i].flag;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        snprintf(dst, n_bytes, "; nearest: %s%s", print == print_flag ? "--" : "", nearest);
    else
        *dst = '\0';
}

static bool fail_unknown(char *error, const char *what, print_name *print, const char *name)
{
    char nearest[OPTIONS_NAME_BYTES + 16];
    print_nearest(nearest, sizeof nearest, print, name);
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "unknown %s %s%.60s%s", what, print == print_flag ? "--" : "", name,
             nearest);
    return false;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static bool number_parse(const char *text, uint64_t *value, const char **rest)
{
    if (!isdigit((unsigned char)*text))
        return false; /* strtoull would accept a sign and spaces */
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    *rest = end;
    return errno == 0;
}

bool options_bytes_parse(const char *text, uint64_t *n_bytes)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {{"", 1}, {"B", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB}, {"TiB", 1024 * GIB}};
    const char *rest;
    if (!number_parse(text, n_bytes, &rest))
        return false;
    rest += strspn(rest, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(rest, units[i].suffix) == 0)
            return !__builtin_mul_overflow(*n_bytes, units[i].factor, n_bytes);
    return false;
}

static bool set_number(const struct options_row *row, uint64_t *field, const char *text, char *error)
{
    const char *rest = "";
    bool is_bytes = row->type == OPTIONS_TYPE_BYTES;
    bool is_good = is_bytes ? options_bytes_parse(text, field) : number_parse(text, field, &rest) && !*rest;
    if (is_good && ((*field >= row->min && *field <= row->max) || (row->has_auto && *field == 0)))
        return true;
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: \"%.60s\" is not %s from %llu to %llu%s", options_flag(row).text,
             text, is_bytes ? "a number of bytes (or with KiB, MiB, GiB)" : "an integer", (unsigned long long)row->min,
             (unsigned long long)row->max, row->has_auto ? ", or 0" : "");
    return false;
}

static bool set_word(const struct options_row *row, int *field, const char *text, char *error)
{
    size_t n = 0;
    for (int i = 0; row->words[i]; i++)
        if (strcmp(row->words[i], text) == 0) {
            *field = i;
            return true;
        }
    n = (size_t)snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: \"%.60s\" is not one of", options_flag(row).text, text);
    for (size_t i = 0; row->words[i] && n < CONFIG_FILE_ERROR_BYTES; i++)
        n += (size_t)snprintf(error + n, CONFIG_FILE_ERROR_BYTES - n, "%s %s", i ? "," : "", row->words[i]);
    return false;
}

static bool set_text(char **field, const char *text, char *error)
{
    free(*field);
    *field = strdup(text);
    if (!*field)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "no memory");
    return *field != NULL;
}

static bool set_networks(const struct options_row *row, char **field, const char *text, char *error)
{
    struct networks networks;
    char reason[160];
    if (networks_parse(text, &networks, reason, sizeof reason))
        return set_text(field, text, error);
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: %s", options_flag(row).text, reason);
    return false;
}

bool options_set(struct options *options, const struct options_row *row, const char *text, const char *source,
                 char *error)
{
    void *field = (char *)options + row->offset;
    bool done = row->type == OPTIONS_TYPE_WORD       ? set_word(row, field, text, error)
                : row->type == OPTIONS_TYPE_NETWORKS ? set_networks(row, field, text, error)
                : options_is_text(row)               ? set_text(field, text, error)
                                                     : set_number(row, field, text, error);
    if (done)
        options->sources[row - options_rows] = source;
    return done;
}

/* ---- Sources --------------------------------------------------------------------------------------------------- */

/* The texts of one source by row, NULL where the source does not set the option. Borrowed from argv and the
 * environment. */
struct given {
    const char *texts[OPTIONS_N];
    char joined[N_LISTS][OPTIONS_LIST_BYTES]; /* for each flag that may be repeated, in the order of rows */
};

static bool set_all(struct options *options, const struct given *given, const char *source, char *error)
{
    for (size_t i = 0; i < OPTIONS_N; i++)
        if (given->texts[i] && !options_set(options, &options_rows[i], given->texts[i], source, error))
            return false;
    return true;
}

static bool is_action(const char *name, enum options_action *action)
{
    for (size_t i = 0; i < OPTIONS_N_ACTIONS; i++)
        if (strcmp(name, options_actions[i].flag) == 0) {
            *action = options_actions[i].action;
            return true;
        }
    return false;
}

/* Joins the values of a repeated flag so far, separated by spaces. */
static const char *join(struct given *given, const struct options_row *row, const char *text, char *error)
{
    size_t list = 0;
    for (const struct options_row *before = options_rows; before < row; before++)
        list += is_repeatable(before);
    assert(list < N_LISTS);
    char *joined = given->joined[list];
    size_t used = strlen(joined);
    if (used + strlen(text) + 2 > OPTIONS_LIST_BYTES)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s is too long, all of them together", options_flag(row).text);
    else
        snprintf(joined + used, OPTIONS_LIST_BYTES - used, "%s%s", used ? " " : "", text);
    return joined;
}

/* Reads one flag at argv[*i], as "--name value" or "--name=value"; advances *i to the last word it used. */
static bool read_flag(struct given *given, int argc, char *const *argv, int *i, char *error)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    const struct options_row *row = row_find(print_flag, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!row)
        return fail_unknown(error, "flag", print_flag, name);
    const char **text = &given->texts[row - options_rows];
    if (*text && !is_repeatable(row))
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s is given twice", options_flag(row).text);
    else if (!equals && *i + 1 == argc)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s wants a value: --%s %s", options_flag(row).text,
                 options_flag(row).text, row->unit);
    else if (is_repeatable(row))
        *text = join(given, row, equals ? equals + 1 : argv[++*i], error);
    else
        *text = equals ? equals + 1 : argv[++*i];
    return *text && !*error;
}

static bool read_flags(struct given *given, int argc, char *const *argv, enum options_action *action, char *error)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            snprintf(error, CONFIG_FILE_ERROR_BYTES, "unexpected \"%.60s\"; flags start with --, see --help", argv[i]);
            return false;
        }
        if (!is_action(argv[i] + 2, action) && !read_flag(given, argc, argv, &i, error))
            return false;
    }
    return true;
}

/* A Kubernetes service named "posenc" defines its own variables in every container, e.g. POSENC_PORT=tcp://… They are
 * not meant for this program, and must not prevent the server from starting. */
static bool is_from_kubernetes(const char *variable, const char *value)
{
    return strncmp(variable, "POSENC_SERVICE_", 15) == 0 || strncmp(variable, "POSENC_PORT_", 12) == 0 ||
           strncmp(value, "tcp://", 6) == 0;
}

static void warn_unknown(struct options *options, const char *variable, size_t n)
{
    char name[OPTIONS_NAME_BYTES], nearest[OPTIONS_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%.*s", (int)n, variable);
    print_nearest(nearest, sizeof nearest, print_variable, name);
    size_t used = strlen(options->warning);
    snprintf(options->warning + used, sizeof options->warning - used, "%sunknown environment variable %s%s",
             used ? "; " : "", name, nearest);
}

static bool set_from_file(void *self, const char *key, const char *value, char *error)
{
    const struct options_row *row = row_find(print_key, key, strlen(key));
    if (!row || row == &options_rows[OPTION_config]) /* a configuration file cannot name another one */
        return fail_unknown(error, "key", print_key, key);
    return options_set(self, row, value, "file", error);
}

/* Options that are right on their own. */
static bool check_together(const struct options *options, char *error)
{
    bool has_store = *options->store;
    if (has_store && *options->weights_dir)
        snprintf(error, OPTIONS_TEXT_BYTES,
                 "--weights-dir and --store both say where weights are stored; give one of the two");
    else if (!has_store && (*options->store_endpoint || *options->store_credentials || *options->store_cache))
        snprintf(error, OPTIONS_TEXT_BYTES, "--%s is about --store, which is not given",
                 *options->store_endpoint ? "store-endpoint"
                 : *options->store_cache  ? "store-cache"
                                          : "store-credentials");
    else
        return true;
    return false;
}

enum options_action options_read(struct options *options, int argc, char *const *argv, char *const *environment,
                                 char *error)
{
    enum options_action action = OPTIONS_RUN;
    struct given defaults, variables = {.texts = {0}}, flags = {.texts = {0}};
    *options = (struct options){0};
    *error = '\0';
    for (size_t i = 0; i < OPTIONS_N; i++)
        defaults.texts[i] = options_fallback(&options_rows[i]);
    if (!set_all(options, &defaults, "default", error) || !read_flags(&flags, argc, argv, &action, error))
        return OPTIONS_ERROR;
    if (action == OPTIONS_HELP || action == OPTIONS_VERSION)
        return action; /* the user may ask for help because another flag is wrong */
    for (; *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (strncmp(*environment, "POSENC_", 7) != 0 || !equals || is_from_kubernetes(*environment, equals + 1))
            continue;
        size_t n = (size_t)(equals - *environment);
        const struct options_row *row = row_find(print_variable, *environment, n);
        if (row)
            variables.texts[row - options_rows] = equals + 1;
        else
            warn_unknown(options, *environment, n);
    }
    const char *path = flags.texts[OPTION_config] ? flags.texts[OPTION_config] : variables.texts[OPTION_config];
    if (path && *path && !config_file_read(path, set_from_file, options, error))
        return OPTIONS_ERROR;
    if (!set_all(options, &variables, "environment", error) || !set_all(options, &flags, "flag", error))
        return OPTIONS_ERROR;
    if (action == OPTIONS_PRINT_CONFIG)
        return action;
    if (action == OPTIONS_SWEEP && !*options->store) {
        snprintf(error, OPTIONS_TEXT_BYTES, "--store-sweep is about --store, which is not given");
        return OPTIONS_ERROR;
    }
    return check_together(options, error) ? action : OPTIONS_ERROR;
}

void options_drop(struct options *options)
{
    for (size_t i = 0; i < OPTIONS_N; i++)
        if (options_is_text(&options_rows[i]))
            free(*(char **)((char *)options + options_rows[i].offset));
    *options = (struct options){0};
}
