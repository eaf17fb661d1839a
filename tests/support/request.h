/* Requests for the core's tests, which see no JSON library: a flat JSON object of numbers, words and flat number lists
 * becomes fields. Test code: exits the process on text it does not understand. */
#ifndef TESTS_REQUEST_H
#define TESTS_REQUEST_H

#include "core/posenc.h"

enum { TEST_FIELDS_MAX = 32 };

struct test_request {
    struct pe_field fields[TEST_FIELDS_MAX];
    size_t n;
    struct pe_request request; /* .fields and .n_fields point here; the rest is the test's to change */
    char *text;                /* owned copies of strings and lists */
    double *numbers;
};

void test_request_parse(struct test_request *r, const char *json);
void test_request_drop(struct test_request *r);

/* Plans json, or fails the test with the error's text. */
struct pe_plan *test_plan(struct test_request *r, const char *json);

/* Plans json and expects a refusal with this pointer whose detail holds word. */
void test_refused(const char *json, const char *pointer, const char *word);

/* All elements of output i as doubles (free it). */
double *test_values(const struct pe_plan *plan, size_t i, size_t *n);

#endif
