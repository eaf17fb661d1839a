/* The door to the HTTP library (libmicrohttpd 0.9.75): only this folder includes its header. A daemon has no threads:
 * our loop watches its epoll descriptor and runs it, and everything here is called, and calls back, on the loop's
 * thread. */
#ifndef SERVER_HTTP_DAEMON_DAEMON_H
#define SERVER_HTTP_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct MHD_Connection; /* of a request at hand; the library's */
struct MHD_Response;   /* likewise; has holders of its own */

/* ---- daemon.c: one daemon -------------------------------------------------------------------------------------- */

struct daemon;

struct daemon_settings {
    size_t memory; /* of a connection */
    unsigned max_connections;
    unsigned timeout_s;     /* of silence, after which a connection is cut */
    const char *cert, *key; /* PEM; NULL: plain HTTP */
};

/* What it calls, with self. */
struct daemon_events {
    /* A connection begins; what this returns is its context. session: GnuTLS's, NULL without TLS. */
    void *(*opened)(void *self, int fd, void *session);
    void (*closed)(void *self, void *context);
    /* A request's first line has come; what this returns is the request. NULL: the connection is closed. */
    void *(*begin)(void *self, void *context, const char *uri, struct MHD_Connection *mhd);
    /* With its head, with each part of its body (*n_body is 0 then if it is taken), at its end, and after each resume.
     * False: the connection is closed. */
    bool (*receive)(void *request, const char *method, const char *version, const char *body, size_t *n_body);
    void (*end)(void *request, bool is_complete); /* the answer has been sent, or the connection is closed */
};

/* Everything is borrowed until daemon_free. NULL: it could not start, the log says why. */
struct daemon *daemon_new(const struct daemon_settings *settings, const struct daemon_events *events, void *self);
int daemon_fd(const struct daemon *daemon); /* readable: it wants to run */
void daemon_run(struct daemon *daemon);
bool daemon_timeout(struct daemon *daemon, uint64_t *ms); /* until it wants to run; false: whenever fd says so */
/* Gives it a connection; fd is taken. False: it has closed it, mostly without having called opened. */
bool daemon_add(struct daemon *daemon, int fd);
/* Closes what is open. Every request must have been resumed. NULL is accepted. */
void daemon_free(struct daemon *daemon);

/* ---- request.c: the request at hand ---------------------------------------------------------------------------- */

typedef void daemon_header(void *self, const char *name, const char *value); /* value may be NULL */

void daemon_headers(struct MHD_Connection *mhd, daemon_header *take, void *self);
bool daemon_has_trailer(struct MHD_Connection *mhd, const char *name);
void daemon_suspend(struct MHD_Connection *mhd);
void daemon_resume(struct MHD_Connection *mhd); /* the daemon must be run then: nothing else wakes it */
bool daemon_send(struct MHD_Connection *mhd, int status, struct MHD_Response *response); /* false: no memory */

/* ---- response.c: what it is answered with; NULL and false: no memory ------------------------------------------- */

/* Writes up to `room` bytes to dst; returns how many, 0 only where the connection has been suspended, or an end. */
typedef ssize_t daemon_reader(void *self, uint64_t pos, char *dst, size_t room);

enum { DAEMON_END = -1, DAEMON_CUT = -2 }; /* all has been read; the answer is cut, and the connection closed */

#define DAEMON_LENGTH_UNKNOWN UINT64_MAX

/* The bytes are borrowed until the response is freed, the list of parts is not. block: bytes of memory for what the
 * reader writes. */
struct MHD_Response *daemon_response_of_bytes(const char *bytes, size_t n);
struct MHD_Response *daemon_response_of_parts(const struct iovec *parts, unsigned n);
struct MHD_Response *daemon_response_of_reader(uint64_t length, size_t block, daemon_reader *read, void *self);
void daemon_response_without_chunks(struct MHD_Response *response); /* its body ends with the connection */
void daemon_response_free(struct MHD_Response *response);           /* one holder less; NULL is accepted */

bool daemon_response_add(struct MHD_Response *response, const char *name, const char *value);
bool daemon_response_remove(struct MHD_Response *response, const char *name, const char *value);
/* Its own copy of a header's value, which may be written over with one as long; NULL: it has none. */
char *daemon_response_header(struct MHD_Response *response, const char *name);

const char *daemon_reason(int status); /* as "Not Found" */

#endif
