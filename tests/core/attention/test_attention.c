/* Attention maps: the laws for every scheme, values from the papers and the specification, masks, and refusals. The
 * comparison with NumPy is in tests/http/attention. */
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 16 };

/* ,"name":[[…]] of n by width numbers around 0, the same ones each time. */
static void put_tensor(char *text, const char *name, size_t n, size_t width)
{
    char *at = text + strlen(text);
    unsigned state = (unsigned)name[0] * 77u + (unsigned)n;
    at += sprintf(at, ",'%s':[", name);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < width; c++) {
            state = state * 1664525 + 1013904223;
            at += sprintf(at, "%s%.3f%s",
                          c   ? ","
                          : i ? ",["
                              : "[",
                          (double)(state >> 8) / 0x1p22 - 2, c + 1 == width ? "]" : "");
        }
    strcpy(at, "]}");
}

/* {fields, "q": [q_len, d], "k": …, "v": …} */
static char *request(const char *fields, size_t q_len, size_t k_len, size_t d)
{
    char *text = malloc(TEXT_MAX);
    assert_non_null(text);
    sprintf(text, "{%s", fields);
    const struct {
        const char *name;
        size_t n;
    } tensors[] = {{"q", q_len}, {"k", k_len}, {"v", k_len}};
    for (size_t i = 0; i < 3; i++) {
        put_tensor(text, tensors[i].name, tensors[i].n, d);
        if (i < 2)
            text[strlen(text) - 1] = '\0';
    }
    return text;
}

/* Every scheme that takes q and k, with as few parameters as possible. */
static const char *const schemes[] = {
    "'scheme':'none'",
    "'scheme':'rope'",
    "'scheme':'rope','kernel':'linear'",
    "'scheme':'xpos','causal':true",
    "'scheme':'alibi','causal':true",
    "'scheme':'alibi','form':'key','bias_scaled':true",
    "'scheme':'t5','seed':1,'std':1.0",
    "'scheme':'kerple'",
    "'scheme':'fire','seed':1,'std':1.0",
    "'scheme':'sandwich','window':3,'softcap':5.0",
    "'scheme':'shaw','seed':1,'std':1.0",
    "'scheme':'shaw','table_style':'sinusoidal','max_relative':3",
    "'scheme':'shaw','table_style':'relative_key_query','max_relative':200,'seed':1,'std':1.0",
    "'scheme':'transformer_xl','seed':1,'std':0.5,'causal':true",
    "'scheme':'xlnet','seed':1,'std':0.5",
    "'scheme':'conformer','seed':1,'std':0.5",
    "'scheme':'deberta','position_buckets':8,'max_relative_positions':16,'seed':1,'std':1.0",
    "'scheme':'cope','npos_max':5,'seed':1,'std':1.0,'causal':true",
};

enum { N_SCHEMES = sizeof schemes / sizeof *schemes };

/* Several units, the last shorter; and one row alone. */
TEST(any_pieces_are_the_whole)
{
    for (size_t s = 0; s < N_SCHEMES; s++) {
        char *text = request(schemes[s], 150, 9, 2);
        test_assert_laws_of(PE_ATTEND, text);
        free(text);
        text = request(schemes[s], 1, 7, 4);
        test_assert_laws_of(PE_ATTEND, text);
        free(text);
    }
}

TEST(embeddings_too)
{
    static const char *const texts[] = {
        "{'scheme':'none','tokens':['a','b','a'],'dim':8,'num_heads':2}",
        "{'scheme':'sinusoidal','tokens':['a','b','a'],'dim':8,'num_heads':2,'causal':true}",
        "{'scheme':'learned','x':[[1,2,3,4],[5,6,7,8]],'num_heads':2,'seed':3}",
        "{'scheme':'rope','x':[[1,2,3,4],[5,6,7,8]],'num_heads':2,'seed':3}",
        "{'scheme':'t5','tokens':['a','b','a'],'dim':8,'num_heads':2}",
        "{'scheme':'beit','grid':[1,2],'seed':1,'q':[[1,2],[3,4],[5,6]],'k':[[1,2],[3,4],[5,6]]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        test_assert_laws_of(PE_ATTEND, texts[i]);
}

/* ---- Values ---- */

static double *attend(const char *json, const char *output, size_t *n, uint64_t *empty_rows)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    test_request_parse(&r, json);
    r.request.operation = PE_ATTEND;
    r.request.outputs = &output;
    r.request.n_outputs = 1;
    r.request.dtype = PE_F64;
    if (pe_plan_new(&r.request, &plan, &err))
        fail_msg("%s: refused at \"%s\": %s", json, err.pointer, err.detail);
    double *values = test_values(plan, 0, n);
    assert_true(pe_plan_empty_rows(plan, empty_rows));
    pe_plan_free(plan);
    test_request_drop(&r);
    return values;
}

