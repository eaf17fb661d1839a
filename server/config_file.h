/* Reads a configuration file: one flat JSON object whose values are strings, numbers, booleans or null. */
#ifndef SERVER_CONFIG_FILE_H
#define SERVER_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { CONFIG_FILE_MAX_BYTES = 64 * 1024, CONFIG_FILE_ERROR_BYTES = 256 };

/* Called for each member in order: a string's value unescaped, a number's or boolean's as written. null members are
 * left out. Both texts are borrowed until the call returns. False stops the reading; error[] (of
 * CONFIG_FILE_ERROR_BYTES) then says why. */
typedef bool config_file_member(void *self, const char *key, const char *value, char *error);

/* Reads the text. On failure error[] holds one sentence that starts with line and column. */
bool config_file_parse(const char *text, size_t n_bytes, config_file_member *member, void *self, char *error);

/* The same for a file; the sentence then starts with its path. */
bool config_file_read(const char *path, config_file_member *member, void *self, char *error);

#endif
