/* The answer's form: each of its fields is in the entity tag, known in a query, and refused by the formats that do not
 * use it. A field added to form_list.h fails here until it has a case. */
#include "api/requests/requests.h"
#include "tests/api/ask.h"

#include <stdio.h>

/* A format that uses the field, two values of it, and a format that refuses it, if one does. */
static const struct {
    const char *name, *format, *values[2], *refusing;
} cases[] = {
    {"dtype", "raw", {"f32", "f64"}, NULL},      {"format", NULL, {"raw", "npy"}, NULL},
    {"digits", "json", {"2", "3"}, "raw"},       {"reduce", "raw", {"mean", "max"}, NULL},
    {"data", "json", {"true", "false"}, "npy"},  {"cmap", "png", {"viridis", "coolwarm"}, "json"},
    {"vmin", "text", {"-1", "0"}, "json"},       {"vmax", "text", {"1", "0"}, "json"},
    {"zoom", "png", {"1", "2"}, "text"},         {"legend", "png", {"false", "true"}, "text"},
    {"ascii", "text", {"false", "true"}, "png"}, {"columns", "text", {"80", "3"}, "png"},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static struct answer ask(const char *format, const char *field, const char *value)
{
    char query[256];
    snprintf(query, sizeof query, "scheme=sinusoidal&len=8&dim=8&slice=[[0,8,2]]%s%s&%s=%s", format ? "&format=" : "",
             format ? format : "", field, value);
    struct api_call call = {.method = "GET", .path = "/encode", .query = query};
    struct api_host own = host;
    own.max_pictures = 1 << 24;
    return gather(api_answer(&own, &call));
}

TEST(each_field_has_a_case)
{
    size_t n = 0;
    for (const struct pe_param *row = api_form_params(); row->name; row++, n++) {
        const struct pe_about *about = &row->about;
        size_t at = 0;
        assert_true(about->label && about->summary);
        assert_string_not_equal(pe_text_in(PE_ZH, about->summary), about->summary);
        while (at < N_CASES && strcmp(cases[at].name, row->name) != 0)
            at++;
        if (at == N_CASES)
            fail_msg("no case for %s", row->name);
    }
    assert_int_equal(n, N_CASES);
}

TEST(each_field_is_in_the_tag)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct answer one = ask(cases[i].format, cases[i].name, cases[i].values[0]);
        struct answer other = ask(cases[i].format, cases[i].name, cases[i].values[1]);
        struct answer again = ask(cases[i].format, cases[i].name, cases[i].values[0]);
        if (one.status != 200 || other.status != 200)
            fail_msg("%s: %d %d %s %s", cases[i].name, one.status, other.status, one.body, other.body);
        assert_true(one.n != other.n ||
                    memcmp(one.body, other.body, one.n) != 0); /* otherwise the case proves nothing */
        if (strcmp(header_of(&one, "ETag"), header_of(&other, "ETag")) == 0)
            fail_msg("two answers with %s have one tag", cases[i].name);
        assert_string_equal(header_of(&one, "ETag"), header_of(&again, "ETag"));
        answer_drop(&one);
        answer_drop(&other);
        answer_drop(&again);
    }
}

TEST(a_field_without_effect_is_refused)
{
    for (size_t i = 0; i < N_CASES; i++)
        if (cases[i].refusing) {
            char pointer[64];
            snprintf(pointer, sizeof pointer, "\"/%s\"", cases[i].name);
            assert_answer(ask(cases[i].refusing, cases[i].name, cases[i].values[1]), 422,
                          WORDS(pointer, "has no meaning in the format", cases[i].format));
        }
}

/* A field with its default value has no effect and is accepted. */
TEST(a_usual_flag_is_taken_by_all_formats)
{
    assert_answer(ask("raw", "data", "true"), 200, NULL);
    assert_answer(ask("raw", "legend", "false"), 200, NULL);
    assert_answer(ask("npy", "ascii", "false"), 200, NULL);
}

TEST(a_misspelt_field_is_guessed)
{
    for (size_t i = 0; i < N_CASES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%sx", cases[i].name);
        assert_answer(ask("raw", name, "1"), 422, WORDS(cases[i].name));
    }
}

void tests_begin(void) { api_setup(); }
