/* Explanations and translations: that no failed allocation is forgotten, and that two of one request are equal. What
 * they state is compared with the tools' sources, and read back, over a socket (tests/http/explain). */
#include "core/dialects/dialects.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

typedef enum pe_status open_fn(const struct pe_explain_request *, struct pe_explain **, struct pe_failure *);

static const struct {
    open_fn *open;
    const char *json;
} asked[] = {
    {pe_explain_new,
     "{'hf_config':{'model_type':'llama','head_dim':8,'hidden_size':32,'num_attention_heads':4,'num_hidden_layers':2,"
     "'max_position_embeddings':64,'rope_theta':5e5,'rope_scaling':{'rope_type':'yarn','factor':4.0,"
     "'original_max_position_embeddings':32,'attention_factor':1.0}}}"},
    {pe_explain_new,
     "{'hf_config':{'model_type':'gemma3','text_config':{'num_hidden_layers':6,'max_position_embeddings':32}}}"},
    {pe_explain_new,
     "{'gguf':{'general.architecture':'llama','llama.attention.key_length':8,'llama.rope.freq_base':500000.0,"
     "'llama.context_length':9000,'llama.rope.scaling.yarn_beta_fast':64.0},'length':64}"},
    {pe_explain_new, "{'preset':'gemma-3','length':32}"},
    {pe_explain_new,
     "{'hf_config':{'model_type':'llama','head_dim':8,'hidden_size':32,'num_attention_heads':4,'num_hidden_layers':2,"
     "'max_position_embeddings':32,'rope_scaling':{'type':'dynamic','factor':2.0}}}"},
    {pe_translate_new, "{'scheme':'rope','head_dim':8,'layout':'half','scaling':{'type':'dynamic','factor':2.0,"
                       "'max_position_embeddings':32},'to':['vllm','gguf','mlx']}"},
    {pe_explain_new, "{'hf_config':{'model_type':'smollm3','num_hidden_layers':4,'max_position_embeddings':32,"
                     "'no_rope_layers':[0,1,1,1]},'layer_type':'nope'}"},
    {pe_explain_new,
     "{'hf_config':{'model_type':'olmo3','num_hidden_layers':4,'max_position_embeddings':32,'rope_theta':5e5,"
     "'rope_scaling':{'rope_type':'yarn','factor':4.0,'original_max_position_embeddings':8}}}"},
    {pe_translate_new,
     "{'hf_config':{'model_type':'gemma3','text_config':{'num_hidden_layers':6,'max_position_embeddings':32}},"
     "'to':['transformers5','gguf','llama.cpp']}"},
    {pe_translate_new,
     "{'scheme':'rope','head_dim':8,'layout':'half','length':64,'scaling':{'type':'yarn','factor':4.0,"
     "'original_max_position_embeddings':32,'attention_factor':1.5,'truncate':false},"
     "'to':['vllm','megatron','mlx','rotary_embedding_torch','torchtune']}"},
    {pe_translate_new,
     "{'said':{'to':'transformers4','value':{'head_dim':8,'max_position_embeddings':64,"
     "'original_max_position_embeddings':32,'rope_scaling':{'type':'longrope','factor':2.0,"
     "'short_factor':[1,1,1,1],'long_factor':[1,2,3,4]}}},'layout':'half','length':64,'to':['gguf','vllm','sglang']}"},
};

static enum pe_status answer(open_fn *open, const struct test_request *r, struct pe_explain **answer)
{
    struct pe_failure err;
    struct pe_explain_request request = {.fields = r->fields, .n_fields = r->n, .max_work = 1e12};
    *answer = NULL;
    return open(&request, answer, &err);
}

TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        enum pe_status status = PE_NO_MEMORY;
        struct test_request r;
        struct pe_explain *whole, *again;
        test_request_parse(&r, asked[i].json);
        assert_int_equal(answer(asked[i].open, &r, &whole), PE_OK);
        for (long n = 0; status; n++) {
            alloc_fail_at(n);
            status = answer(asked[i].open, &r, &again);
            alloc_fail_at(-1);
            if (status)
                assert_int_equal(status, PE_NO_MEMORY);
        }
        assert_true(pe_value_same(pe_explain_answer(whole), pe_explain_answer(again)));
        pe_explain_free(again);
        pe_explain_free(whole);
        test_request_drop(&r);
    }
}
