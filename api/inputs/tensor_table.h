/* Stored weights inside api/: finding tensors in a file that has been read. */
#ifndef API_INPUTS_TENSOR_TABLE_H
#define API_INPUTS_TENSOR_TABLE_H

#include "api/api.h"
#include "api/problem.h"
#include "api/json/window.h"

/* api_tensors_read for handlers: if it returns NULL, it fills *problem. */
struct api_tensors *api_tensors_parse(const char *bytes, size_t n, struct api_problem *problem);

size_t api_tensors_count(const struct api_tensors *tensors);
const char *api_tensors_name(const struct api_tensors *tensors, size_t i); /* in the order of strcmp */
/* Tensor i of the stored file; its data is borrowed from it. */
struct pe_tensor api_weights_tensor(const struct api_weights *weights, size_t i);
bool api_tensors_find(const struct api_tensors *tensors, const char *name, size_t *i);
/* How many have a name that is `ending` (n bytes) or ends with it behind a dot. found has the first of them by name,
 * n_max at most, *n_found of them before and after the call, so that calls with several endings append to one list. */
size_t api_tensors_ending(const struct api_tensors *tensors, const char *ending, size_t n, size_t *found,
                          size_t *n_found, size_t n_max);
/* All as members of a JSON object, "name":{"dtype":…,"shape":…}. Text that the window skips costs nothing. */
void api_tensors_print(const struct api_tensors *tensors, struct api_window *window);

#endif
