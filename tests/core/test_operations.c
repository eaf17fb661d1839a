/* The rows of the operations: each is at its place in the list, has the functions that every operation needs, and a
 * scheme's operations follow from its descriptor. */
#include "core/operation.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <string.h>

TEST(every_row_is_whole)
{
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        const struct pe_operation *row = pe_operation_get(id);
        assert_int_equal(row->id, id);
        assert_non_null(row->info.name);
        assert_true(row->can && row->refuse && row->kind && row->sizes && row->init);
        assert_true(!row->fill != !row->fill_block);
        assert_int_equal(row->print != NULL, row->n_printed_max > 0);
        assert_ptr_equal(pe_operation_at(id), &row->info);
        for (enum pe_operation_id other = 0; other < id; other++)
            assert_string_not_equal(row->info.name, pe_operation_at(other)->name);
    }
}

/* By the papers: rotary schemes rotate queries and keys (Su et al. 2021, Sun et al. 2022), CoPE's positions do not
 * exist before the queries do, and every scheme takes part in attention. */
TEST(schemes_can_what_they_are)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        const struct pe_scheme_info *info = pe_scheme_at(s);
        assert_int_equal(pe_scheme_can(info, PE_ENCODE), strcmp(info->name, "cope") != 0);
        assert_int_equal(pe_scheme_can(info, PE_ROTATE), pe_is_among("rope|xpos", info->name));
        assert_true(pe_scheme_can(info, PE_ATTEND));
    }
}

/* A descriptor that has none of the functions can do nothing. */
TEST(an_empty_descriptor_can_nothing)
{
    static const struct pe_output_row outputs[] = {{.name = NULL}};
    static const struct pe_scheme empty = {.info = {.name = "empty", .outputs = outputs}};
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        struct pe_failure err = {.detail = ""};
        assert_false(pe_scheme_can(&empty.info, id));
        assert_int_equal(pe_operation_get(id)->refuse(&empty, &err), PE_INVALID);
        assert_string_equal(err.pointer, "/scheme");
        assert_non_null(strstr(err.detail, "empty"));
    }
}

TEST(what_it_cannot_is_refused)
{
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
            struct test_request r;
            struct pe_plan *plan = NULL;
            struct pe_failure err = {.detail = ""};
            if (pe_scheme_can(pe_scheme_at(s), id))
                continue;
            test_request_parse(&r, pe_scheme_at(s)->example);
            r.request.operation = id;
            assert_int_not_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
            assert_string_equal(err.pointer, "/scheme");
            assert_non_null(strstr(err.detail, pe_scheme_at(s)->name));
            test_request_drop(&r);
        }
}
