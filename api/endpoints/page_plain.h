/* The files of the page without compression, for clients that do not decompress. */
#ifndef API_PAGE_PLAIN_H
#define API_PAGE_PLAIN_H

#include "api/api.h"

/* The file's n_bytes bytes. The first call decompresses them and keeps them for the life of the process, so that all
 * readers share one copy. NULL: no memory. Any thread. */
const char *api_page_plain(const struct api_page_file *file);

#endif
