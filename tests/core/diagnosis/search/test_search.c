/* The search: its bound, and that every failed allocation is reported. */
#include "core/diagnosis/diagnosis.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/request.h"

#include <math.h>

enum { DIM = 16, ROWS = 12 };

static float numbers[ROWS * DIM];

/* The paper's encoding at 0, 1, …, with another base. */
static void encode(double base)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t c = 0; c < DIM / 2; c++) {
            double angle = (double)i * pow(base, -2 * (double)c / DIM);
            numbers[i * DIM + 2 * c] = (float)sin(angle);
            numbers[i * DIM + 2 * c + 1] = (float)cos(angle);
        }
}

static enum pe_status diagnose_failing(uint64_t rows, long failing, uint64_t *searched)
{
    struct test_request r;
    struct pe_diagnosis *d = NULL;
    struct pe_failure err;
    test_request_parse(&r, "{'scheme':'sinusoidal'}");
    struct pe_tensor tensor = {.dtype = PE_F32, .rank = 2, .shape = {rows, DIM}, .data = numbers};
    struct pe_field fields[] = {r.fields[0], {"encoding", {.kind = PE_ARRAY, .array = tensor}}};
    const struct pe_diagnosis_request request = {.fields = fields, .n_fields = 2, .max_work = 1e12};
    alloc_fail_at(failing);
    enum pe_status status = pe_diagnosis_new(&request, &d, &err);
    alloc_fail_at(-1);
    *searched = d ? pe_diagnosis_searched(d) : 0;
    pe_diagnosis_free(d);
    test_request_drop(&r);
    return status;
}

TEST(garbage_ends_at_the_bound)
{
    uint64_t searched;
    for (size_t i = 0; i < ROWS * DIM; i++)
        numbers[i] = (float)(2 * (double)(random_bits() >> 11) * 0x1p-53 - 1);
    assert_int_equal(diagnose_failing(ROWS, -1, &searched), PE_OK);
    assert_true(searched > 100 && searched <= PE_HYPOTHESES_MAX);
}

/* With an allocation that fails, the diagnosis says so; it never answers something else. */
static void fail_allocations(uint64_t rows, double base)
{
    uint64_t whole, searched;
    encode(base);
    long before = alloc_count();
    assert_int_equal(diagnose_failing(rows, -1, &whole), PE_OK);
    long n = alloc_count() - before;
    for (long i = 0; i < n; i += i < 200 ? 1 : 7) {
        enum pe_status status = diagnose_failing(rows, i, &searched);
        if (status != PE_NO_MEMORY && !(status == PE_OK && searched == whole))
            fail_msg("allocation %ld of %ld: status %d, searched %llu", i, n, (int)status,
                     (unsigned long long)searched);
    }
}

/* Of a search, and of what a row that is as believed could not have shown. */
TEST(failed_allocations_are_reported)
{
    fail_allocations(ROWS, 5e5);
    fail_allocations(1, 1e4);
}
