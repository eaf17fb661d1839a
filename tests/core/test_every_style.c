/* The laws of plans (tests/support/plans.h) for the styles, forms of sequence and ways to combine with x that a
 * scheme's one example does not cover. A style is a row of tests/cases/plans.jsonl. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <string.h>

static void encode(const char *row, const char *request) { (void)row, test_assert_laws(request); }

static void attend(const char *row, const char *request)
{
    test_assert_laws_of_attention(request, strstr(row, "\"output\": \"terms\"") ? "terms" : NULL);
}

TEST(every_row_keeps_the_laws)
{
    assert_true(test_rows("/encode", encode) > 100);
    assert_true(test_rows("/attention", attend) > 10);
}
