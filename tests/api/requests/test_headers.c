/* Headers of a megabyte are read in one pass, whatever separators they consist of. What headers choose is in
 * tests/cases/negotiation.jsonl. */
#include "api/requests/requests.h"
#include "tests/api/ask.h"

TEST(long_headers_are_linear)
{
    enum { N = 1 << 20 };
    char *header = malloc(N + 1);
    for (const char *c = ",;z\"-*"; *c; c++) {
        enum pe_lang lang = PE_N_LANGS;
        memset(header, *c, N);
        header[N] = '\0';
        assert_true(api_lang_choose(NULL, &(struct api_call){.accept_language = header}, &lang, NULL));
        assert_int_equal(lang, PE_EN);
        assert_int_equal(api_negotiate(header) != NULL, *c == ','); /* an empty list is none */
        assert_int_equal(api_coding_choose(header), API_IDENTITY);
    }
    free(header);
}