static void assert_values(const char *json, const char *output, const double *expected, size_t n_expected,
                          double tolerance)
{
    size_t n;
    uint64_t empty_rows;
    double *got = attend(json, output, &n, &empty_rows);
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++)
        if (!(got[i] == expected[i] || fabs(got[i] - expected[i]) <= tolerance))
            fail_msg("%s: %s[%zu] is %.17g, expected %.17g", json, output, i, got[i], expected[i]);
    free(got);
}

/* Two queries and keys by hand; a softcap by hand: 2·tanh(x/2). */
TEST(softmax_of_products)
{
    const double probs[] = {0.7310585786300049, 0.2689414213699951, 0.2689414213699951, 0.7310585786300049};
    assert_values("{'scheme':'none','q':[[1,0],[0,1]],'k':[[1,0],[0,1]],'softmax_scale':1}", "probs", probs, 4, 1e-15);
    const double capped[] = {0.9242343145200195, 0};
    assert_values("{'scheme':'none','q':[[1,0]],'k':[[1,0],[0,1]],'softmax_scale':1,'softcap':2}", "scores", capped, 2,
                  1e-15);
    const double output[] = {0.7310585786300049, 0.2689414213699951};
    assert_values("{'scheme':'none','q':[[1,0]],'k':[[1,0],[0,1]],'v':[[1,0],[0,1]],'softmax_scale':1}", "output",
                  output, 2, 1e-15);
    const double entropy[] = {0.582203108888218}; /* ln(1 + 1/e) + 1/(1 + e) */
    assert_values("{'scheme':'none','q':[[1,0]],'k':[[1,0],[0,1]],'softmax_scale':1}", "row_entropy", entropy, 1,
                  1e-14);
}

/* CoPE (arXiv 2405.18719) by hand: logits 0 | 0 0 | 0 1 2 under a causal mask; the values are the terms added to them.
 */
TEST(cope_counts_from_the_key_to_the_query)
{
    /* q = [1 0], [0 1], [1 1]; keys such that q·k are those scores: k0 = [0 0], k1 = [1 0], k2 = [1 1]. */
    const double expected[] = {.5, -(double)INFINITY, -(double)INFINITY, 2, 1, -(double)INFINITY,
                               8,  1 + 6.059278283,   2 + 2.6423912339};
    assert_values("{'scheme':'cope','q':[[1,0],[0,1],[1,1]],'k':[[0,0],[1,0],[1,1]],'softmax_scale':1,'pos_emb':[[0,0],"
                  "[1,2],[3,5]],'causal':true}",
                  "scores", expected, 9, 1e-9);
}

/* NEZHA (arXiv 1909.00204) with K = 2, d = 4; relative 0 is row 2. With q = e_c the logit is the table's channel. */
TEST(nezha_counts_rows)
{
    const double expected[] = {.9092974268, -.4161468365, .0199986667, .9998000067};
    for (int c = 0; c < 4; c++) {
        char text[256];
        sprintf(text,
                "{'scheme':'shaw','table_style':'sinusoidal','max_relative':2,'softmax_scale':1,'q':[[%d,%d,%d,%d]],"
                "'k':[[0,0,0,0]]}",
                c == 0, c == 1, c == 2, c == 3);
        assert_values(text, "scores", &expected[c], 1, 1e-9);
    }
}

