/* The interface to the HTTP library (libmicrohttpd 0.9.75): only daemon.c includes its header. A daemon has no
 * threads: our loop watches its epoll descriptor and runs it. All functions are called, and call back, on the loop's
 * thread. */
#ifndef SERVER_TRANSPORT_DAEMON_H
#define SERVER_TRANSPORT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct MHD_Connection; /* a current request; belongs to the library */
struct MHD_Response;   /* belongs to the library; has a reference count */

/* ---- One daemon -------------------------------------------------------------------------------------- */

struct daemon;

struct daemon_settings {
    size_t memory; /* per connection */
    unsigned max_connections;
    unsigned timeout_s;     /* of silence, after which the connection is cut */
    const char *cert, *key; /* PEM; NULL: plain HTTP */
};

/* Callbacks of the daemon; self is passed to them. */
struct daemon_events {
    /* A connection begins; the returned pointer is its context. session: GnuTLS's, NULL without TLS. */
    void *(*opened)(void *self, int fd, void *session);
    void (*closed)(void *self, void *context);
    /* A request's first line has arrived; the returned pointer identifies the request. NULL: the connection is
     * closed. */
    void *(*begin)(void *self, void *context, const char *uri, struct MHD_Connection *mhd);
    /* Called with the head, with each part of the body (the callee sets *n_body to 0 if it takes the part), at its end,
     * and after each resume. False: the connection is closed. */
    bool (*receive)(void *request, const char *method, const char *version, const char *body, size_t *n_body);
    void (*end)(void *request, bool is_complete); /* the answer has been sent, or the connection is closed */
};

/* Everything is borrowed until daemon_free. NULL: starting failed; the log gives the reason. */
struct daemon *daemon_new(const struct daemon_settings *settings, const struct daemon_events *events, void *self);
int daemon_fd(const struct daemon *daemon); /* when readable, the daemon must be run */
void daemon_run(struct daemon *daemon);
bool daemon_timeout(struct daemon *daemon,
                    uint64_t *ms); /* time until it must be run; false: only when fd is readable */
/* Passes it a connection; takes fd. False: it has closed the connection, usually without having called opened. */
bool daemon_add(struct daemon *daemon, int fd);
/* Closes all open connections. Every request must have been resumed. NULL is accepted. */
void daemon_free(struct daemon *daemon);

/* ---- The request at hand ---------------------------------------------------------------------------- */

typedef void daemon_header(void *self, const char *name, const char *value); /* value may be NULL */

void daemon_headers(struct MHD_Connection *mhd, daemon_header *take, void *self);
bool daemon_has_trailer(struct MHD_Connection *mhd, const char *name);
void daemon_suspend(struct MHD_Connection *mhd);
void daemon_resume(struct MHD_Connection *mhd); /* the daemon must be run then: nothing else wakes it */
bool daemon_send(struct MHD_Connection *mhd, int status, struct MHD_Response *response); /* false: no memory */

/* ---- What it is answered with; NULL and false: no memory ------------------------------------------- */

/* Writes up to `room` bytes to dst and returns their number; 0 only if the connection has been suspended, or one of the
 * values below. */
typedef ssize_t daemon_reader(void *self, uint64_t pos, char *dst, size_t room);

enum { DAEMON_END = -1, DAEMON_CUT = -2 }; /* all has been read; or: the answer is cut off and the connection closed */

#define DAEMON_LENGTH_UNKNOWN UINT64_MAX

/* The bytes are borrowed until the response is freed; the list of parts is not. block: size of the buffer that the
 * reader fills. */
struct MHD_Response *daemon_response_of_bytes(const char *bytes, size_t n);
struct MHD_Response *daemon_response_of_parts(const struct iovec *parts, unsigned n);
struct MHD_Response *daemon_response_of_reader(uint64_t length, size_t block, daemon_reader *read, void *self);
void daemon_response_without_chunks(struct MHD_Response *response); /* its body ends when the connection closes */
void daemon_response_free(struct MHD_Response *response);           /* drops a reference; NULL is accepted */

bool daemon_response_add(struct MHD_Response *response, const char *name, const char *value);
bool daemon_response_remove(struct MHD_Response *response, const char *name, const char *value);
/* The response's own copy of a header's value, which may be overwritten by one of the same length; NULL: no such
 * header. */
char *daemon_response_header(struct MHD_Response *response, const char *name);

const char *daemon_reason(int status); /* e.g. "Not Found" */

#endif
