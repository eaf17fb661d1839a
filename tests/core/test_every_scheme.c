/* The laws for every scheme of the registry: its descriptor is whole, its defaults are answered, its example keeps the
 * laws of plans (tests/support/plans.h), whatever its length. */
#include "core/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <stdio.h>
#include <string.h>

static void assert_rows(const struct pe_param *rows)
{
    for (; rows->name; rows++) {
        if (rows->type == PE_T_WORD)
            assert_non_null(rows->words);
        if (rows->type == PE_T_OBJECT)
            assert_rows(rows->fields);
    }
}

static bool can_encode(size_t s) { return pe_scheme_can(pe_scheme_at(s), PE_ENCODE); }

TEST(descriptors_are_complete)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        const struct pe_scheme_info *info = pe_scheme_at(s);
        assert_true(info->name && info->family && info->paper && info->example && info->worked && info->traps);
        assert_ptr_equal(pe_scheme_find(info->name), info);
        assert_rows(info->params);
        for (const struct pe_output_row *row = info->outputs; row->name; row++)
            assert_true(row->shape && row->row_axes);
        for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
            assert_non_null(row->shape);
    }
    assert_rows(pe_sequence_params());
}

/* A scheme that has no output without weights answers its defaults with a seed; the refusal names all ways to supply
 * weights. */
TEST(defaults_answer)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        char json[128];
        struct test_request r;
        struct pe_plan *plan = NULL;
        struct pe_failure err;
        if (!can_encode(s))
            continue;
        snprintf(json, sizeof json, "{'scheme':'%s','len':3,'seed':1}", pe_scheme_at(s)->name);
        test_request_parse(&r, json);
        r.request.n_fields--;
        if (pe_is_among("learned|recursive|floater|fire", pe_scheme_at(s)->name)) {
            assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
            assert_true(strstr(err.detail, "seed") && strstr(err.detail, "weights"));
            r.request.n_fields++;
        }
        plan = test_plan_as(&r, PE_ENCODE, PE_DTYPE_NONE);
        assert_true(pe_plan_n_outputs(plan) > 0);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

/* The example with another length, if it has one. */
static void lengthen(char *json, size_t room, const char *example, unsigned len)
{
    const char *at = strstr(example, "\"len\":");
    int digits = 0, before = at ? (int)(at - example) + 6 : (int)strlen(example);
    if (at)
        sscanf(example + before, "%*d%n", &digits);
    snprintf(json, room, at ? "%.*s%u%s" : "%.*s", before, example, len, example + before + digits);
}

TEST(examples_keep_the_laws)
{
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (unsigned len = 1; len < 150; len = len * 3 + (unsigned)(s % 3)) {
            char json[1024];
            lengthen(json, sizeof json, pe_scheme_at(s)->example, len);
            if (can_encode(s))
                test_assert_laws(json);
            else
                test_assert_laws_of_attention(json, NULL);
        }
}
