/* Golden vectors: which positions, in which order they are left out, kinds of layers and lengths, and that no failed
 * allocation is forgotten. The numbers are compared with the reference over a socket (tests/http/golden). */
#include "core/golden/golden.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

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

static enum pe_status open_json(struct opened *o, const char *json, struct pe_failure *err)
{
    prepare(o, json);
    return pe_golden_open(&o->request, &o->golden, err);
}

static void open_well(struct opened *o, const char *json)
{
    struct pe_failure err;
    if (open_json(o, json, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
}

static void close_it(struct opened *o)
{
    pe_golden_free(o->golden);
    test_request_drop(&o->r);
}

static void assert_places(const struct pe_golden *golden, const double *expected, size_t n)
{
    assert_int_equal(golden->q.n * golden->q.n_axes, n);
    for (size_t i = 0; i < n; i++)
        assert_true(golden->q.at[i] == expected[i]);
}

#define ASSERT_PLACES(golden, ...)                                                                                     \
    do {                                                                                                               \
        const double expected_[] = {__VA_ARGS__};                                                                      \
        assert_places(golden, expected_, sizeof expected_ / sizeof *expected_);                                        \
    } while (0)

/* ---- Positions ---- */

TEST(test_usual_places)
{
    struct opened o;
    open_well(&o, "{'preset':'llama-3.1'}");
    ASSERT_PLACES(o.golden, 0, 1, 2, 3, 17, 8191, 8192, 8193, 131071);
    close_it(&o);
    open_well(&o, "{'scheme':'rope','scaling':{'type':'yarn','factor':4,'original_max_position_embeddings':16}}");
    ASSERT_PLACES(o.golden, 0, 1, 2, 3, 15, 16, 17, 63); /* 17 is one of two, and there once */
    close_it(&o);
    open_well(&o, "{'scheme':'sinusoidal','dim':4}");
    ASSERT_PLACES(o.golden, 0, 1, 2, 3, 17, 4095, 4096, 4097, 131071);
    close_it(&o);
    open_well(&o, "{'scheme':'learned','dim':4,'rows':20,'seed':1}");
    ASSERT_PLACES(o.golden, 0, 1, 2, 3, 17); /* the table ends */
    close_it(&o);
    open_well(&o, "{'scheme':'rope','axes_dim':[32,32]}");
    ASSERT_PLACES(o.golden, 0, 0, 1, 2, 7, 31, 0, 1, 0, 3, 5, 31);
    close_it(&o);
}

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
    ASSERT_PLACES(o.golden, 0, 8192);
    assert_false(pe_golden_shrink(o.golden));
    close_it(&o);
    open_well(&o, "{'scheme':'rope','positions':[[1,2,3],[4,5,6]],'axes_dim':[32,32]}");
    assert_true(pe_golden_shrink(o.golden)); /* a head, but no position that was asked for */
    assert_false(pe_golden_shrink(o.golden));
    ASSERT_PLACES(o.golden, 1, 2, 3, 4, 5, 6);
    close_it(&o);
}

/* ---- Kinds ---- */

static void assert_names(const char *json, const char *expected)
{
    struct opened o;
    char names[512] = "";
    open_well(&o, json);
    for (size_t i = 0; i < pe_golden_n_tensors(o.golden); i++)
        strcat(strcat(names, i ? " " : ""), pe_golden_tensor(o.golden, i)->name);
    assert_string_equal(names, expected);
    close_it(&o);
}

TEST(test_names)
{
    assert_names("{'scheme':'rope'}", "position_ids q k q_out k_out cos sin inv_freq");
    assert_names("{'scheme':'sinusoidal'}", "position_ids encoding");
    assert_names("{'scheme':'alibi'}", "q_positions k_positions bias");
    assert_names("{'scheme':'swin','grid':[2,2],'seed':1}", "bias");
    assert_names("{'preset':'gemma-3'}",
                 "position_ids q k q_out.full_attention k_out.full_attention cos.full_attention sin.full_attention "
                 "inv_freq.full_attention q_out.sliding_attention k_out.sliding_attention cos.sliding_attention "
                 "sin.sliding_attention inv_freq.sliding_attention");
    assert_names("{'preset':'gemma-3','layer_type':'sliding_attention'}",
                 "position_ids q k q_out k_out cos sin inv_freq");
    assert_names("{'preset':'phi-3-mini-128k'}",
                 "position_ids q k q_out.short k_out.short cos.short sin.short inv_freq.short q_out.long k_out.long "
                 "cos.long sin.long inv_freq.long");
    assert_names("{'scheme':'rope','scaling':{'type':'dynamic','factor':2,'max_position_embeddings':64,'seq_len':99}}",
                 "position_ids q k q_out k_out cos sin inv_freq"); /* the request states the length */
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

/* ---- Refusals ---- */

static void assert_refused(const char *json, enum pe_status status, const char *pointer, const char *word)
{
    struct opened o;
    struct pe_failure err;
    assert_int_equal(open_json(&o, json, &err), status);
    assert_string_equal(err.pointer, pointer);
    assert_non_null(strstr(err.detail, word));
    test_request_drop(&o.r);
}

TEST(test_refusals)
{
    assert_refused("{'scheme':'shaw'}", PE_INVALID, "/scheme", "relative");
    assert_refused("{'scheme':'rope','len':4}", PE_INVALID, "/len", "positions of their own");
    assert_refused("{'scheme':'t5'}", PE_INVALID, "/table", "three ways");
    assert_refused("{'scheme':'rope','base_':4}", PE_INVALID, "/base_", "nearest");
    assert_refused("{'preset':'llama-3'  ,'layer_type':'x'}", PE_INVALID, "/layer_type", "no layers");
    char many[512] = "{'scheme':'rope','positions':[0";
    for (int i = 0; i < 64; i++)
        strcat(many, ",1");
    assert_refused(strcat(many, "]}"), PE_INVALID, "/positions", "65 positions");
}

/* ---- Memory ---- */

static enum pe_status run(struct opened *o)
{
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
        enum pe_status status = PE_NO_MEMORY;
        struct opened o;
        prepare(&o, requests[i]);
        for (long n = 0; status; n++) {
            alloc_fail_at(n);
            status = run(&o);
            alloc_fail_at(-1);
            if (status)
                assert_int_equal(status, PE_NO_MEMORY);
        }
        test_request_drop(&o.r);
    }
}
