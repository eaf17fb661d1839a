/* Configurations without a sequence, as a preset keeps them, and presets that are not built in. What they inherit and what is refused:
 * tests/cases/presets.jsonl and tests/http/models/test_presets_team.py. */
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
