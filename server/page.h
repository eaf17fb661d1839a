/* The HTML pages, embedded from server/page/ at build time: constant bytes with their ETags and security policies. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "api/api.h"

extern const struct api_page page_front; /* GET / */
extern const struct api_page page_docs;  /* GET /docs */

#endif
