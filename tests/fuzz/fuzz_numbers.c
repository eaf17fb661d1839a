/* Arbitrary bytes as an array of numbers, with jansson as the reference for JSON and strtod for values; the numbers
 * read are then printed in every real format and must read back the same. */
#include "tests/fuzz/laws.h"
#include "api/numbers/numbers.h"

#include <jansson.h>
#include <math.h>

/* ---- What jansson makes of it ---- */

static bool is_number(const json_t *item, double *x)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    *x = json_number_value(item);
    if (!json_is_string(item))
        return json_is_number(item);
    for (int i = 0; i < 3; i++)
        if (strcmp(json_string_value(item), words[i]) == 0) {
            *x = strtod(words[i], NULL);
            return true;
        }
    return false;
}

struct judge {
    const struct api_doubles *values;
    size_t next;
};

/* Compares an array with the shape that was read; false if they differ. */
static bool agrees(struct judge *judge, const json_t *array, const uint64_t *shape, unsigned rank)
{
    if (!json_is_array(array) || json_array_size(array) != shape[0])
        return false;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        double x, read = 0;
        if (rank > 1) {
            if (!agrees(judge, item, shape + 1, rank - 1))
                return false;
            continue;
        }
        if (!is_number(item, &x) || judge->next == judge->values->n)
            return false;
        read = judge->values->values[judge->next++];
        if (memcmp(&x, &read, sizeof x) != 0 && !(isnan(x) && isnan(read)))
            return false;
    }
    return true;
}

/* Whether the text contains only numbers and non-empty arrays, within the allowed levels: then api_numbers_read may not
 * return OTHER. */
static bool is_numeric(const json_t *array, unsigned levels)
{
    double x;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (json_is_array(item) ? levels == 1 || !is_numeric(item, levels - 1) : !is_number(item, &x))
            return false;
    }
    return json_array_size(array) > 0;
}

/* ---- What was read, printed and read again ---- */

static void print_and_read(enum pe_dtype dtype, const struct api_doubles *values)
{
    size_t n = values->n, size = pe_dtype_size(dtype), room = n * (api_number_width(dtype, API_DIGITS_SHORTEST) + 1);
    char *src = malloc(n * size), *again = malloc(n * size), *text = malloc(room + 1);
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    REQUIRE(src && again && text);
    pe_convert(dtype, src, PE_F64, values->values, n);
    text[0] = '[';
    char *end = api_numbers_print(text + 1, dtype, src, n, API_DIGITS_SHORTEST);
    REQUIRE((size_t)(end - text) <= room);
    *end++ = ']';
    const char *p = text;
    REQUIRE(api_numbers_read(&p, end, &out, shape, &rank) == API_READ_OK && p == end && rank == 1 && out.n == n);
    pe_convert(dtype, again, PE_F64, out.values, n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(isnan(out.values[i]) || memcmp(src + i * size, again + i * size, size) == 0);
    free(src);
    free(again);
    free(text);
    free(out.values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An escape could spell Infinity for jansson, but not for our reader; and jansson 2.14 ignores a NUL after a
     * number. */
    if (size == 0 || data[0] != '[' || memchr(data, '\\', size) || memchr(data, '\0', size))
        return 0;
    const char *text = (const char *)data, *p = text;
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank = 0;
    enum api_read result = api_numbers_read(&p, text + size, &out, shape, &rank);
    size_t n_read = result == API_READ_OK ? (size_t)(p - text) : size;
    json_t *array =
        json_loadb(text, n_read, JSON_DECODE_INT_AS_REAL | (result == API_READ_OK ? 0 : JSON_DISABLE_EOF_CHECK), NULL);
    struct judge judge = {.values = &out};
    if (result == API_READ_OK) {
        REQUIRE(agrees(&judge, array, shape, rank) && judge.next == out.n);
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++)
            print_and_read(dtype, &out);
    } else {
        REQUIRE(out.n == 0 && p == text);
        REQUIRE(result != API_READ_RAGGED || is_numeric(array, PE_RANK_MAX));
        REQUIRE(result != API_READ_OTHER || !array || !is_numeric(array, PE_RANK_MAX));
    }
    json_decref(array);
    free(out.values);
    return 0;
}
