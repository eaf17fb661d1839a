/* What the process counts, and its text for Prometheus (format 0.0.4). Every function may be called from any thread. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Simple figures the server adds to as things happen; each has a row in metrics.c. */
enum metrics_id {
    METRICS_CONNECTIONS, /* open now */
    METRICS_IN_FLIGHT,   /* requests begun and not ended */
    METRICS_STREAMS,     /* answers being streamed */
    METRICS_POOL_BYTES,  /* piece buffers mapped */
    METRICS_SENT_BYTES,
    METRICS_RECEIVED_BYTES,
    METRICS_WORKERS,              /* how many there are */
    METRICS_NOT_MODIFIED,         /* answered 304 */
    METRICS_ANSWERS_HITS,         /* requests answered without computing, because asked before */
    METRICS_ANSWERS_MISSES,       /* those that might have been */
    METRICS_ANSWERS_BYTES,        /* of kept answers */
    METRICS_ANSWERS_SHARED,       /* requests answered by the work for an equal one */
    METRICS_CANCELLED_RECEIVING,  /* client left before its request was whole, */
    METRICS_CANCELLED_WAITING,    /* before its answer began, */
    METRICS_CANCELLED_SENDING,    /* before it ended */
    METRICS_CANCELLED_SLOW,       /* cut off, for it read too slowly, */
    METRICS_CANCELLED_LATE,       /* or because the request's own time was over */
    METRICS_REJECTED_QUEUE,       /* refused by the machine, not by the language: queue full, */
    METRICS_REJECTED_TIMEOUT,     /* client too slow, */
    METRICS_REJECTED_LATE,        /* answer not ready within the request's own time, */
    METRICS_REJECTED_HEAD,        /* head that could be understood in two ways, */
    METRICS_REJECTED_MEMORY,      /* no memory, */
    METRICS_REJECTED_AGE,         /* waited too long for a worker, */
    METRICS_REJECTED_STREAMS,     /* too many answers on their way, */
    METRICS_REJECTED_CONNECTIONS, /* too many connections, */
    METRICS_REJECTED_LIMIT,       /* body, answer or work over a limit: 413, */
    METRICS_REJECTED_TOKEN,       /* no token, a wrong one, one that may not: 401, 403, */
    METRICS_REJECTED_QUOTA,       /* a token's quota used up: 429 */
    METRICS_N_IDS
};

void metrics_add(enum metrics_id id, int64_t change);
void metrics_set(enum metrics_id id, int64_t value);

/* One finished request. The names are constant strings (of api_reply) or "". */
struct metrics_request {
    const char *route, *scheme, *format;
    int status;
    uint64_t total_ns, queue_ns, work_ns;
    uint64_t n_bytes; /* of the answer's body, sent */
};
void metrics_request(const struct metrics_request *request);

/* Figures that others own, read when the text is made. */
void metrics_setup(const char *version, const char *commit, const char *isa);

/* Has print called at the end of each text; before any other thread runs. */
void metrics_append(void (*print)(void *self, FILE *out), void *self);

/* Makes the whole text (free with free). NULL: no memory. */
char *metrics_print(size_t *n_bytes);

#endif
