/* The process: its log, options and metrics, figures of the operating system, addresses of clients. Lowest file
 * first. */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- log.c ------------------------------------------------------------------------------------------------------- */

/* The log: one line per event on standard error, as text or as a JSON object. Lines never interleave. A reader that has
 * stopped reading never blocks the server: lines that do not fit are dropped and counted.
 *
 * log_line and the message functions may be called from any thread; log_flush only from the loop. */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO };
enum option_switch { SWITCH_ON, SWITCH_OFF };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

void log_setup(enum log_format format, enum log_level level,
               int fd); /* call before the first line; defaults otherwise: text, info, 2 */

enum log_kind { LOG_KIND_TEXT, LOG_KIND_COUNT, LOG_KIND_MS, LOG_KIND_FLAG }; /* MS: given in ns, printed in ms */

struct log_field {
    const char *name;
    size_t n_name;
    enum log_kind kind;
    union {
        const char *text; /* any bytes; all but printable ASCII and UTF-8 are escaped; NULL or "": field left out */
        uint64_t count;
        uint64_t ns;
        bool flag; /* false: field left out */
    };
};

/* The name must be a literal, so that its length is a constant and is not computed for every line. */
#define LOG_FIELD(name_, kind_, member_, value_)                                                                       \
    {                                                                                                                  \
        .name = "" name_, .n_name = sizeof("" name_) - 1, .kind = (kind_), .member_ = (value_)                         \
    }
#define LOG_TEXT(name_, value_) LOG_FIELD(name_, LOG_KIND_TEXT, text, value_)
#define LOG_COUNT(name_, value_) LOG_FIELD(name_, LOG_KIND_COUNT, count, value_)
#define LOG_MS(name_, value_) LOG_FIELD(name_, LOG_KIND_MS, ns, value_)
#define LOG_FLAG(name_, value_) LOG_FIELD(name_, LOG_KIND_FLAG, flag, value_)

/* Whether lines of that level are written; a line with many fields asks first. */
bool log_is_heard(enum log_level level);

/* One event with its fields. event is a constant word: "request", "option". */
void log_line(enum log_level level, const char *event, const struct log_field *fields, size_t n_fields);

/* One event whose only field is a sentence. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The only line of text mode without time and level; programs that start the server look for it. */
void log_listening(const char *url);

enum { LOG_GRACE_MS = 1000 }; /* how long a process that ends waits for the reader of its log */

void log_flush(void);                /* writes as much as possible without blocking */
void log_flush_all(unsigned max_ms); /* for the end of the process: waits for the reader, but at most max_ms */

uint64_t log_n_dropped(void);

/* Formats a line as log_line would, for tests. Returns its length without the final NUL; the line is truncated to
 * n_bytes ≥ 64. */
size_t log_print(char *dst, size_t n_bytes, enum log_format format, enum log_level level, const char *event,
                 const char *time, const struct log_field *fields, size_t n_fields);

/* ---- process.c --------------------------------------------------------------------------------------------------- */

/* Facts about this process and this machine, read from the operating system. */

struct process_figures {
    double cpu_seconds, started_at; /* user + system; seconds since the epoch */
    uint64_t resident_bytes, virtual_bytes, n_fds, fds_max;
};

void process_read(struct process_figures *figures); /* a value that cannot be read is 0 */

/* Number of processors this process may use: those in its affinity mask, or fewer if its control group has a smaller
 * quota. ≥ 1. */
unsigned process_n_cores(void);

/* Parses the quota of a control group's cpu.max ("200000 100000"): processors, rounded up; 0: no quota ("max 100000")
 * or unreadable. */
unsigned process_quota_parse(const char *text);

/* Bytes of memory that the control groups of this process allow (version 1 or 2; the least of the group and those above
 * it); UINT64_MAX: no limit. root is put before the paths of the system's files: "", or in tests a folder with copies
 * of them. */
uint64_t process_memory_limit(const char *root);

/* Bytes that the limits of address space (ulimit -v) leave, and of a stack (ulimit -s); UINT64_MAX: no limit. */
uint64_t process_address_room(void);
uint64_t process_stack_limit(void);

/* Starts the program anew, with one thread of OpenBLAS, where address space is limited. Called first. */
void process_start_without_blas_threads(char **argv);

/* Raises the limit of open descriptors to n if it is lower; returns the resulting limit. */
uint64_t process_raise_fds(uint64_t n);

/* ---- siphash.c --------------------------------------------------------------------------------------------------- */

/* SipHash-1-3 (Aumasson, Bernstein 2012), a hash under a secret key: without the key, a client cannot choose values
 * that collide, however many answers it times. Used for tables whose keys come from clients. */

/* The first eight bytes of the key as a little-endian number, then the others. */
struct siphash_key {
    uint64_t low, high;
};

uint64_t siphash(struct siphash_key key, const void *bytes, size_t n);

/* The same under this process's own key, which is drawn at random at first use. Any thread. */
uint64_t siphash_secret(const void *bytes, size_t n);

/* ---- networks.c -------------------------------------------------------------------------------------------------- */

