/* Positions of a padded batch: the rules of transformers and of code that sees no padding, by hand. */
#include "core/sequence/sequence.h"
#include "tests/support/cmocka.h"

#include <string.h>

static const double columns[] = {0, 0, 1, 1, 1, 1, 1, 0};

static struct pe_padding_fields fields_of(const double *mask, unsigned rank, uint64_t rows, uint64_t n)
{
    struct pe_padding_fields fields = {.pad_position = 1};
    fields.attention_mask = (struct pe_reals){{PE_F64, rank, {rows, n}, mask}, rows * n};
    if (rank == 1)
        fields.attention_mask.array.shape[0] = rows * n;
    return fields;
}

static void assert_positions(const struct pe_padding *p, bool is_counted, bool is_mirrored, const double *expected)
{
    double found[8];
    pe_padding_positions(p, is_counted, is_mirrored, found);
    assert_memory_equal(found, expected, sizeof found);
}

TEST(test_positions)
{
    struct pe_padding_fields fields = fields_of(columns, 2, 2, 4);
    struct pe_padding p;
    struct pe_failure err;
    assert_int_equal(pe_padding_read(&p, &fields, &err), PE_OK);
    assert_positions(&p, false, false, (double[]){1, 1, 0, 1, 0, 1, 2, 1});
    assert_positions(&p, true, false, (double[]){0, 1, 2, 3, 0, 1, 2, 3});
    assert_positions(&p, false, true, (double[]){0, 1, 1, 1, 1, 0, 1, 2});
    p.pad_position = 0;
    assert_positions(&p, false, false, (double[]){0, 0, 0, 1, 0, 1, 2, 0});
    p.offset = 5;
    assert_positions(&p, false, false, (double[]){0, 0, 5, 6, 5, 6, 7, 0});
    assert_positions(&p, true, false, (double[]){5, 6, 7, 8, 5, 6, 7, 8});
    assert_true(pe_padding_is_token(&p, 2));
    assert_false(pe_padding_is_token(&p, 7));
}

static void assert_refused(const double *mask, unsigned rank, uint64_t rows, uint64_t n, const char *word)
{
    struct pe_padding_fields fields = fields_of(mask, rank, rows, n);
    struct pe_padding p;
    struct pe_failure err;
    assert_int_equal(pe_padding_read(&p, &fields, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/attention_mask");
    assert_non_null(strstr(err.detail, word));
}

TEST(test_refusals)
{
    assert_refused((double[]){0, 0.5}, 1, 1, 2, "0 and 1");
    assert_refused((double[]){0, 0}, 1, 1, 2, "every column is padding");
    assert_refused((double[]){1, 1}, 3, 1, 2, "3 axes");
}
