/* Analyses for tests: the request as JSON, the answer by paths. */
#ifndef TESTS_ANALYSIS_H
#define TESTS_ANALYSIS_H

#include "tests/support/request.h"

struct test_analysis {
    struct test_request parsed;
    struct pe_field fields[TEST_FIELDS_MAX], entry_fields[PE_ENTRIES_MAX][TEST_FIELDS_MAX];
    struct pe_entry entries[PE_ENTRIES_MAX];
    const char *outputs[8];
    struct pe_analysis_request request;
    struct pe_analysis *analysis;
};

/* {"scheme":…, "metrics":[…], "outputs":[…], …}: one configuration, or "configs" with what they have in common. Fails
 * the test if it is refused. */
void test_analyse(struct test_analysis *a, const char *json);
void test_analysis_drop(struct test_analysis *a);

/* Expects a refusal with this pointer and a detail that contains word. */
void test_analysis_refused(const char *json, const char *pointer, const char *word);

/* The value at a path of the results: "0.unique.witness.rows.1", where 0 is the configuration. NULL: there is none. */
const struct pe_value *test_result(const struct test_analysis *a, const char *path);
double test_number(const struct test_analysis *a, const char *path); /* fails the test if it is no number */
void test_near(const struct test_analysis *a, const char *path, double expected, double tolerance);
bool test_is_null(const struct test_analysis *a, const char *path); /* there, and null */
const char *test_word(const struct test_analysis *a, const char *path);

/* The numbers of a tensor, "step.0", and its shape; NULL: the answer does not have it. */
const double *test_tensor(const struct test_analysis *a, const char *name, const uint64_t **shape);

/* Checks that the analysis survives each failed allocation, and that a client that has left ends it. */
void test_analysis_fails_cleanly(const char *json);

#endif
