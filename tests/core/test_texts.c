/* The texts of the catalogue in two languages, on the rows themselves: none is missing, and the two of a pair fit. */
#include "core/inside.h"
#include "tests/support/cmocka.h"

#include <string.h>
#include <printf.h>

/* The next code point of valid UTF-8, whose first byte is not NUL. */
static uint32_t next_code_point(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    unsigned n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? *p : *p & (0x7fU >> n);
    for (unsigned i = 1; i < n; i++) {
        assert_int_equal(p[i] & 0xc0, 0x80);
        code = code << 6 | (p[i] & 0x3f);
    }
    *text += n;
    return code;
}

static bool has_between(const char *text, uint32_t first, uint32_t last)
{
    while (*text) {
        uint32_t code = next_code_point(&text);
        if (code >= first && code <= last)
            return true;
    }
    return false;
}

static bool has_chinese(const char *text) { return has_between(text, 0x3400, 0x9fff); }

static bool has_its_punctuation(const char *text)
{
    return has_between(text, 0x3000, 0x303f) || has_between(text, 0xff00, 0xffef);
}

/* The length of a placeholder "{name}" at the beginning of text; 0 if there is none. */
static size_t placeholder(const char *text)
{
    size_t n = *text == '{' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    return n && text[1 + n] == '}' ? n + 2 : 0;
}

static size_t count(const char *text, const char *name, size_t n)
{
    size_t found = 0;
    for (; *text; text++)
        found += placeholder(text) == n && memcmp(text, name, n) == 0;
    return found;
}

static bool has_all_of(const char *text, const char *names)
{
    for (const char *p = names; *p; p++) {
        size_t n = placeholder(p);
        if (n && count(text, p, n) != count(names, p, n))
            return false;
    }
    return true;
}

static void check_pair(const char *name, const char *en, const char *zh)
{
    if (!en || !*en || !zh || !*zh)
        fail_msg("%s: a text is missing beside %s", name, en ? en : zh ? zh : "nothing");
    if (has_chinese(en) || has_its_punctuation(en))
        fail_msg("%s: Chinese in %s", name, en);
    if (!has_chinese(zh))
        fail_msg("%s: no Chinese in %s", name, zh);
    if (!has_all_of(en, zh) || !has_all_of(zh, en))
        fail_msg("%s: other placeholders in %s than in %s", name, zh, en);
}

enum { LABEL_MAX = 32 }; /* bytes of an English label; a Chinese character has three */

static void check_about(const char *name, const struct pe_about *about)
{
    const char *chinese = pe_label_in(PE_ZH, about);
    check_pair(name, about->label, chinese);
    check_pair(name, about->summary, pe_summary_in(PE_ZH, about));
    if (strlen(about->label) > LABEL_MAX || strlen(chinese) > 2 * LABEL_MAX)
        fail_msg("%s: a label is long: %s, %s", name, about->label, chinese);
}

static size_t n_checked;

static void check_params(const struct pe_param *rows)
{
    for (; rows && rows->name; rows++, n_checked++) {
        check_about(rows->name, &rows->about);
        if (rows->type == PE_T_OBJECT)
            check_params(rows->fields);
    }
}

static void check_inputs(const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++, n_checked++)
        check_about(rows->name, &rows->about);
}

static void check_outputs(const struct pe_output_row *rows)
{
    for (; rows && rows->name; rows++, n_checked++)
        check_about(rows->name, &rows->about);
}

TEST(every_row_has_its_texts)
{
    check_params(pe_sequence_params());
    check_params(pe_absolute_params());
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *info = pe_scheme_at(i);
        check_about(info->name, &info->about);
        check_params(info->params);
        check_inputs(info->inputs);
        check_outputs(info->outputs);
    }
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        check_params(pe_operation_at(id)->params);
        check_inputs(pe_operation_at(id)->inputs);
        check_outputs(pe_operation_at(id)->outputs);
    }
    assert_true(n_checked > 300);
}

static size_t check_lines(const struct pe_formula_line *lines)
{
    size_t n = 0;
    for (; lines[n].line; n++)
        check_pair(lines[n].line, lines[n].says, pe_text_in(PE_ZH, lines[n].says));
    return n;
}

TEST(every_line_of_a_formula_has_its_texts)
{
    size_t n = check_lines(pe_formula_symbols);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        n += check_lines(pe_scheme_at(i)->formula);
    for (size_t i = 0; i < pe_n_scalings(); i++)
        n += check_lines(pe_scaling_formula(i).lines);
    assert_true(n > 150);
}

TEST(every_heading_has_its_texts)
{
    for (size_t i = 0; i < pe_n_families(); i++)
        check_about(pe_family_at(i)->name, &pe_family_at(i)->about);
    for (enum pe_group group = 0; group < PE_N_GROUPS; group++)
        check_about(pe_group_at(group)->name, &pe_group_at(group)->about);
}

/* A model's name may be the same in both languages. */
TEST(every_preset_has_a_label)
{
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        if (!preset->label || !*preset->label || has_chinese(preset->label) || strlen(preset->label) > LABEL_MAX)
            fail_msg("%s: its label is missing, long or not English", preset->name);
        if (preset->label_zh)
            check_pair(preset->name, preset->label, preset->label_zh);
    }
}

TEST(every_note_has_its_twin)
{
    size_t n = 0;
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        if (preset->note || preset->note_zh)
            check_pair(preset->name, preset->note, preset->note_zh), n++;
    }
    assert_true(n > 100);
}

