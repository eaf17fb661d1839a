/* The rows of the operations in api/: each is complete, and no two share a name. */
#include "api/operations.h"
#include "tests/support/cmocka.h"

#include <string.h>

static bool is_name_of(const struct pe_input_row *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return true;
    return false;
}

/* Whether the operation takes a tensor of that name, by its own rows or a scheme's. x belongs to encodings. */
static bool is_operand(enum pe_operation_id id, const char *name)
{
    bool found = strcmp(name, "x") == 0 || is_name_of(pe_operation_at(id)->inputs, name);
    for (size_t s = 0; !found && s < pe_n_schemes(); s++)
        for (const struct pe_input_row *row = pe_scheme_at(s)->inputs; row && row->name; row++)
            found |= row->operation == id && row->is_operand && strcmp(row->name, name) == 0;
    return found;
}

TEST(every_row_is_whole)
{
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        const struct api_operation *row = &api_operations[id];
        assert_true(row->route.pattern && row->route.pattern[0] == '/');
        assert_string_equal(row->route.pattern + 1,
                            pe_operation_at(id)->name); /* messages of the core say POST /name */
        assert_true(row->route.methods & API_BY_POST);
        assert_int_equal(row->route.operation, id);
        assert_true(!row->route.handle && !row->route.steps);
        assert_int_equal(row->route.kind, API_COMPUTES);
        assert_true(row->route.summary && row->route.example && row->text && row->prefix);
        assert_true(row->tensor && is_operand(id, row->tensor));
        assert_int_equal(row->route.component != NULL, pe_operation_at(id)->params || pe_operation_at(id)->inputs);
        for (const struct api_renamed *renamed = row->renamed; renamed->name; renamed++)
            assert_true(renamed->shape && is_operand(id, renamed->output));
    }
}

TEST(no_two_share_a_name)
{
    for (enum pe_operation_id i = 0; i < PE_N_OPERATIONS; i++)
        for (enum pe_operation_id k = 0; k < i; k++) {
            assert_string_not_equal(api_operations[i].route.pattern, api_operations[k].route.pattern);
            assert_string_not_equal(api_operations[i].prefix, api_operations[k].prefix);
        }
}
