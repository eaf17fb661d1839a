/* Files that are whole or not there: written under a temporary name (a draft) and renamed by the caller. */
#ifndef SERVER_STORE_FILES_H
#define SERVER_STORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { FILES_DRAFT_BYTES = 32 };

/* Writes the bytes and waits until they are on disk; draft is the file's name in dir, until then its writer's alone.
 * False: errno; then no draft is left, unless it cannot be removed. status: of the file; NULL: not wanted. */
bool files_write_draft(int dir, char draft[FILES_DRAFT_BYTES], const char *bytes, size_t n, struct stat *status);
/* Removes the drafts of writers that crashed, and logs how many. False: the folder cannot be read, see errno. */
bool files_clean(const char *folder);

/* Reads at most room bytes; *n: how many there were. False: errno. */
bool files_read(int fd, char *bytes, size_t room, size_t *n);
void files_close(int fd);       /* keeps errno; -1 is accepted */
bool files_have_no_locks(void); /* errno of a lock: the file system has none */

#endif