/* A control of a form is named by its label: two parameters that stand in one form may not share one. */
static void labels_differ(const struct pe_param *some, const struct pe_param *others)
{
    for (const struct pe_param *a = some; a && a->name; a++)
        for (const struct pe_param *b = others; b && b->name; b++)
            if (strcmp(a->name, b->name) != 0 &&
                (strcmp(a->about.label, b->about.label) == 0 ||
                 strcmp(pe_label_in(PE_ZH, &a->about), pe_label_in(PE_ZH, &b->about)) == 0))
                fail_msg("%s and %s share a label", a->name, b->name);
}

TEST(labels_of_a_form_differ)
{
    const struct pe_param *sequence = pe_sequence_params(), *attention = pe_operation_at(PE_ATTEND)->params;
    labels_differ(sequence, sequence);
    labels_differ(attention, sequence);
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_param *params = pe_scheme_at(i)->params;
        const struct pe_param *const beside[] = {params, sequence, attention, pe_absolute_params()};
        for (size_t k = 0; k < sizeof beside / sizeof *beside; k++)
            labels_differ(params, beside[k]);
        for (const struct pe_param *row = params; row->name; row++)
            labels_differ(row->fields, row->fields);
    }
}

/* Metrics: what they apply to, and their sentences. */
TEST(every_metric_has_its_texts)
{
    for (size_t i = 0; i < pe_n_metrics(); i++) {
        const struct pe_metric_info *metric = pe_metric_at(i);
        check_about(metric->name, &metric->about);
        check_pair(metric->name, metric->applies_to, pe_text_in(PE_ZH, metric->applies_to));
        for (size_t k = 0; k < metric->n_details; k++)
            check_pair(metric->name, metric->details[k], pe_text_in(PE_ZH, metric->details[k]));
    }
}

TEST(a_text_is_found)
{
    static const struct pe_translation rows[] = {
        {"a", "", "1"}, {"b", "label: x", "2"}, {"b", "summary: x", "3"}, {"c", "", "4"}, {"c", "label: y", "5"}};
    enum { N = sizeof rows / sizeof *rows };
    assert_string_equal(pe_translation_find(rows, N, "a", "label: ", "x"), "1");
    assert_string_equal(pe_translation_find(rows, N, "b", "label: ", "x"), "2");
    assert_string_equal(pe_translation_find(rows, N, "b", "summary: ", "x"), "3");
    assert_null(pe_translation_find(rows, N, "b", "", ""));
    assert_string_equal(pe_translation_find(rows, N, "c", "label: ", "x"), "4");
    assert_string_equal(pe_translation_find(rows, N, "c", "label: ", "y"), "5");
    assert_null(pe_translation_find(rows, N, "", "", ""));
    assert_null(pe_translation_find(rows, N, "d", "", ""));
    assert_null(pe_translation_find(rows, 0, "a", "", ""));
    assert_string_equal(pe_text_in(PE_ZH, "not in the catalogue"), "not in the catalogue");
    assert_string_equal(pe_text_in(PE_EN, "every scheme"), "every scheme");
}

extern const struct pe_translation pe_zh_rows[];
extern const size_t pe_n_zh_rows;

/* A format and its translation take the same arguments, wherever they print them. */
TEST(translated_formats_take_the_same_arguments)
{
    enum { MOST = 12 };
    size_t n_formats = 0;
    for (size_t i = 0; i < pe_n_zh_rows; i++) {
        int english[MOST], chinese[MOST];
        if (strstr(pe_zh_rows[i].english, "80 % of")) /* no format */
            continue;
        size_t n = parse_printf_format(pe_zh_rows[i].english, MOST, english);
        assert_int_equal(n, parse_printf_format(pe_zh_rows[i].chinese, MOST, chinese));
        assert_in_range(n, 0, MOST);
        assert_memory_equal(english, chinese, n * sizeof *english);
        n_formats += n > 0;
    }
    assert_in_range(n_formats, 300, pe_n_zh_rows);
}

TEST(errors_are_in_the_language_of_the_thread)
{
    struct pe_failure err;
    pe_fail(&err, "/x", "%s has no elements", "x");
    assert_string_equal(err.detail, "x has no elements");
    pe_speak_in(PE_ZH);
    pe_fail(&err, "/x", "%s has no elements", "x");
    assert_string_not_equal(err.detail, "x has no elements");
    assert_true(has_chinese(err.detail) && err.detail[0] == 'x');
    assert_string_equal(err.pointer, "/x");
    pe_fail(&err, "/x", "no such text: %d", 5);
    assert_string_equal(err.detail, "no such text: 5");
    pe_speak_in(PE_EN);
    pe_no_memory(&err);
    assert_false(has_chinese(err.detail));
    pe_speak_in(PE_ZH);
    pe_no_memory(&err);
    assert_true(has_chinese(err.detail));
    pe_speak_in(PE_EN);
    assert_int_equal(pe_spoken(), PE_EN);
}

/* The order of the binary search: that of strcmp, whatever awk built the table. */
TEST(translations_are_sorted)
{
    assert_true(pe_n_zh_rows > 900);
    for (size_t i = 1; i < pe_n_zh_rows; i++) {
        int order = strcmp(pe_zh_rows[i - 1].english, pe_zh_rows[i].english);
        assert_true(order < 0 || (order == 0 && strcmp(pe_zh_rows[i - 1].context, pe_zh_rows[i].context) < 0));
    }
}
