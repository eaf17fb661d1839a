/* The folder of stored weights: whole files by name, replaced in one step. Any thread; callers agree among themselves
 * who writes. */
#ifndef SERVER_KEPT_WEIGHTS_FOLDER_H
#define SERVER_KEPT_WEIGHTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of the weights in the folder, sorted (free with weights_folder_list_free). False: errno says why. */
bool weights_folder_list(const char *folder, char ***names, size_t *n);
void weights_folder_list_free(char **names, size_t n);

/* Size of the file of that name, then its bytes into room for n + 1; *n becomes what was read: another number is a file
 * that is being written. False: errno. */
bool weights_folder_size(const char *folder, const char *name, uint64_t *n);
bool weights_folder_read(const char *folder, const char *name, char *bytes, size_t *n);

/* Whoever reads the folder finds the old file or the new one, also after a crash. False: errno, and the old one stays.
 * Removing what is not there is done at once. */
bool weights_folder_write(const char *folder, const char *name, const char *bytes, size_t n);
bool weights_folder_remove(const char *folder, const char *name);

/* Removes unfinished files of writers that crashed; returns their number. */
size_t weights_folder_clean(const char *folder);

#endif
