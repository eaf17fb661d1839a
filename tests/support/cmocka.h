/* cmocka, after the headers that it needs, and how a program of tests is written: each test is TEST(name) { … }.
 * Nothing lists them: they are run in the order of the file by the one main of all programs, support/tests.c. */
#ifndef TESTS_CMOCKA_H
#define TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)
/* With what runs before the test, and what runs after it even if it failed. */
#define TEST_BETWEEN(name, set_up, tear_down)                                                                          \
    static void name(void **unused);                                                                                   \
    __attribute__((constructor)) static void name##_is_a_test(void) { test_add(#name, name, set_up, tear_down); }      \
    static void name(void **unused)

void test_add(const char *name, CMUnitTestFunction test, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* A program defines these if it needs them: they run once, before its first and after its last test. */
__attribute__((weak)) void tests_begin(void);
__attribute__((weak)) void tests_end(void);

#endif
