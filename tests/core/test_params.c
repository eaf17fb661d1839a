/* Refusals of the core: each names the field, the value found and the allowed values. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <string.h>

/* request, pointer, a word of the detail */
static const char *const refused[][3] = {
    {"{'scheme':'rop','len':2}", "/scheme", "nearest: \"rope\""},
    {"{'scheme':'zzzzzzzzzz','len':2}", "/scheme", "one of: none, integer"},
    {"{'scheme':3,'len':2}", "/scheme", "not a string"},
    {"{'len':2}", "/scheme", "missing"},
    {"{'scheme':'alibi','q':[[1,2]]}", "/scheme", "cannot rotate"},
    {"{'scheme':'rope'}", "/len", "missing"},
    {"{'scheme':'rope','len':-1}", "/len", "len is -1; allowed: an integer from 1"},
    {"{'scheme':'rope','len':0}", "/len", "from 1"},
    {"{'scheme':'rope','len':2.5}", "/len", "2.5"},
    {"{'scheme':'rope','len':'4'}", "/len", "\"4\""},
    {"{'scheme':'rope','len':true}", "/len", "true"},
    {"{'scheme':'rope','len':1e300}", "/len", "1e+300"},
    {"{'scheme':'rope','lenn':4}", "/lenn", "nearest: \"len\""},
    {"{'scheme':'rope','len':4,'frobnicate':1}", "/frobnicate", "unknown field"},
    {"{'scheme':'rope','len':4,'a/b~c':1}", "/a~1b~0c", "unknown field"},
    {"{'scheme':'rope','len':4,'positions':[1,2]}", "/positions", "exactly one"},
    {"{'scheme':'rope','positions':[1,2],'offset':3}", "/offset", "run"},
    {"{'scheme':'rope','positions':[1,2e12]}", "/positions", "index 1"},
    {"{'scheme':'alibi','positions':[[1,2],[3,4]]}", "/positions", "2 axes"},
    {"{'scheme':'rope','positions':5}", "/positions", "positions is 5"},
    {"{'scheme':'rope','len':2,'offset':1099511627776}", "/offset", "2^40"},
    {"{'scheme':'rope','q_len':2}", "/q_len", "one sequence"},
    {"{'scheme':'rope','len':2,'head_dim':63}", "/head_dim", "62 or 64"},
    {"{'scheme':'rope','len':2,'head_dim':8,'rotary_dim':3}", "/rotary_dim", "odd"},
    {"{'scheme':'rope','len':2,'head_dim':8,'rotary_dim':10}", "/rotary_dim", "at most head_dim, 8"},
    {"{'scheme':'rope','len':2,'head_dim':8,'rotary_dim':4,'rotary_offset':6}", "/rotary_offset", "head_dim, 8"},
    {"{'scheme':'rope','len':2,'rotary_dim':4,'partial_rotary_factor':0.5}", "/partial_rotary_factor", "exclude"},
    {"{'scheme':'rope','len':2,'partial_rotary_factor':0.01}", "/partial_rotary_factor", "at least one pair"},
    {"{'scheme':'rope','len':2,'layout':'halff'}", "/layout", "nearest: \"half\""},
    {"{'scheme':'rope','len':2,'layout':'gptq-neox'}", "/layout", "\"interleaved\", \"half\""},
    {"{'scheme':'rope','len':2,'base':1}", "/base", "base is 1"},
    {"{'scheme':'rope','len':2,'base':0}", "/base", "base is 0"},
    {"{'scheme':'rope','len':2,'base':5,'rope_theta':6}", "/rope_theta", "two words"},
    {"{'scheme':'rope','len':2,'direction':0}", "/direction", "1 (counter-clockwise)"},
    {"{'scheme':'rope','len':2,'head_dim':4,'inv_freq':[1]}", "/inv_freq", "needed: 2"},
    {"{'scheme':'rope','len':2,'head_dim':4,'inv_freq':[1,2],'base':7}", "/inv_freq", "exclude"},
    {"{'scheme':'rope','len':2,'scaling':4}", "/scaling", "an object"},
    {"{'scheme':'sinusoidal','len':2,'dim':0}", "/dim", "from 1"},
    {"{'scheme':'sinusoidal','len':2,'dim':4,'freq_shift':2}", "/freq_shift", "below 2"},
    {"{'scheme':'sinusoidal','len':2,'flip_sin_to_cos':1}", "/flip_sin_to_cos", "true or false"},
    {"{'scheme':'alibi','len':2,'num_heads':2,'slopes':[1,2,3]}", "/slopes", "needed: 2"},
    {"{'scheme':'alibi','len':2,'slopes_left':[1,2,3,4,5,6,7,8]}", "/slopes_left", "form=asymmetric"},
    {"{'scheme':'alibi','len':2,'window':0}", "/window", "from 1"},
    {"{'scheme':'alibi','len':2,'key_mask':[1,0,1]}", "/key_mask", "needed: 2"},
    {"{'scheme':'alibi','len':2,'key_mask':[1,0.5]}", "/key_mask", "0 and 1"},
    {"{'scheme':'alibi','len':2,'q_len':3}", "/q_len", "exactly one"},
    {"{'scheme':'rope','q':[1,2]}", "/q", "1 dimensions"},
    {"{'scheme':'rope','q':[[1,2,3]]}", "/head_dim", "odd"},
    {"{'scheme':'rope','q':[[1,2]],'head_dim':4}", "/head_dim", "leave head_dim out"},
    {"{'scheme':'rope','q':[[1,2]],'k':[[1,2,3,4]]}", "/k", "both are head_dim"},
    {"{'scheme':'rope','q':[[1,2]],'len':3}", "/len", "has 1"},
    {"{'scheme':'rope','q':[[1,2]],'tensor_layout':'bhdn'}", "/tensor_layout", "nearest: \"bhnd\""},
};

