/* Parts of outputs: any pieces of a part give the part, each failed allocation is survived. Values:
 * tests/http/test_slice.py. */
#include "tests/support/alloc.h"
#include "tests/support/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct pe_slice slices[] = {
    {.cuts = {{false, 3, PE_UNSET_INT, 7}, {false, PE_UNSET_INT, -1, 3}}, .n_cuts = 2},
    {.cuts = {{true, -1, 0, 0}}, .n_cuts = 1},
    {.cuts = {{false, PE_UNSET_INT, PE_UNSET_INT, 1}, {false, 1, 9, 100}}, .n_cuts = 2},
    {.output = "encoding", .cuts = {{false, 5, 40, 1}}, .n_cuts = 1},
};

static void assert_pieces(const struct pe_slice *slice, enum pe_reduce reduce)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_error err;
    test_request_parse(&r, "{\"scheme\":\"sinusoidal\",\"dim\":11,\"len\":90}");
    r.request.slices = slice;
    r.request.n_slices = 1;
    r.request.reduce = reduce;
    enum pe_status status = PE_NO_MEMORY;
    for (long n = 0; status == PE_NO_MEMORY; n++) {
        alloc_fail_at(n);
        status = pe_plan_new(&r.request, &plan, &err);
        alloc_fail_at(-1);
    }
    assert_int_equal(status, PE_OK);
    const struct pe_output *output = pe_plan_output(plan, 0);
    size_t n = (size_t)(output->n_rows * output->row_len);
    float *once = malloc((n + 1) * sizeof *once), piece[16];
    pe_fill(plan, 0, 0, n, once);
    for (size_t at = 0, m; at < n; at += m) {
        m = 1 + (at * 5 + 2) % 13;
        m = m < n - at ? m : n - at;
        pe_fill(plan, 0, at, m, piece);
        assert_memory_equal(piece, once + at, m * sizeof *once);
    }
    free(once);
    pe_plan_free(plan);
    test_request_drop(&r);
}

static void pieces_of_parts(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        for (enum pe_reduce how = PE_REDUCE_SAMPLE; how <= PE_REDUCE_ABSMAX; how++)
            assert_pieces(&slices[i], how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_of_parts)};
    return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
