/* Owns standard error: formats events as lines, buffers them until the loop is idle, and writes them without ever
 * blocking.
 *
 * Whoever reads the log may stop reading (a full disk, a stuck collector); a write would then block a loop and with it
 * every client. So a line goes into a buffer, which is written when the loop has nothing else to do, as far as the
 * descriptor accepts it. When the buffer is full, lines are dropped and counted in /metrics: to lose lines is the
 * smaller damage, and not to know of it would be a greater one.
 *
 * What a client has sent is quoted as in JSON, with control characters, line separators and marks of direction escaped,
 * so that no request can forge a line or colour a terminal. */
#include "server/process/process.h"

#include "server/loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TIME_BYTES = 40,
    LINE_MAX_BYTES = 2048, /* a longer line is truncated here; fields that hold a client's text are limited to less */
    VALUE_MAX_BYTES = 512, /* of one text field */
    WRITE_MAX_BYTES =
        4096, /* PIPE_BUF: a pipe accepts this much in one write, not mixed with other writers, or reports "full" */
    BUFFER_BYTES = 256 * 1024 /* lines waiting for a slow reader */
};

static struct {
    pthread_mutex_t lock;
    enum log_format format;
    enum log_level level;
    int fd;
    uint64_t n_dropped;
    size_t n_bytes;
    char bytes[BUFFER_BYTES];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_INFO, .fd = STDERR_FILENO};

