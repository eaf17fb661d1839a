/* Rotation of whole tensors: every dtype, both orders of the axes, kept tables and tables made while filling. */
#include "core/dtype.h"
#include "tests/support/request.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float sample(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 31;
    return (float)((double)(x * 0xbf58476d1ce4e5b9ULL >> 40) / 0x1p23 - 1);
}

/* The rotation as the formula says, in double with the C library's functions. */
static double expected(const float *x, size_t d, size_t j, double p)
{
    size_t c = j % (d / 2);
    double angle = p * pow(10000, -2.0 * (double)c / (double)d), x1 = (double)x[c], x2 = (double)x[c + d / 2];
    return j < d / 2 ? x1 * cos(angle) - x2 * sin(angle) : x2 * cos(angle) + x1 * sin(angle);
}

static struct pe_plan *plan_for(struct test_request *r, const char *fields, const struct pe_tensor *q,
                                enum pe_dtype dtype)
{
    char json[256];
    struct pe_plan *plan = NULL;
    struct pe_error err;
    snprintf(json, sizeof json, "{\"scheme\":\"rope\",\"layout\":\"half\"%s}", fields);
    test_request_parse(r, json);
    r->fields[r->n++] = (struct pe_field){"q", {.kind = PE_ARRAY, .array = *q}};
    r->request.n_fields = r->n;
    r->request.operation = PE_ROTATE;
    r->request.dtype = dtype;
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    return plan;
}

enum { B = 2, H = 3, N = 70, D = 16 };

/* [B, H, N, D], or with positions before heads. */
static void assert_tensor(const char *fields, bool heads_inside, double first)
{
    struct test_request r;
    float x[B * H * N * D], y[B * H * N * D];
    struct pe_tensor q = {PE_F32, 4, {B, H, N, D}, x};
    if (heads_inside) {
        q.shape[1] = N;
        q.shape[2] = H;
    }
    for (size_t i = 0; i < B * H * N * D; i++)
        x[i] = sample(i);
    struct pe_plan *plan = plan_for(&r, fields, &q, PE_DTYPE_NONE);
    assert_int_equal(pe_plan_output(plan, 0)->rank, 4);
    pe_fill(plan, 0, 0, B * H * N * D, y);
    for (size_t row = 0; row < B * H * N; row++)
        for (size_t j = 0; j < D; j++) {
            double p = first + (double)(heads_inside ? row / H % N : row % N);
            assert_true(fabs((double)y[row * D + j] - expected(x + row * D, D, j, p)) < 1.5e-7);
        }
    pe_plan_free(plan);
    test_request_drop(&r);
}

static void both_orders_of_axes(void **unused)
{
    (void)unused;
    assert_tensor("", false, 0);
    assert_tensor(",\"offset\":1000", false, 1000);
    assert_tensor(",\"tensor_layout\":\"bnhd\",\"offset\":-3", true, -3);
}

/* One head: no table is kept, windows of positions are made while filling; parts of rows come out the same. */
static void windows_and_parts(void **unused)
{
    (void)unused;
    enum { LONG = 3000 };
    struct test_request r;
    float *x = malloc(LONG * D * sizeof *x), *y = malloc(LONG * D * sizeof *y), part[100];
    assert_true(x && y);
    for (size_t i = 0; i < LONG * D; i++)
        x[i] = sample(i);
    struct pe_tensor q = {PE_F32, 2, {LONG, D}, x};
    struct pe_plan *plan = plan_for(&r, "", &q, PE_DTYPE_NONE);
    pe_fill(plan, 0, 0, LONG * D, y);
    for (size_t i = 0; i < LONG; i += 7)
        for (size_t j = 0; j < D; j++)
            assert_true(fabs((double)y[i * D + j] - expected(x + i * D, D, j, (double)i)) < 1.5e-7);
    for (size_t at = 0; at + 100 < LONG * D; at += 613) {
        pe_fill(plan, 0, at, 100, part);
        assert_memory_equal(part, y + at, sizeof part);
    }
    free(x);
    free(y);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* Any dtype in, any real dtype out: the double result rounded once. */
static void every_dtype(void **unused)
{
    (void)unused;
    float values[2 * D];
    for (size_t i = 0; i < 2 * D; i++)
        values[i] = (float)(int)(100 * sample(i)); /* representable in all of them but the unsigned */
    for (enum pe_dtype from = 0; from < PE_N_DTYPES; from++)
        for (enum pe_dtype to = PE_F32; to <= PE_BF16; to++) {
            struct test_request r;
            _Alignas(8) char in[2 * D * 8], out[2 * D * 8];
            float seen[2 * D];
            pe_convert(from, in, PE_F32, values, 2 * D);
            pe_convert(PE_F32, seen, from, in, 2 * D);
            struct pe_tensor q = {from, 2, {2, D}, in};
            struct pe_plan *plan = plan_for(&r, ",\"offset\":5", &q, to);
            assert_int_equal(pe_plan_output(plan, 0)->dtype, to);
            pe_fill(plan, 0, 0, 2 * D, out);
            double ulp = to == PE_F16 ? 0x1p-11 : to == PE_BF16 ? 0x1p-8 : to == PE_F32 ? 0x1p-24 : 0x1p-50;
            for (size_t i = 0; i < 2 * D; i++) {
                double e = expected(seen + i / D * D, D, i % D, 5 + (double)(i / D));
                assert_true(fabs(pe_element(to, out, i) - e) <= 1.001 * ulp * fmax(fabs(e), 0x1p-14) + 1e-13);
            }
            pe_plan_free(plan);
            test_request_drop(&r);
        }
}

static void answer_has_the_tensors_dtype(void **unused)
{
    (void)unused;
    static const enum pe_dtype pairs[][2] = {
        {PE_F16, PE_F16}, {PE_BF16, PE_BF16}, {PE_F64, PE_F64}, {PE_F32, PE_F32}, {PE_I32, PE_F32}};
    for (size_t i = 0; i < 5; i++) {
        struct test_request r;
        double zeros[4] = {0};
        struct pe_tensor q = {pairs[i][0], 2, {1, 4}, zeros};
        struct pe_plan *plan = plan_for(&r, "", &q, PE_DTYPE_NONE);
        assert_int_equal(pe_plan_output(plan, 0)->dtype, pairs[i][1]);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_orders_of_axes),
        cmocka_unit_test(windows_and_parts),
        cmocka_unit_test(every_dtype),
        cmocka_unit_test(answer_has_the_tensors_dtype),
    };
    return cmocka_run_group_tests_name("rotate", tests, NULL, NULL);
}
