/* What /analyze and /diagnose have in common: how their requests are read, and what they ask of the host meanwhile. */
#ifndef API_STUDY_H
#define API_STUDY_H

#include "api/endpoints/compute.h"

struct api_study {
    struct api_computation c;
    struct api_problem problem; /* c.problem */
    enum pe_lang lang;          /* of its texts */
    bool is_refused;            /* the host has no memory for it; the problem is set */
};

/* Begins the study of a request; false: no memory, and the problem is set. The caller frees c.request, or a reply takes
 * it. */
bool api_study_init(struct api_study *study, const struct api_asked *asked);

/* Reads the request, its form and its language; leaves the other fields in c.request. */
bool api_study_read(struct api_study *study, const struct api_taking *taking);

/* For the core, with the study as caller: reserves memory, reports metrics to the host. */
enum pe_status api_study_admit(void *caller, const struct pe_cost *cost, struct pe_error *err);
void api_study_step(void *caller, const char *metric);
/* The core's error, or the host's refusal. Returns false. */
bool api_study_fail(const struct api_study *study, const struct pe_error *err);

/* The refusal with the study's problem; frees c.request. */
struct api_reply *api_study_refuse(struct api_study *study);

#endif
