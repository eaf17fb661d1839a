/* Laws of plans, for one request at a time. */
#include "tests/support/cmocka.h"
#include "core/numeric/numeric.h"
#include "core/params.h"
#include "tests/support/alloc.h"
#include "tests/support/kernel_sets.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, UNTOUCHED = 0xaa };

static size_t count_of(const struct pe_output *output) { return (size_t)(output->n_rows * output->row_len); }

char *test_whole(const struct pe_plan *plan, size_t i, size_t *n_bytes)
{
    const struct pe_output *output = pe_plan_output(plan, i);
    *n_bytes = count_of(output) * pe_dtype_size(output->dtype);
    char *all = aligned_alloc(64, (*n_bytes + 64) & ~(size_t)63);
    assert_non_null(all);
    pe_fill(plan, i, 0, count_of(output), all);
    return all;
}

/* ---- Pieces ---- */

/* Pieces of at most so many elements. */
static void assert_pieces(const struct pe_plan *plan, size_t i, const char *all, size_t most)
{
    const struct pe_output *output = pe_plan_output(plan, i);
    size_t n = count_of(output), size = pe_dtype_size(output->dtype);
    char *piece = malloc(most * size + GUARD);
    for (size_t at = 0, m; at < n; at += m) {
        m = 1 + (size_t)(random_bits() % most);
        m = m < n - at ? m : n - at;
        memset(piece + m * size, UNTOUCHED, GUARD);
        pe_fill(plan, i, at, m, piece);
        assert_memory_equal(piece, all + at * size, m * size);
        for (size_t k = 0; k < GUARD; k++)
            assert_int_equal((unsigned char)piece[m * size + k], UNTOUCHED);
    }
    free(piece);
}

/* Zeros have no sign. Numbers that are too small for a dtype of few exponents keep theirs, as in every conversion; of
 * biases neither do those. */
static void assert_signs(const char *json, const struct pe_output *output, const char *all)
{
    bool is_bias = output->name && strcmp(output->name, "bias") == 0, is_real = pe_dtype_is_real(output->dtype);
    bool rounds_to_zero = is_real && !is_bias && pe_real_type(output->dtype)->least > 0x1p-20;
    for (size_t k = 0; is_real && !rounds_to_zero && k < count_of(output); k++) {
        double x = pe_element(output->dtype, all, k);
        if (x == 0 && signbit(x))
            fail_msg("%s: element %zu of %s is -0", json, k, output->name);
    }
}

/* ---- Instruction sets ---- */

static void assert_instruction_sets(const struct pe_plan *plan, size_t i, const char *all)
{
    for (EACH_KERNEL_SET) {
        size_t n;
        char *same = test_whole(plan, i, &n);
        assert_memory_equal(same, all, n);
        free(same);
    }
}

/* ---- The config ---- */

static bool names_model(const char *name) { return pe_is_among("preset|layer_type|hf_config|gguf", name); }

/* The config, plus the fields of the request that are neither parameter nor rule: the sequence and tensors. */
static struct pe_plan *plan_again(const struct test_request *r, const struct pe_plan *plan)
{
    const struct pe_value *config = pe_plan_config(plan);
    const struct pe_scheme_info *info = pe_plan_scheme(plan);
    struct pe_field fields[64];
    struct pe_plan *again = NULL;
    struct pe_failure err;
    struct pe_request request = r->request;
    request.fields = memcpy(fields, config->object.fields, config->object.n * sizeof *fields);
    request.n_fields = config->object.n;
    for (size_t i = 0; i < r->request.n_fields; i++) {
        const char *name = r->fields[i].name;
        if (!names_model(name) && !pe_field_find(fields, request.n_fields, name) &&
            !pe_param_find(info->params, name) && !pe_param_find(pe_absolute_params(), name))
            fields[request.n_fields++] = r->fields[i];
    }
    if (pe_plan_new(&request, &again, &err))
        fail_msg("%s: its own config is refused at %s: %s", r->json, err.pointer, err.detail);
    return again;
}

/* ---- Allocations ---- */

void test_each_allocation_fails(enum pe_status (*attempt)(void *self), void *self)
{
    enum pe_status status = PE_NO_MEMORY;
    for (long n = 0; status; n++) {
        alloc_fail_at(n);
        status = attempt(self);
        alloc_fail_at(-1);
        assert_true(status == PE_OK || status == PE_NO_MEMORY);
        assert_true(n < 2000);
    }
}

static enum pe_status try_to_plan(void *request)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    enum pe_status status = pe_plan_new(request, &plan, &err);
    assert_true(status ? !plan : plan != NULL);
    pe_plan_free(plan);
    return status;
}

/* ---- All of them ---- */

static void assert_laws_as(enum pe_operation_id operation, enum pe_dtype dtype, const char *json, const char *output)
{
    struct test_request r;
    test_request_parse(&r, json);
    r.request.outputs = &output;
    r.request.n_outputs = output != NULL;
    struct pe_plan *plan = test_plan_as(&r, operation, dtype), *again = plan_again(&r, plan);
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        size_t n, n_again;
        char *all = test_whole(plan, i, &n), *same = test_whole(again, i, &n_again);
        assert_int_equal(n, n_again);
        assert_memory_equal(same, all, n);
        assert_pieces(plan, i, all, 11);
        assert_pieces(plan, i, all, count_of(pe_plan_output(plan, i)));
        if (operation == PE_ENCODE) {
            assert_signs(json, pe_plan_output(plan, i), all);
            assert_instruction_sets(plan, i, all);
        }
        free(all);
        free(same);
    }
    pe_plan_free(again);
    pe_plan_free(plan);
    if (dtype == PE_F32)
        test_each_allocation_fails(try_to_plan, &r.request);
    test_request_drop(&r);
}

static void assert_laws(enum pe_operation_id operation, const char *json, const char *output)
{
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16, PE_F8_E4M3, PE_F8_E5M2};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        assert_laws_as(operation, dtypes[d], json, output);
}

void test_assert_laws(const char *json) { assert_laws(PE_ENCODE, json, NULL); }

void test_assert_laws_of_attention(const char *json, const char *output) { assert_laws(PE_ATTEND, json, output); }
