/* Parts of the OpenAPI document. Each function appends JSON to the text, which remembers a failure. Summaries and
 * descriptions are in the language of the call (pe_text). */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include "api/routes.h"
#include "api/text.h"

/* ---- schemas.c ---- */

/* All schemas, as the members of "schemas". */
void api_openapi_schemas(struct api_text *text);

/* The schema of a parameter, from its row; those of rows as members of an object, each after a comma unless it is the
 * first. */
void api_openapi_schema(struct api_text *text, const struct pe_param *row);
void api_openapi_properties(struct api_text *text, const struct pe_param *rows);

/* ---- members.c ---- */

/* The schema of an answer's members, with its name and a comma in front. about: NULL for none. */
void api_openapi_answer(struct api_text *text, const char *name, const char *about, const struct pe_member *members);

/* ---- studies.c ---- */

/* The tensors that /diagnose takes; ends with a NULL. */
struct api_openapi_tensor {
    const char *name, *text;
};
extern const struct api_openapi_tensor api_openapi_evidence[];

/* The schemas of /analyze, /diagnose, /golden and /experiments, each with a comma in front. */
void api_openapi_studies(struct api_text *text);

#endif
