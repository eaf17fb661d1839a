/* JSON text to numbers: arrays of them, nested, and the nearest double of one decimal.
 *
 * Three methods give the same, correctly rounded double: up to 19 digits by one or two products with a 128-bit power of
 * ten (Daniel Lemire, "Number parsing at a gigabyte per second"; Mushtak and Lemire, "Fast number parsing without
 * fallback", for the proof that this always decides); more digits by the same with their first 19 and these plus one,
 * if both agree; else libc, on at most as many digits as can affect the result.
 *
 * Why not strtod for all: it takes 60 ns a number, depends on the locale, and a body has millions of them; this takes a
 * few. An array of numbers never becomes a tree of nodes (json_scan.c), so reading is bounded by the text. */
#include "api/numbers/numbers.h"
#include "api/numbers/numbers_powers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One decimal to the nearest double -------------------------------------------------------------------------- */

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The leading 128 bits of w · 10^exponent, w with its top bit set. The second product is needed
 * only if the first leaves the bits below a double's 53 and its two rounding bits all ones, so that
 * a carry could still arrive. */
static unsigned __int128 power_product(uint64_t w, int exponent)
{
    const struct api_power *power = api_power_of_ten(exponent);
    unsigned __int128 product = (unsigned __int128)w * power->high;
    if ((product >> 64 & 0x1ff) == 0x1ff)
        product += (uint64_t)((unsigned __int128)w * power->low >> 64);
    return product;
}

double api_decimal_value(uint64_t digits, int64_t exponent)
{
    if (digits == 0 || exponent < API_POWER_MIN)
        return 0; /* 2^64 · 10^-343 is below half of the least double */
    if (exponent > 308)
        return (double)INFINITY;
    int e = (int)exponent, zeros = __builtin_clzll(digits);
    unsigned __int128 product = power_product(digits << zeros, e);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    int top = (int)(high >> 63), shift = 9 + top; /* leaves 54 bits: a double's 53 and the rounding bit */
    uint64_t m = high >> shift;
    int biased = api_log2_of_power(e) + 63 + top - zeros + 1023; /* exponent field of a double */
    if (biased <= 0) {
        /* Below the normal range the last bit has a fixed place: the shift is larger. m holds one bit more
         * than a double. */
        if (1 - biased > 63)
            return 0;
        m >>= 1 - biased;
        return double_of((m + (m & 1)) >> 1); /* a carry into the exponent gives the least normal number */
    }
    /* A tie is possible only where 5^|exponent| divides or is divided within 64 bits. An odd m means rounding up; on an
     * exact tie whose lower neighbour is even, the lower neighbour is taken. */
    if (low <= 1 && e >= -4 && e <= 23 && (m & 3) == 1 && m << shift == high)
        m--;
    m = (m + (m & 1)) >> 1;
    uint64_t bits = ((uint64_t)(biased - 1) << 52) + m; /* the hidden bit, or a carry to 2^53, counts the exponent up */
    return bits >> 52 < 2047 ? double_of(bits) : (double)INFINITY;
}

/* ---- The grammar of a number ------------------------------------------------------------------------------------- */

/* A number as it is written in the text. */
struct decimal {
    const char *from; /* its first digit */
    const char *to;   /* behind its last digit, before any e; from … to may have one point */
    uint64_t digits;  /* all of them, modulo 2^64 */
    int64_t n_digits; /* leading zeros included */
    int64_t exponent; /* of the last digit */
};

/* Whether the client has disconnected, asked once for every 64 KiB of text that a loop passes byte by byte. */
static inline bool is_left_at(const char *p) { return (uintptr_t)p % 65536 == 0 && pe_is_cancelled(); }

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Eight ASCII digits, the first in the lowest byte: neighbours are joined to pairs, these to fours,
 * these to eight. */
static inline uint64_t eight_value(uint64_t word)
{
    word = (word & UINT64_C(0x0f0f0f0f0f0f0f0f)) * (10 << 8 | 1) >> 8;
    word = (word & UINT64_C(0x00ff00ff00ff00ff)) * (100 << 16 | 1) >> 16;
    return (word & UINT64_C(0x0000ffff0000ffff)) * (UINT64_C(10000) << 32 | 1) >> 32;
}

/* Appends the digits at p to *digits; returns their end. Up to eight at a time: how many follow differs from number to
 * number, so a branch for each digit would be mispredicted. */
