/* Refusals that concern stored files of any kind. */
#ifndef API_KEPT_FILE_H
#define API_KEPT_FILE_H

#include "api/api.h"
#include "api/problem.h"

bool api_fail_kept_name(struct api_problem *problem, const char *pointer, const struct api_contents *contents,
                        const char *name);
/* For API_FOUND_UNKNOWN and what follows it. */
bool api_fail_kept_unknown(struct api_problem *problem, const char *pointer, const struct api_store *store,
                           enum api_found found, const char *name);
/* "the limit --max-weights of this server" */
enum { API_LIMIT_BYTES = 64 };
void api_kept_limit(const struct api_store *store, char *text, size_t room);

#endif
