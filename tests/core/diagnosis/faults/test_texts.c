/* The texts of a diagnosis: every code of the catalogue has them in both languages, and their placeholders are
 * equal. */
#include "core/inside.h"
#include "tests/support/cmocka.h"

#include <string.h>

/* Placeholders that a finding has. */
static const char *const members[] = {"pointer",         "meaning",           "heads",
                                      "found",           "believed",          "position",
                                      "candidate",       "largest",           "row",
                                      "nearest.codes",   "nearest.max_error", "worst.output",
                                      "worst.index",     "worst.found",       "worst.expected",
                                      "nearest.name",    "nearest.pairs",     "nearest.of",
                                      "nearest.largest", "found.conversion",  "found.heads",
                                      "found.times",     "found.block",       "found.first",
                                      "found.summary",   "found.every",       "found.missing",
                                      "found.row",       "found.numbers",     "found.needed",
                                      "found.count",     "found.n_rows",      "found.of_rows",
                                      "found.least",     "found.most",        "found.value",
                                      "found.output",    "found.index",       "believed.output",
                                      "believed.index",  "found.rule",        "found.order",
                                      "found.query"};

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
