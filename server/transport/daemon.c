/* Owns what is asked of the HTTP library for a connection and its request: one daemon (its start, its callbacks, its
 * end), and the request at hand. Comments that begin with "0.9.75" describe where that version needs care.
 *
 * Only this file and response.c, which asks it for responses, include libmicrohttpd's header. What surrounds or repairs
 * the library (guard.c, connections.c, deadlines.c, chunks.c) uses it through the functions here and the callbacks in
 * struct daemon_events, so another version, or another library, is a change of these two files and of what those
 * comments describe. */
#include "server/transport/connections.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct daemon {
    struct MHD_Daemon *mhd; /* NULL: not started yet */
    const struct daemon_events *events;
    void *self;
};

/* ---- What the library calls ------------------------------------------------------------------------------------ */

/* Messages while the daemon starts explain a failure. Later ones only report faulty clients, which our request lines
 * report too. */
static void on_message(void *self, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

static void on_message(void *self, const char *format, va_list arguments)
{
    const struct daemon *daemon = self;
    if (daemon->mhd)
        return;
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_error("HTTP daemon: %s", text);
}

/* The daemon calls this when its own state is broken and then expects the process to end. */
static void on_panic(void *self, const char *file, unsigned line, const char *reason)
{
    (void)self;
    log_error("HTTP daemon: panic in %s:%u: %s", file, line, reason ? reason : "no reason given");
    log_flush_all(1000);
    abort();
}

static void on_connection(void *self, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct daemon *daemon = self;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        daemon->events->closed(daemon->self, *context);
        return;
    }
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const union MHD_ConnectionInfo *tls = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    *context = daemon->events->opened(daemon->self, fd, tls ? tls->tls_session : NULL);
}

static void *on_first_line(void *self, const char *uri, struct MHD_Connection *mhd)
{
    struct daemon *daemon = self;
    void *context = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    return daemon->events->begin(daemon->self, context, uri, mhd);
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *body, size_t *n_body, void **request)
{
    struct daemon *daemon = self;
    (void)mhd, (void)url;
    return *request && daemon->events->receive(*request, method, version, body, n_body) ? MHD_YES : MHD_NO;
}

static void on_end(void *self, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
    struct daemon *daemon = self;
    void *ended = *request;
    (void)mhd;
    *request = NULL;
    if (ended)
        daemon->events->end(ended, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

/* ---- Start, running, end --------------------------------------------------------------------------------------- */

/* A GnuTLS priority string. Older versions of the protocol are insecure. */
static char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct daemon *daemon_new(const struct daemon_settings *settings, const struct daemon_events *events, void *self)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (!daemon)
        return NULL;
    MHD_set_panic_func(on_panic, NULL);
    daemon->events = events;
    daemon->self = self;
    bool is_tls = settings->cert;
    struct MHD_OptionItem items[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)settings->cert},
                                     {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)settings->key},
                                     {MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions},
                                     {MHD_OPTION_END, 0, NULL}};
    unsigned flags = (is_tls ? MHD_USE_TLS : 0) | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
                     MHD_USE_ERROR_LOG;
    daemon->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, daemon, MHD_OPTION_EXTERNAL_LOGGER, on_message,
                                   daemon, /* 0.9.75: must come first */
                                   MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->memory, MHD_OPTION_CONNECTION_LIMIT,
                                   settings->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, settings->timeout_s,
                                   MHD_OPTION_STRICT_FOR_CLIENT,
                                   -1, /* 0.9.75: the only value that refuses "Name :", which hides a header */
                                   MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_URI_LOG_CALLBACK, on_first_line,
                                   daemon, MHD_OPTION_NOTIFY_COMPLETED, on_end, daemon, MHD_OPTION_NOTIFY_CONNECTION,
                                   on_connection, daemon, MHD_OPTION_ARRAY, is_tls ? items : items + 3, MHD_OPTION_END);
    if (daemon->mhd)
        return daemon;
    free(daemon);
    return NULL;
}

int daemon_fd(const struct daemon *daemon)
{
    return MHD_get_daemon_info(daemon->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void daemon_run(struct daemon *daemon) { MHD_run(daemon->mhd); }

bool daemon_timeout(struct daemon *daemon, uint64_t *ms)
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    if (MHD_get_timeout(daemon->mhd, &timeout) != MHD_YES)
        return false;
    *ms = timeout;
    return true;
}

bool daemon_add(struct daemon *daemon, int fd)
{
    struct sockaddr_storage address = {.ss_family =
                                           AF_UNSPEC}; /* the daemon requires an address, but does not use it */
    return MHD_add_connection(daemon->mhd, fd, (const struct sockaddr *)&address, sizeof address) == MHD_YES;
}

/* 0.9.75 aborts the process if a connection is still suspended when the daemon is stopped; resuming takes effect only
 * in a run. */
void daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return;
    MHD_run(daemon->mhd);
    MHD_stop_daemon(daemon->mhd);
    free(daemon);
}

/* ---- The request at hand ----------------------------------------------------------------------------------------- */

struct taking {
    daemon_header *take;
    void *self;
};

static enum MHD_Result take_one(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    const struct taking *taking = self;
    (void)kind;
    taking->take(taking->self, name, value);
    return MHD_YES;
}

void daemon_headers(struct MHD_Connection *mhd, daemon_header *take, void *self)
{
    struct taking taking = {take, self};
    MHD_get_connection_values(mhd, MHD_HEADER_KIND, take_one, &taking);
}

bool daemon_has_trailer(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value(mhd, MHD_FOOTER_KIND, name);
}

void daemon_suspend(struct MHD_Connection *mhd) { MHD_suspend_connection(mhd); }

void daemon_resume(struct MHD_Connection *mhd) { MHD_resume_connection(mhd); }

const char *daemon_reason(int status) { return MHD_get_reason_phrase_for((unsigned)status); }
