/* Numbers to JSON text: arrays of any dtype, shortest or with fixed digits. Digits are computed eight at a time in a
 * 64-bit word.
 *
 * Shortest means the fewest digits that read back as the same number of its dtype, and of these the nearest (Steele and
 * White 1990; the algorithm is Raffaello Giulietti's Schubfach, 2020, in numbers_shortest.h). For a float that is
 * mostly seven or eight digits instead of nine, and exact all the same.
 *
 * The printers of one number write whole words, so they may overwrite up to WINDOW bytes from their start or 16 behind
 * their end; api_numbers_print keeps these bytes inside the caller's buffer. If the processor has AVX2, kernels/ prints
 * most of an array of f32, and this file prints the rest. */
#include "api/numbers/kernels/numbers.h"
#include "api/numbers/numbers.h"
#include "api/numbers/numbers_shortest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "digits are put into words with the first one in the lowest byte"
#endif

enum { WINDOW = 36, LONGEST = 1 + 309 + 1 + API_DIGITS_MAX };

/* The number of an array's last numbers that are printed apart: at least this many, and at most one group of the kernel
 * more. */
enum { N_LAST_MIN = 2, N_LAST = API_NUMBERS_AT_ONCE };
_Static_assert(API_NUMBER_MAX >= (int)WINDOW, "api_real_print and api_integer_print write words");

static const uint64_t tens[20] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    10000000000000000000u,
};

#define ASCII_ZEROS UINT64_C(0x3030303030303030)

/* ---- Digits ---------------------------------------------------------------------------------------------------- */

/* The eight digits of x < 10^8, one a byte, the first in the lowest: halves, then pairs, then
 * single digits are split off in all lanes at once by multiplying with a reciprocal. */
IN_LOOP uint64_t digits_of(uint64_t x)
{
    uint64_t four = x / 10000, v = four | (x - 10000 * four) << 32;
    uint64_t two = v * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    v = two | (v - 100 * two) << 16;
    uint64_t one = v * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return one | (v - 10 * one) << 8;
}

static inline void store(char *dst, uint64_t word) { memcpy(dst, &word, sizeof word); }

static inline int digit_count(uint64_t x) /* x > 0 */
{
    int guess = (64 - __builtin_clzll(x)) * 1233 >> 12; /* 1233/2^12 is log10(2) */
    return guess + (x >= tens[guess]);
}

IN_LOOP char *word_print(char *dst, uint64_t x) /* x < 10^8 */
{
    uint64_t word = digits_of(x);
    int zeros = word ? __builtin_ctzll(word) / 8 : 7;
    store(dst, (word | ASCII_ZEROS) >> 8 * zeros);
    return dst + 8 - zeros;
}

static char *natural_print(char *dst, uint64_t x)
{
    if (x < tens[8])
        return word_print(dst, x);
    uint64_t rest = x / tens[8];
    dst = rest < tens[8] ? word_print(dst, rest) : natural_print(dst, rest);
    store(dst, digits_of(x % tens[8]) | ASCII_ZEROS);
    return dst + 8;
}

