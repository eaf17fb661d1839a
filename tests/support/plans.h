/* The laws of every plan, checked for one request, and what the tests of plans share. */
#ifndef TESTS_PLANS_H
#define TESTS_PLANS_H

#include "tests/support/request.h"

/* Checks in every dtype, of all outputs, that pieces of any length give the same bytes as the whole and write nothing
 * else; that every instruction set does too; that the resolved config, sent again with the sequence and tensors, gives
 * the same bytes; that no zero has a sign; and that planning survives each failed allocation. */
void test_assert_laws(const char *json);

/* The same for attention, of one output, or the usual ones (NULL). BLAS chooses its own instruction sets. */
void test_assert_laws_of_attention(const char *json, const char *output);

/* The whole output i (free it), and its size. */
char *test_whole(const struct pe_plan *plan, size_t i, size_t *n_bytes);

/* Calls attempt with the first allocation failing, then the second …, until it succeeds. Each time before it must
 * say PE_NO_MEMORY; what it leaves behind is its own. */
void test_each_allocation_fails(enum pe_status (*attempt)(void *self), void *self);

#endif
