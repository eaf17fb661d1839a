/* The HTTP side of one I/O loop: connections, requests, answers. */
#ifndef SERVER_HTTP_HTTP_H
#define SERVER_HTTP_HTTP_H

#include "api/api.h"
#include "server/loop/jobs.h"
#include "server/options.h"
#include "server/http/tls.h"
#include "server/networks.h"
#include "server/auth/tokens.h"

struct accept;
struct answers;
struct flights;
struct http;

/* Who may come in, and how. */
struct http_door {
    struct tokens *tokens;   /* NULL: everybody */
    struct tls tls;          /* without a certificate: plain HTTP */
    struct networks proxies; /* whose word counts for who asks */
};

/* Serves within the loop of jobs the connections that http_take hands it, and tells accept of each that has ended.
 * Everything is borrowed until http_free. NULL: it could not start, the log says why. */
struct http *http_new(const struct options *options, const struct api_host *host, const struct http_door *door,
                      struct jobs *jobs, struct accept *accept, struct answers *answers, struct flights *flights);

/* Serves a connection just accepted (fd is taken). Any thread; is_here: it is the loop's own. */
void http_take(struct http *http, int fd, bool is_here);
/* Tells a connection over --max-connections so; fd stays the caller's. On the loop's thread. */
void http_refuse_connection(struct http *http, int fd);

/* Ends in three steps. http_drain (any thread): idle connections are closed, running requests go on and their answers
 * say "Connection: close". http_stop: everything still running is cut off. Then jobs_free, which waits for workers, and
 * last http_free. NULL is accepted by the last two. */
void http_drain(struct http *http);
void http_stop(struct http *http);
void http_free(struct http *http);

/* Opens a listening socket on host and port (0: a free one) whose connections have this congestion control ("": the
 * system's, but on loopback none that paces), and writes its URL, with the port it has, to url. -1: error[] of n_error
 * bytes says why. */
enum { HTTP_URL_BYTES = 300 };
int http_listen(const char *host, unsigned port, bool is_tls, const char *congestion, char *url, char *error,
                size_t n_error);
bool http_is_beyond_loopback(int listen_fd); /* may other machines reach it? */

/* The same on a Unix socket, for its owner and group. A socket there that nobody serves any more is replaced, anything
 * else is left alone. http_unlisten removes it again, unless another has taken its place. */
int http_listen_unix(const char *path, char *url, char *error, size_t n_error);
void http_unlisten(const char *path);

#endif
