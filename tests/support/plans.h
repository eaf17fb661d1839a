/* What any plan must hold, asked of one request: for schemes whose example shows one of many styles. */
#ifndef TESTS_PLANS_H
#define TESTS_PLANS_H

#include "core/posenc.h"

/* Row `row` of the first output, answered in f64, is `expected` (n numbers) within tolerance. */
void test_assert_row(const char *json, uint64_t row, const double *expected, size_t n, double tolerance);

/* In every dtype: the resolved config posted again with the sequence and tensors gives the same bytes, so do pieces of
 * any length and every instruction set; and each failed allocation is survived. */
void test_assert_laws(const char *json);

/* The same of another operation. Attention promises the same bytes for any pieces, but not on any instruction set: BLAS
 * has its own. */
void test_assert_laws_of(enum pe_operation_id operation, const char *json);

#endif
