/* The weights that a request can use, and their names in public checkpoints. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <string.h>

/* The request's weights as "name=elsewhere name name=elsewhere", in the order of the rows. */
static void list(const char *json, enum pe_operation_id operation, char *out, size_t room)
{
    struct test_request r;
    struct pe_weight_name names[PE_WEIGHT_NAMES_MAX];
    const struct pe_scheme_info *scheme;
    struct pe_failure err;
    size_t n = 0, used = 0;
    test_request_parse(&r, json);
    r.request.operation = operation;
    assert_int_equal(pe_request_weights(&r.request, &scheme, names, &n, &err), PE_OK);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s%s%s", i ? " " : "", names[i].name,
                                 names[i].elsewhere ? "=" : "", names[i].elsewhere ? names[i].elsewhere : "");
    assert_true(used < room);
    test_request_drop(&r);
}

static const struct {
    const char *json;
    enum pe_operation_id operation;
    const char *expected;
} cases[] = {
    {"{'scheme':'t5','len':3}", PE_ENCODE, "table=relative_attention_bias.weight"},
    {"{'preset':'t5-small','len':3}", PE_ENCODE, "table=relative_attention_bias.weight"},
    {"{'scheme':'swin','len':3}", PE_ENCODE, "table=relative_position_bias_table"},
    {"{'scheme':'swin','len':3}", PE_ATTEND, "table=relative_position_bias_table"},
    {"{'scheme':'beit','len':3}", PE_ENCODE, "table=relative_position_bias_table"},
    {"{'scheme':'swinv2','len':3}", PE_ENCODE, "w1=cpb_mlp.0.weight b1=cpb_mlp.0.bias w2=cpb_mlp.2.weight"},
    {"{'scheme':'rope','len':3}", PE_ENCODE, ""},
    {"{'scheme':'rope','len':3}", PE_ROTATE, ""},
    {"{'scheme':'deberta','len':3}", PE_ENCODE, ""},
};

TEST(names_of_checkpoints)
{
    char found[2048];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        list(cases[i].json, cases[i].operation, found, sizeof found);
        assert_string_equal(found, cases[i].expected);
    }
}

static void assert_has(const char *json, const char *part, bool expected)
{
    char found[2048];
    list(json, PE_ATTEND, found, sizeof found);
    if ((strstr(found, part) != NULL) != expected)
        fail_msg("%s of %s: %s", part, json, found);
}

/* Every listed name whose tensor has the form that our formulas need. */
TEST(names_of_attention)
{
    static const char deberta[] = "{'scheme':'deberta','q':1}", shaw[] = "{'scheme':'shaw','q':1}";
    assert_has(deberta, "rel_embeddings=encoder.rel_embeddings.weight ", true);
    assert_has(deberta, "norm_weight=encoder.LayerNorm.weight ", true);
    assert_has(deberta, "w_q=attention.self.query_proj.weight ", true);
    assert_has(deberta, "w_k=attention.self.key_proj.weight ", true);
    assert_has(deberta, "w_pos_k=attention.self.pos_key_proj.weight|attention.self.pos_proj.weight ", true);
    assert_has(deberta, "w_v", false); /* v is sent: nothing projects it */
    assert_has("{'scheme':'deberta','x':1}", "w_v=attention.self.value_proj.weight", true);
    assert_has(shaw, "rel_k=distance_embedding.weight", true);
    assert_has("{'scheme':'xlnet','q':1}", "u=rel_attn.r_w_bias", true);
    assert_has("{'scheme':'xlnet','q':1}", "seg_embed=", false);
    assert_has("{'scheme':'xlnet','q':1,'token_type_ids':[0]}", "seg_embed=rel_attn.seg_embed", true);
    assert_has("{'scheme':'transformer_xl','q':1}", "v_bias=r_r_bias", true);
    assert_has("{'scheme':'swinv2','q':1}", "logit_scale=logit_scale", true);
}

/* Projections are weights where something is projected; the room for names suffices for every scheme. */
TEST(projections)
{
    char json[128];
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        snprintf(json, sizeof json, "{'scheme':'%s','x':1}", pe_scheme_at(i)->name);
        assert_has(json, "w_q", true);
    }
    assert_has("{'scheme':'none','q':1}", "w_q", false);
    assert_has("{'scheme':'none','tokens':1}", "w_q", true);
}

TEST(schemes_that_are_none)
{
    struct pe_weight_name names[PE_WEIGHT_NAMES_MAX];
    const struct pe_scheme_info *scheme;
    struct pe_failure err;
    size_t n;
    const struct pe_field field = {.name = "scheme", .value = {.kind = PE_STRING, .string = "t6"}};
    struct pe_request request = {.operation = PE_ENCODE, .fields = &field, .n_fields = 1};
    assert_int_not_equal(pe_request_weights(&request, &scheme, names, &n, &err), PE_OK);
    assert_string_equal(err.pointer, "/scheme");
    request.n_fields = 0;
    assert_int_not_equal(pe_request_weights(&request, &scheme, names, &n, &err), PE_OK);
}