/* Addresses of machines and networks, as text and as numbers. */

/* An IPv6 address; IPv4 is written as ::ffff:a.b.c.d. For a Unix socket, the user ID of the peer. */
struct address {
    bool is_unix;
    uint8_t bytes[16];
    uint64_t user;
};

/* Parses "192.0.2.1", "2001:db8::1" or "::ffff:192.0.2.1": all n bytes of text must be the address. */
bool address_parse(const char *text, size_t n, struct address *address);
bool address_of_peer(int fd, struct address *address); /* false: the peer is gone */
/* Writes the address as text, "192.0.2.1", "2001:db8::1", "unix:1000" (the user), to dst. */
enum { ADDRESS_TEXT_BYTES = 48 };
void address_print(const struct address *address, char *dst);
/* A number that identifies the client: an IPv4 address, the 64 bits of an IPv6 address that a provider gives to one
 * customer, or a user of this machine. Never 0. */
uint64_t address_number(const struct address *address);

enum { NETWORKS_MAX = 256 };

struct networks {
    bool has_unix;
    size_t n;
    struct network {
        uint8_t bytes[16];
        unsigned n_bits;
    } of[NETWORKS_MAX];
};

/* Parses "10.0.0.0/8 192.0.2.1,2001:db8::/32 unix": addresses, networks, and "unix" for every client of a Unix socket.
 * False: error[] of n_error bytes gives the reason. */
bool networks_parse(const char *text, struct networks *networks, char *error, size_t n_error);
bool networks_have(const struct networks *networks, const struct address *address);

/* ---- process.c: the service manager ------------------------------------------------------------------------------ */

/* Tells the service manager that started this process how it is doing: the protocol of sd_notify(3), one datagram for
 * each message. Without a service manager, nothing is sent. */

