/* The table of model_types: what core/models/rows.awk cannot know of core/models/types.txt; and whether each kind
 * and trait of core/models/hf/list.h is used by a block. */
#include "core/models/hf/hf.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <string.h>

/* ---- Blocks ---- */

TEST(test_blocks_have_names_and_sources)
{
    assert_true(pe_n_hf_type_rows > 600);
    for (size_t i = 0; i < pe_n_hf_type_rows; i++) {
        const struct pe_hf_model *row = &pe_hf_type_rows[i];
        if (!*row->types || !row->source || !*row->source)
            fail_msg("block %zu, %s: no name, or no source", i, row->types);
        if (row->certainty != PE_CLASS_DEFAULT && row->certainty != PE_UNVERIFIED)
            fail_msg("%s: a class is no checkpoint", row->types);
        if (row->fields.n > PE_HF_DEFAULTS_MAX)
            fail_msg("%s: more fields than an answer names", row->types);
    }
}

TEST(test_each_name_finds_its_block)
{
    for (size_t i = 0; i < pe_n_hf_type_rows; i++) {
        const struct pe_hf_model *row = &pe_hf_type_rows[i];
        for (const char *names = row->types; names; names = strchr(names, '|') ? strchr(names, '|') + 1 : NULL) {
            char name[64];
            size_t n = strcspn(names, "|");
            assert_true(n > 0 && n < sizeof name);
            memcpy(name, names, n);
            name[n] = '\0';
            if (pe_hf_row_find(name) != row)
                fail_msg("%s is found in another block", name);
            assert_ptr_equal(pe_hf_model_find(name), strchr(name, '/') ? NULL : row); /* a part is no model_type */
        }
    }
}

/* ---- Kinds and traits ---- */

TEST(test_each_kind_has_a_block)
{
    bool used[sizeof "x"
#define KIND(ID, name, read, text) "x"
#define TRAIT(member, name, text, source)
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
              - 2] = {false};
    for (size_t i = 0; i < pe_n_hf_type_rows; i++)
        used[pe_hf_type_rows[i].kind] = true;
    for (size_t k = 0; k < sizeof used / sizeof *used; k++)
        if (!used[k])
            fail_msg("no block is of kind %zu", k);
}

TEST(test_each_trait_has_a_block_and_a_source)
{
#define KIND(ID, name, read, text)
#define TRAIT(member_, name_, text_, source_)                                                                          \
    {                                                                                                                  \
        size_t n = 0;                                                                                                  \
        for (size_t i = 0; i < pe_n_hf_type_rows; i++)                                                                 \
            n += pe_hf_type_rows[i].member_ == pe_hf_##name_;                                                          \
        if (!n || !*text_ || !strstr(source_, ".py"))                                                                  \
            fail_msg("trait " #name_ ": no block has it, or it has no text or no library file");                       \
    }
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
}

/* ---- Layers in turn: seven layers with period 3, the second kind as 1 ---- */

static void check_turn(bool (*second)(int64_t, int64_t, int64_t), const char *pattern)
{
    char found[8] = "";
    for (int64_t l = 0; l < 7; l++)
        found[l] = second(l, 7, 3) ? '1' : '0';
    assert_string_equal(found, pattern);
}

TEST(test_turns)
{
    check_turn(pe_hf_first_of_period, "1001001");
    check_turn(pe_hf_counted_back, "1001001");
    check_turn(pe_hf_and_first_layer, "1010010");
    check_turn(pe_hf_and_last_layer, "0010011");
    assert_true(pe_hf_counted_back(1, 8, 3) && !pe_hf_counted_back(0, 8, 3));
}
