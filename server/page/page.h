/* The web page and the client libraries, as files in the program or from a folder. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "api/api.h"

#include <stdbool.h>
#include <stddef.h>

/* The web page: the files of server/page/, embedded at build time. */
extern const struct api_page page_built_in;

/* The client libraries of server/clients/, embedded in the same way. */
extern const struct api_page clients_built_in;

/* ---- page_folder.c ----------------------------------------------------------------------------------------------- */

/* --ui-dir: the web page's files from a folder instead of the program, so that those who write the page see a change at
 * once. */

enum { PAGE_FOLDER_ERROR_BYTES = 512 };

/* Makes *page read this folder (borrowed). False: it has no index.html that can be read; error gives the reason. */
bool page_folder_open(struct api_page *page, const char *folder, char error[PAGE_FOLDER_ERROR_BYTES]);

/* Whether a name may be looked up: words of letters, digits, '_', '-' and '.', none of which begins with a dot, with
 * one slash between two. */
bool page_folder_name_is_valid(const char *name);

/* Reads a file as api_page.read does; self is the folder's path. Links are not followed, and only regular files of at
 * most 4 MiB are read. */
bool page_folder_read(void *self, const char *name, char **bytes, size_t *n);

#endif
