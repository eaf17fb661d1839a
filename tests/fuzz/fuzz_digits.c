/* The array reader against strtod. Every input becomes a list of valid numbers, so that all of them are read, by the
 * plain reader and by the one of this machine's instruction set; each double must be the nearest, and so must its f32.
 * The first byte selects the kind of input. Even: the rest is text, and the numbers are taken from its words. Odd: the
 * rest is doubles, written with all their digits: the double itself, the middle between it and the next double, and the
 * middle between it and the next f32. */
#include "tests/fuzz/laws.h"
#include "core/numeric/numeric.h"
#include "api/numbers/numbers.h"

#include <math.h>

enum { WORDS_MAX = 256, WORD_BYTES = 1200, TEXT_BYTES = 1 << 16 };

static enum pe_isa best;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    best = pe_isa();
    return 0;
}

/* A list under construction, and strtod's values of its words. */
struct list {
    char text[TEXT_BYTES];
    size_t n_bytes, n;
    double values[WORDS_MAX];
};

static size_t n_digits(const char *s) { return strspn(s, "0123456789"); }

/* -? (0 | 1-9 digits) (. digits)? (e ±? digits)?: its length, 0 if none begins here. */
static size_t number_length(const char *start)
{
    const char *s = start + (*start == '-');
    if (!n_digits(s))
        return 0;
    s += *s == '0' ? 1 : n_digits(s);
    if (*s == '.' && n_digits(s + 1))
        s += 1 + n_digits(s + 1);
    if (*s == 'e' || *s == 'E') {
        size_t sign = s[1] == '+' || s[1] == '-';
        s += n_digits(s + 1 + sign) ? 1 + sign + n_digits(s + 1 + sign) : 0;
    }
    return (size_t)(s - start);
}

static void append(struct list *list, const char *bytes, size_t n)
{
    memcpy(list->text + list->n_bytes, bytes, n);
    list->n_bytes += n;
}

static void add(struct list *list, const char *word, size_t n, const char *comma)
{
    char one[WORD_BYTES + 1];
    if (n > WORD_BYTES || list->n == WORDS_MAX || list->n_bytes + n + 8 > TEXT_BYTES)
        return;
    memcpy(one, word, n);
    one[n] = '\0';
    double x = strtod(one, NULL);
    if (isinf(x))
        return;
    append(list, list->n ? comma : "[", list->n ? strlen(comma) : 1);
    append(list, word, n);
    list->values[list->n++] = x;
}

static void add_words(struct list *list, const char *text)
{
    static const char *const commas[] = {",", ", ", ",\n  "};
    while (*text) {
        size_t n = number_length(text);
        if (n)
            add(list, text, n, commas[n % 3 ? 0 : n % 2 + 1]);
        text += n ? n : 1;
        text += strcspn(text, "-0123456789");
    }
}

/* The exact sum of two neighbouring doubles fits a long double of 64 bits, and printf prints all its digits. */
static void add_exactly(struct list *list, long double x)
{
    char word[WORD_BYTES];
    if (isinf(x) || isnan(x))
        return;
    int n = snprintf(word, sizeof word, "%.*Le", fabsl(x) < 1e-30L || fabsl(x) > 1e30L ? 800 : 120, x);
    add(list, word, (size_t)n, ",");
    word[20] ^= 1; /* changed by one digit */
    add(list, word, (size_t)n, ",");
}

static void add_doubles(struct list *list, const uint8_t *data, size_t size)
{
    for (; size >= sizeof(double) && list->n + 8 < WORDS_MAX; data += sizeof(double), size -= sizeof(double)) {
        double x;
        memcpy(&x, data, sizeof x);
        if (isnan(x) || isinf(x))
            continue;
        float f = (float)x;
        add_exactly(list, (long double)x);
        add_exactly(list, ((long double)x + (long double)nextafter(x, HUGE_VAL)) / 2);
        if (!isinf(f) && !isinf(nextafterf(f, HUGE_VALF)))
            add_exactly(list, ((long double)f + (long double)nextafterf(f, HUGE_VALF)) / 2);
    }
}

static void check_read(const struct list *list, enum pe_isa isa)
{
    REQUIRE(pe_kernels_use(isa));
    struct api_doubles out = {0};
    uint64_t shape[PE_RANK_MAX];
    unsigned rank = 0;
    char *exact = malloc(list->n_bytes);
    memcpy(exact, list->text, list->n_bytes);
    const char *p = exact;
    REQUIRE(api_numbers_read(&p, exact + list->n_bytes, &out, shape, &rank) == API_READ_OK);
    REQUIRE(p == exact + list->n_bytes && rank == 1 && shape[0] == list->n && out.n == list->n);
    REQUIRE(memcmp(out.values, list->values, list->n * sizeof(double)) == 0);
    static float narrow[WORDS_MAX], expected[WORDS_MAX];
    for (size_t i = 0; i < list->n; i++)
        expected[i] = (float)list->values[i];
    pe_convert(PE_F32, narrow, PE_F64, out.values, list->n);
    REQUIRE(memcmp(narrow, expected, list->n * sizeof *narrow) == 0);
    free(out.values);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct list list;
    list.n = list.n_bytes = 0;
    if (size == 0)
        return 0;
    char *text = text_of(data + 1, size < 300 ? size - 1 : 299);
    if (data[0] % 2)
        add_doubles(&list, data + 1, size - 1 < 16 ? size - 1 : 16);
    int n_times = is_one_of(4) ? 3 : 1; /* enough numbers, with enough text behind them, for wide registers */
    for (int i = 0; i < n_times && data[0] % 2 == 0; i++)
        add_words(&list, text);
    if (list.n) {
        list.text[list.n_bytes++] = ']';
        check_read(&list, best);
        if (is_one_of(4))
            check_read(&list, PE_ISA_BASE);
    }
    free(text);
    return 0;
}
