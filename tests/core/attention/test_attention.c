/* Attention: the laws of plans for every scheme that takes queries and keys, over several units of rows, the last
 * shorter, and over one row alone. Values: tests/http/attention, tests/cases/attention_by_hand.jsonl. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 16 };

/* "name":[[…]] of n by width numbers around 0, the same ones each time. */
static char *put_tensor(char *at, const char *name, size_t n, size_t width)
{
    unsigned state = (unsigned)name[0] * 77u + (unsigned)n;
    at += sprintf(at, ",'%s':[", name);
    for (size_t i = 0; i < n * width; i++) {
        state = state * 1664525 + 1013904223;
        at += sprintf(at, "%s%.3f%s",
                      i % width ? ","
                      : i       ? ",["
                                : "[",
                      (double)(state >> 8) / 0x1p22 - 2, i % width == width - 1 ? "]" : "");
    }
    return at + sprintf(at, "]");
}

/* q [q_len, d], k and v [k_len, d]. */
static void assert_laws(const char *fields, size_t q_len, size_t k_len, size_t d)
{
    static char text[TEXT_MAX];
    char *at = text + sprintf(text, "{%s", fields);
    at = put_tensor(at, "q", q_len, d);
    at = put_tensor(at, "k", k_len, d);
    strcpy(put_tensor(at, "v", k_len, d), "}");
    test_assert_laws_of_attention(text, NULL);
}

TEST(every_scheme_keeps_the_laws)
{
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
    for (size_t s = 0; s < sizeof schemes / sizeof *schemes; s++) {
        assert_laws(schemes[s], 150, 9, 2);
        assert_laws(schemes[s], 1, 7, 4);
    }
}

/* A value that is not finite does not reach rows that mask its key; a row that sees nothing is counted. */
TEST(what_is_hidden)
{
    static const char *output = "output";
    struct test_request r;
    uint64_t empty_rows;
    size_t n;
    test_request_parse(&r, "{'scheme':'none','q':[[0]],'k':[[0],[0]],'v':[[1],[1e999]],'key_mask':[1,0]}");
    r.request.outputs = &output;
    r.request.n_outputs = 1;
    struct pe_plan *plan = test_plan_as(&r, PE_ATTEND, PE_F64);
    double *values = test_values(plan, 0, &n);
    assert_true(n == 1 && values[0] == 1);
    free(values);
    pe_plan_free(plan);
    test_request_drop(&r);
    test_request_parse(&r, "{'scheme':'none','q':[[0],[0]],'k':[[0],[0]],'causal':true,'key_mask':[0,1]}");
    plan = test_plan_as(&r, PE_ATTEND, PE_F64);
    free(test_values(plan, 0, &n));
    assert_true(pe_plan_empty_rows(plan, &empty_rows) && empty_rows == 1);
    pe_plan_free(plan);
    test_request_drop(&r);
}