static inline const char *digits_read(const char *p, const char *end, uint64_t *digits)
{
    static const uint32_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t word, value = *digits;
    unsigned n = 8;
    while (n == 8 && end - p >= 8) {
        memcpy(&word, p, sizeof word);
        /* How many of eight bytes, the first in the lowest, are digits before one that is not. Without the high half of
         * a digit's code a digit is at most 9, so adding 0x76 leaves its top bit clear; a carry changes only bytes
         * behind one that is no digit. */
        uint64_t low = word ^ UINT64_C(0x3030303030303030);
        uint64_t others = (low | (low + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080);
        n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
        unsigned half = 32 - 4 * n; /* of the shift, since a shift by all 64 bits is undefined */
        value = value * tens[n] + eight_value(word << half << half);
        p += n;
    }
    for (; n == 8 && p < end && is_digit(*p); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *digits = value;
    return p;
}

/* Reads the exponent after e or E; NULL if it is not an integer. A larger exponent is replaced by a limit that no
 * length of the digits can compensate. */
static const char *exponent_read(const char *p, const char *end, int64_t *exponent)
{
    const int64_t large = INT64_C(1) << 56;
    int64_t value = 0;
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end || !is_digit(*p))
        return NULL;
    for (; p < end && is_digit(*p); p++)
        value = value < large ? value * 10 + (*p - '0') : large;
    *exponent = negative ? -value : value;
    return p;
}

/* Reads a number without its sign; NULL if the text does not begin with one. */
static inline const char *decimal_read(const char *p, const char *end, struct decimal *d)
{
    *d = (struct decimal){.from = p};
    p = digits_read(p, end, &d->digits);
    d->n_digits = p - d->from;
    if (d->n_digits == 0 || (*d->from == '0' && d->n_digits > 1))
        return NULL;
    if (p < end && *p == '.') {
        const char *point = p++;
        p = digits_read(p, end, &d->digits);
        d->exponent = point + 1 - p;
        d->n_digits -= d->exponent;
        if (d->exponent == 0)
            return NULL;
    }
    d->to = p;
    if (p == end || (*p != 'e' && *p != 'E'))
        return p;
    int64_t exponent = 0; /* a separate variable lets *d live in registers */
    p = exponent_read(p + 1, end, &exponent);
    d->exponent += exponent;
    return p;
}

/* ---- More digits than a word holds ------------------------------------------------------------------------------- */

/* Two neighbouring doubles have a middle of at most 767 digits. All later digits only add "and a little more", which
 * one extra digit expresses as well. */
enum { DIGITS_WORD = 19, DIGITS_THAT_MATTER = 768 };

/* The first `most` digits from the first nonzero digit on; *exponent becomes the exponent of the last digit written,
 * *more is true if an omitted digit is not zero. */
static size_t leading_digits(const struct decimal *d, char *dst, size_t most, int64_t *exponent, bool *more)
{
    size_t n = 0;
    *exponent = d->exponent;
    *more = false;
    for (const char *p = d->from; p < d->to && !is_left_at(p); p++) {
        if (*p == '.' || (*p == '0' && n == 0))
            continue;
        if (n < most) {
            dst[n++] = *p;
            continue;
        }
        *more |= *p != '0';
        ++*exponent;
    }
    return n;
}

/* libc gets an integer with an exponent: it has a bounded length, and no point, whose character would depend on the
 * locale. */
static double library_value(const struct decimal *d)
{
    char text[DIGITS_THAT_MATTER + 1 + sizeof "e-10000"];
    int64_t exponent;
    bool more;
    size_t n = leading_digits(d, text, DIGITS_THAT_MATTER, &exponent, &more);
    text[n++] = more ? '1' : '0';
    exponent--;
    exponent = exponent < -9999 ? -9999 : exponent > 9999 ? 9999 : exponent;
    text[n++] = 'e';
    text[n++] = exponent < 0 ? '-' : '+';
    uint64_t size = (uint64_t)(exponent < 0 ? -exponent : exponent);
    for (uint64_t unit = 1000; unit > 0; unit /= 10)
        text[n++] = (char)('0' + size / unit % 10);
    text[n] = '\0';
    return strtod(text, NULL);
}

static double long_value(struct decimal d)
{
    char first[DIGITS_WORD];
    int64_t exponent;
    bool more;
    uint64_t digits = 0;
    size_t n = leading_digits(&d, first, DIGITS_WORD, &exponent, &more);
    digits_read(first, first + n, &digits);
    double below = api_decimal_value(digits, exponent);
    if (!more || below == api_decimal_value(digits + 1, exponent))
        return below;
    return library_value(&d);
}

/* ---- One element: a number or the quoted name of a value that JSON has no number for ----------------------------- */

static const char *word_read(const char *p, const char *end, double *x)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"\"-Infinity\"", -(double)INFINITY}, {"\"Infinity\"", (double)INFINITY}, {"\"NaN\"", (double)NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].text);
        if ((size_t)(end - p) >= n && memcmp(p, words[i].text, n) == 0) {
            *x = words[i].value;
            return p + n;
        }
    }
    return NULL;
}

