/* What requests are said to cost, before and after planning: never less memory than planning allocates, and work that
 * grows with what is made. */
#include "tests/support/alloc.h"
#include "tests/support/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Bytes asked of malloc by planning, freed ones included. */
static double planned_bytes(const struct pe_request *request, const char *what)
{
    struct pe_plan *plan;
    struct pe_error err;
    long before = alloc_bytes();
    enum pe_status status = pe_plan_new(request, &plan, &err);
    long after = alloc_bytes();
    if (status)
        fail_msg("%s: %s", what, err.detail);
    double set_aside = pe_plan_bytes(plan); /* untouched until somebody fills; admitted then */
    pe_plan_free(plan);
    return (double)(after - before) - set_aside * 4 / 3;
}

static void assert_covers(const char *json, enum pe_operation operation)
{
    struct test_request r;
    test_request_parse(&r, json);
    r.request.operation = operation;
    double said = pe_request_bytes(&r.request), real = planned_bytes(&r.request, json);
    if (said < real)
        fail_msg("%s: said %.0f bytes, planning took %.0f", json, said, real);
    test_request_drop(&r);
}

static void every_example_is_covered(void **state)
{
    (void)state;
    for (size_t s = 0; s < pe_n_schemes(); s++)
        if (pe_scheme_at(s)->operations & 1U << PE_ENCODE)
            assert_covers(pe_scheme_at(s)->example, PE_ENCODE);
}

static const char *const large[] = {
    "{'scheme':'sinusoidal','dim':65536,'len':4}",
    "{'scheme':'rope','head_dim':4096,'len':100000}",
    "{'scheme':'xpos','head_dim':4096,'len':1000}",
    "{'scheme':'rope','head_dim':128,'len':262144,'preset':'llama-3.1'}",
    "{'scheme':'alibi','num_heads':1024,'len':4096}",
    "{'scheme':'alibi','num_heads':8,'len':131072}",
    "{'scheme':'t5','num_heads':1024,'len':4096,'seed':1}",
    "{'scheme':'kerple','num_heads':16,'len':65536}",
    "{'scheme':'sandwich','num_heads':16,'len':65536}",
    "{'scheme':'floater','dim':512,'len':2500,'seed':1}",
    "{'scheme':'recursive','dim':512,'len':50000,'seed':1}",
    "{'scheme':'swinv2','num_heads':64,'grid':[32,32],'seed':1}",
    "{'scheme':'beit','num_heads':128,'grid':[64,64],'seed':1}",
    "{'scheme':'fire','num_heads':512,'hidden':128,'len':64,'seed':1}",
    "{'scheme':'fourier','num_freqs':32,'grid':[256,256]}",
    "{'scheme':'sinusoidal','dim':1024,'grid':[300,300]}",
};

static void large_plans_are_covered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        char json[256];
        snprintf(json, sizeof json, "%s", large[i]);
        test_quotes(json);
        assert_covers(json, PE_ENCODE);
    }
}

static bool can_be_planned(const char *json)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_error err;
    test_request_parse(&r, json);
    bool is_fine = pe_plan_new(&r.request, &plan, &err) == PE_OK;
    pe_plan_free(plan);
    test_request_drop(&r);
    return is_fine;
}

/* Each by its name alone, with whatever sequence it takes. */
static void every_preset_is_covered(void **state)
{
    static const char *const sequences[] = {"'len':64",          "'grid':[8,8]", "'grid':[2,8,8]",
                                            "'seed':1,'len':64", "'seed':1",     "'seed':1,'grid':[14,14]"};
    (void)state;
    for (size_t i = 0; i < pe_n_presets(); i++) {
        size_t n_planned = 0;
        for (size_t j = 0; j < sizeof sequences / sizeof *sequences; j++) {
            char json[256];
            snprintf(json, sizeof json, "{'preset':'%s',%s}", pe_preset_at(i)->name, sequences[j]);
            test_quotes(json);
            if (!can_be_planned(json))
                continue;
            assert_covers(json, PE_ENCODE);
            n_planned++;
        }
        if (!n_planned)
            fail_msg("%s can be planned with none of the sequences", pe_preset_at(i)->name);
    }
}

