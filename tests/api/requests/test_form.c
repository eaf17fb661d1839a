/* The answer's form: each of its fields is in the entity tag. A field added to form_list.h fails here until it has a
 * case. Which formats refuse it is in tests/cases/refused_formats.jsonl and refused_api.jsonl. */
#include "api/requests/requests.h"
#include "tests/api/ask.h"

#include <stdio.h>

/* A format that uses the field, and two values of it. */
static const struct {
    const char *name, *format, *values[2];
} cases[] = {
    {"dtype", "raw", {"f32", "f64"}},     {"format", NULL, {"raw", "npy"}},
    {"digits", "json", {"2", "3"}},       {"reduce", "raw", {"mean", "max"}},
    {"data", "json", {"true", "false"}},  {"cmap", "png", {"viridis", "coolwarm"}},
    {"vmin", "text", {"-1", "0"}},        {"vmax", "text", {"1", "0"}},
    {"zoom", "png", {"1", "2"}},          {"legend", "png", {"false", "true"}},
    {"ascii", "text", {"false", "true"}}, {"columns", "text", {"80", "3"}},
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
