/* Owns the table of options and the order in which flag, environment and file win. */
#include "server/options.h"

#include "core/posenc.h"
#include "server/config_file.h"
#include "server/networks.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum type {
    TYPE_COUNT,
    TYPE_SECONDS,
    TYPE_BYTES,
    TYPE_WORD,
    TYPE_TEXT,
    TYPE_TEXTS,   /* a flag that may be repeated, */
    TYPE_NETWORKS /* likewise, of what networks_parse reads */
};

struct option {
    const char *flag; /* without the dashes */
    enum type type;
    size_t offset; /* of the field in struct options */
    const char *fallback;
    uint64_t min, max;
    const char *const *words; /* TYPE_WORD: the field is an index into these */
    const char *unit;         /* what stands for the value in --help */
    const char *text;
};

static const char *const kernels_words[] = {"auto", "base", "avx2", "avx512", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const level_words[] = {"error", "warn", "info", NULL};

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define AT(field) offsetof(struct options, field)

static const struct option rows[] = {
    {"config", TYPE_TEXT, AT(config), "", 0, 0, NULL, "FILE", "JSON file with options: {\"max_body\": \"1GiB\"}"},
    {"host", TYPE_TEXT, AT(host), "127.0.0.1", 0, 0, NULL, "ADDRESS",
     "address or name to listen on; 0.0.0.0 or :: for all"},
    {"port", TYPE_COUNT, AT(port), "8080", 0, 65535, NULL, "PORT", "port to listen on; 0 takes a free one"},
    {"tcp-cc", TYPE_TEXT, AT(tcp_cc), "", 0, 0, NULL, "NAME",
     "congestion control of connections, as cubic; without it the system's, on loopback one that does not pace"},
    {"socket", TYPE_TEXT, AT(socket), "", 0, 0, NULL, "PATH",
     "Unix socket to listen on in place of --host and --port; for its owner and group"},
    {"tls-cert", TYPE_TEXT, AT(tls_cert), "", 0, 0, NULL, "FILE",
     "certificate chain (PEM): serve HTTPS, TLS 1.2 or 1.3; read again on SIGHUP, with its key"},
    {"tls-key", TYPE_TEXT, AT(tls_key), "", 0, 0, NULL, "FILE", "private key (PEM) of --tls-cert"},
    {"token-file", TYPE_TEXT, AT(token_file), "", 0, 0, NULL, "FILE",
     "who may ask: lines NAME TOKEN read|write [requests=N/s] [work=SECONDS/s] [streams=N]; without it everybody"},
    {"max-body", TYPE_BYTES, AT(max_body), "256MiB", KIB, 1024 * GIB, NULL, "BYTES", "largest request body"},
    {"max-json", TYPE_BYTES, AT(max_json), "256MiB", KIB, 1024 * GIB, NULL, "BYTES",
     "JSON of one request; tensors sent as files do not count"},
    {"max-answer", TYPE_BYTES, AT(max_answer), "64GiB", KIB, 1048576 * GIB, NULL, "BYTES", "largest answer"},
    {"max-work", TYPE_COUNT, AT(max_work), "10000000000000", 1, UINT64_C(1) << 62, NULL, "N",
     "most multiplications of one answer, or what takes as long"},
    {"cors-origin", TYPE_TEXTS, AT(cors_origin), "", 0, 0, NULL, "ORIGIN",
     "origin whose pages may read answers, as https://example.org; repeatable; * for all"},
    {"trusted-proxy", TYPE_NETWORKS, AT(trusted_proxy), "", 0, 0, NULL, "NETWORK",
     "proxy whose X-Forwarded-For says who asks, as 10.0.0.0/8, or unix for all of --socket; repeatable"},
    {"weights-dir", TYPE_TEXT, AT(weights_dir), "", 0, 0, NULL, "DIR",
     "keep stored weights in this folder, as NAME.safetensors; without it in memory only"},
    {"max-weights", TYPE_BYTES, AT(max_weights), "1GiB", KIB, 1048576 * GIB, NULL, "BYTES",
     "stored weights, all together"},
    {"workers", TYPE_COUNT, AT(workers), "0", 0, 1024, NULL, "N",
     "threads that compute; 0: one for each processor allowed"},
    {"io-threads", TYPE_COUNT, AT(io_threads), "0", 0, 64, NULL, "N",
     "threads that receive and send; 0: half as many as processors are allowed"},
    {"max-connections", TYPE_COUNT, AT(max_connections), "4096", 1, 1000000, NULL, "N",
     "open connections; further ones get 503"},
    {"max-queue", TYPE_COUNT, AT(max_queue), "1024", 1, 1000000, NULL, "N",
     "requests that may wait for a worker; then 503"},
    {"max-queue-age", TYPE_SECONDS, AT(max_queue_age), "60", 1, 86400, NULL, "SECONDS",
     "time a request may wait for a worker; then 503 without computing"},
    {"max-streams", TYPE_COUNT, AT(max_streams), "256", 1, 1000000, NULL, "N",
     "long answers on their way at a time; then 429"},
    {"max-memory", TYPE_BYTES, AT(max_memory), "2GiB", MIB, 1048576 * GIB, NULL, "BYTES",
     "bodies, plans, pictures and stream buffers of all requests at a time; then 503"},
    {"buffer-memory", TYPE_BYTES, AT(buffer_memory), "128MiB", MIB, 1024 * GIB, NULL, "BYTES",
     "memory for pieces of streamed answers; as much again for finished pictures"},
    {"answer-cache", TYPE_BYTES, AT(answer_cache), "16MiB", 0, 1024 * GIB, NULL, "BYTES",
     "memory for small answers that are asked for again; 0: none are kept"},
    {"connection-timeout", TYPE_SECONDS, AT(connection_timeout), "30", 1, 86400, NULL, "SECONDS",
     "silence after which a connection is closed"},
    {"header-timeout", TYPE_SECONDS, AT(header_timeout), "10", 1, 86400, NULL, "SECONDS",
     "time to send a request's head"},
    {"body-timeout", TYPE_SECONDS, AT(body_timeout), "600", 1, 86400, NULL, "SECONDS", "time to send a request's body"},
    {"send-timeout", TYPE_SECONDS, AT(send_timeout), "30", 1, 86400, NULL, "SECONDS",
     "time without a byte read after which an answer is cut"},
    {"min-rate", TYPE_BYTES, AT(min_rate), "1KiB", 0, GIB, NULL, "BYTES",
     "least bytes a second, over 10 s, of bodies and of answers that wait for their reader"},
    {"drain-seconds", TYPE_SECONDS, AT(drain_seconds), "30", 0, 86400, NULL, "SECONDS",
     "time for running answers after SIGTERM"},
    {"drain-delay", TYPE_SECONDS, AT(drain_delay), "0", 0, 3600, NULL, "SECONDS",
     "time connections are still taken after SIGTERM"},
    {"log-format", TYPE_WORD, AT(log_format), "text", 0, 0, format_words, "FORMAT",
     "form of the log on standard error"},
    {"log-level", TYPE_WORD, AT(log_level), "info", 0, 0, level_words, "LEVEL",
     "least weight of an event to be logged"},
    {"kernels", TYPE_WORD, AT(kernels), "auto", 0, 0, kernels_words, "SET",
     "instruction set of the kernels; tables are the same with each"},
};

enum { N_ROWS = sizeof rows / sizeof *rows };
_Static_assert((int)N_ROWS <= (int)OPTIONS_MAX, "raise OPTIONS_MAX");

/* Flags that say what to do instead of serving. */
static const struct action {
    const char *flag;
    enum options_action action;
    const char *text;
} actions[] = {
    {"print-config", OPTIONS_PRINT_CONFIG, "print every option as JSON for --config, and end"},
    {"help", OPTIONS_HELP, "print this, and end"},
    {"version", OPTIONS_VERSION, "print the version, and end"},
};

enum { N_ACTIONS = sizeof actions / sizeof *actions };

static bool is_repeatable(const struct option *row) { return row->type == TYPE_TEXTS || row->type == TYPE_NETWORKS; }

static bool is_text(const struct option *row) { return row->type == TYPE_TEXT || is_repeatable(row); }

/* ---- Names ----------------------------------------------------------------------------------------------------- */

enum { NAME_BYTES = 64 };

/* max-body → max_body */
static void print_key(char *dst, const struct option *row)
{
    snprintf(dst, NAME_BYTES, "%s", row->flag);
    for (; *dst; dst++)
        if (*dst == '-')
            *dst = '_';
}

/* max-body → POSENC_MAX_BODY */
static void print_variable(char *dst, const struct option *row)
{
    char key[NAME_BYTES];
    print_key(key, row);
    snprintf(dst, NAME_BYTES, "POSENC_%.50s", key);
    for (; *dst; dst++)
        *dst = (char)toupper((unsigned char)*dst);
}

typedef void print_name(char *dst, const struct option *row);

static void print_flag(char *dst, const struct option *row) { snprintf(dst, NAME_BYTES, "%s", row->flag); }

static const struct option *row_find(print_name *print, const char *name, size_t n)
{
    char own[NAME_BYTES];
    for (size_t i = 0; i < N_ROWS; i++) {
        print(own, &rows[i]);
        if (strlen(own) == n && strncmp(own, name, n) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Writes `; nearest: "max_body"`, or nothing if no name is near. */
static void print_nearest(char *dst, size_t n_bytes, print_name *print, const char *name)
{
    char own[N_ROWS][NAME_BYTES];
    const char *names[(int)N_ROWS + (int)N_ACTIONS + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        print(own[i], &rows[i]);
        names[n++] = own[i];
    }
    for (size_t i = 0; i < N_ACTIONS && print == print_flag; i++)
        names[n++] = actions[i].flag;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        snprintf(dst, n_bytes, "; nearest: %s%s", print == print_flag ? "--" : "", nearest);
    else
        *dst = '\0';
}

static bool fail_unknown(char *error, const char *what, print_name *print, const char *name)
{
    char nearest[NAME_BYTES + 16];
    print_nearest(nearest, sizeof nearest, print, name);
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "unknown %s %s%.60s%s", what, print == print_flag ? "--" : "", name,
             nearest);
    return false;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static bool number_parse(const char *text, uint64_t *value, const char **rest)
{
    if (!isdigit((unsigned char)*text))
        return false; /* strtoull would take a sign and spaces */
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

static bool set_number(const struct option *row, uint64_t *field, const char *text, char *error)
{
    const char *rest = "";
    bool is_bytes = row->type == TYPE_BYTES;
    bool is_good = is_bytes ? options_bytes_parse(text, field) : number_parse(text, field, &rest) && !*rest;
    if (is_good && *field >= row->min && *field <= row->max)
        return true;
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: \"%.60s\" is not %s from %llu to %llu", row->flag, text,
             is_bytes ? "a number of bytes (or with KiB, MiB, GiB)" : "an integer", (unsigned long long)row->min,
             (unsigned long long)row->max);
    return false;
}

static bool set_word(const struct option *row, int *field, const char *text, char *error)
{
    size_t n = 0;
    for (int i = 0; row->words[i]; i++)
        if (strcmp(row->words[i], text) == 0) {
            *field = i;
            return true;
        }
    n = (size_t)snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: \"%.60s\" is not one of", row->flag, text);
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

static bool set_networks(const struct option *row, char **field, const char *text, char *error)
{
    struct networks networks;
    char reason[160];
    if (networks_parse(text, &networks, reason, sizeof reason))
        return set_text(field, text, error);
    snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s: %s", row->flag, reason);
    return false;
}

static bool set(struct options *options, const struct option *row, const char *text, const char *source, char *error)
{
    void *field = (char *)options + row->offset;
    bool done = row->type == TYPE_WORD       ? set_word(row, field, text, error)
                : row->type == TYPE_NETWORKS ? set_networks(row, field, text, error)
                : is_text(row)               ? set_text(field, text, error)
                                             : set_number(row, field, text, error);
    if (done)
        options->sources[row - rows] = source;
    return done;
}

/* ---- Sources --------------------------------------------------------------------------------------------------- */

enum { LISTS_MAX = 2 };

/* Texts of one source by row, NULL where it says nothing. Borrowed from argv and the environment. */
struct given {
    const char *texts[N_ROWS];
    char joined[LISTS_MAX][OPTIONS_LIST_BYTES]; /* of each flag that may be repeated, in the order of rows */
};

static bool set_all(struct options *options, const struct given *given, const char *source, char *error)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (given->texts[i] && !set(options, &rows[i], given->texts[i], source, error))
            return false;
    return true;
}

static bool is_action(const char *name, enum options_action *action)
{
    for (size_t i = 0; i < N_ACTIONS; i++)
        if (strcmp(name, actions[i].flag) == 0) {
            *action = actions[i].action;
            return true;
        }
    return false;
}

/* What a repeated flag has said so far, separated by spaces. */
static const char *join(struct given *given, const struct option *row, const char *text, char *error)
{
    size_t list = 0;
    for (const struct option *before = rows; before < row; before++)
        list += is_repeatable(before);
    assert(list < LISTS_MAX);
    char *joined = given->joined[list];
    size_t used = strlen(joined);
    if (used + strlen(text) + 2 > OPTIONS_LIST_BYTES)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s is too long, all of them together", row->flag);
    else
        snprintf(joined + used, OPTIONS_LIST_BYTES - used, "%s%s", used ? " " : "", text);
    return joined;
}

/* One flag at argv[*i], as "--name value" or "--name=value"; moves *i to the last word it took. */
static bool read_flag(struct given *given, int argc, char *const *argv, int *i, char *error)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    const struct option *row = row_find(print_flag, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!row)
        return fail_unknown(error, "flag", print_flag, name);
    const char **text = &given->texts[row - rows];
    if (*text && !is_repeatable(row))
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s is given twice", row->flag);
    else if (!equals && *i + 1 == argc)
        snprintf(error, CONFIG_FILE_ERROR_BYTES, "--%s wants a value: --%s %s", row->flag, row->flag, row->unit);
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

/* A Kubernetes service named "posenc" puts variables of its own into every container, POSENC_PORT=tcp://… among them.
 * They are not meant for us, and must not keep the server from starting. */
static bool is_from_kubernetes(const char *variable, const char *value)
{
    return strncmp(variable, "POSENC_SERVICE_", 15) == 0 || strncmp(variable, "POSENC_PORT_", 12) == 0 ||
           strncmp(value, "tcp://", 6) == 0;
}

static void warn_unknown(struct options *options, const char *variable, size_t n)
{
    char name[NAME_BYTES], nearest[NAME_BYTES + 16];
    snprintf(name, sizeof name, "%.*s", (int)n, variable);
    print_nearest(nearest, sizeof nearest, print_variable, name);
    size_t used = strlen(options->warning);
    snprintf(options->warning + used, sizeof options->warning - used, "%sunknown environment variable %s%s",
             used ? "; " : "", name, nearest);
}

static void read_environment(struct options *options, struct given *given, char *const *environment)
{
    for (; *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (strncmp(*environment, "POSENC_", 7) != 0 || !equals || is_from_kubernetes(*environment, equals + 1))
            continue;
        size_t n = (size_t)(equals - *environment);
        const struct option *row = row_find(print_variable, *environment, n);
        if (row)
            given->texts[row - rows] = equals + 1;
        else
            warn_unknown(options, *environment, n);
    }
}

static bool set_from_file(void *self, const char *key, const char *value, char *error)
{
    const struct option *row = row_find(print_key, key, strlen(key));
    if (!row || row == &rows[0]) /* a file does not name another */
        return fail_unknown(error, "key", print_key, key);
    return set(self, row, value, "file", error);
}

enum options_action options_read(struct options *options, int argc, char *const *argv, char *const *environment,
                                 char *error)
{
    enum options_action action = OPTIONS_RUN;
    struct given defaults, variables = {.texts = {0}}, flags = {.texts = {0}};
    *options = (struct options){0};
    *error = '\0';
    for (size_t i = 0; i < N_ROWS; i++)
        defaults.texts[i] = rows[i].fallback;
    if (!set_all(options, &defaults, "default", error) || !read_flags(&flags, argc, argv, &action, error))
        return OPTIONS_ERROR;
    if (action == OPTIONS_HELP || action == OPTIONS_VERSION)
        return action; /* asked for because something is wrong, perhaps */
    read_environment(options, &variables, environment);
    const char *path = flags.texts[0] ? flags.texts[0] : variables.texts[0];
    if (path && *path && !config_file_read(path, set_from_file, options, error))
        return OPTIONS_ERROR;
    if (!set_all(options, &variables, "environment", error) || !set_all(options, &flags, "flag", error))
        return OPTIONS_ERROR;
    return action;
}

void options_drop(struct options *options)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (is_text(&rows[i]))
            free(*(char **)((char *)options + rows[i].offset));
    *options = (struct options){0};
}

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

void options_print_help(FILE *out)
{
    fputs("Usage: posencd [--config FILE] [--flag value …]\n"
          "Serves positional encodings over HTTP.\n\n"
          "A flag --max-body is also POSENC_MAX_BODY in the environment and max_body in the file of --config;\n"
          "the flag wins over the environment, the environment over the file.\n\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        char flag[NAME_BYTES + 16];
        snprintf(flag, sizeof flag, "--%s %s", rows[i].flag, rows[i].unit);
        fprintf(out, "  %-30s %s", flag, rows[i].text);
        if (rows[i].type == TYPE_WORD)
            for (size_t w = 0; rows[i].words[w]; w++)
                fprintf(out, "%s%s", w ? ", " : ": ", rows[i].words[w]);
        fprintf(out, *rows[i].fallback ? " [%s]\n" : "%s\n", rows[i].fallback);
    }
    for (size_t i = 0; i < N_ACTIONS; i++)
        fprintf(out, "  --%-28s %s\n", actions[i].flag, actions[i].text);
    fputs("\nSIGTERM and SIGINT let running answers finish; a second one ends at once.\n", out);
}

static uint64_t number_of(const struct options *options, const struct option *row)
{
    return *(const uint64_t *)(const void *)((const char *)options + row->offset);
}

/* The value as text: what the table's own parser reads back. */
static void print_value(char *dst, size_t n_bytes, const struct options *options, const struct option *row)
{
    const void *field = (const char *)options + row->offset;
    if (is_text(row))
        snprintf(dst, n_bytes, "%s", *(char *const *)field);
    else if (row->type == TYPE_WORD)
        snprintf(dst, n_bytes, "%s", row->words[*(const int *)field]);
    else
        snprintf(dst, n_bytes, "%llu", (unsigned long long)number_of(options, row));
}

/* The reader knows escapes by letter only; a control character without one can come from a flag alone. */
static void print_json_string(FILE *out, const char *text)
{
    static const char values[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    fputc('"', out);
    for (; *text; text++) {
        const char *escaped = strchr(values, *text);
        if (escaped)
            fprintf(out, "\\%c", letters[escaped - values]);
        else
            fprintf(out, (unsigned char)*text < 0x20 ? "\\u%04x" : "%c", (unsigned char)*text);
    }
    fputc('"', out);
}

void options_print_config(const struct options *options, FILE *out)
{
    char key[NAME_BYTES], value[OPTIONS_TEXT_BYTES];
    for (size_t i = 1; i < N_ROWS; i++) { /* all but --config itself */
        print_key(key, &rows[i]);
        print_value(value, sizeof value, options, &rows[i]);
        fprintf(out, "%s\"%s\": ", i == 1 ? "{\n  " : ",\n  ", key);
        if (is_text(&rows[i])) /* whole: value has room for a line of the log */
            print_json_string(out, *(char *const *)(const void *)((const char *)options + rows[i].offset));
        else if (rows[i].type == TYPE_WORD)
            print_json_string(out, value);
        else
            fputs(value, out);
    }
    fputs("\n}\n", out);
}

static bool is_default(const struct options *options, const struct option *row)
{
    struct options scratch = {0};
    char error[CONFIG_FILE_ERROR_BYTES], now[OPTIONS_TEXT_BYTES], then[OPTIONS_TEXT_BYTES];
    bool is_set = set(&scratch, row, row->fallback, "", error);
    assert(is_set || is_text(row)); /* the table's own defaults are within its ranges */
    if (is_set)
        print_value(then, sizeof then, &scratch, row);
    print_value(now, sizeof now, options, row);
    bool is_same = is_set && strcmp(now, then) == 0;
    options_drop(&scratch);
    return is_same;
}

void options_log(const struct options *options)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (is_default(options, &rows[i]))
            continue;
        char value[OPTIONS_TEXT_BYTES];
        print_value(value, sizeof value, options, &rows[i]);
        const struct log_field fields[] = {LOG_TEXT("name", rows[i].flag), LOG_TEXT("value", value),
                                           LOG_TEXT("source", options->sources[i])};
        log_line(LOG_INFO, "option", fields, 3);
    }
}
