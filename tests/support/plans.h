/* The laws of every plan, checked for one request: for schemes whose example shows only one of many styles. */
#ifndef TESTS_PLANS_H
#define TESTS_PLANS_H

#include "core/inside.h"

/* Checks that row `row` of the first output, in f64, is `expected` (n numbers) within tolerance. */
void test_assert_row(const char *json, uint64_t row, const double *expected, size_t n, double tolerance);

/* Checks in every dtype that the resolved config, sent again with the sequence and tensors, gives the same bytes; that
 * pieces of any length and every instruction set do too; and that the plan survives each failed allocation. */
void test_assert_laws(const char *json);

/* The same for another operation. Attention guarantees the same bytes for any pieces, but not for any instruction set,
 * because BLAS chooses its own. */
void test_assert_laws_of(enum pe_operation_id operation, const char *json);

#endif
