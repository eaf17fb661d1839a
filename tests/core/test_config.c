/* Configurations without a sequence, as a preset keeps them, and presets that are not built in. */
#include "core/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <string.h>

static void says(const char *json, const char *expected)
{
    struct test_request r;
    struct pe_config *config = NULL;
    struct pe_failure err = {0};
    test_request_parse(&r, json);
    if (pe_config_new(&r.request, &config, &err))
        fail_msg("%s: %s: %s", json, err.pointer, err.detail);
    const struct pe_value *value = pe_config_value(config);
    test_fields_equal(json, value->object.fields, value->object.n, expected);
    assert_string_equal(value->object.fields[0].name, "scheme");
    pe_config_free(config);
    test_request_drop(&r);
}

TEST(its_own_words)
{
    static const char *const configs[] = {
        "{'scheme':'rope'}",
        "{'scheme':'rope','rope_theta':7}",
        "{'scheme':'learned','dim':4}",
        "{'scheme':'swin','num_heads':3}",
        "{'scheme':'swin','grid':[2,2]}",
        "{'scheme':'cope','head_dim':4,'npos_max':3}",
        /* what only some requests use */
        "{'scheme':'alibi','softmax_scale':2}",
        "{'scheme':'rope','position_style':'qwen2_vl'}",
        "{'scheme':'sinusoidal','combine':'multiply'}",
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        says(configs[i], configs[i]);
    says("{'rope_theta':7,'scheme':'rope'}", "{'scheme':'rope','rope_theta':7}");
}

TEST(what_it_inherits)
{
    says("{'preset':'t5-small'}", "{'scheme':'t5','num_heads':8,'head_dim':64,'num_buckets':32,'max_distance':128,"
                                  "'bidirectional':true,'softmax_scale':1}");
    says("{'preset':'gpt-neox-20b','base':3}",
         "{'scheme':'rope','base':3,'head_dim':96,'rotary_dim':24,'layout':'half'}");
    says("{'hf_config':{'model_type':'llama','head_dim':8,'rope_theta':7}}",
         "{'scheme':'rope','head_dim':8,'base':7,'layout':'half'}");
}

TEST(all_presets)
{
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        struct pe_field field = {"preset", {.kind = PE_STRING, .string = preset->name}};
        struct pe_request request = {.fields = &field, .n_fields = 1};
        struct pe_config *config = NULL;
        struct pe_failure err = {0};
        if (pe_config_new(&request, &config, &err))
            fail_msg("%s: %s: %s", preset->name, err.pointer, err.detail);
        assert_int_equal(pe_config_value(config)->object.n, preset->layers->n_fields);
        pe_config_free(config);
    }
}

TEST(what_no_preset_has)
{
    static const char *const refused[][3] = {
        {"{'scheme':'rope','len':4}", "/len", "leave it out"},
        {"{'scheme':'rope','positions':[1,2]}", "/positions", "leave it out"},
        {"{'scheme':'learned','table':[1,2]}", "/table", "tensor"},
        {"{'scheme':'alibi','key_mask':[1]}", "/key_mask", "leave it out"},
        {"{'scheme':'rope','bas':4}", "/bas", "base"},
        {"{'scheme':'rope','head_dim':8,'rotary_dim':16}", "/rotary_dim", "rotary_dim"},
        {"{'scheme':'learned','dim':-4}", "/dim", "dim"},
        {"{'scheme':'rope','combine':'multiply'}", "/combine", "combine"},
        {"{'scheme':'alibi','softmax_scale':'x'}", "/softmax_scale", "number"},
        {"{'scheme':'rope','position_style':'qwen9'}", "/position_style", "qwen2_vl"},
        {"{'preset':'lama-3.1'}", "/preset", "llama-3.1"},
        {"{'base':4}", "/scheme", "missing"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct test_request r;
        struct pe_config *config = NULL;
        struct pe_failure err = {0};
        test_request_parse(&r, refused[i][0]);
        assert_int_equal(pe_config_new(&r.request, &config, &err), PE_INVALID);
        assert_null(config);
        if (strcmp(err.pointer, refused[i][1]) != 0 || !strstr(err.detail, refused[i][2]))
            fail_msg("%s: %s: %s", refused[i][0], err.pointer, err.detail);
        test_request_drop(&r);
    }
}

static enum pe_status keep(void *request)
{
    struct pe_config *config = NULL;
    struct pe_failure err;
    enum pe_status status = pe_config_new(request, &config, &err);
    if (!status)
        pe_config_free(config);
    return status;
}

TEST(every_allocation_may_fail)
{
    struct test_request r;
    test_request_parse(&r, "{'scheme':'learned','dim':4,'softmax_scale':1}");
    test_each_allocation_fails(keep, &r.request);
    test_request_drop(&r);
}

/* ---- A preset of the caller ---- */

TEST(a_preset_of_the_caller)
{
    const struct pe_field kept[] = {{"scheme", {.kind = PE_STRING, .string = "rope"}},
                                    {"base", {.kind = PE_REAL, .real = 7}},
                                    {"softmax_scale", {.kind = PE_REAL, .real = 2}},
                                    {"head_dim", {.kind = PE_INTEGER, .integer = 8}}};
    const struct pe_preset_layer layer = {.fields = kept, .n_fields = 4};
    const struct pe_preset preset = {.name = "mine", .certainty = PE_UNSTATED, .layers = &layer, .n_layers = 1};
    struct pe_field fields[] = {{"preset", {.kind = PE_PRESET, .preset = &preset}},
                                {"len", {.kind = PE_INTEGER, .integer = 2}},
                                {"head_dim", {.kind = PE_INTEGER, .integer = 4}}};
    struct pe_request request = {.operation = PE_ENCODE, .fields = fields, .n_fields = 3};
    struct pe_plan *plan = NULL;
    struct pe_failure err = {0};
    if (pe_plan_new(&request, &plan, &err))
        fail_msg("%s: %s", err.pointer, err.detail);
    assert_ptr_equal(pe_plan_preset(plan), &preset);
    assert_null(pe_certainty_name(pe_plan_preset(plan)->certainty));
    const struct pe_value *config = pe_plan_config(plan);
    assert_true(pe_field_find(config->object.fields, config->object.n, "base")->real == 7);
    assert_int_equal(pe_field_find(config->object.fields, config->object.n, "head_dim")->integer, 4);
    pe_plan_free(plan);
    fields[0].name = "base"; /* nowhere else */
    assert_int_equal(pe_plan_new(&request, &plan, &err), PE_INVALID);
}
