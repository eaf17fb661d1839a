/* What the machine refuses: one row a reason, with the status, the figure of /metrics that counts it, and the sentence,
 * whose values follow the row:
 *
 *     exchange_refuse(x, REFUSED_QUEUE, options->max_queue);
 *
 * So the compiler checks the values against the sentence. Each 503 and 429 states that the client may try again after a
 * second (api_refusal). Rows whose sentence depends on more are given the sentence itself. */
#ifndef SERVER_TRANSPORT_REFUSALS_H
#define SERVER_TRANSPORT_REFUSALS_H

#include "server/process/metrics.h"

#include <inttypes.h>

#define REFUSED_UNCOUNTED METRICS_N_IDS /* by its status, at the end of the request */

/* ---- The state of the server ---- */

#define REFUSED_QUEUE /* --max-queue */                                                                                \
    503, METRICS_REJECTED_QUEUE,                                                                                       \
        "too many requests are waiting to be computed: %" PRIu64 " (the limit --max-queue of this server); try again " \
        "later"
#define REFUSED_AGE /* --max-queue-age */                                                                              \
    503, METRICS_REJECTED_AGE,                                                                                         \
        "the request has waited for a worker more than %" PRIu64 " s (the limit --max-queue-age of this server), and " \
        "was not computed; try again later"
#define REFUSED_DRAINING                                                                                               \
    503, METRICS_REJECTED_DRAINING,                                                                                    \
        "this server is shutting down and finishes only the answers it has begun; send the request to another server," \
        " or try again later"
#define REFUSED_CONNECTION /* --max-connections */                                                                     \
    503, METRICS_REJECTED_CONNECTIONS,                                                                                 \
        "%" PRIu64 " connections are open, as many as this server has at a time (the limit --max-connections); try "   \
        "again later"

/* ---- Memory and streams: a 413 is counted as a limit, wherever it is refused ---- */

#define REFUSED_MEMORY(status) status, (status) == 413 ? REFUSED_UNCOUNTED : METRICS_REJECTED_MEMORY, "%s"
#define REFUSED_STREAM(status) status, METRICS_REJECTED_STREAMS, "%s"
#define REFUSED_BUFFERS 503, METRICS_REJECTED_MEMORY, "no memory for an answer of this size now; try again later"
#define REFUSED_PICTURE /* its bytes, the client's unread ones, --buffer-memory */                                     \
    503, METRICS_REJECTED_MEMORY,                                                                                      \
        "this picture has %" PRIu64 " bytes, and this client has not read %" PRIu64 " of others yet: of the %" PRIu64  \
        " for them (--buffer-memory) one client gets at most four times what it leaves free; try again later"

/* ---- The request ---- */

#define REFUSED_HEAD(status) status, METRICS_REJECTED_HEAD, "%s"
#define REFUSED_LONG_HEAD(status) status, METRICS_REJECTED_HEAD, "%s; what has come of this one costs %zu"
#define REFUSED_TIMEOUT_HEADER                                                                                         \
    400, METRICS_REJECTED_HEAD,                                                                                        \
        "X-Request-Timeout is not one number of seconds; allowed: above 0 and up to 1000000, as 2.5"
#define REFUSED_LENGTH 413, REFUSED_UNCOUNTED, "the body is larger than --max-body"

/* ---- Its time ---- */

#define REFUSED_LATE /* seconds, microseconds */                                                                       \
    503, METRICS_REJECTED_LATE,                                                                                        \
        "the answer was not ready within the %" PRIu64 ".%06" PRIu64 " s that the request gives it (header "           \
        "X-Request-Timeout in seconds, or parameter timeout in microseconds)"
#define REFUSED_SLOW_HEAD /* --header-timeout */                                                                       \
    408, METRICS_REJECTED_TIMEOUT, "the request's head took longer than %" PRIu64 " s (--header-timeout)"
#define REFUSED_LONG_BODY /* --body-timeout, bytes */                                                                  \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "the body took longer than %" PRIu64 " s (--body-timeout); %" PRIu64 " bytes of it have come"
#define REFUSED_STALLED_BODY /* --connection-timeout, bytes */                                                         \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "nothing more of the body came for %" PRIu64 " s (--connection-timeout); %" PRIu64 " bytes of it have come"
#define REFUSED_SLOW_BODY /* bytes, seconds, --min-rate */                                                             \
    408, METRICS_REJECTED_TIMEOUT,                                                                                     \
        "the body came too slowly: %" PRIu64 " bytes in %d s; needed: %" PRIu64 " a second (--min-rate)"

enum { REFUSED_DETAIL_BYTES = 512 };

#endif
