/* CoPE: the catalogue's entry of a scheme whose bias depends only on content, and the answer of /encode. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

TEST(has_nothing_to_encode)
{
    test_refused("{'scheme':'cope','len':3}", "/scheme", "depends on content");
    test_refused("{'scheme':'cope','len':3,'seed':1}", "/scheme", "cope");
}

TEST(the_catalogue)
{
    const struct pe_scheme_info *info = pe_scheme_find("cope");
    assert_non_null(info);
    assert_true(pe_scheme_can(info, PE_ATTEND));
    assert_false(pe_scheme_can(info, PE_ENCODE) || pe_scheme_can(info, PE_ROTATE));
    assert_null(info->outputs[0].name);
    assert_string_equal(info->inputs[0].name, "pos_emb");
    assert_null(info->inputs[1].name);
    const struct pe_param *npos_max = pe_param_find(info->params, "npos_max");
    assert_non_null(npos_max);
    assert_true(npos_max->fallback == 64);
}
