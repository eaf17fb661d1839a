/* What a form shows of a row that states nothing about its control, so that a scheme added today has one; and the names
 * of axes. */
#include "core/params.h"
#include "tests/support/cmocka.h"

#include <stdlib.h>

struct config {
    int64_t few, many, unset, negative, own;
    double share, gain, free, tiny;
    bool flag;
    int word, chosen;
    struct pe_reals list;
};

static const char *const words[] = {"a", "b", NULL};

static const struct pe_param rows[] = {
    PE_P_INT(config, few, 3, 1, 16, "few", "few"),
    PE_P_INT(config, many, 100, 1, 1000000, "many", "many"),
    PE_P_INT(config, unset, PE_UNSET, 1, 1000000, "unset", "unset"),
    PE_P_INT(config, negative, -5, -1000000, 1000000, "negative", "negative"),
    PE_P_INT(config, own, 8, 1, 1000000, "own", "own", .level = PE_MORE, .usual = {2, 512}),
    PE_P_REAL(config, share, PE_UNSET, 0, 1, "share", "share"),
    PE_P_REAL(config, gain, 0.5, 1e-6, 1e6, "gain", "gain", .group = PE_G_FREQUENCIES),
    PE_P_REAL(config, free, 0, -1e12, 1e12, "free", "free", .group = PE_G_MASK),
    PE_P_REAL(config, tiny, 1, 0, 1e12, "tiny", "tiny", .group = PE_G_MASK, .level = PE_BASIC),
    PE_P_BOOL(config, flag, true, "flag", "flag"),
    PE_P_WORD(config, word, words, "word", "word"),
    {.name = "chosen", .type = PE_T_WORD, .words = words, .fallback = PE_UNSET_WORD, .when = "word=a"},
    PE_P_REALS(config, list, 0, 1, "list", "list"),
    PE_P_END,
};

static void check(const char *name, bool is_basic, double lo, double hi, bool is_log)
{
    struct pe_interval usual;
    const struct pe_param *row = pe_param_find(rows, name);
    assert_int_equal(pe_param_is_basic(row), is_basic);
    assert_true(pe_param_usual(row, &usual));
    if (usual.lo != lo || usual.hi != hi)
        fail_msg("%s: from %g to %g, expected %g to %g", name, usual.lo, usual.hi, lo, hi);
    assert_int_equal(pe_interval_is_log(&usual), is_log);
}

TEST(numbers_have_sliders)
{
    check("few", true, 1, 16, false);
    check("many", true, 12, 800, true);
    check("unset", false, 1, 64, true);
    check("negative", true, -40, 40, false);
    check("own", false, 2, 512, true);
    check("share", false, 0, 1, false);
    check("gain", true, 0.0625, 4, true);
    check("free", false, -64, 64, false);
    check("tiny", true, 0, 8, false);
}

TEST(others_have_none)
{
    const char *const names[] = {"flag", "word", "chosen", "list"};
    const bool is_basic[] = {true, true, false, false};
    struct pe_interval usual;
    for (size_t i = 0; i < 4; i++) {
        assert_false(pe_param_usual(pe_param_find(rows, names[i]), &usual));
        assert_int_equal(pe_param_is_basic(pe_param_find(rows, names[i])), is_basic[i]);
    }
}

static void check_axes(const char *shape, const char *axes, const char *expected)
{
    struct pe_output_row row = {.shape = shape, .axes = axes};
    char found[128] = "";
    const char *name;
    size_t n;
    for (unsigned i = 0; (n = pe_output_axis(&row, i, &name)) > 0; i++)
        strncat(strcat(found, i ? "," : ""), name, n);
    assert_string_equal(found, expected);
}

TEST(axes_follow_from_the_shape)
{
    check_axes("", NULL, "");
    check_axes("n,dim", NULL, "position,dim");
    check_axes("num_heads,q_len,k_len", NULL, "head,query,key");
    check_axes("n,rotary_dim/2,2,2", NULL, "position,pair,component,component");
    check_axes("axes,n", NULL, "axis,position");
    check_axes("n,something+1", NULL, "position,dim");
    check_axes("width,d_model", "distance,dim", "distance,dim");
}