TEST(refusals_name_field_and_rule)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        test_refused(refused[i][0], refused[i][1], refused[i][2]);
}

/* Whether name stands alone in a list whose names are followed by a comma or nothing. */
static bool lists(const char *detail, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(detail, "one of: "); at && (at = strchr(at, ' ')); at++)
        if (strncmp(at + 1, name, n) == 0 && (at[1 + n] == ',' || !at[1 + n]))
            return true;
    return false;
}

/* Even for the longest word that is quoted, the list after it must not be cut. */
TEST(a_scheme_that_is_not_there_is_answered_with_all_names)
{
    static const char *const requests[] = {
        "{'len':2}",
        "{'scheme':'rop','len':2}",
        "{'scheme':'zzzzzzzzzz','len':2}",
        "{'scheme':'wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww','len':2}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct test_request r;
        struct pe_plan *plan = NULL;
        struct pe_failure err;
        test_request_parse(&r, requests[i]);
        assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
        for (size_t k = 0; k < pe_n_schemes(); k++)
            if (!lists(err.detail, pe_scheme_at(k)->name))
                fail_msg("%s: %s is not listed in: %s", requests[i], pe_scheme_at(k)->name, err.detail);
        test_request_drop(&r);
    }
}

TEST(real_integers_are_integers)
{
    struct test_request r;
    struct pe_plan *plan = test_plan(&r, "{'scheme':'rope','len':4.0,'head_dim':2e1}");
    assert_int_equal(pe_plan_output(plan, 0)->shape[0], 4);
    assert_int_equal(pe_plan_output(plan, 0)->shape[1], 10);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(nearest_needs_to_be_near)
{
    static const char *const names[] = {"rope", "alibi", "sinusoidal", NULL};
    assert_string_equal(pe_nearest("rop", names), "rope");
    assert_string_equal(pe_nearest("Rope", names), "rope");
    assert_string_equal(pe_nearest("sinusodial", names), "sinusoidal");
    assert_null(pe_nearest("banana", names));
    char endless[1000] = "";
    memset(endless, 'k', sizeof endless - 1);
    assert_null(pe_nearest(endless, names));
    assert_null(pe_nearest("a word of very many letters, longer than any name that we could ever have given to a thing",
                           names));
}

TEST(outputs_are_chosen_by_name)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    const char *wanted[] = {"inv_freq", "cos", "positions"};
    test_request_parse(&r, "{'scheme':'rope','len':4,'head_dim':8}");
    r.request.outputs = wanted;
    r.request.n_outputs = 3;
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
    assert_string_equal(pe_plan_output(plan, 0)->name, "inv_freq");
    assert_int_equal(pe_plan_output(plan, 0)->dtype, PE_F64);
    assert_string_equal(pe_plan_output(plan, 1)->name, "cos");
    assert_int_equal(pe_plan_output(plan, 2)->rank, 2);
    pe_plan_free(plan);
    plan = NULL;
    wanted[1] = "sine";
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
    assert_string_equal(err.pointer, "/outputs/1");
    assert_non_null(strstr(err.detail, "nearest: \"sin\""));
    wanted[1] = "matrix";
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
    assert_non_null(strstr(err.detail, "form=matrix"));
    wanted[1] = "inv_freq";
    assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
    assert_non_null(strstr(err.detail, "twice"));
    assert_null(plan);
    test_request_drop(&r);
}
