/* Laws of plans, for one request at a time. */
#include "tests/support/cmocka.h"
#include "core/numeric/numeric.h"
#include "tests/support/plans.h"
#include "tests/support/alloc.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pe_plan *plan_as(struct test_request *r, enum pe_operation_id operation, const char *json,
                               enum pe_dtype dtype)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(r, json);
    r->request.operation = operation;
    r->request.dtype = dtype;
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    return plan;
}

void test_assert_row(const char *json, uint64_t row, const double *expected, size_t n, double tolerance)
{
    struct test_request r;
    struct pe_plan *plan = plan_as(&r, PE_ENCODE, json, PE_F64);
    const struct pe_output *output = pe_plan_output(plan, 0);
    assert_int_equal(output->row_len, n);
    assert_true(row < output->n_rows);
    double *got = malloc(n * sizeof *got);
    pe_fill(plan, 0, row * n, n, got);
    for (size_t j = 0; j < n; j++)
        if (!(fabs(got[j] - expected[j]) <= tolerance))
            fail_msg("%s: row %d, column %d is %.17g, expected %.17g", json, (int)row, (int)j, got[j], expected[j]);
    free(got);
    pe_plan_free(plan);
    test_request_drop(&r);
}

static size_t bytes_of(const struct pe_plan *plan)
{
    const struct pe_output *output = pe_plan_output(plan, 0);
    return (size_t)(output->n_rows * output->row_len) * pe_dtype_size(output->dtype);
}

static char *whole(const struct pe_plan *plan)
{
    const struct pe_output *output = pe_plan_output(plan, 0);
    char *all = aligned_alloc(64, (bytes_of(plan) + 63) & ~(size_t)63);
    assert_non_null(all);
    pe_fill(plan, 0, 0, (size_t)(output->n_rows * output->row_len), all);
    return all;
}

static void assert_pieces(const struct pe_plan *plan, const char *all)
{
    size_t size = pe_dtype_size(pe_plan_output(plan, 0)->dtype), n = bytes_of(plan) / size;
    char *piece = malloc(bytes_of(plan));
    for (size_t at = 0, m = 1; at < n; at += m) {
        m = 1 + (at * 7 + 3) % 11;
        m = m < n - at ? m : n - at;
        pe_fill(plan, 0, at, m, piece);
        assert_memory_equal(piece, all + at * size, m * size);
    }
    free(piece);
}

static bool has(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return true;
    return false;
}

static bool names_model(const char *name)
{
    return strcmp(name, "preset") == 0 || strcmp(name, "layer_type") == 0 || strcmp(name, "hf_config") == 0 ||
           strcmp(name, "gguf") == 0;
}

/* The config, plus the fields of the request that are neither parameter nor rule: the sequence and tensors. */
static void assert_again(const struct test_request *r, const struct pe_plan *plan, const char *all)
{
    const struct pe_value *config = pe_plan_config(plan);
    const struct pe_scheme_info *info = pe_plan_scheme(plan);
    struct pe_field fields[64];
    size_t n = config->object.n;
    struct pe_plan *again = NULL;
    struct pe_failure err;
    memcpy(fields, config->object.fields, n * sizeof *fields);
    for (size_t i = 0; i < r->n; i++)
        if (!names_model(r->fields[i].name) && !has(fields, n, r->fields[i].name) &&
            !pe_param_find(info->params, r->fields[i].name) && !pe_param_find(pe_absolute_params(), r->fields[i].name))
            fields[n++] = r->fields[i];
    struct pe_request request = {.fields = fields, .n_fields = n, .dtype = r->request.dtype};
    request.operation = r->request.operation;
    if (pe_plan_new(&request, &again, &err))
        fail_msg("%s: its own config is refused at %s: %s", info->name, err.pointer, err.detail);
    char *same = whole(again);
    assert_int_equal(bytes_of(again), bytes_of(plan));
    assert_memory_equal(same, all, bytes_of(plan));
    free(same);
    pe_plan_free(again);
}

static void assert_instruction_sets(const struct pe_plan *plan, const char *all)
{
    enum pe_isa best = pe_isa();
    for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS; isa++)
        if (pe_kernels_use(isa)) {
            char *same = whole(plan);
            assert_memory_equal(same, all, bytes_of(plan));
            free(same);
        }
    assert_true(pe_kernels_use(best));
}

static void assert_allocations(enum pe_operation_id operation, const char *json)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    enum pe_status status = PE_NO_MEMORY;
    test_request_parse(&r, json);
    r.request.operation = operation;
    for (long n = 0; status == PE_NO_MEMORY; n++) {
        assert_true(n < 1000);
        alloc_fail_at(n);
        status = pe_plan_new(&r.request, &plan, &err);
        alloc_fail_at(-1);
        assert_true(status ? !plan : plan != NULL);
    }
    assert_int_equal(status, PE_OK);
    pe_plan_free(plan);
    test_request_drop(&r);
}

void test_assert_laws_of(enum pe_operation_id operation, const char *json)
{
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        struct test_request r;
        struct pe_plan *plan = plan_as(&r, operation, json, dtypes[d]);
        char *all = whole(plan);
        assert_pieces(plan, all);
        assert_again(&r, plan, all);
        if (operation != PE_ATTEND)
            assert_instruction_sets(plan, all);
        free(all);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
    assert_allocations(operation, json);
}

void test_assert_laws(const char *json) { test_assert_laws_of(PE_ENCODE, json); }