/* Reads one element at p < end; NULL if there is none, or if a double cannot hold it. */
static inline const char *element_read(const char *p, const char *end, double *x)
{
    struct decimal d;
    if (*p == '"')
        return word_read(p, end, x);
    bool negative = *p == '-';
    p = decimal_read(p + negative, end, &d);
    if (p == NULL)
        return NULL;
    double size = d.n_digits <= DIGITS_WORD ? api_decimal_value(d.digits, d.exponent) : long_value(d);
    *x = negative ? -size : size;
    return isinf(size) ? NULL : p;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* The state of the array so far. Depth counts open brackets; the array at depth i+1 has counts[i] elements so far. */
struct reader {
    struct api_doubles *out;
    const char *end;
    unsigned depth, rank; /* rank: depth of the first number, 0 before it */
    uint64_t counts[PE_RANK_MAX];
    uint64_t shape[PE_RANK_MAX]; /* 0: no array of that depth has ended yet */
    bool ragged;
    size_t ask_at; /* numbers in `out` at the next check whether the client has disconnected */
};

static inline const char *space_skip(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') && !is_left_at(p))
        p++;
    return p;
}

/* Room for one more number; left is the length of the text from it on. */
static bool grow(struct api_doubles *out, size_t left)
{
    size_t most = out->n + left / 2 + 1, room = out->room < 512 ? 1024 : 2 * out->room;
    if (room > most)
        room = most;
    double *values = realloc(out->values, room * sizeof *values);
    if (values == NULL)
        return false;
    out->values = values;
    out->room = room;
    return true;
}

/* Appends the elements from p on until something else than a comma follows one; p is then behind the last element.
 * NULL: *why is set. This loop is separate because it reads the millions of numbers. */
static const char *elements_read(struct reader *r, const char *p, enum api_read *why)
{
    enum { ASK = 65536 }; /* numbers between two checks, in whatever rows */
    struct api_doubles *out = r->out;
    uint64_t n = 0;
    for (;;) {
        if (out->n >= r->ask_at) {
            r->ask_at = out->n + ASK;
            if (pe_is_cancelled()) {
                *why = API_READ_NO_MEMORY;
                return NULL;
            }
        }
        if (out->n == out->room && !grow(out, (size_t)(r->end - p))) {
            *why = API_READ_NO_MEMORY;
            return NULL;
        }
        if (p == r->end || (p = element_read(p, r->end, &out->values[out->n])) == NULL) {
            *why = API_READ_OTHER;
            return NULL;
        }
        out->n++;
        n++;
        const char *next = space_skip(p, r->end);
        if (next == r->end || *next != ',')
            break;
        next = space_skip(next + 1, r->end);
        if (next < r->end && *next == '[')
            break; /* the caller checks the comma again */
        p = next;
    }
    r->counts[r->depth - 1] += n;
    r->ragged |= r->rank != 0 && r->rank != r->depth;
    r->rank = r->rank ? r->rank : r->depth;
    return p;
}

/* Closes the innermost array and counts it as an element of the one around it. */
static void array_close(struct reader *r)
{
    unsigned i = --r->depth;
    if (r->shape[i] == 0)
        r->shape[i] = r->counts[i];
    r->ragged |= r->shape[i] != r->counts[i];
    if (i > 0)
        r->counts[i - 1]++;
}

/* Reads at a place where an element must follow: opening brackets, then elements. */
static const char *begin_read(struct reader *r, const char *p, enum api_read *why)
{
    for (p = space_skip(p, r->end); p < r->end && *p == '['; p = space_skip(p + 1, r->end)) {
        if (r->depth == PE_RANK_MAX) {
            *why = API_READ_DEEP;
            return NULL;
        }
        r->counts[r->depth++] = 0;
    }
    return elements_read(r, p, why);
}

/* The whole array. Each iteration reads "[ [ 1, 2" and then the "] ]" after it; a comma between arrays begins the next
 * iteration. */
static const char *array_read(struct reader *r, const char *p, enum api_read *why)
{
    for (;;) {
        p = begin_read(r, p, why);
        if (p == NULL)
            return NULL;
        for (p = space_skip(p, r->end); p < r->end && *p == ']'; p = space_skip(p, r->end)) {
            p++;
            array_close(r);
            if (r->depth == 0)
                return p;
        }
        if (p == r->end || *p++ != ',') {
            *why = API_READ_OTHER;
            return NULL;
        }
    }
}

enum api_read api_numbers_read(const char **text, const char *end, struct api_doubles *out, uint64_t *shape,
                               unsigned *rank)
{
    struct reader r = {.out = out, .end = end};
    size_t n = out->n;
    enum api_read why = API_READ_RAGGED;
    const char *p = array_read(&r, *text, &why);
    if (p == NULL || r.ragged) {
        out->n = n;
        return why;
    }
    for (unsigned i = 0; i < r.rank; i++)
        shape[i] = r.shape[i];
    *rank = r.rank;
    *text = p;
    return API_READ_OK;
}
