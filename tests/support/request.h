/* Requests for the core's tests, which do not link a JSON library: turns JSON text into fields. Text that it cannot
 * parse fails the test. JSON in C is easier to read with ' for ", which is taken
 * for it. Strings hold no escapes, and no ". */
#ifndef TESTS_REQUEST_H
#define TESTS_REQUEST_H

#include "core/inside.h"

enum { TEST_FIELDS_MAX = 48, TEST_NESTED_MAX = 24 };

struct test_request {
    const char *json;
    struct pe_field fields[TEST_FIELDS_MAX];
    size_t n;
    struct pe_request request; /* .fields and .n_fields point here; the test may change the rest */
    char *text;                /* owned copies of strings and lists */
    double *numbers;
    size_t n_numbers, n_nested, n_items;
    struct pe_field nested[TEST_NESTED_MAX][TEST_FIELDS_MAX];
    struct pe_value items[TEST_NESTED_MAX][TEST_FIELDS_MAX];
};

void test_request_parse(struct test_request *r, const char *json);
void test_request_drop(struct test_request *r);

/* Calls each for the rows of tests/cases/plans.jsonl of this path; a row ends with its request. How many there are. */
size_t test_rows(const char *path, void (*each)(const char *row, const char *request));

/* Plans json, or fails the test with the error's text. */
struct pe_plan *test_plan(struct test_request *r, const char *json);

/* Plans what has been parsed, for another operation or dtype. */
struct pe_plan *test_plan_as(struct test_request *r, enum pe_operation_id operation, enum pe_dtype dtype);

/* Plans json and expects a refusal with this pointer and a detail that contains word. */
void test_refused(const char *json, const char *pointer, const char *word);

/* Fails the test unless the n fields are those of the JSON object, in any order. */
void test_fields_equal(const char *what, const struct pe_field *fields, size_t n, const char *expected);

/* All elements of output i as doubles (free it). */
double *test_values(const struct pe_plan *plan, size_t i, size_t *n);

#endif