/* Two queries at 2, 3 of four keys: bottom-right. A row that sees nothing is 0, and counted. */
TEST(masks)
{
    const double third = 1. / 3, causal[] = {third, third, third, 0, .25, .25, .25, .25};
    assert_values("{'scheme':'none','q':[[0],[0]],'k':[[0],[0],[0],[0]],'causal':true}", "probs", causal, 8, 1e-15);
    const double window[] = {0, .5, .5, 0, 0, 0, .5, .5};
    assert_values("{'scheme':'none','q':[[0],[0]],'k':[[0],[0],[0],[0]],'causal':true,'window':2}", "probs", window, 8,
                  1e-15);
    const double padded[] = {0, 0, 1, 0, 0, 0, .5, .5};
    assert_values("{'scheme':'none','q':[[0],[0]],'k':[[0],[0],[0],[0]],'causal':true,'key_mask':[0,0,1,1]}", "probs",
                  padded, 8, 1e-15);
    const double packed[] = {1, 0, 0, 0, .5, .5, 0, .5, .5};
    assert_values("{'scheme':'none','q':[[0],[0],[0]],'k':[[0],[0],[0]],'lens':[1,2]}", "probs", packed, 9, 1e-15);
    const double empty[] = {0, 0, 0, 1};
    size_t n;
    uint64_t empty_rows;
    const char *json = "{'scheme':'none','q':[[0],[0]],'k':[[0],[0]],'causal':true,'key_mask':[0,1]}";
    assert_values(json, "probs", empty, 4, 0);
    free(attend(json, "probs", &n, &empty_rows));
    assert_int_equal(empty_rows, 1);
}

/* Biases of a list of positions: they depend on the positions, not on their order. */
TEST(listed_positions)
{
    const double scores[] = {-(double)INFINITY, -2 * 0.00390625, 0};
    assert_values(
        "{'scheme':'alibi','q':[[0]],'k':[[0],[0],[0]],'q_positions':[5],'k_positions':[9,3,5],'causal':true}",
        "scores", scores, 3, 0);
}

/* phi(0) = 1: every weight is 1/3 without positions. Rotated by a half turn the numerator changes its sign, the
 * denominator does not. */
TEST(linear_kernel)
{
    const double even[] = {1. / 3, 1. / 3, 1. / 3};
    assert_values("{'scheme':'none','kernel':'linear','q':[[0,0]],'k':[[0,0],[0,0],[0,0]]}", "weights", even, 3, 1e-15);
    const double turned[] = {-.5, .5};
    assert_values("{'scheme':'rope','kernel':'linear','inv_freq':[3.141592653589793],'q':[[0,0]],'k':[[0,0],[0,0]]}",
                  "weights", turned, 2, 1e-15);
}

/* NaN values do not affect rows that mask them. */
TEST(hidden_values_stay_hidden)
{
    const double expected[] = {1};
    assert_values("{'scheme':'none','q':[[0]],'k':[[0],[0]],'v':[[1],[1e999]],'key_mask':[1,0]}", "output", expected, 1,
                  0);
}

/* ---- Refusals ---- */

/* ---- Terms of the scores ---- */

static const char *const split[] = {
    "{'scheme':'sinusoidal','tokens':['a','b','a'],'dim':8,'num_heads':2,'causal':true}",
    "{'scheme':'learned','x':[[[1,2,3,4],[5,6,7,8]],[[1,0,3,0],[0,6,0,8]]],'num_heads':2,'seed':3}",
    "{'scheme':'shaw','table_style':'relative_key_query','max_relative':3,'seed':1,'std':1.0,'q':[[1,2],[3,4],[5,6]],"
    "'k':[[1,0],[3,1],[5,2]]}",
    "{'scheme':'xlnet','seed':1,'std':0.5,'token_type_ids':[0,1,1],'q':[[1,2],[3,4],[5,6]],'k':[[1,0],[3,1],[5,2]]}",
    "{'scheme':'deberta','position_buckets':4,'max_relative_positions':8,'seed':1,'std':1.0,'q':[[1,2],[3,4],[5,6]],"
    "'k':[[1,0],[3,1],[5,2]]}",
    "{'scheme':'cope','npos_max':3,'seed':1,'std':1.0,'causal':true,'q':[[1,2],[3,4],[5,6]],'k':[[1,0],[3,1],[5,2]]}",
};
static const size_t n_split[] = {4, 4, 3, 5, 3, 2};

