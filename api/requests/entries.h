/* The configurations of a request that compares several: its field `configs`, a list of objects. All other fields are
 * defaults of every one of them; a configuration's own field wins, a nested object as a whole. */
#ifndef API_ENTRIES_H
#define API_ENTRIES_H

#include "api/api.h"
#include "api/inputs/request.h"

struct api_entries {
    struct pe_entry at[PE_ENTRIES_MAX];
    struct api_request *requests[PE_ENTRIES_MAX]; /* whose fields they are, with stored weights in place */
    size_t n;
};

/* Moves everything but the endpoint's own fields (request->taking->params()) out of request, which owns the entries. A
 * request without `configs` is one entry. A field that both the endpoint and an entry's scheme have goes to both. */
bool api_entries_read(struct api_request *request, const struct api_store *store, struct api_entries *entries,
                      struct api_problem *problem);

/* The names of a request that are not fields of a configuration: for suggestions, NULL-terminated, in the request's
 * arena. NULL: no memory. */
const char *const *api_entries_names(struct api_request *request);

#endif
