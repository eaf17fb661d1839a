/* Explanations: that no failed allocation is forgotten, and that two of one request are equal. What they state is
 * compared with the tools' sources over a socket (tests/http/explain). */
#include "core/dialects/dialects.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>

static const char *const requests[] = {
    "{'hf_config':{'model_type':'llama','head_dim':8,'hidden_size':32,'num_attention_heads':4,'num_hidden_layers':2,"
    "'max_position_embeddings':64,'rope_theta':5e5,'rope_scaling':{'rope_type':'yarn','factor':4.0,"
    "'original_max_position_embeddings':32,'attention_factor':1.0}}}",
    "{'hf_config':{'model_type':'gemma3','text_config':{'num_hidden_layers':6,'max_position_embeddings':32}}}",
    "{'gguf':{'general.architecture':'llama','llama.attention.key_length':8,'llama.rope.freq_base':500000.0,"
    "'llama.context_length':9000,'llama.rope.scaling.yarn_beta_fast':64.0},'length':64}",
    "{'preset':'gemma-3','length':32}",
};

enum { N_REQUESTS = sizeof requests / sizeof *requests };

static void prepare(struct test_request *r, const char *json)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", json);
    test_quotes(text);
    test_request_parse(r, text);
}

static enum pe_status run(const struct test_request *r, struct pe_explain **explain)
{
    struct pe_failure err;
    struct pe_explain_request request = {.fields = r->fields, .n_fields = r->n};
    *explain = NULL;
    return pe_explain_new(&request, explain, &err);
}

TEST(test_every_allocation)
{
    for (size_t i = 0; i < N_REQUESTS; i++) {
        enum pe_status status = PE_NO_MEMORY;
        struct test_request r;
        struct pe_explain *whole, *explain;
        prepare(&r, requests[i]);
        assert_int_equal(run(&r, &whole), PE_OK);
        for (long n = 0; status; n++) {
            alloc_fail_at(n);
            status = run(&r, &explain);
            alloc_fail_at(-1);
            if (status)
                assert_int_equal(status, PE_NO_MEMORY);
        }
        assert_true(pe_value_same(pe_explain_answer(whole), pe_explain_answer(explain)));
        pe_explain_free(explain);
        pe_explain_free(whole);
        test_request_drop(&r);
    }
}