static struct pe_plan *plan_of_terms(struct test_request *r, const char *json, enum pe_status *status)
{
    static const char *const outputs[] = {"terms"};
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    test_request_parse(r, json);
    r->request.operation = PE_ATTEND;
    r->request.outputs = outputs;
    r->request.n_outputs = 1;
    r->request.dtype = PE_F64;
    *status = pe_plan_new(&r->request, &plan, &err);
    return plan;
}

TEST(terms_sum_to_the_scores)
{
    for (size_t s = 0; s < sizeof split / sizeof *split; s++) {
        struct test_request r;
        const char *names[PE_TERMS_MAX];
        enum pe_status status;
        struct pe_plan *plan = plan_of_terms(&r, split[s], &status);
        assert_int_equal(status, PE_OK);
        assert_int_equal(pe_plan_terms(plan, names), n_split[s]);
        assert_int_equal(pe_plan_output(plan, 0)->shape[0], n_split[s]);
        size_t n_terms, n_scores;
        uint64_t empty_rows;
        double *terms = test_values(plan, 0, &n_terms), *scores = attend(split[s], "scores", &n_scores, &empty_rows);
        assert_int_equal(n_terms, n_split[s] * n_scores);
        for (size_t i = 0; i < n_scores; i++) {
            double sum = 0;
            for (size_t k = 0; k < n_split[s]; k++)
                sum += terms[k * n_scores + i];
            if (sum != scores[i] && !(fabs(sum - scores[i]) < 1e-11))
                fail_msg("%s: the terms of score %zu sum to %.17g, not to %.17g", split[s], i, sum, scores[i]);
        }
        for (size_t i = 0; i < n_terms; i++) { /* any element alone is that of the whole */
            double one;
            pe_fill(plan, 0, i, 1, &one);
            assert_memory_equal(&one, &terms[i], sizeof one);
        }
        free(terms);
        free(scores);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

TEST(terms_without_memory)
{
    for (size_t s = 0; s < sizeof split / sizeof *split; s++) {
        enum pe_status status = PE_NO_MEMORY;
        for (long n = 0; status == PE_NO_MEMORY; n++) {
            static const char *const outputs[] = {"terms"};
            struct test_request r;
            struct pe_plan *plan = NULL;
            struct pe_failure err;
            test_request_parse(&r, split[s]);
            r.request.operation = PE_ATTEND;
            r.request.outputs = outputs;
            r.request.n_outputs = 1;
            assert_true(n < 1000);
            alloc_fail_at(n);
            status = pe_plan_new(&r.request, &plan, &err);
            alloc_fail_at(-1);
            assert_true(status ? !plan : plan != NULL);
            pe_plan_free(plan);
            test_request_drop(&r);
        }
        assert_int_equal(status, PE_OK);
    }
}

static void refused(const char *json, const char *output, const char *pointer, const char *word)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    test_request_parse(&r, json);
    r.request.operation = PE_ATTEND;
    r.request.outputs = &output;
    r.request.n_outputs = output != NULL;
    if (!pe_plan_new(&r.request, &plan, &err))
        fail_msg("%s: was accepted", json);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.detail, word))
        fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", json, word, pointer, err.detail, err.pointer);
    test_request_drop(&r);
}

#define Q2 "'q':[[1,0],[0,1]]"
#define K2 "'k':[[1,0],[0,1]]"

