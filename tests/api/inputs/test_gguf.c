/* How often the walk over a GGUF head asks whether to go on, where it also ends a turn; tests/http/models has the rest.
 */
#include "api/inputs/inputs.h"
#include "tests/support/cmocka.h"

#include <stdlib.h>

enum { STRINGS = 1 << 20, HEAD_BYTES = 4 + 4 + 8 + 8 + 8 + 1 + 4 + 4 + 8 };

static unsigned n_asked, left_at;

static bool ask(void *unused) { return ++n_asked == left_at; }

static char *put(char *at, uint64_t x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *at++ = (char)(x >> 8 * i);
    return at;
}

/* A file of one key, "a": an array of a million strings without a byte. */
static char *empty_strings(size_t *n)
{
    *n = HEAD_BYTES + 8 * (size_t)STRINGS;
    char *file = calloc(*n, 1), *at = file;
    assert_non_null(file);
    at = put(at, 0x46554747, 4);
    at = put(at, 3, 4);
    at = put(at, 0, 8);
    at = put(at, 1, 8);
    at = put(at, 1, 8);
    *at++ = 'a';
    at = put(at, 9, 4);
    at = put(at, 8, 4);
    put(at, STRINGS, 8);
    return file;
}

static bool read_head(const char *file, size_t n)
{
    static struct api_request request;
    struct api_problem problem;
    api_request_init(&request, PE_ENCODE);
    n_asked = 0;
    pe_watch(ask, NULL);
    bool fine = api_input_read(&request, "application/x-gguf", file, n, &problem);
    pe_watch(NULL, NULL);
    api_request_drop(&request);
    return fine;
}

TEST(asked_in_a_long_array)
{
    size_t n;
    char *file = empty_strings(&n);
    left_at = 0;
    assert_true(read_head(file, n));
    assert_int_equal(n_asked, STRINGS / 65536);
    left_at = 3;
    assert_false(read_head(file, n));
    assert_int_equal(n_asked, 3);
    free(file);
}
