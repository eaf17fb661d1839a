/* The web page: the files of server/page/, embedded at build time. */
#ifndef SERVER_PAGE_PAGE_H
#define SERVER_PAGE_PAGE_H

#include "api/api.h"

extern const struct api_page page_built_in;

/* The client libraries of server/clients/, embedded in the same way. */
extern const struct api_page clients_built_in;

#endif