/* A model's config, and the same numbers said plainly. */
static const char *const alike[][2] = {
    {"{'hf_config':{'model_type':'bert','hidden_size':65536,'num_attention_heads':16,'max_position_embeddings':9},'len'"
     ":4}",
     "{'scheme':'learned','dim':65536,'rows':9,'len':4}"},
    {"{'hf_config':{'model_type':'llama','hidden_size':65536,'num_attention_heads':16,'rope_theta':10000},'len':9999}",
     "{'scheme':'rope','head_dim':4096,'len':9999}"},
    {"{'hf_config':{'model_type':'bloom','hidden_size':65536,'n_head':4096},'len':4096}",
     "{'scheme':'alibi','num_heads':4096,'len':4096}"},
    {"{'hf_config':{'model_type':'t5','num_heads':1024,'d_kv':64,'relative_attention_num_buckets':4096},'len':4096}",
     "{'scheme':'t5','num_heads':1024,'num_buckets':4096,'len':4096}"},
};

static void a_config_counts_like_its_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        double size[2], bytes[2];
        for (size_t j = 0; j < 2; j++) {
            char json[256];
            struct test_request r;
            snprintf(json, sizeof json, "%s", alike[i][j]);
            test_quotes(json);
            test_request_parse(&r, json);
            size[j] = pe_request_size(&r.request);
            bytes[j] = pe_request_bytes(&r.request);
            test_request_drop(&r);
        }
        if (size[0] < size[1] || bytes[0] < bytes[1] || size[0] > 2 * size[1] || bytes[0] > 2 * bytes[1])
            fail_msg("%s: size %.0f, %.0f bytes; said plainly %.0f, %.0f", alike[i][0], size[0], bytes[0], size[1],
                     bytes[1]);
    }
}

static double work_of(const char *text)
{
    char json[256];
    struct test_request r;
    snprintf(json, sizeof json, "%s", text);
    test_quotes(json);
    struct pe_plan *plan = test_plan(&r, json);
    double work = pe_plan_work(plan);
    pe_plan_free(plan);
    test_request_drop(&r);
    return work;
}

static void work_grows_with_what_is_made(void **state)
{
    (void)state;
    double table = work_of("{'scheme':'sinusoidal','dim':64,'len':1000}");
    assert_true(table == 4 * 64000.0);
    assert_true(work_of("{'scheme':'sinusoidal','dim':64,'len':4000}") == 4 * table);
    assert_true(work_of("{'scheme':'xpos','head_dim':64,'len':1000}") > 100 * table);
    double near = work_of("{'scheme':'floater','dim':64,'positions':[10],'seed':1}");
    assert_true(work_of("{'scheme':'floater','dim':64,'positions':[1000],'seed':1}") > 50 * near);
}

/* One number made of a whole table costs the table, and each of its numbers to be looked at. */
static void reduced_blocks_cost_what_they_are_made_of(void **state)
{
    (void)state;
    struct test_request r;
    static const struct pe_cut cuts[] = {{false, PE_UNSET_INT, PE_UNSET_INT, 1000000},
                                         {false, PE_UNSET_INT, PE_UNSET_INT, 64}};
    struct pe_slice slice = {.cuts = {cuts[0], cuts[1]}, .n_cuts = 2};
    char json[] = "{'scheme':'sinusoidal','dim':64,'len':1000000}";
    test_quotes(json);
    test_request_parse(&r, json);
    r.request.slices = &slice;
    r.request.n_slices = 1;
    static const enum pe_reduce ways[] = {PE_REDUCE_SAMPLE, PE_REDUCE_MEAN};
    for (size_t i = 0; i < 2; i++) {
        struct pe_plan *plan;
        struct pe_error err;
        r.request.reduce = ways[i];
        assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
        double work = pe_plan_work(plan);
        assert_true(ways[i] == PE_REDUCE_MEAN ? work >= 4 * 64e6 && work <= 16 * 64e6 : work <= 1024);
        pe_plan_free(plan);
    }
    test_request_drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_is_covered),     cmocka_unit_test(large_plans_are_covered),
        cmocka_unit_test(every_preset_is_covered),      cmocka_unit_test(a_config_counts_like_its_numbers),
        cmocka_unit_test(work_grows_with_what_is_made), cmocka_unit_test(reduced_blocks_cost_what_they_are_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
