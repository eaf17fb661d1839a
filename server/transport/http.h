/* The HTTP side of one I/O loop: connections, requests, answers. */
#ifndef SERVER_TRANSPORT_HTTP_H
#define SERVER_TRANSPORT_HTTP_H

#include "api/api.h"
#include "server/loop/loop.h"
#include "server/process/options.h"
#include "server/transport/tls.h"
#include "server/process/networks.h"
#include "server/auth/tokens.h"

struct accept;
struct accept_place;
struct answers;
struct http;

/* The rules for admitting clients. */
struct http_door {
    struct tokens *tokens;   /* NULL: no token is needed */
    struct tls tls;          /* without a certificate: plain HTTP */
    struct networks proxies; /* proxies whose X-Forwarded-For header is trusted */
    /* Only this machine reaches the server and no token is needed. A page whose name has been bound anew to a loopback
     * address would be this server's own page to a browser (DNS rebinding), so requests for other hosts are refused. */
    bool checks_host;
};

/* Serves, within the loop, the connections that http_take hands over, and reports the end of each to accept.
 * Everything is borrowed until http_free. NULL: starting failed; the log gives the reason. */
struct http *http_new(const struct options *options, const struct api_host *host, const struct http_door *door,
                      struct loop *loop, struct accept *accept, struct answers *answers);

/* Serves a connection just accepted (takes place and its descriptor). Any thread; is_here: the caller is on this loop's
 * thread. */
void http_take(struct http *http, struct accept_place *place, bool is_here);
/* Sends the refusal to a connection over --max-connections; fd stays the caller's. On the loop's thread. */
void http_turn_away(struct http *http, int fd);

/* Shutdown. As soon as host->is_ready is false, answers have "Connection: close". http_drain (any thread): idle
 * connections are closed; running requests continue; requests on later connections are refused with 503, but for the
 * open paths (api_is_open). http_close (any thread), when the listening socket is closed: idle connections among the
 * later ones are closed, too. http_stop: all running requests are cut off. Then loop_free, which waits for workers, and
 * last http_free. The last two accept NULL. */
void http_drain(struct http *http);
void http_close(struct http *http);
void http_stop(struct http *http);
void http_free(struct http *http);

/* Opens a listening socket on host and port (0: a free one). Its connections use this congestion control ("": the
 * system's default, but on loopback one without pacing). Writes its URL, with the actual port, to url. -1: error[] of
 * n_error bytes gives the reason. */
enum { HTTP_URL_BYTES = 300 };
int http_listen(const char *host, unsigned port, bool is_tls, const char *congestion, char *url, char *error,
                size_t n_error);
bool http_is_beyond_loopback(int listen_fd); /* can other machines reach it? */

/* The same on a Unix socket, accessible to its owner and group. A stale socket at that path is replaced, any other file
 * is left alone. http_unlisten removes the socket, unless another one has taken its place. */
int http_listen_unix(const char *path, char *url, char *error, size_t n_error);
void http_unlisten(const char *path);

#endif
