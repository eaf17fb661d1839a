/* Translations: that no failed allocation is forgotten, and that two of one request are equal. What they state is read
 * back over a socket (tests/http/explain). */
#include "core/dialects/dialects.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>

static const char *const requests[] = {
    "{'hf_config':{'model_type':'gemma3','text_config':{'num_hidden_layers':6,'max_position_embeddings':32}},"
    "'to':['transformers5','gguf','llama.cpp']}",
    "{'scheme':'rope','head_dim':8,'layout':'half','length':64,'scaling':{'type':'yarn','factor':4.0,"
    "'original_max_position_embeddings':32,'attention_factor':1.5,'truncate':false},"
    "'to':['vllm','megatron','mlx','rotary_embedding_torch','torchtune']}",
    "{'said':{'to':'transformers4','value':{'head_dim':8,'max_position_embeddings':64,"
    "'original_max_position_embeddings':32,'rope_scaling':{'type':'longrope','factor':2.0,"
    "'short_factor':[1,1,1,1],'long_factor':[1,2,3,4]}}},'layout':'half','length':64,'to':['gguf','vllm','sglang']}",
};

enum { N_REQUESTS = sizeof requests / sizeof *requests };

static void prepare(struct test_request *r, const char *json)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", json);
    test_quotes(text);
    test_request_parse(r, text);
}

static enum pe_status run(const struct test_request *r, struct pe_explain **translation)
{
    struct pe_failure err;
    struct pe_explain_request request = {.fields = r->fields, .n_fields = r->n};
    *translation = NULL;
    return pe_translate_new(&request, translation, &err);
}

TEST(test_every_allocation)
{
    for (size_t i = 0; i < N_REQUESTS; i++) {
        enum pe_status status = PE_NO_MEMORY;
        struct test_request r;
        struct pe_explain *whole, *translation;
        prepare(&r, requests[i]);
        assert_int_equal(run(&r, &whole), PE_OK);
        for (long n = 0; status; n++) {
            alloc_fail_at(n);
            status = run(&r, &translation);
            alloc_fail_at(-1);
            if (status)
                assert_int_equal(status, PE_NO_MEMORY);
        }
        assert_true(pe_value_same(pe_explain_answer(whole), pe_explain_answer(translation)));
        pe_explain_free(translation);
        pe_explain_free(whole);
        test_request_drop(&r);
    }
}
