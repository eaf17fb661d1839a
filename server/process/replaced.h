/* Notices that a file has been replaced by another one, as by rename() or, in Kubernetes, by a link that is swapped. A
 * file that is written in place is the same file: it may be half written, so it is left to SIGHUP. */
#ifndef SERVER_PROCESS_REPLACED_H
#define SERVER_PROCESS_REPLACED_H

#include <stdbool.h>
#include <sys/stat.h>

struct replaced {
    const char *path; /* borrowed; NULL or "": no file */
    dev_t device;
    ino_t inode; /* 0: there was none */
};

struct replaced replaced_now(const char *path); /* may wait for a disk, as may the next */
/* Whether the path names another file than at the last call. A file that is missing is not another one: it may be just
 * between two. */
bool replaced_look(struct replaced *file);

#endif
