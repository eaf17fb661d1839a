/* A tensor written in JSON: {"dtype":"f32","shape":[2,2],"data":[1,2,3,4]}, or drawn from a seed:
 * {"shape":[2,2],"seed":7,"std":1}. */
#ifndef API_TENSOR_IN_H
#define API_TENSOR_IN_H

#include "api/inputs/request.h"

/* Is the object a tensor, well written or not? One that `pointer` places in a model's configuration is none without
 * data. */
bool api_tensor_is(const struct pe_value *object, const char *pointer);

/* Turns *value, such an object, into the dense array it describes; memory from the request's arena. dtype left out:
 * f32; shape left out: that of the data. Without data its numbers are drawn: N(0, std^2) in f32, from the seed and the
 * name of its field (pe_seed_fill); the request's `drawing` is the limit. pointer names the object in errors. */
bool api_tensor_read(struct api_request *request, const char *name, struct pe_value *value, const char *pointer,
                     struct api_problem *problem);

#endif
