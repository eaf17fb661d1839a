/* The query of a URL as fields: the same names as in a body. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "api/inputs/request.h"

/* Adds the names of an encoded query (without the ?) to request. Text is taken literally, numbers and booleans as JSON,
 * flat lists as JSON or separated by commas, everything else as JSON; for a known name the parameter row states the
 * type. */
bool api_query_read(struct api_request *request, const char *query, struct api_problem *problem);

/* Sets *value to the decoded value of the query's first pair of that name (made; freed with free), NULL if there is
 * none; other pairs are not checked. query may be NULL. */
bool api_query_find(const char *query, const char *name, char **value, struct api_problem *problem);

#endif
