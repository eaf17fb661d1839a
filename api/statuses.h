/* The statuses of HTTP that this program sends beside 200, 201 and 204: their titles, when they come, and where. */
#ifndef API_STATUSES_H
#define API_STATUSES_H

#include "api/routes.h"

/* Where a status may come; an operation is several of these. */
enum {
    API_AT_ALL = 1 << 0,
    API_AT_CLOSED = 1 << 1,   /* where a token is asked for, if there are any */
    API_AT_NAMES = 1 << 2,    /* a name in the path */
    API_AT_CHANGES = 1 << 3,  /* PUT and DELETE */
    API_AT_BODIES = 1 << 4,   /* a body is read */
    API_AT_REQUESTS = 1 << 5, /* a request is read and answered by numbers */
    API_AT_FILES = 1 << 6,    /* stored files */
    API_AT_TAGS = 1 << 7,     /* what a client may have already */
    API_AT_RANGES = 1 << 8,   /* and may want a part of */
    API_AT_FIXED = 1 << 9     /* what this program cannot change */
};

struct api_status {
    int status;
    const char *title; /* of RFC 9110 and RFC 6585 */
    const char *when;
    unsigned where; /* 0: only beside what the description names: other paths and other methods */
};

extern const struct api_status api_statuses[]; /* ends with status 0 */

const char *api_status_title(int status); /* "Unprocessable Content" */

/* For the description: `"responses":{…}` of all, and references to those of an operation, each with a comma in front.
 */
void api_statuses_describe(struct api_text *text);
void api_statuses_refer(struct api_text *text, const struct api_route_info *route, const char *method);

#endif
