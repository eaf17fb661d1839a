/* A tensor written in JSON: {"dtype":"f32","shape":[2,2],"data":[1,2,3,4]}. */
#ifndef API_TENSOR_IN_H
#define API_TENSOR_IN_H

#include "api/arena.h"
#include "api/problem.h"

/* Turns *value, an object with a member "data", into the dense array it describes; memory from arena. dtype left out:
 * f32; shape left out: that of the data. pointer names the object in errors. */
bool api_tensor_read(struct api_arena *arena, struct pe_value *value, const char *pointer, struct api_problem *problem);

#endif
