/* The field `weights` of a request: stored tensors become fields of it. */
#ifndef API_WEIGHTS_IN_H
#define API_WEIGHTS_IN_H

#include "api/api.h"
#include "api/inputs/request.h"

/* Replaces the field `weights`, if there is one, by the tensors of the stored file that it names. They are borrowed
 * from the file, which is held until api_request_drop. *n_bytes: of those tensors. store may be NULL. */
bool api_weights_add(const struct api_store *store, struct api_request *request, size_t *n_bytes,
                     struct api_problem *problem);

#endif
