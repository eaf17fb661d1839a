/* The metrics of the process, and their text for Prometheus (format 0.0.4). Every function may be called from any
 * thread. */
#ifndef SERVER_PROCESS_METRICS_H
#define SERVER_PROCESS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Figures that the server updates as events happen: METRICS_CONNECTIONS, … Their rows are in metrics_list.h. */
enum metrics_id {
#define COUNTED(ID, ...) METRICS_##ID,
#define READ(...)
#include "server/process/metrics_list.h"
#undef COUNTED
#undef READ
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

/* The calling thread begins to compute a metric of an analysis (a constant string), and has ended the one before; NULL:
 * it only has ended that. */
void metrics_analysis_step(const char *metric);

/* Constants that describe the build; printed by metrics_print. */
void metrics_setup(const char *version, const char *commit, const char *isa);

/* Registers one more print to be called at the end of each text. Call before any other thread runs. */
void metrics_append(void (*print)(void *self, FILE *out), void *self);

/* Produces the whole text (release with free). NULL: no memory. */
char *metrics_print(size_t *n_bytes);

#endif