struct supervisor {
    int fd; /* -1: there is no service manager */
    struct sockaddr_un address;
    unsigned n_address;
    uint64_t watchdog_ms; /* it ends a process that is silent for this long; 0: it does not watch */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment. A wrong value is treated as absent: a
 * server that cannot report still serves. */
void supervisor_init(struct supervisor *supervisor);
void supervisor_drop(struct supervisor *supervisor);

/* Sends "READY=1", "STOPPING=1" or "WATCHDOG=1"; never waits. A failure is ignored. */
void supervisor_say(const struct supervisor *supervisor, const char *message);

/* ---- config_file.c ----------------------------------------------------------------------------------------------- */

/* Reads a configuration file: one flat JSON object whose values are strings, numbers, booleans or null. */

enum { CONFIG_FILE_MAX_BYTES = 64 * 1024, CONFIG_FILE_ERROR_BYTES = 256 };

/* Called for each member in order. A string's value is passed unescaped, a number or boolean as written; null members
 * are skipped. Both texts are borrowed until the call returns. Returning false stops the parse; error[] (of
 * CONFIG_FILE_ERROR_BYTES) then gives the reason. */
typedef bool config_file_member(void *self, const char *key, const char *value, char *error);

/* Parses the text. On failure error[] holds one sentence that starts with line and column. */
bool config_file_parse(const char *text, size_t n_bytes, config_file_member *member, void *self, char *error);

/* The same for a file; the sentence then starts with its path. */
bool config_file_read(const char *path, config_file_member *member, void *self, char *error);

/* ---- options.c --------------------------------------------------------------------------------------------------- */

/* The server's options: one row of options_list.h is an option's field, type, default, range and text. Flag,
 * environment variable and key of the configuration file follow from the field (--max-body, POSENC_MAX_BODY, max_body).
 */

enum { OPTIONS_KERNELS_AUTO, OPTIONS_KERNELS_BASE, OPTIONS_KERNELS_AVX2, OPTIONS_KERNELS_AVX512 };

enum { OPTIONS_TEXT_BYTES = 512, OPTIONS_LIST_BYTES = 4096 };

enum option_id {
#define OPTION(TYPE, name, ...) OPTION_##name,
#include "server/process/options_list.h"
#undef OPTION
    OPTIONS_N
};

/* Types of the fields: times are in seconds, sizes in bytes; a word is stored as its index among the row's words; texts
 * are owned. */
#define OPTION_FIELD_COUNT uint64_t
#define OPTION_FIELD_SECONDS uint64_t
#define OPTION_FIELD_BYTES uint64_t
#define OPTION_FIELD_WORD int
#define OPTION_FIELD_TEXT char *
#define OPTION_FIELD_TEXTS char *
#define OPTION_FIELD_NETWORKS char *

/* Every option with its final value, until options_drop. */
struct options {
#define OPTION(TYPE, name, ...) OPTION_FIELD_##TYPE name;
#include "server/process/options_list.h"
#undef OPTION
    const char *sources[OPTIONS_N];   /* for each option: "default", "file", "environment" or "flag" */
    char warning[OPTIONS_TEXT_BYTES]; /* a warning to log once the log is set up; "": none */
};

enum options_action {
    OPTIONS_RUN,
    OPTIONS_PRINT_CONFIG,
    OPTIONS_PRINT_MAN,
    OPTIONS_SWEEP,
    OPTIONS_HELP,
    OPTIONS_VERSION,
    OPTIONS_ERROR
};

/* Resolves every option; a flag wins over the environment, the environment over the file, the file over the default.
 * Returns the action to take. OPTIONS_ERROR: error[] (of OPTIONS_TEXT_BYTES) states the value found, the values
 * allowed, and the nearest valid name. */
enum options_action options_read(struct options *options, int argc, char *const *argv, char *const *environment,
                                 char *error);
void options_drop(struct options *options);

void options_print_help(FILE *out);
void options_print_man(FILE *out);                                   /* prints the manual page posencd(8) */
void options_print_config(const struct options *options, FILE *out); /* prints JSON that --config accepts */
void options_log(const struct options *options); /* logs each option that differs from its default */

/* "512", "64KiB", "256MiB", "2GiB" → bytes. */
bool options_bytes_parse(const char *text, uint64_t *n_bytes);

/* ---- options_print.c --------------------------------------------------------------------------------------------- */

/* The table of options, which options.c reads into struct options and options_print.c prints. */

enum options_type {
    OPTIONS_TYPE_COUNT,
    OPTIONS_TYPE_SECONDS,
    OPTIONS_TYPE_BYTES,
    OPTIONS_TYPE_WORD,
    OPTIONS_TYPE_TEXT,
    OPTIONS_TYPE_TEXTS,   /* a flag that may be repeated */
    OPTIONS_TYPE_NETWORKS /* a repeatable flag whose values networks_parse reads */
};

struct options_row {
    const char *key; /* in the configuration file; the same as the field's name */
    enum options_type type;
    size_t offset;        /* of the field in struct options */
    const char *fallback; /* NULL: "" */
    uint64_t min, max;
    bool has_auto;            /* 0 is allowed below min: the server chooses */
    const char *const *words; /* of a word: the field is an index into these; the last one is NULL */
    const char *unit;         /* placeholder for the value in --help */
    const char *text;
};

extern const struct options_row options_rows[OPTIONS_N];

bool options_is_text(const struct options_row *row); /* the field is an owned text */
const char *options_fallback(const struct options_row *row);

/* max_body → max-body */
enum { OPTIONS_NAME_BYTES = 64 };
struct options_name {
    char text[OPTIONS_NAME_BYTES];
};
struct options_name options_flag(const struct options_row *row);

/* Sets the row's field from text, and notes the source (borrowed). False: error[] of CONFIG_FILE_ERROR_BYTES states the
 * value found and the values allowed. */
bool options_set(struct options *options, const struct options_row *row, const char *text, const char *source,
                 char *error);

/* Flags that select an action other than serving: one for each action between OPTIONS_RUN and OPTIONS_ERROR. */
struct options_action_flag {
    const char *flag;
    enum options_action action;
    const char *text;
};
enum { OPTIONS_N_ACTIONS = OPTIONS_ERROR - OPTIONS_RUN - 1 };
extern const struct options_action_flag options_actions[OPTIONS_N_ACTIONS];

/* ---- metrics.c --------------------------------------------------------------------------------------------------- */

/* The metrics of the process, and their text for Prometheus (format 0.0.4). Every function may be called from any
 * thread. */

/* Figures that the server updates as events happen: METRICS_CONNECTIONS, … Their rows are in metrics_list.h. */
enum metrics_id {
#define COUNTED(ID, ...) METRICS_##ID,
#define READ(...)
#include "server/process/metrics_list.h"
#undef COUNTED
#undef READ
    METRICS_N_IDS
};

extern atomic_int_fast64_t metrics_values[METRICS_N_IDS];
static inline void metrics_add(enum metrics_id id, int64_t change)
{
    atomic_fetch_add_explicit(&metrics_values[id], change, memory_order_relaxed);
}
static inline void metrics_set(enum metrics_id id, int64_t value)
{
    atomic_store_explicit(&metrics_values[id], value, memory_order_relaxed);
}

/* One finished request. The names are constant strings (of api_reply) or "". */
struct metrics_request {
    const char *route, *scheme, *format;
    int status;
    uint64_t total_ns, queue_ns, work_ns;
    uint64_t n_bytes; /* of the answer's body, sent */
};
void metrics_request(const struct metrics_request *request);

/* The calling thread begins to compute a metric of an analysis (a constant string), and has ended the one before; NULL:
 * it only has ended that. */
void metrics_analysis_step(const char *metric);

/* Constants that describe the build; printed by metrics_print. */
void metrics_setup(const char *version, const char *commit, const char *isa);

/* Registers one more print to be called at the end of each text. Call before any other thread runs. */
void metrics_append(void (*print)(void *self, FILE *out), void *self);

/* Produces the whole text (release with free). NULL: no memory. */
char *metrics_print(size_t *n_bytes);

/* What every metric begins with; and one of a single value. For those that a part of the server prints itself. */
void metrics_print_head(FILE *out, const char *name, const char *type, const char *help);
void metrics_print_one(FILE *out, const char *name, const char *type, const char *help, double value);

#endif