TEST(refusals)
{
    refused("{'scheme':'none'," Q2 "}", NULL, "/k", "k is missing");
    refused("{'scheme':'none'," K2 "}", NULL, "/q", "q is missing");
    refused("{'scheme':'none'}", NULL, "/q", "q is missing");
    refused("{'scheme':'none'," Q2 ",'k':[[1,0,0]]}", NULL, "/k", "[1,3], q [2,2]");
    refused("{'scheme':'none','q':[[[1]],[[1]],[[1]]],'k':[[[1]],[[1]]]}", NULL, "/k", "[2,1,1], q [3,1,1]");
    refused("{'scheme':'none'," Q2 "," K2 ",'v':[[1,0]]}", NULL, "/v", "[1,2], k [2,2]");
    refused("{'scheme':'none'," Q2 "," K2 "}", "output", "/outputs", "needs the values v");
    refused("{'scheme':'none'," Q2 "," K2 "}", "prob", "/outputs/0", "nearest: \"probs\"");
    refused("{'scheme':'none'," Q2 "," K2 "}", "weights", "/outputs/0", "allowed");
    refused("{'scheme':'sinusoidal'," Q2 "," K2 "}", NULL, "/q", "give x");
    refused("{'scheme':'none'," Q2 "," K2 ",'x':[[1,2]]}", NULL, "/x", "one of the three");
    refused("{'scheme':'none'," Q2 "," K2 ",'w_q':[[1,2]]}", NULL, "/w_q", "not used");
    refused("{'scheme':'none','num_heads':2,'x':[[1,2]]}", NULL, "/w_q", "seed");
    refused("{'scheme':'none','x':[[1,2]]}", NULL, "/num_heads", "8 heads");
    refused("{'scheme':'rope','num_heads':2,'x':[[1,2,3,4]],'w_q':[[1,2,3,4]]}", NULL, "/w_q", "2 heads");
    refused("{'scheme':'none'," Q2 "," K2 ",'window':0}", NULL, "/window", "1");
    refused("{'scheme':'none'," Q2 "," K2 ",'softcap':0}", NULL, "/softcap", "softcap");
    refused("{'scheme':'none'," Q2 "," K2 ",'lens':[1,2]}", NULL, "/lens", "lens gives 3");
    refused("{'scheme':'none'," Q2 "," K2 ",'key_mask':[1]}", NULL, "/key_mask", "2");
    refused("{'scheme':'none'," Q2 "," K2 ",'key_mask':[1,2]}", NULL, "/key_mask", "1");
    refused("{'scheme':'none'," Q2 "," K2 ",'num_heads':3}", NULL, "/num_heads", "q makes it 1");
    refused("{'scheme':'t5'," Q2 "," K2 "}", NULL, "/table", "[32,1]");
    refused("{'scheme':'t5','num_buckets':4,'max_distance':9," Q2 "," K2 ",'table':[[1,2],[1,2],[1,2],[1,2]]}", NULL,
            "/table", "[4,1]");
    refused("{'scheme':'alibi','kernel':'linear'," Q2 "," K2 "}", NULL, "/kernel", "alibi");
    refused("{'scheme':'rope','kernel':'linear','softcap':3," Q2 "," K2 "}", NULL, "/softcap", "linear");
    refused("{'scheme':'shaw'," Q2 "," K2 ",'rel_k':[[1,2],[3,4]]}", NULL, "/rel_k", "[9,2]");
    refused("{'scheme':'shaw'," Q2 "," K2 ",'positions':[0,0.5],'seed':1}", NULL, "/positions", "0.5");
    refused("{'scheme':'shaw','table_style':'relative_key'," Q2 "," K2 ",'rel_k':[[1,2]]}", NULL, "/rel_k",
            "does not clip");
    refused("{'scheme':'cope'," Q2 "," K2 "}", NULL, "/pos_emb", "[64,2]");
    refused("{'scheme':'xlnet'," Q2 "," K2 ",'same_length':true,'seed':1}", NULL, "/same_length", "causal");
    refused("{'scheme':'deberta'," Q2 "," K2 ",'rel_embeddings':[[1,2]],'max_relative_positions':2}", NULL,
            "/rel_embeddings", "[4,2]");
    refused("{'scheme':'deberta'," Q2 "," K2 ",'pos_att_type':'p2p','seed':1}", NULL, "/pos_att_type", "c2p");
    refused("{'scheme':'beit','grid':[2,2],'seed':1," Q2 "," K2 "}", NULL, "/grid", "4");
    refused("{'scheme':'none'," Q2 "," K2 ",'softmax_scal':1}", NULL, "/softmax_scal", "nearest: \"softmax_scale\"");
}
