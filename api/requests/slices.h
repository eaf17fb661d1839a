/* The field slice of a request: a list for all outputs, or one for each output by name. */
#ifndef API_SLICES_H
#define API_SLICES_H

#include "api/inputs/request.h"

/* Reads the field's value into *slices (in the request's arena). */
bool api_slices_read(struct api_request *request, const struct pe_value *value, struct pe_slice **slices,
                     size_t *n_slices, struct api_problem *problem);

#endif
