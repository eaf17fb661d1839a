/* Golden vectors: the order in which positions are left out, heads of two widths, failing allocations. Which positions
 * and tensors: tests/cases/golden_files_by_hand.jsonl; numbers: tests/http/golden. */
#include "core/golden/golden.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <string.h>

struct opened {
    struct test_request r;
    struct pe_golden_request request;
    struct pe_golden *golden;
};

static void prepare(struct opened *o, const char *json)
{
    test_request_parse(&o->r, json);
    o->request =
        (struct pe_golden_request){.fields = o->r.fields, .n_fields = o->r.n, .dtype = PE_DTYPE_NONE, .max_work = 1e9};
    o->golden = NULL;
}

static void open_well(struct opened *o, const char *json)
{
    struct pe_failure err;
    prepare(o, json);
    if (pe_golden_open(&o->request, &o->golden, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
}

static void close_it(struct opened *o)
{
    pe_golden_free(o->golden);
    test_request_drop(&o->r);
}

/* What is asked for stays, and position 0 and the end of training. */
TEST(test_order_of_leaving_out)
{
    static const double left_out[] = {17, 3, 2, 8193, 8191, 131071, 1};
    struct opened o;
    open_well(&o, "{'preset':'llama-3.1'}");
    assert_int_equal(o.golden->n_heads, 2);
    assert_true(pe_golden_shrink(o.golden));
    assert_int_equal(o.golden->n_heads, 1);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        assert_true(pe_golden_shrink(o.golden));
        for (size_t p = 0; p < o.golden->q.n; p++)
            assert_false(o.golden->q.at[p] == left_out[i]);
        assert_int_equal(o.golden->q.n, 8 - i);
    }
    assert_true(o.golden->q.n == 2 && o.golden->q.at[0] == 0 && o.golden->q.at[1] == 8192);
    assert_false(pe_golden_shrink(o.golden));
    close_it(&o);
    open_well(&o, "{'scheme':'rope','positions':[[1,2,3],[4,5,6]],'axes_dim':[32,32]}");
    assert_true(pe_golden_shrink(o.golden)); /* a head, but no position that was asked for */
    assert_false(pe_golden_shrink(o.golden));
    for (size_t i = 0; i < 6; i++)
        assert_true(o.golden->q.at[i] == (double)(i + 1));
    close_it(&o);
}

/* Heads of two widths have queries of their own. */
TEST(test_widths)
{
    struct opened o;
    open_well(&o, "{'preset':'gemma-4'}");
    assert_string_equal(pe_golden_tensor(o.golden, 1)->name, "q.full_attention");
    assert_int_equal(pe_golden_tensor(o.golden, 1)->tensor.shape[3], 512);
    assert_string_equal(pe_golden_tensor(o.golden, 8)->name, "q.sliding_attention");
    assert_int_equal(pe_golden_tensor(o.golden, 8)->tensor.shape[3], 256);
    close_it(&o);
}

static enum pe_status run(void *opened)
{
    struct opened *o = opened;
    struct pe_failure err;
    o->golden = NULL;
    enum pe_status status = pe_golden_open(&o->request, &o->golden, &err);
    if (!status)
        status = pe_golden_compute(o->golden, &err);
    if (!status && !pe_golden_about(o->golden))
        status = PE_NO_MEMORY;
    pe_golden_free(o->golden);
    return status;
}

TEST(test_every_allocation)
{
    static const char *const requests[] = {
        "{'scheme':'rope','head_dim':4,'scaling':{'type':'dynamic','factor':2,'max_position_embeddings':8}}",
        "{'preset':'gemma-3'}", "{'scheme':'alibi','num_heads':2}"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct opened o;
        prepare(&o, requests[i]);
        test_each_allocation_fails(run, &o);
        test_request_drop(&o.r);
    }
}
