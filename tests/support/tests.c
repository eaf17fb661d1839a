/* The main of every program of tests in C. Constructors have added the tests when it begins: within one file the
 * compiler runs these in the order in which they are written. */
#include "tests/support/cmocka.h"

#include <stdlib.h>

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t n_tests;

void test_add(const char *name, CMUnitTestFunction test, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    if (n_tests == TESTS_MAX)
        abort();
    tests[n_tests++] =
        (struct CMUnitTest){.name = name, .test_func = test, .setup_func = set_up, .teardown_func = tear_down};
}

static int begin(void **state)
{
    if (tests_begin)
        tests_begin();
    return 0;
}

static int end(void **state)
{
    if (tests_end)
        tests_end();
    return 0;
}

int main(void) { return _cmocka_run_group_tests("tests", tests, n_tests, begin, end); }
