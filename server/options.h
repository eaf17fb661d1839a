/* The server's options: one table row is an option's flag, type, default, range and text; environment variable and key
 * of the configuration file follow from the flag (--max-body, POSENC_MAX_BODY, max_body). */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include "server/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_KERNELS_AUTO, OPTIONS_KERNELS_BASE, OPTIONS_KERNELS_AVX2, OPTIONS_KERNELS_AVX512 };

enum { OPTIONS_MAX = 40, OPTIONS_TEXT_BYTES = 512, OPTIONS_LIST_BYTES = 4096 };

/* Every option resolved. Texts are owned, until options_drop. Times are in seconds, sizes in bytes. */
struct options {
    char *config, *host, *tcp_cc, *socket, *token_file, *tls_cert, *tls_key, *cors_origin, *trusted_proxy, *weights_dir;
    uint64_t port, workers, io_threads, max_connections, max_queue, max_queue_age, max_streams;
    uint64_t max_body, max_json, max_answer, max_work, max_weights, max_memory, buffer_memory, answer_cache;
    uint64_t connection_timeout, header_timeout, body_timeout, send_timeout, min_rate, drain_seconds, drain_delay;
    int log_format;                   /* enum log_format */
    int log_level;                    /* enum log_level */
    int kernels;                      /* OPTIONS_KERNELS_… */
    const char *sources[OPTIONS_MAX]; /* of each row: "default", "file", "environment", "flag" */
    char warning[OPTIONS_TEXT_BYTES]; /* something to tell the user once the log works; "": nothing */
};

enum options_action { OPTIONS_RUN, OPTIONS_PRINT_CONFIG, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Resolves flag before environment before file before default. What to do then; OPTIONS_ERROR: error[] (of
 * OPTIONS_TEXT_BYTES) says what was found, what is allowed, and the nearest right name. */
enum options_action options_read(struct options *options, int argc, char *const *argv, char *const *environment,
                                 char *error);
void options_drop(struct options *options);

void options_print_help(FILE *out);
void options_print_config(const struct options *options, FILE *out); /* JSON that --config reads back */
void options_log(const struct options *options);                     /* each one that is not left at its default */

/* "512", "64KiB", "256MiB", "2GiB" → bytes. */
bool options_bytes_parse(const char *text, uint64_t *n_bytes);

#endif
