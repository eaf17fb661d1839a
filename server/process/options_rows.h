/* The table of options, which options.c reads into struct options and options_print.c prints. */
#ifndef SERVER_PROCESS_OPTIONS_ROWS_H
#define SERVER_PROCESS_OPTIONS_ROWS_H

#include "server/process/options.h"

#include <stddef.h>

enum options_type {
    OPTIONS_TYPE_COUNT,
    OPTIONS_TYPE_SECONDS,
    OPTIONS_TYPE_BYTES,
    OPTIONS_TYPE_WORD,
    OPTIONS_TYPE_TEXT,
    OPTIONS_TYPE_TEXTS,   /* a flag that may be repeated */
    OPTIONS_TYPE_NETWORKS /* a repeatable flag whose values networks_parse reads */
};

struct options_row {
    const char *key; /* in the configuration file; the same as the field's name */
    enum options_type type;
    size_t offset;        /* of the field in struct options */
    const char *fallback; /* NULL: "" */
    uint64_t min, max;
    bool has_auto;            /* 0 is allowed below min: the server chooses */
    const char *const *words; /* of a word: the field is an index into these; the last one is NULL */
    const char *unit;         /* placeholder for the value in --help */
    const char *text;
};

extern const struct options_row options_rows[OPTIONS_N];

bool options_is_repeatable(const struct options_row *row);
bool options_is_text(const struct options_row *row); /* the field is an owned text */
const char *options_fallback(const struct options_row *row);

/* max_body → max-body */
enum { OPTIONS_NAME_BYTES = 64 };
struct options_name {
    char text[OPTIONS_NAME_BYTES];
};
struct options_name options_flag(const struct options_row *row);

/* Sets the row's field from text, and notes the source (borrowed). False: error[] of CONFIG_FILE_ERROR_BYTES states the
 * value found and the values allowed. */
bool options_set(struct options *options, const struct options_row *row, const char *text, const char *source,
                 char *error);

/* Flags that select an action other than serving: one for each action between OPTIONS_RUN and OPTIONS_ERROR. */
struct options_action_flag {
    const char *flag;
    enum options_action action;
    const char *text;
};
enum { OPTIONS_N_ACTIONS = OPTIONS_ERROR - OPTIONS_RUN - 1 };
extern const struct options_action_flag options_actions[OPTIONS_N_ACTIONS];

#endif
