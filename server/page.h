/* The web page: the files of server/page/, embedded at build time. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "api/api.h"

extern const struct api_page page_built_in;

#endif