static const char *const level_names[] = {[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info"};

void log_setup(enum log_format format, enum log_level level, int fd)
{
    state.format = format;
    state.level = level;
    state.fd = fd;
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

/* A line under construction. Text that does not fit is truncated; nothing is written outside the buffer. */
struct line {
    char *bytes;
    size_t n, room;
};

static void put_bytes(struct line *line, const char *text, size_t n)
{
    if (n > line->room - line->n)
        n = line->room - line->n;
    memcpy(line->bytes + line->n, text, n);
    line->n += n;
}

static void put_text(struct line *line, const char *text) { put_bytes(line, text, strlen(text)); }

/* Length of the well-formed UTF-8 sequence of two or more bytes at s, 0 if there is none. Surrogates, overlong forms
 * and values past U+10FFFF are not well-formed. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void put_escape(struct line *line, unsigned c)
{
    char escape[12];
    snprintf(escape, sizeof escape, "\\u%04x", c);
    put_text(line, escape);
}

/* Writes one character or escape of a quoted text at s; returns the number of bytes of s consumed. Both formats use
 * JSON's escapes, so that a client cannot forge a line or colour a terminal. A byte that is not UTF-8 is shown as
 * U+FFFD. */
static size_t put_quoted_character(struct line *line, const unsigned char *s)
{
    if (*s == '"' || *s == '\\') {
        put_bytes(line, (char[]){'\\', (char)*s}, 2);
    } else if (*s < 0x20 || *s == 0x7f) {
        put_escape(line, *s);
    } else if (*s < 0x80) {
        put_bytes(line, (const char *)s, 1);
    } else {
        size_t n = utf8_length(s);
        /* Finds characters that are well-formed UTF-8 but unsafe for a terminal or a line reader: C1 controls (U+009B
         * sets colours), line and paragraph separators (U+2028, U+2029), and marks that change the direction of text
         * (U+202A to U+202E, U+2066 to U+2069). 0: s starts with none of these. */
        unsigned c = n == 2   ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                     : n == 3 ? (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu)
                              : 0;
        bool is_control = (c >= 0x80 && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
        unsigned control = is_control ? c : 0;
        if (control)
            put_escape(line, control);
        else
            put_bytes(line, n ? (const char *)s : "\xef\xbf\xbd", n ? n : 3);
        return n ? n : 1;
    }
    return 1;
}

static void put_quoted(struct line *line, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t start = line->n;
    put_text(line, "\"");
    while (*s && line->n - start < VALUE_MAX_BYTES)
        s += put_quoted_character(line, s);
    put_text(line, *s ? "…\"" : "\"");
}

/* Length of a text that is unambiguous in text mode without quotes; 0 if it needs quotes. */
static size_t plain_length(const char *text)
{
    static const bool is_plain[256] = {
        ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['-' ... ':'] = true, /* -./ and digits */
        ['_'] = true,         ['{'] = true,         ['}'] = true,         ['+'] = true,
        ['%'] = true,         ['*'] = true,         ['@'] = true,         [','] = true,
    };
    size_t n = 0;
    while (n <= VALUE_MAX_BYTES && is_plain[(unsigned char)text[n]])
        n++;
    return n <= VALUE_MAX_BYTES && !text[n] ? n : 0;
}

/* Does not use printf, which takes as long for one number as the rest of the line takes. */
static void put_count(struct line *line, uint64_t count)
{
    char reversed[20], number[20];
    size_t n = 0;
    do
        reversed[n++] = (char)('0' + count % 10);
    while (count /= 10);
    for (size_t i = 0; i < n; i++)
        number[i] = reversed[n - 1 - i];
    put_bytes(line, number, n);
}

static bool is_absent(const struct log_field *field)
{
    return (field->kind == LOG_KIND_TEXT && (!field->text || !*field->text)) ||
           (field->kind == LOG_KIND_FLAG && !field->flag);
}

static void put_fields(struct line *line, enum log_format format, const struct log_field *fields, size_t n_fields)
{
    bool is_json = format == LOG_FORMAT_JSON;
    for (size_t i = 0; i < n_fields; i++) {
        if (is_absent(&fields[i]))
            continue;
        put_bytes(line, is_json ? ",\"" : " ", is_json ? 2 : 1);
        put_bytes(line, fields[i].name, fields[i].n_name);
        put_bytes(line, is_json ? "\":" : "=", is_json ? 2 : 1);
        char number[CLOCK_MS_BYTES];
        size_t n_plain = 0;
        switch (fields[i].kind) {
        case LOG_KIND_TEXT:
            n_plain = format == LOG_FORMAT_TEXT ? plain_length(fields[i].text) : 0;
            if (n_plain)
                put_bytes(line, fields[i].text, n_plain);
            else
                put_quoted(line, fields[i].text);
            break;
        case LOG_KIND_COUNT: put_count(line, fields[i].count); break;
        case LOG_KIND_MS: put_bytes(line, number, (size_t)(clock_print_ms(number, fields[i].ns) - number)); break;
        case LOG_KIND_FLAG: put_text(line, "true"); break;
        }
    }
}

size_t log_print(char *dst, size_t n_bytes, enum log_format format, enum log_level level, const char *event,
                 const char *time, const struct log_field *fields, size_t n_fields)
{
    struct line line = {dst, 0, n_bytes - 3}; /* room for the closing brace, the line's end and NUL */
    bool is_json = format == LOG_FORMAT_JSON;
    put_text(&line, is_json ? "{\"time\":\"" : "");
    put_text(&line, time);
    put_text(&line, is_json ? "\",\"level\":\"" : " ");
    put_text(&line, level_names[level]);
    put_text(&line, is_json ? "\",\"event\":\"" : " ");
    put_text(&line, event);
    put_text(&line, is_json ? "\"" : "");
    put_fields(&line, format, fields, n_fields);
    line.room = n_bytes - 1;
    put_text(&line, is_json ? "}\n" : "\n");
    dst[line.n] = '\0';
    return line.n;
}

/* The part up to the seconds is formatted once a second, by each thread for itself. */
static void print_time(char *dst)
{
    static _Thread_local time_t made_for = -1;
    static _Thread_local char seconds[TIME_BYTES];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != made_for) {
        struct tm parts;
        gmtime_r(&now.tv_sec, &parts);
        strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S.000Z", &parts);
        made_for = now.tv_sec;
    }
    strcpy(dst, seconds);
    char *ms = strchr(dst, '.');
    for (long i = 3, rest = now.tv_nsec / 1000000; ms && i > 0; i--, rest /= 10)
        ms[i] = (char)('0' + rest % 10);
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

/* Number of bytes to write next: whole lines, at most WRITE_MAX_BYTES (no line is longer). */
static size_t next_write(void)
{
    if (state.n_bytes <= WRITE_MAX_BYTES)
        return state.n_bytes;
    size_t n = WRITE_MAX_BYTES;
    while (n > 0 && state.bytes[n - 1] != '\n')
        n--;
    return n;
}

/* Writes as much as the descriptor accepts within max_ms. If it accepts nothing, the lines stay in the buffer. If it is
 * broken, they are discarded, because the error cannot be reported anywhere. */
static void flush_locked(int max_ms)
{
    while (state.n_bytes > 0) {
        struct pollfd writable = {.fd = state.fd, .events = POLLOUT};
        if (poll(&writable, 1, max_ms) != 1)
            break;
        ssize_t n = write(state.fd, state.bytes, next_write());
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        size_t written = n < 0 ? state.n_bytes : (size_t)n;
        state.n_bytes -= written;
        memmove(state.bytes, state.bytes + written, state.n_bytes);
    }
}

void log_flush(void)
{
    pthread_mutex_lock(&state.lock);
    if (state.n_bytes > 0)
        flush_locked(0);
    pthread_mutex_unlock(&state.lock);
}

void log_flush_all(unsigned max_ms)
{
    pthread_mutex_lock(&state.lock);
    flush_locked((int)max_ms);
    pthread_mutex_unlock(&state.lock);
}

uint64_t log_n_dropped(void)
{
    pthread_mutex_lock(&state.lock);
    uint64_t n = state.n_dropped;
    pthread_mutex_unlock(&state.lock);
    return n;
}

static void keep_line(const char *bytes, size_t n_bytes)
{
    pthread_mutex_lock(&state.lock);
    if (n_bytes > BUFFER_BYTES - state.n_bytes)
        flush_locked(0);
    if (n_bytes > BUFFER_BYTES - state.n_bytes) {
        state.n_dropped++;
    } else {
        memcpy(state.bytes + state.n_bytes, bytes, n_bytes);
        state.n_bytes += n_bytes;
    }
    pthread_mutex_unlock(&state.lock);
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static void say(enum log_level level, const char *event, const struct log_field *fields, size_t n_fields)
{
    char line[LINE_MAX_BYTES], now[TIME_BYTES];
    print_time(now);
    keep_line(line, log_print(line, sizeof line, state.format, level, event, now, fields, n_fields));
}

bool log_is_heard(enum log_level level) { return level <= state.level; }

void log_line(enum log_level level, const char *event, const struct log_field *fields, size_t n_fields)
{
    if (log_is_heard(level))
        say(level, event, fields, n_fields);
}

static void log_message(enum log_level level, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Messages are rare and often the last output of a process, so they are written at once and do not wait for the
 * loop. */
static void log_message(enum log_level level, const char *format, va_list arguments)
{
    char text[VALUE_MAX_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    struct log_field field = LOG_TEXT("message", text);
    log_line(level, "message", &field, 1);
    log_flush();
}

#define LOG_MESSAGE_FUNCTION(name, level)                                                                              \
    void name(const char *format, ...)                                                                                 \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        log_message(level, format, arguments);                                                                         \
        va_end(arguments);                                                                                             \
    }
LOG_MESSAGE_FUNCTION(log_error, LOG_ERROR)
LOG_MESSAGE_FUNCTION(log_warn, LOG_WARN)
LOG_MESSAGE_FUNCTION(log_info, LOG_INFO)

void log_listening(const char *url)
{
    char text[VALUE_MAX_BYTES];
    int n = snprintf(text, sizeof text, "listening on %s\n", url);
    if (state.format == LOG_FORMAT_TEXT) {
        keep_line(text, (size_t)n);
    } else {
        text[n - 1] = '\0';
        struct log_field field = LOG_TEXT("message", text);
        say(LOG_INFO, "listening", &field, 1); /* logged at every level: other programs wait for this line */
    }
    log_flush();
}
