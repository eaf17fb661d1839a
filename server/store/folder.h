/* A folder as a store: NAME.safetensors, or NAME with another suffix, each replaced in one step. Several servers may
 * use the folder at the same time, also over a network file system: a change holds a lock (.posenc-lock) while it
 * compares and renames. */
#ifndef SERVER_STORE_FOLDER_H
#define SERVER_STORE_FOLDER_H

#include "server/store/store.h"

/* The store of the files in a folder whose names end with suffix (both are copied). Removes unfinished files of writers
 * that crashed. NULL: errno gives the reason. */
enum { FOLDER_SUFFIX_BYTES = 16 };
struct store *folder_store_new(const char *path, const char *suffix); /* ".safetensors" */

#endif
