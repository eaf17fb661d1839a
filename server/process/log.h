/* The log: one line per event on standard error, as text or as a JSON object. Lines never interleave. A reader that has
 * stopped reading never blocks the server: lines that do not fit are dropped and counted.
 *
 * log_line and the message functions may be called from any thread; log_flush only from the loop. */
#ifndef SERVER_PROCESS_LOG_H
#define SERVER_PROCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO };
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

#endif
