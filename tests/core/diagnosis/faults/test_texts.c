/* The texts of a diagnosis: every code of the catalogue has them, both languages are there, and their placeholders
 * are equal. */
#include "core/inside.h"
#include "tests/support/cmocka.h"

#include <string.h>

/* The codes that an answer may have. */
static const char *const codes[] = {"layout_swapped",
                                    "channels_permuted",
                                    "rows_permuted",
                                    "rows_permuted_twice",
                                    "rows_heads_other",
                                    "heads_order",
                                    "rows_fused",
                                    "rows_other",
                                    "direction_reversed",
                                    "sin_cos_swapped",
                                    "inverted",
                                    "negated",
                                    "transposed",
                                    "off_by_one",
                                    "offset_other",
                                    "not_rotated",
                                    "rotated_twice",
                                    "positions_reversed",
                                    "position_stride",
                                    "positions_constant",
                                    "position_reset",
                                    "position_no_reset",
                                    "rotary_dim_other",
                                    "rotary_offset_other",
                                    "attention_factor_missing",
                                    "attention_factor_other",
                                    "scaled",
                                    "scheme_other",
                                    "scale_base_other",
                                    "center_other",
                                    "zero_row",
                                    "mask_value",
                                    "interpolation_other",
                                    "axes_moved",
                                    "query_scale_missing",
                                    "query_scale_extra",
                                    "query_scale_other",
                                    "sinks_missing",
                                    "sinks_extra",
                                    "scaling_switch",
                                    "scaling_missing",
                                    "ladder_width",
                                    "ladder_from_one",
                                    "ladder_reversed",
                                    "scaling_parameter",
                                    "scaling_other",
                                    "base_other",
                                    "angles_f32",
                                    "inv_freq_bf16",
                                    "inv_freq_f16",
                                    "angles_bf16",
                                    "angles_wrapped",
                                    "table_dtype",
                                    "coordinates_f32",
                                    "axes_missing",
                                    "axes_swapped",
                                    "section_order",
                                    "channels_other",
                                    "coords_other",
                                    "order_other",
                                    "freq_shift_other",
                                    "odd_other",
                                    "style_other",
                                    "exponent_per_column",
                                    "exponent_doubled",
                                    "sine_only",
                                    "slopes_other",
                                    "slopes_order",
                                    "bias_max_other",
                                    "form_other",
                                    "alignment_other",
                                    "mask_missing",
                                    "mask_extra",
                                    "window_other",
                                    "bidirectional_other",
                                    "max_distance_other",
                                    "kind_other",
                                    "parameter_other",
                                    "position_style_other",
                                    "tokens_per_second_other",
                                    "merge_size_other",
                                    "as_believed",
                                    "identified",
                                    "uninitialised",
                                    "unexplained",
                                    "undecided"};

/* Placeholders that a finding has. */
static const char *const members[] = {"pointer",         "meaning",           "heads",
                                      "found",           "believed",          "position",
                                      "candidate",       "largest",           "row",
                                      "nearest.codes",   "nearest.max_error", "worst.output",
                                      "worst.index",     "worst.found",       "worst.expected",
                                      "nearest.name",    "nearest.pairs",     "nearest.of",
                                      "nearest.largest", "found.conversion",  "found.heads",
                                      "found.times",     "found.block",       "found.first",
                                      "found.every",     "found.missing",     "found.row",
                                      "found.numbers",   "found.needed"};

static const struct pe_fault_info *find(const char *code)
{
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (strcmp(pe_fault_at(i)->code, code) == 0)
            return pe_fault_at(i);
    return NULL;
}

TEST(every_code_has_texts)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!find(codes[i]))
            fail_msg("%s has no texts", codes[i]);
    assert_null(find("layout"));
}

/* Two kinds have a fault of the same name; a kind has it once. */
TEST(a_code_stands_once_in_a_kind)
{
    for (size_t i = 0; i < pe_n_faults(); i++)
        for (size_t j = 0; j < i; j++) {
            const struct pe_fault_info *a = pe_fault_at(i), *b = pe_fault_at(j);
            if (strcmp(a->code, b->code) == 0 && strcmp(a->kind, b->kind) == 0)
                fail_msg("%s stands twice", a->code);
        }
}

#define FULL_STOP "\xe3\x80\x82" /* of Chinese, U+3002 */

static bool is_chinese(const char *text)
{
    for (; *text; text++) /* U+4E00 to U+9FFF begin with the bytes E4 to E9 */
        if ((unsigned char)*text >= 0xe4 && (unsigned char)*text <= 0xe9)
            return true;
    return false;
}

static void check_pair(const char *code, const char *en, const char *zh)
{
    if (!en || !*en || !zh || !*zh)
        fail_msg("%s lacks a text", code);
    if (is_chinese(en))
        fail_msg("%s has Chinese as English: %s", code, en);
    if (!is_chinese(zh))
        fail_msg("%s has no Chinese: %s", code, zh);
}

static void check_sentence(const char *code, const char *text, const char *stop)
{
    size_t n = strlen(text), end = strlen(stop);
    if (n < end || strcmp(text + n - end, stop) != 0)
        fail_msg("%s has no whole sentence: %s", code, text);
}

TEST(both_languages_are_there)
{
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault_info *row = pe_fault_at(i);
        check_pair(row->code, row->about.label, pe_label_in(PE_ZH, &row->about));
        check_pair(row->code, row->about.summary, pe_summary_in(PE_ZH, &row->about));
        check_sentence(row->code, row->about.summary, ".");
        check_sentence(row->code, pe_summary_in(PE_ZH, &row->about), FULL_STOP);
        assert_true(row->n_details > 0);
        for (size_t d = 0; d < row->n_details; d++) {
            check_pair(row->code, row->details[d], pe_text_in(PE_ZH, row->details[d]));
            check_sentence(row->code, row->details[d], ".");
            check_sentence(row->code, pe_text_in(PE_ZH, row->details[d]), FULL_STOP);
        }
    }
}

/* How often {name} stands in the text. */
static size_t count(const char *text, const char *name)
{
    size_t times = 0, n = strlen(name);
    for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{'))
        times += strncmp(at + 1, name, n) == 0 && at[n + 1] == '}';
    return times;
}

static size_t count_all(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '{';
    return n;
}

TEST(placeholders_are_equal)
{
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault_info *row = pe_fault_at(i);
        for (size_t d = 0; d < row->n_details; d++) {
            size_t known = 0;
            const char *zh = pe_text_in(PE_ZH, row->details[d]);
            for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
                size_t n = count(row->details[d], members[m]);
                known += n;
                if (count(zh, members[m]) != n)
                    fail_msg("%s: {%s} differs between the languages", row->code, members[m]);
            }
            if (known != count_all(row->details[d]) || known != count_all(zh))
                fail_msg("%s: an unknown placeholder in sentence %zu", row->code, d);
        }
        assert_int_equal(count_all(row->about.summary) + count_all(pe_summary_in(PE_ZH, &row->about)), 0);
    }
}
