/* A JSON object's members as fields of a request. */
#ifndef API_JSON_IN_H
#define API_JSON_IN_H

#include "api/inputs/request.h"

/* Adds the members of the JSON object that text holds to request, without those that are null. where begins the
 * messages: "" or "part \"request\": ". Not JSON is 400 with line and column, JSON that is no object 422. */
bool api_json_read(struct api_request *request, const char *text, size_t n, const char *where,
                   struct api_problem *problem);

/* The same, but an object with a member "data" stays an object and is not read as a tensor. */
bool api_json_read_plain(struct api_request *request, const char *text, size_t n, const char *where,
                         struct api_problem *problem);

/* Whether n bytes of JSON are within the limit --max-json (max; 0: no limit). If not, *problem has the reason. */
bool api_json_check_size(uint64_t max, uint64_t n, const char *where, struct api_problem *problem);

/* Whether text is one JSON value and nothing else. If not, *problem has the reason, which begins with `where`. */
bool api_json_check(const char *text, size_t n, const char *where, struct api_problem *problem);

#endif
