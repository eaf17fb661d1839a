/* Parts of the OpenAPI document. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include "api/text.h"

/* The name of the next member of a JSON object, with its colon. */
void api_openapi_property(struct api_text *text, const char *name, bool *first);
void api_openapi_schema(struct api_text *text, const struct pe_param *row);

/* The schemas of /analyze and /diagnose, each with a comma in front. */
void api_openapi_analysis(struct api_text *text);
void api_openapi_experiments(struct api_text *text); /* of /experiments, likewise */

#endif
