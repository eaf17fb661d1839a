/* The field `preset` of a request: a stored preset instead of its name. */
#ifndef API_PRESET_IN_H
#define API_PRESET_IN_H

#include "api/api.h"
#include "api/inputs/request.h"

/* If the field `preset` names no preset that is built in, looks it up in request->presets. It is held until
 * api_request_drop. Call it as soon as the request has the field; calling it again does nothing. */
bool api_preset_take(struct api_request *request, struct api_problem *problem);

/* The same for the field `preset` of each object in a list, the value of a field of this name. */
bool api_preset_take_within(struct api_request *request, const char *name, const struct pe_value *list,
                            struct api_problem *problem);

#endif
