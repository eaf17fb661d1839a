/* Queries: decoding, and the types of values. What is refused is in tests/cases/refused_api.jsonl. */
#include "api/requests/requests.h"
#include "tests/api/ask.h"

#include <stdio.h>

static struct api_request request;
static struct api_problem problem;

static bool read_query(const char *query)
{
    api_request_init(&request, PE_ENCODE);
    problem = (struct api_problem){0};
    return api_query_read(&request, query, &problem);
}

static const struct pe_value *field(const char *name)
{
    const struct pe_value *value = api_request_find(&request, name);
    assert_non_null(value);
    return value;
}

TEST(test_meanings)
{
    assert_true(
        read_query("len=8&base=1e4&bias_scaled=true&outputs=cos,sin&positions=1,2.5&inv_freq=5&form=key&scheme=alibi"
                   "&slopes=[1,2]&scaling=%7B%22type%22%3A%22linear%22%7D&other=text&list=1,2&digits=x&tokens=NaN,1"));
    assert_int_equal(field("len")->integer, 8);
    assert_true(field("base")->real == 1e4);
    assert_true(field("bias_scaled")->boolean);
    assert_string_equal(field("outputs")->list.items[1].string, "sin");
    assert_true(((const double *)field("positions")->array.data)[1] == 2.5);
    assert_int_equal(field("inv_freq")->kind, PE_INTEGER); /* not a parameter of alibi: guessed from the text */
    assert_string_equal(field("form")->string, "key");
    assert_int_equal(field("slopes")->array.shape[0], 2);
    assert_string_equal(field("scaling")->object.fields[0].value.string, "linear");
    assert_string_equal(field("other")->string, "text");
    assert_int_equal(field("list")->kind, PE_ARRAY);
    assert_string_equal(field("digits")->string, "x"); /* for the error to show */
    assert_string_equal(field("tokens")->list.items[0].string, "NaN");
    api_request_drop(&request);
}

TEST(test_one_number_is_a_list_where_a_list_is_meant)
{
    assert_true(read_query("positions=7&slopes=0.5&scheme=alibi&outputs=bias"));
    assert_int_equal(field("positions")->kind, PE_ARRAY);
    assert_int_equal(field("slopes")->array.rank, 1);
    assert_int_equal(field("outputs")->list.n, 1);
    api_request_drop(&request);
}

TEST(test_numbers)
{
    static const char *const numbers[] = {"0", "-0", "10", "1.5", "1e5", "1E%2B5", "-1.25e-3"};
    static const char *const words[] = {"%2B1", "01", "-01", ".5",   "1.",  "1e",  "1e%2B", "-",
                                        "",     "1x", "0x1", "True", "nan", "--1", "1.-5"};
    char query[64];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(query, sizeof query, "a=%s", numbers[i]);
        assert_true(read_query(query));
        assert_true(field("a")->kind == PE_INTEGER || field("a")->kind == PE_REAL);
        api_request_drop(&request);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        snprintf(query, sizeof query, "a=%s", words[i]);
        assert_true(read_query(query));
        assert_int_equal(field("a")->kind, PE_STRING);
        api_request_drop(&request);
    }
}

TEST(test_decoding)
{
    assert_true(read_query("a=x%20y+z%2B&&b&c=%C3%A9&%64=1&e==="));
    assert_string_equal(field("a")->string, "x y z+");
    assert_string_equal(field("b")->string, "");
    assert_string_equal(field("c")->string, "\xc3\xa9");
    assert_int_equal(field("d")->integer, 1);
    assert_string_equal(field("e")->string, "==");
    api_request_drop(&request);
}

TEST(test_null_is_not_given)
{
    assert_true(read_query("len=null&base=1"));
    assert_int_equal(request.n_fields, 1);
    api_request_drop(&request);
}
