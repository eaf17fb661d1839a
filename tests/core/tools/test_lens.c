/* The rows of core/tools: that each conversion and its inverse are one, and that rows name what there is. What the rows
 * of a tool mean is in tests/cases/translate.jsonl, by hand from its source. */
#include "core/tools/lens.h"
#include "tests/support/cmocka.h"

#include <stdio.h>

/* Values of ours that each conversion has to give back. */
static const struct {
    enum pe_conversion convert;
    struct pe_value ours, theirs;
} pairs[] = {
    {PE_SAME, {.kind = PE_REAL, .real = 0.25}, {.kind = PE_REAL, .real = 0.25}},
    {PE_WHOLE, {.kind = PE_REAL, .real = 8}, {.kind = PE_REAL, .real = 8}},
    {PE_RECIPROCAL, {.kind = PE_REAL, .real = 4}, {.kind = PE_REAL, .real = 0.25}},
    {PE_NOT, {.kind = PE_BOOLEAN, .boolean = true}, {.kind = PE_BOOLEAN, .boolean = false}},
    {PE_NOT, {.kind = PE_BOOLEAN, .boolean = false}, {.kind = PE_BOOLEAN, .boolean = true}},
    {PE_NEIGHBOURS, {.kind = PE_STRING, .string = "half"}, {.kind = PE_BOOLEAN, .boolean = false}},
    {PE_NEIGHBOURS, {.kind = PE_STRING, .string = "interleaved"}, {.kind = PE_BOOLEAN, .boolean = true}},
    {PE_UNLESS_ZERO, {.kind = PE_REAL, .real = 0.707}, {.kind = PE_REAL, .real = 0.707}},
};

TEST(each_conversion_is_undone)
{
    bool is_tried[PE_N_CONVERSIONS] = {false};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct pe_conversion_row *row = &pe_conversions[pairs[i].convert];
        struct pe_value theirs = row->forward(pairs[i].ours), ours = row->backward(theirs);
        is_tried[pairs[i].convert] = true;
        assert_true(pe_value_same(&theirs, &pairs[i].theirs) && pe_value_same(&ours, &pairs[i].ours));
    }
    for (int i = 0; i < PE_N_CONVERSIONS; i++)
        assert_true(is_tried[i]);
}

TEST(what_a_conversion_cannot_keep)
{
    struct pe_value x = pe_conversions[PE_WHOLE].forward(pe_real(2.6));
    assert_true(x.real == 3);
    x = pe_conversions[PE_WHOLE].forward(pe_real(0.2));
    assert_true(x.real == 1);
    x = pe_conversions[PE_UNLESS_ZERO].backward(pe_real(0));
    assert_int_equal(x.kind, PE_NULL);
    x = pe_conversions[PE_NOT].forward(pe_null());
    assert_int_equal(x.kind, PE_NULL);
}

/* "a|b": does each name a rule of scaling? */
static bool are_rules(const char *names)
{
    const char *name;
    for (size_t n; names && pe_hf_next_name(&names, &name, &n);) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)n, name);
        const struct pe_scaling_rule *rule = pe_scaling_find(word);
        if (!rule || !pe_same(rule->name, word))
            return false;
    }
    return true;
}

static void check_lens(const struct pe_tool *tool, const struct pe_lens *lens)
{
    assert_true(are_rules(lens->when) && are_rules(lens->unless));
    assert_true(lens->theirs || (lens->when && !isnan(lens->otherwise))); /* a constant */
    assert_true(lens->ours || lens->is_rule || lens->direction != PE_BOTH_WAYS);
    assert_true(!lens->is_rule || lens->when);
    if (lens->type == PE_T_INT || lens->type == PE_T_REAL) /* of a constant there is no range */
        assert_true(isnan(lens->otherwise) || !lens->theirs ||
                    (lens->otherwise >= lens->min && lens->otherwise <= lens->max) || tool->rules);
    if (lens->type == PE_T_WORD)
        assert_true(tool->forms && tool->forms[0].word);
}

TEST(rows_name_what_there_is)
{
    for (size_t i = 0; pe_tools[i]; i++) {
        const struct pe_tool *tool = pe_tools[i];
        assert_true(tool->label && pe_tool_find(tool->name) == tool);
        if (pe_tool_has_words(tool)) {
            assert_true(tool->source && tool->info.certainty && tool->info.about.summary);
            assert_true(tool->lenses || (tool->export && tool->import));
            assert_true(i < pe_n_targets()); /* before those that have none */
        }
        for (const struct pe_lens *lens = tool->lenses; pe_lens_is(lens); lens++)
            check_lens(tool, lens);
        for (const struct pe_form *form = tool->forms; form && form->word; form++)
            assert_true(are_rules(form->rule));
        assert_true(!tool->rules || pe_same(tool->rules[0].name, "default"));
        for (const struct pe_rope_rule *rule = tool->rules; rule && rule->name; rule++)
            assert_true(are_rules(rule->name));
        assert_true(tool->objects ? tool->rules && tool->reads.summary : pe_tool_has_words(tool));
    }
}
