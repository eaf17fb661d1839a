/* Explanations and translations: that no failed allocation is forgotten, and that two of one request are equal. What
 * they state is compared with the tools' sources, and read back, over a socket (tests/http/explain). */
#include "core/dialects/dialects.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

typedef enum pe_status open_fn(const struct pe_explain_request *, struct pe_explain **, struct pe_failure *);

static enum pe_status answer(open_fn *open, const struct test_request *r, struct pe_explain **answer)
{
    struct pe_failure err;
    struct pe_explain_request request = {.fields = r->fields, .n_fields = r->n, .max_work = 1e12};
    *answer = NULL;
    return open(&request, answer, &err);
}

/* Of a row of tests/cases/plans.jsonl. */
static void fail_each(open_fn *open, const char *json)
{
    enum pe_status status = PE_NO_MEMORY;
    struct test_request r;
    struct pe_explain *whole, *again;
    test_request_parse(&r, json);
    assert_int_equal(answer(open, &r, &whole), PE_OK);
    for (long n = 0; status; n++) {
        alloc_fail_at(n);
        status = answer(open, &r, &again);
        alloc_fail_at(-1);
        if (status)
            assert_int_equal(status, PE_NO_MEMORY);
    }
    assert_true(pe_value_same(pe_explain_answer(whole), pe_explain_answer(again)));
    pe_explain_free(again);
    pe_explain_free(whole);
    test_request_drop(&r);
}

static void explain(const char *row, const char *request) { (void)row, fail_each(pe_explain_new, request); }
static void translate(const char *row, const char *request) { (void)row, fail_each(pe_translate_new, request); }

TEST(every_allocation_may_fail)
{
    assert_true(test_rows("/explain", explain) > 5);
    assert_true(test_rows("/translate", translate) > 3);
}
