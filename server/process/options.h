/* The server's options: one row of options_list.h is an option's field, type, default, range and text. Flag,
 * environment variable and key of the configuration file follow from the field (--max-body, POSENC_MAX_BODY, max_body).
 */
#ifndef SERVER_PROCESS_OPTIONS_H
#define SERVER_PROCESS_OPTIONS_H

#include "server/process/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_KERNELS_AUTO, OPTIONS_KERNELS_BASE, OPTIONS_KERNELS_AVX2, OPTIONS_KERNELS_AVX512 };

enum { OPTIONS_TEXT_BYTES = 512, OPTIONS_LIST_BYTES = 4096 };

enum option_id {
#define OPTION(TYPE, name, ...) OPTION_##name,
#include "server/process/options_list.h"
#undef OPTION
    OPTIONS_N
};

/* Types of the fields: times are in seconds, sizes in bytes; a word is stored as its index among the row's words; texts
 * are owned. */
#define OPTION_FIELD_COUNT uint64_t
#define OPTION_FIELD_SECONDS uint64_t
#define OPTION_FIELD_BYTES uint64_t
#define OPTION_FIELD_WORD int
#define OPTION_FIELD_TEXT char *
#define OPTION_FIELD_TEXTS char *
#define OPTION_FIELD_NETWORKS char *

/* Every option with its final value, until options_drop. */
struct options {
#define OPTION(TYPE, name, ...) OPTION_FIELD_##TYPE name;
#include "server/process/options_list.h"
#undef OPTION
    const char *sources[OPTIONS_N];   /* for each option: "default", "file", "environment" or "flag" */
    char warning[OPTIONS_TEXT_BYTES]; /* a warning to log once the log is set up; "": none */
};

enum options_action { OPTIONS_RUN, OPTIONS_PRINT_CONFIG, OPTIONS_SWEEP, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Resolves every option; a flag wins over the environment, the environment over the file, the file over the default.
 * Returns the action to take. OPTIONS_ERROR: error[] (of OPTIONS_TEXT_BYTES) states the value found, the values
 * allowed, and the nearest valid name. */
enum options_action options_read(struct options *options, int argc, char *const *argv, char *const *environment,
                                 char *error);
void options_drop(struct options *options);

void options_print_help(FILE *out);
void options_print_config(const struct options *options, FILE *out); /* prints JSON that --config accepts */
void options_log(const struct options *options); /* logs each option that differs from its default */

/* "512", "64KiB", "256MiB", "2GiB" → bytes. */
bool options_bytes_parse(const char *text, uint64_t *n_bytes);

#endif
