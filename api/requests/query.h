/* The query of a URL as fields: the same names as in a body. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "api/inputs/request.h"

/* Adds the names of an encoded query (without the ?) to request. Text is taken as it stands, numbers and booleans as
 * JSON, flat lists as JSON or with commas, the rest as JSON; the parameter rows say which where a name is known. */
bool api_query_read(struct api_request *request, const char *query, struct api_problem *problem);

#endif
