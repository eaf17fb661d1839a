/* What /analyze and /diagnose have in common: how their requests are read, and what they ask of the host meanwhile. */
#ifndef API_STUDY_H
#define API_STUDY_H

#include "api/endpoints/compute.h"

/* Reads the request, its form and its language; leaves the other fields in the request. */
bool api_study_read(struct api_request *request, const struct api_taking *taking);

/* For the core, with the request as caller: reserves memory, reports metrics to the host. */
enum pe_status api_study_admit(void *caller, double bytes, struct pe_error *err);
void api_study_step(void *caller, const char *metric);
/* The core's error, or the host's refusal. Returns false. */
bool api_study_fail(struct api_request *request, const struct pe_error *err);

#endif
