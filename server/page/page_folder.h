/* --ui-dir: the web page's files from a folder instead of the program, so that those who write the page see a change at
 * once. */
#ifndef SERVER_PAGE_PAGE_FOLDER_H
#define SERVER_PAGE_PAGE_FOLDER_H

#include "api/api.h"

#include <stdbool.h>
#include <stddef.h>

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
