/* The HTTP statuses that this program sends beside 200, 201 and 204: their titles, when they are sent, and by which
 * endpoints. */
#ifndef API_STATUSES_H
#define API_STATUSES_H

#include "api/routes.h"

/* Where a status may occur; an operation belongs to several of these groups. */
enum {
    API_AT_ALL = 1 << 0,
    API_AT_CLOSED = 1 << 1,   /* endpoints that require a token, if the server has tokens */
    API_AT_NAMES = 1 << 2,    /* a name in the path */
    API_AT_CHANGES = 1 << 3,  /* PUT and DELETE */
    API_AT_BODIES = 1 << 4,   /* a body is read */
    API_AT_REQUESTS = 1 << 5, /* a request is read and answered with numbers */
    API_AT_FILES = 1 << 6,    /* stored files */
    API_AT_TAGS = 1 << 7,     /* answers that a client may already have cached */
    API_AT_RANGES = 1 << 8,   /* answers that a client may want a range of */
    API_AT_MESSAGES = 1 << 9, /* messages of a protocol, some of which have no answer */
    API_AT_TEXTS = 1 << 10,   /* answers whose texts are in the language that the query chooses */
    API_AT_CODED = 1 << 11,   /* answers that exist in several content codings */
    API_AT_LIVE = 1 << 12     /* answers that are computed while they are sent */
};

struct api_status {
    int status;
    const char *title; /* of RFC 9110 and RFC 6585 */
    const char *when;
    unsigned where; /* 0: occurs only at paths and methods that the OpenAPI document does not name */
};

extern const struct api_status api_statuses[]; /* ends with status 0 */

const char *api_status_title(int status); /* "Unprocessable Content" */

/* For the OpenAPI document: `"responses":{…}` with all statuses, and references to those of one operation, each with a
 * comma in front. */
void api_statuses_describe(struct api_text *text);
void api_statuses_refer(struct api_text *text, const struct api_route *route, const char *method);

#endif
