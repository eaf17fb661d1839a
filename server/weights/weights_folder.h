/* The folder of stored weights: whole files by name, replaced in one step. Any thread; callers must serialize their
 * writes. */
#ifndef SERVER_KEPT_WEIGHTS_FOLDER_H
#define SERVER_KEPT_WEIGHTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of the weights in the folder, sorted (free with weights_folder_list_free). False: errno gives the
 * reason. */
bool weights_folder_list(const char *folder, char ***names, size_t *n);
void weights_folder_list_free(char **names, size_t n);

/* The size of the file of that name; then its bytes, read into room for n + 1. *n is set to the number of bytes read;
 * if it differs, the file is being written. False: see errno. */
bool weights_folder_size(const char *folder, const char *name, uint64_t *n);
bool weights_folder_read(const char *folder, const char *name, char *bytes, size_t *n);

/* A reader of the folder finds either the old file or the new one, even after a crash. False: see errno; the old file
 * is unchanged. Removing a missing file succeeds at once. */
bool weights_folder_write(const char *folder, const char *name, const char *bytes, size_t n);
bool weights_folder_remove(const char *folder, const char *name);

/* Removes unfinished files of writers that crashed; returns their number. */
size_t weights_folder_clean(const char *folder);

#endif
