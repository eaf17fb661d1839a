/* Limits of what is read from a config.json. What its fields mean is in rows of tests/cases/models.jsonl and in
 * tests/http/models/hf_truth. */
#include "core/models/models.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <string.h>

TEST(what_is_no_object_is_refused)
{
    struct pe_value config = {.kind = PE_INTEGER, .integer = 3};
    struct pe_model_fields out;
    struct pe_failure err;
    assert_int_equal(pe_hf_config_read(&config, &(struct pe_hf_asked){.scheme = NULL}, &out, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/hf_config");
}

/* A rope object of more fields than the output has room for. */
TEST(too_many_fields_are_refused)
{
    char text[2048] = "{'model_type':'llama','head_dim':64,'rope_scaling':{'type':'linear'";
    for (int i = 0; i < PE_MODEL_FIELDS_MAX; i++)
        snprintf(text + strlen(text), 16, ",'f%d':1", i);
    strcat(text, "}}");
    struct test_request r;
    struct pe_model_fields out;
    struct pe_failure err = {.detail = ""};
    test_request_parse(&r, text);
    struct pe_value config = {.kind = PE_OBJECT, .object = {r.fields, r.n}};
    assert_int_equal(pe_hf_config_read(&config, &(struct pe_hf_asked){.scheme = NULL}, &out, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/hf_config/rope_scaling");
    test_request_drop(&r);
}
