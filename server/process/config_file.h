/* Reads a configuration file: one flat JSON object whose values are strings, numbers, booleans or null. */
#ifndef SERVER_PROCESS_CONFIG_FILE_H
#define SERVER_PROCESS_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { CONFIG_FILE_MAX_BYTES = 64 * 1024, CONFIG_FILE_ERROR_BYTES = 256 };

/* Called for each member in order. A string's value is passed unescaped, a number or boolean as written; null members
 * are skipped. Both texts are borrowed until the call returns. Returning false stops the parse; error[] (of
 * CONFIG_FILE_ERROR_BYTES) then gives the reason. */
typedef bool config_file_member(void *self, const char *key, const char *value, char *error);

/* Parses the text. On failure error[] holds one sentence that starts with line and column. */
bool config_file_parse(const char *text, size_t n_bytes, config_file_member *member, void *self, char *error);

/* The same for a file; the sentence then starts with its path. */
bool config_file_read(const char *path, config_file_member *member, void *self, char *error);

#endif