char *api_integer_print(char *dst, int64_t x)
{
    *dst = '-';
    return natural_print(dst + (x < 0), x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

/* ---- Shortest form --------------------------------------------------------------------------------------------- */

/* Seventeen digits, the first apart and the others in two words of raw digits, n of them before the
 * trailing zeros, the first worth 10^exponent. */
struct digits {
    uint64_t first, words[2];
    int n, exponent;
};

/* From 0.0001 on. The digits of a small number are behind as much of "0.000" as it has zeros; those of a large one at
 * its start, and again, without the whole ones, behind the point. Both take one path, because no processor can predict
 * whether a number is below one. The words are ASCII in one 128-bit number: shifting it by whole digits moves them in
 * the text. is_short (a constant): the first word is enough, as for nine digits below 10^8. */
IN_LOOP char *layout_plain(char *dst, const struct digits *d, unsigned __int128 text, bool is_short)
{
    int e = d->exponent, start = e < 0 ? 1 - e : 0, whole = e < 0 ? 0 : e;
    int n_small = start + d->n, n_large = d->n > e + 1 ? d->n + 1 : e + 3;
    unsigned __int128 fraction = is_short ? (uint64_t)text >> 8 * whole : text >> 8 * whole;
    size_t n_bytes = is_short ? 8 : 16;
    memcpy(dst, "0.000000", 8);
    dst[start] = (char)('0' + d->first);
    memcpy(dst + start + 1, &text, n_bytes);
    dst[whole + 1] = '.';
    memcpy(dst + (e < 0 ? -e : e) + 2, &fraction, n_bytes);
    return dst + (e < 0 ? n_small : n_large);
}

IN_LOOP char *layout_exponent(char *dst, const struct digits *d, unsigned __int128 text)
{
    unsigned size = (unsigned)(d->exponent < 0 ? -d->exponent : d->exponent);
    dst[0] = (char)('0' + d->first);
    dst[1] = '.';
    memcpy(dst + 2, &text, sizeof text);
    dst += d->n > 1 ? d->n + 1 : 1;
    *dst++ = 'e';
    *dst++ = d->exponent < 0 ? '-' : '+';
    if (size < 10)
        *dst++ = '0';
    return word_print(dst, size);
}

/* All the forms, which change at the same exponents as those of Python's repr. */
static char *layout_any(char *dst, struct digits d)
{
    unsigned __int128 text = (unsigned __int128)(d.words[1] | ASCII_ZEROS) << 64 | d.words[0] | ASCII_ZEROS;
    bool is_plain = d.exponent >= -4 && d.exponent < 16;
    return is_plain ? layout_plain(dst, &d, text, false) : layout_exponent(dst, &d, text);
}

static inline int trailing_used(uint64_t word) /* digits of a word without its trailing zeros; word > 0 */
{
    return 8 - __builtin_clzll(word) / 8;
}

IN_LOOP char *wide_print(char *dst, struct decimal x)
{
    int n = digit_count(x.digits);
    uint64_t all = x.digits * tens[17 - n], first = all / tens[16], rest = all % tens[16];
    struct digits d = {first, {digits_of(rest / tens[8]), digits_of(rest % tens[8])}, 1, x.exponent + n - 1};
    d.n += d.words[1] ? 8 + trailing_used(d.words[1]) : d.words[0] ? trailing_used(d.words[0]) : 0;
    unsigned __int128 text = (unsigned __int128)(d.words[1] | ASCII_ZEROS) << 64 | d.words[0] | ASCII_ZEROS;
    bool is_usual = d.exponent >= -4 && d.exponent < 16;
    return is_usual ? layout_plain(dst, &d, text, false) : layout_any(dst, d);
}

IN_LOOP char *narrow_print(char *dst, struct decimal x) /* at most nine digits */
{
    int n = digit_count(x.digits);
    uint64_t all = x.digits * tens[9 - n], first = all / tens[8];
    struct digits d = {first, {digits_of(all - first * tens[8]), 0}, 1, x.exponent + n - 1};
    d.n += d.words[0] ? trailing_used(d.words[0]) : 0;
    bool is_usual = d.exponent >= -4 && d.exponent < 8;
    return is_usual ? layout_plain(dst, &d, d.words[0] | ASCII_ZEROS, true) : layout_any(dst, d);
}

/* ---- The four real formats ------------------------------------------------------------------------------------- */

struct real {
    bool negative, finite;
    struct binary size; /* c = 0: zero; not finite: c > 0 is NaN */
};

/* Takes apart an IEEE 754 number of fraction_bits and exponent_bits; these are constants where it
 * is inlined. */
IN_LOOP struct real real_of(uint64_t bits, int fraction_bits, int exponent_bits)
{
    uint64_t hidden = UINT64_C(1) << fraction_bits, fraction = bits & (hidden - 1);
    int top = (1 << exponent_bits) - 1, field = (int)(bits >> fraction_bits) & top;
    bool finite = field < top;
    return (struct real){
        .negative = bits >> (fraction_bits + exponent_bits) & 1,
        .finite = finite,
        .size.c = field && finite ? fraction | hidden : fraction,
        .size.q = (field ? field : 1) - (top >> 1) - fraction_bits,
        .size.lower_near = fraction == 0 && field > 1,
    };
}

IN_LOOP struct real load_f32(const void *src, size_t i)
{
    uint32_t bits;
    memcpy(&bits, (const char *)src + i * sizeof bits, sizeof bits);
    return real_of(bits, 23, 8);
}

IN_LOOP struct real load_f64(const void *src, size_t i)
{
    uint64_t bits;
    memcpy(&bits, (const char *)src + i * sizeof bits, sizeof bits);
    return real_of(bits, 52, 11);
}

IN_LOOP struct real load_f16(const void *src, size_t i) { return real_of(((const uint16_t *)src)[i], 10, 5); }

IN_LOOP struct real load_bf16(const void *src, size_t i) { return real_of(((const uint16_t *)src)[i], 7, 8); }

static char *special_print(char *dst, struct real x)
{
    const char *text = x.size.c ? "\"NaN\"" : x.negative ? "\"-Infinity\"" : "\"Infinity\"";
    size_t n = strlen(text);
    memcpy(dst, text, n);
    return dst + n;
}

IN_LOOP char *shortest_print(char *dst, struct real x, bool is_wide)
{
    if (__builtin_expect(!x.finite, 0))
        return special_print(dst, x);
    *dst = '-';
    dst += x.negative;
    if (x.size.c == 0) {
        memcpy(dst, "0.0", 3);
        return dst + 3;
    }
    return is_wide ? wide_print(dst, shortest_wide(&x.size)) : narrow_print(dst, shortest_narrow(&x.size));
}

/* ---- Fixed digits ---------------------------------------------------------------------------------------------- */

/* The fraction, scaled to an integer of `digits` digits; with digits = 0 the point is still followed by a zero. */
IN_LOOP char *fraction_print(char *dst, uint64_t fraction, int digits)
{
    if (digits <= 8) {
        store(dst, digits_of(fraction * tens[8 - digits]) | ASCII_ZEROS);
        return dst + (digits ? digits : 1);
    }
    uint64_t sixteen = digits == 17 ? fraction / 10 : fraction * tens[16 - digits];
    store(dst, digits_of(sixteen / tens[8]) | ASCII_ZEROS);
    store(dst + 8, digits_of(sixteen % tens[8]) | ASCII_ZEROS);
    dst[16] = (char)('0' + fraction % 10); /* the seventeenth digit, or a byte that is overwritten later */
    return dst + digits;
}

/* fraction / 2^s · 10^digits to the nearest integer, ties to the even neighbour; `odd`: rounding down gives an odd
 * number. Exact: fraction < 2^53 and 10^17 < 2^57 fit 128 bits together. */
IN_LOOP uint64_t scaled_round(uint64_t fraction, int s, int digits, bool odd)
{
    unsigned __int128 product = (unsigned __int128)fraction * tens[digits];
    if (s >= 128)
        return 0; /* the product is below 2^110, less than one half */
    unsigned __int128 half = (unsigned __int128)1 << (s - 1), rest = product & (half + (half - 1));
    uint64_t down = (uint64_t)(product >> s);
    return down + (rest > half || (rest == half && (digits ? down & 1 : odd)));
}

IN_LOOP char *fixed_print(char *dst, struct real x, int digits)
{
    int s = -x.size.q;
    if (!x.finite)
        return special_print(dst, x);
    if (s <= 0) {
        /* Numbers without a fraction. From 2^64 on libc writes the exact digits; there can be hundreds, and they are
         * rarely requested. */
        *dst = '-';
        dst += x.negative && x.size.c;
        if (x.size.q <= 11 && (x.size.q == 0 || x.size.c >> (64 - x.size.q) == 0))
            dst = natural_print(dst, x.size.c << x.size.q);
        else
            dst += snprintf(dst, 1 + 309 + 1, "%.0f", ldexp((double)x.size.c, x.size.q));
        *dst++ = '.';
        return fraction_print(dst, 0, digits);
    }
    uint64_t whole = s < 64 ? x.size.c >> s : 0, fraction = x.size.c - (s < 64 ? whole << s : 0);
    uint64_t scaled = scaled_round(fraction, s, digits, whole & 1);
    whole += scaled == tens[digits];
    scaled = scaled == tens[digits] ? 0 : scaled;
    *dst = '-';
    dst += x.negative && (whole | scaled);
    dst = natural_print(dst, whole);
    *dst++ = '.';
    return fraction_print(dst, scaled, digits);
}

/* ---- Rows: n numbers of one dtype, each with a comma behind it -------------------------------------------------- */

typedef char *row_print(char *dst, const void *src, size_t n, int digits);

#define ROW(name, number)                                                                                              \
    static char *name(char *dst, const void *src, size_t n, int digits)                                                \
    {                                                                                                                  \
        (void)digits;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            dst = number;                                                                                              \
            *dst++ = ',';                                                                                              \
        }                                                                                                              \
        return dst;                                                                                                    \
    }

ROW(shortest_f32, shortest_print(dst, load_f32(src, i), false))
ROW(shortest_f64, shortest_print(dst, load_f64(src, i), true))
ROW(shortest_f16, shortest_print(dst, load_f16(src, i), false))
ROW(shortest_bf16, shortest_print(dst, load_bf16(src, i), false))
ROW(fixed_f32, fixed_print(dst, load_f32(src, i), digits))
ROW(fixed_f64, fixed_print(dst, load_f64(src, i), digits))
ROW(fixed_f16, fixed_print(dst, load_f16(src, i), digits))
ROW(fixed_bf16, fixed_print(dst, load_bf16(src, i), digits))
ROW(row_i8, api_integer_print(dst, ((const int8_t *)src)[i]))
ROW(row_i16, api_integer_print(dst, ((const int16_t *)src)[i]))
ROW(row_i32, api_integer_print(dst, ((const int32_t *)src)[i]))
ROW(row_i64, api_integer_print(dst, ((const int64_t *)src)[i]))
ROW(row_u8, natural_print(dst, ((const uint8_t *)src)[i]))
ROW(row_u16, natural_print(dst, ((const uint16_t *)src)[i]))
ROW(row_u32, natural_print(dst, ((const uint32_t *)src)[i]))
ROW(row_u64, natural_print(dst, ((const uint64_t *)src)[i]))
ROW(row_bool, ((const uint8_t *)src)[i] ? stpcpy(dst, "true") : stpcpy(dst, "false"))

/* ---- Many f32 at once ------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
enum { FIXED_AT_ONCE_MAX = 7 }; /* digits */

static char *print_one(char *dst, float x, int digits)
{
    struct real real = load_f32(&x, 0);
    return digits == API_DIGITS_SHORTEST ? shortest_print(dst, real, false) : fixed_print(dst, real, digits);
}

/* Prints those of n numbers that fill whole groups of the kernel, and sets *n_done to their number. */
static char *many_f32(char *dst, const void *src, size_t n, int digits, size_t *n_done)
{
    *n_done = n - n % API_NUMBERS_AT_ONCE;
    if (*n_done == 0 || pe_isa() < PE_ISA_AVX2 || digits == 0 || digits > FIXED_AT_ONCE_MAX)
        *n_done = 0;
    else if (digits == API_DIGITS_SHORTEST)
        dst = api_shortest_f32_avx2(dst, src, *n_done, print_one);
    else
        dst = api_fixed_f32_avx2(dst, src, *n_done, digits, print_one);
    return dst;
}
#else
static char *many_f32(char *dst, const void *src, size_t n, int digits, size_t *n_done)
{
    (void)src, (void)n, (void)digits;
    *n_done = 0;
    return dst;
}
#endif

/* width: of the shortest form, or of an integer; whole: most digits before the point in the fixed
 * form, 0 for integers. Dtypes without a form are widened and printed as f32. f32 at its longest is
 * -1234567900000000.0, not a small number; f16 is
 * "-Infinity" in its quotes. */
static const struct {
    row_print *shortest, *fixed;
    unsigned char width;
    unsigned short whole;
} forms[PE_N_DTYPES] = {
    [PE_F32] = {shortest_f32, fixed_f32, 19, 39},
    [PE_F64] = {shortest_f64, fixed_f64, 24, 309},
    [PE_F16] = {shortest_f16, fixed_f16, 11, 5},
    [PE_BF16] = {shortest_bf16, fixed_bf16, 19, 39},
    [PE_I8] = {row_i8, row_i8, 4, 0},
    [PE_I16] = {row_i16, row_i16, 6, 0},
    [PE_I32] = {row_i32, row_i32, 11, 0},
    [PE_I64] = {row_i64, row_i64, 20, 0},
    [PE_U8] = {row_u8, row_u8, 3, 0},
    [PE_U16] = {row_u16, row_u16, 5, 0},
    [PE_U32] = {row_u32, row_u32, 10, 0},
    [PE_U64] = {row_u64, row_u64, 20, 0},
    [PE_BOOL] = {row_bool, row_bool, 5, 0},
};

/* ---- The public functions -------------------------------------------------------------------------------------- */

static bool has_form(enum pe_dtype dtype) { return forms[dtype].shortest != NULL; }

size_t api_number_width(enum pe_dtype dtype, int digits)
{
    enum { QUOTED = 11 }; /* "-Infinity" */
    assert(dtype >= 0 && dtype < PE_N_DTYPES && digits >= API_DIGITS_SHORTEST && digits <= API_DIGITS_MAX);
    dtype = has_form(dtype) ? dtype : PE_F32;
    if (digits == API_DIGITS_SHORTEST || forms[dtype].whole == 0)
        return forms[dtype].width;
    size_t width = 1 + (size_t)forms[dtype].whole + 1 + (size_t)(digits ? digits : 1);
    return width > QUOTED ? width : QUOTED;
}

static char *print_rows(char *dst, enum pe_dtype dtype, const void *src, size_t n, int digits)
{
    enum { AT_ONCE = 256 };
    float wide[AT_ONCE];
    for (size_t i = 0, m; !has_form(dtype) && i < n; i += m) {
        m = n - i < AT_ONCE ? n - i : AT_ONCE;
        pe_convert(PE_F32, wide, dtype, (const char *)src + i * pe_dtype_size(dtype), m);
        dst = print_rows(dst, PE_F32, wide, m, digits);
    }
    if (!has_form(dtype))
        return dst;
    row_print *row = digits == API_DIGITS_SHORTEST ? forms[dtype].shortest : forms[dtype].fixed;
    size_t n_done = 0;
    if (dtype == PE_F32)
        dst = many_f32(dst, src, n, digits, &n_done);
    return row(dst, (const char *)src + n_done * pe_dtype_size(dtype), n - n_done, digits);
}

/* The last numbers of an array go through a buffer, because the word stores behind their text would pass the end of the
 * caller's buffer. They are whole groups of the kernel, so the other numbers lose no speed. */
char *api_numbers_print(char *dst, enum pe_dtype dtype, const void *src, size_t n, int digits)
{
    assert(dtype >= 0 && dtype < PE_N_DTYPES && digits >= API_DIGITS_SHORTEST && digits <= API_DIGITS_MAX);
    if (n == 0)
        return dst;
    size_t bytes_each = api_number_width(dtype, digits) + 1;
    const char *room_end = dst + n * bytes_each;
    size_t n_last = (n - 1) % N_LAST + 1, n_first = n - n_last;
    if (n_last < N_LAST_MIN && n_first > 0) {
        n_last += N_LAST;
        n_first -= N_LAST;
    }
    dst = print_rows(dst, dtype, src, n_first, digits);
    const char *rest = (const char *)src + n_first * pe_dtype_size(dtype);
    if ((size_t)(room_end - dst) >= n_last * bytes_each + WINDOW)
        return print_rows(dst, dtype, rest, n_last, digits) - 1; /* without the last comma */
    char text[(N_LAST + N_LAST_MIN) * (LONGEST + 1) + WINDOW];
    size_t n_bytes = (size_t)(print_rows(text, dtype, rest, n_last, digits) - text) - 1;
    memcpy(dst, text, n_bytes);
    return dst + n_bytes;
}

char *api_real_print(char *dst, double x) { return shortest_print(dst, load_f64(&x, 0), true); }
