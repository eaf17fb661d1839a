/* f32 to text, eight numbers at a time: their digits in exact double arithmetic, then one byte shuffle and one 16-byte
 * store for each text. */
#include "api/numbers/kernels/numbers.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define LANES INLINE __m256i

enum { AT_ONCE = API_NUMBERS_AT_ONCE };

LANES all(int x) { return _mm256_set1_epi32(x); }
LANES add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
LANES sub(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
LANES mul(__m256i a, int b) { return _mm256_mullo_epi32(a, all(b)); }
LANES both(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
LANES either(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
LANES equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi32(a, b); }
LANES above(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
LANES choose(__m256i mask, __m256i yes, __m256i no) { return _mm256_blendv_epi8(no, yes, mask); }
LANES zero(void) { return _mm256_setzero_si256(); }

/* a / divisor as (a · magic) >> shift, shift ≥ 32. */
LANES divide(__m256i a, uint32_t magic, int shift)
{
    __m256i m = all((int)magic);
    __m256i even = _mm256_mul_epu32(a, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), m);
    return _mm256_srli_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa), shift - 32);
}

/* Eight doubles: of numbers 0, 1, 4, 5 and of 2, 3, 6, 7, since that is how the two halves of a register unpack. */
struct doubles {
    __m256d first, second;
};

INLINE struct doubles widen(__m256 x)
{
    __m256d pairs = _mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8);
    __m128 first = _mm_castpd_ps(_mm256_castpd256_pd128(pairs));
    __m128 second = _mm_castpd_ps(_mm256_extractf128_pd(pairs, 1));
    return (struct doubles){_mm256_cvtps_pd(first), _mm256_cvtps_pd(second)};
}

/* To the nearest integers, ties to even, of numbers from 0 to 2^32: adding 2^52 leaves a double no other bits. */
LANES narrow(struct doubles x)
{
    __m256d magic = _mm256_set1_pd(0x1p52);
    __m256 first = _mm256_castpd_ps(_mm256_add_pd(x.first, magic));
    __m256 second = _mm256_castpd_ps(_mm256_add_pd(x.second, magic));
    return _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
}

INLINE __m256 size_of(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

/* ---- Texts: a shuffle each --------------------------------------------------------------------------------------- */

/* The source bytes that a text is shuffled from: digits 2 to 9, the first one, and the other characters. */
enum { FIRST = 8, MINUS, POINT, ZERO, COMMA };

/* The source of each byte of a text with its comma, and the text's length. */
struct form {
    unsigned char from[16], n_bytes, none[15];
};

/* A form: character(i, …) is the source of byte i of its text. */
#define FORM(character, n_bytes, a, b, c)                                                                              \
    {                                                                                                                  \
        {character(0, a, b, c),  character(1, a, b, c),  character(2, a, b, c),  character(3, a, b, c),                \
         character(4, a, b, c),  character(5, a, b, c),  character(6, a, b, c),  character(7, a, b, c),                \
         character(8, a, b, c),  character(9, a, b, c),  character(10, a, b, c), character(11, a, b, c),               \
         character(12, a, b, c), character(13, a, b, c), character(14, a, b, c), character(15, a, b, c)},              \
            n_bytes(a, b, c),                                                                                          \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* Eight texts before they are written: sources of numbers 0 4, 1 5, 2 6, 3 7; the byte offset of each number's form in
 * the table of forms; and a bit for each number that this kernel can print. */
struct eight {
    __m256i sources[4];
    int32_t forms[AT_ONCE];
    int ours;
};

INLINE void put_sources(struct eight *eight, const __m256i digits[2], __m256i first)
{
    __m256i others = add(first, all('0' | '-' << 8 | '.' << 16 | '0' << 24)), comma = all(',');
    __m256i tails[2] = {_mm256_unpacklo_epi32(others, comma), _mm256_unpackhi_epi32(others, comma)};
    for (int i = 0; i < 2; i++) {
        __m256i ascii = either(digits[i], _mm256_set1_epi8('0'));
        eight->sources[2 * i] = _mm256_unpacklo_epi64(ascii, tails[i]);
        eight->sources[2 * i + 1] = _mm256_unpackhi_epi64(ascii, tails[i]);
    }
}

/* Small numbers in 16-bit lanes times a constant below 128. The compiler would replace the product with shifts and
 * additions, which are more operations. */
LANES times(__m256i bytes, int16_t factor) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(factor)); }

/* Eight digits of each number, one a byte, in 64-bit lanes: digits[0] of numbers 0, 1, 4, 5, digits[1] of the others.
 * In each 32-bit lane of `fours` there are the two numbers below 10^4 that they form, the leading one in the lower
 * half; these are split into pairs and those into single digits in 16-bit lanes. */
INLINE void split(__m256i fours, __m256i digits[2])
{
    __m256i two = _mm256_srli_epi16(_mm256_mulhi_epu16(fours, _mm256_set1_epi16(5243)), 3);
    __m256i rest = _mm256_sub_epi16(fours, times(two, 100));
    __m256i pairs[2] = {_mm256_unpacklo_epi16(two, rest), _mm256_unpackhi_epi16(two, rest)};
    for (int i = 0; i < 2; i++) {
        __m256i tens = _mm256_mulhi_epu16(pairs[i], _mm256_set1_epi16(6554));
        digits[i] = either(tens, _mm256_slli_epi16(_mm256_sub_epi16(pairs[i], times(tens, 10)), 8));
    }
}

/* form: which one for each number. */
INLINE void put_forms(struct eight *eight, __m256i form, __m256i is_ours)
{
    __m256i place = both(is_ours, mul(form, sizeof(struct form)));
    _mm256_storeu_si256((__m256i *)(void *)eight->forms, place);
    eight->ours = _mm256_movemask_ps(_mm256_castsi256_ps(is_ours));
}

INLINE char *put_text(char *dst, const struct eight *eight, size_t i, const struct form *forms)
{
    const struct form *form = (const void *)((const char *)forms + eight->forms[i]);
    __m128i from = _mm_load_si128((const void *)form->from);
    __m128i source = _mm_load_si128((const __m128i *)(const void *)eight->sources + i % 4 * 2 + i / 4);
    _mm_storeu_si128((__m128i *)(void *)dst, _mm_shuffle_epi8(source, from));
    return dst + form->n_bytes;
}

/* Groups of eight are prepared four at a time and then written: the long dependency chain of one group overlaps with
 * that of the next, and the stores, which form a chain through dst, do not delay them. Of 1, 2, 4 and 8 groups, 4 was
 * the fastest. */
enum { GROUP = 4, GROUP_NUMBERS = GROUP * AT_ONCE };

INLINE size_t eights_in(size_t n) { return n < GROUP_NUMBERS ? n / AT_ONCE : GROUP; }

INLINE char *put_ours(char *dst, const struct eight *eight, const struct form *forms)
{
    dst = put_text(dst, eight, 0, forms); /* not a loop, so that each index is a constant */
    dst = put_text(dst, eight, 1, forms);
    dst = put_text(dst, eight, 2, forms);
    dst = put_text(dst, eight, 3, forms);
    dst = put_text(dst, eight, 4, forms);
    dst = put_text(dst, eight, 5, forms);
    dst = put_text(dst, eight, 6, forms);
    return put_text(dst, eight, 7, forms);
}

/* Writes a group in which this kernel cannot print some numbers. */
static char *put_mixed(char *dst, const struct eight *eight, const struct form *forms, const float *src, int digits,
                       api_print_one *one)
{
    for (size_t i = 0; i < AT_ONCE; i++) {
        if (eight->ours >> i & 1) {
            dst = put_text(dst, eight, i, forms);
            continue;
        }
        dst = one(dst, src[i], digits);
        *dst++ = ',';
    }
    return dst;
}

/* Writes the eight texts; src and digits serve the numbers that this kernel cannot print. */
INLINE char *put_eight(char *dst, const struct eight *eight, const struct form *forms, const float *src, int digits,
                       api_print_one *one)
{
    bool all_ours = __builtin_expect(eight->ours == 0xff, 1);
    return all_ours ? put_ours(dst, eight, forms) : put_mixed(dst, eight, forms, src, digits, one);
}

/* ---- Shortest ------------------------------------------------------------------------------------------------------
 * A number from 10^-4 to 2^25 is x = c·2^q with c < 2^24. Let 10^-p be the largest power of ten not above 2^q; it has 0
 * ≤ p ≤ 12. Then
 *
 *   v = x·10^p,   h = 2^(q-1)·10^p (half of the distance to its neighbours),   1 ≤ 2h < 10
 *
 * are exact doubles, since 5^12 has 28 bits. Of the multiples of ten only
 *
 *   t = 10·round(v/10)
 *
 * may lie between the ends v ± h, for h < 4.9 (the largest, 2^-11·10^4, is 4.88). It is taken if |t - v| < h; else
 * round(v), which lies between the ends because h ≥ 1/2. This is what numbers_shortest.h computes for all exponents,
 * which must also consider three cases:
 *
 *   - Whether an end belongs to the interval. An end is (2c ± 1)·5^p·2^(q+p-1), and q + p ≤ 1 here: an odd number or
 *     a fraction, never t.
 *   - Whether t gives the number back when it is read as a double first. It would not if a double took it for an end,
 *     but it differs from one by at least 2^(q+p-1), which is over 2^-53 of it, since (2c ± 1)·5^p < 2^53.
 *   - The lower neighbour of a power of two, which is half as far. No text below 2^25 changes by that. */

/* Exponents of the first digit; digits; the bits of 1e-4 and of 2^25. */
enum { E_MIN = -4, E_MAX = 7, DIGITS = 9, SHORTEST_MIN = 0x38d1b717, SHORTEST_END = 0x4c000000 };

/* Byte i of a text with or without sign, the first of its n digits worth 10^e. */
#define DIGIT(i) ((i) ? (i)-1 : FIRST)
#define SMALL(i, e, n) ((i) == 1 ? POINT : (i) <= -(e) ? ZERO : (i) < (n) + 1 - (e) ? DIGIT((i)-1 + (e)) : COMMA)
#define USED(e, n) ((n) > (e) + 2 ? (n) : (e) + 2)
#define LARGE(i, e, n) ((i) <= (e) ? DIGIT(i) : (i) == (e) + 1 ? POINT : (i) <= USED(e, n) ? DIGIT((i)-1) : COMMA)
#define SHORTEST(i, sign, e, n)                                                                                        \
    (unsigned char)((i) < (sign) ? MINUS : (e) < 0 ? SMALL((i) - (sign), e, n) : LARGE((i) - (sign), e, n))
#define SHORTEST_BYTES(sign, e, n) (unsigned char)((sign) + ((e) < 0 ? (n) + 1 - (e) : USED(e, n) + 1) + 1)
#define SHORTEST_FORM(sign, e, n) FORM(SHORTEST, SHORTEST_BYTES, sign, e, n)
#define OF_DIGITS(sign, e)                                                                                             \
    {                                                                                                                  \
        SHORTEST_FORM(sign, e, 1), SHORTEST_FORM(sign, e, 2), SHORTEST_FORM(sign, e, 3), SHORTEST_FORM(sign, e, 4),    \
            SHORTEST_FORM(sign, e, 5), SHORTEST_FORM(sign, e, 6), SHORTEST_FORM(sign, e, 7),                           \
            SHORTEST_FORM(sign, e, 8), SHORTEST_FORM(sign, e, 9)                                                       \
    }
#define OF_SIGN(e)                                                                                                     \
    {                                                                                                                  \
        OF_DIGITS(0, e), OF_DIGITS(1, e)                                                                               \
    }
static const struct form shortest_forms[E_MAX - E_MIN + 1][2][DIGITS] __attribute__((aligned(32))) = {
    OF_SIGN(-4), OF_SIGN(-3), OF_SIGN(-2), OF_SIGN(-1), OF_SIGN(0), OF_SIGN(1),
    OF_SIGN(2),  OF_SIGN(3),  OF_SIGN(4),  OF_SIGN(5),  OF_SIGN(6), OF_SIGN(7),
};

/* p for each number. */
LANES power_of(__m256i size)
{
    __m256i q = sub(_mm256_srli_epi32(size, 23), all(150));
    return sub(zero(), _mm256_srai_epi32(mul(q, 1262611), 22)); /* 1262611/2^22 is log10(2) */
}

/* 10^p for p = 0 … 12. The lower halves of the doubles up to 10^9 are zeros. */
INLINE struct doubles tens_to(__m256i p)
{
    __m256i high = _mm256_setr_epi32(0x3ff00000, 0x40240000, 0x40590000, 0x408f4000, 0x40c38800, 0x40f86a00, 0x412e8480,
                                     0x416312d0);
    __m256i high_8 = _mm256_setr_epi32(0x4197d784, 0x41cdcd65, 0x4202a05f, 0x42374876, 0x426d1a94, 0, 0, 0);
    __m256i low_8 = _mm256_setr_epi32(0, 0, 0x20000000, (int)0xe8000000, (int)0xa2000000, 0, 0, 0);
    __m256i from_8 = above(p, all(7));
    __m256i upper = choose(from_8, _mm256_permutevar8x32_epi32(high_8, p), _mm256_permutevar8x32_epi32(high, p));
    __m256i lower = both(from_8, _mm256_permutevar8x32_epi32(low_8, p));
    return (struct doubles){_mm256_castsi256_pd(_mm256_unpacklo_epi32(lower, upper)),
                            _mm256_castsi256_pd(_mm256_unpackhi_epi32(lower, upper))};
}

INLINE __m256d round_even(__m256d x) { return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* t or round(v), of four numbers. */
INLINE __m256d pick(__m256d x, __m256d power)
{
    const long long exponent = 0x7ff0000000000000;
    __m256d v = _mm256_mul_pd(x, power), binade = _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(exponent)));
    __m256d h = _mm256_mul_pd(binade, _mm256_mul_pd(power, _mm256_set1_pd(0x1p-24)));
    __m256d t = _mm256_mul_pd(round_even(_mm256_mul_pd(v, _mm256_set1_pd(0.1))), _mm256_set1_pd(10));
    __m256d distance = _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(t, v));
    return _mm256_blendv_pd(round_even(v), t, _mm256_cmp_pd(distance, h, _CMP_LT_OQ));
}

/* Places from the first digit to the last that is not zero, less one: of the weights 1 to 8 the greatest that is at
 * such a digit. */
LANES used_of(const __m256i digits[2])
{
    __m256i weights = _mm256_set1_epi64x(0x0807060504030201);
    __m256 first = _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpeq_epi8(digits[0], zero()), weights));
    __m256 second = _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpeq_epi8(digits[1], zero()), weights));
    __m256i front = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
    __m256i most = _mm256_max_epu8(front, _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd)));
    most = _mm256_max_epu8(most, _mm256_srli_epi32(most, 16));
    return both(_mm256_max_epu8(most, _mm256_srli_epi32(most, 8)), all(0xff));
}

/* Numbers of nine digits: the first one, and the others in fours. */
INLINE void split_nine(__m256i nine, __m256i *first, __m256i digits[2])
{
    __m256i five = divide(nine, 0xd1b71759, 45), last = sub(nine, mul(five, 10000));
    *first = _mm256_srli_epi32(_mm256_mulhi_epu16(_mm256_srli_epi32(five, 4), all(6711)), 6); /* (five / 16) / 625 */
    __m256i front = sub(five, mul(*first, 10000));
    split(either(front, _mm256_slli_epi32(last, 16)), digits);
}

INLINE void prepare(struct eight *eight, const float *src)
{
    __m256 x = _mm256_loadu_ps(src);
    __m256i size = _mm256_castps_si256(size_of(x)), is_zero = equal(size, zero()), p = power_of(size);
    struct doubles wide = widen(size_of(x)), power = tens_to(p);
    __m256i n = narrow((struct doubles){pick(wide.first, power.first), pick(wide.second, power.second)});
    /* 7 to 9 digits: 2^23 ≤ v < 10·2^24 */
    __m256i is_eight = above(n, all(9999999)), is_nine = above(n, all(99999999));
    __m256i factor = sub(all(100), add(both(is_eight, all(90)), both(is_nine, all(9)))), first, digits[2];
    split_nine(_mm256_mullo_epi32(n, factor), &first, digits);
    put_sources(eight, digits, first);
    __m256i e = _mm256_andnot_si256(is_zero, sub(sub(sub(all(6), is_eight), is_nine), p));
    __m256i sign = _mm256_srli_epi32(_mm256_castps_si256(x), 31);
    __m256i form = add(mul(add(add(e, e), sign), DIGITS), add(used_of(digits), all(-2 * DIGITS * E_MIN)));
    __m256i is_ours = either(both(above(size, all(SHORTEST_MIN - 1)), above(all(SHORTEST_END), size)), is_zero);
    put_forms(eight, form, is_ours);
}

char *api_shortest_f32_avx2(char *dst, const float *src, size_t n, api_print_one *one)
{
    struct eight eights[GROUP];
    for (size_t i = 0; i < n; i += GROUP_NUMBERS) {
        size_t n_eights = eights_in(n - i);
        for (size_t j = 0; j < n_eights; j++)
            prepare(&eights[j], src + i + AT_ONCE * j);
        for (size_t j = 0; j < n_eights; j++)
            dst = put_eight(dst, &eights[j], &shortest_forms[0][0][0], src + i + AT_ONCE * j, -1, one);
    }
    return dst;
}

/* ---- Fixed digits --------------------------------------------------------------------------------------------------
 * |x|·10^digits is exact in a double, 24 + 17 bits, and rounded to the nearest integer, ties to even, as printf does.
 * This kernel prints integers below 10^8. */

enum { FIXED_MAX = 7 };

/* Byte i of a text with `whole` digits before the point. */
#define FIXED(i, sign, whole, digits)                                                                                  \
    (unsigned char)((i) < (sign)              ? MINUS                                                                  \
                    : (i) - (sign) == (whole) ? POINT                                                                  \
                    : (i) - (sign) > (whole) + (digits)                                                                \
                        ? COMMA                                                                                        \
                        : 8 - (digits) - (whole) + (i) - (sign) - ((i) - (sign) > (whole)))
#define FIXED_BYTES(sign, whole, digits) (unsigned char)((sign) + (whole) + (digits) + 2)
#define OF_WHOLE(whole, digits)                                                                                        \
    {                                                                                                                  \
        FORM(FIXED, FIXED_BYTES, 0, whole, digits), FORM(FIXED, FIXED_BYTES, 1, whole, digits)                         \
    }
#define OF_FIXED(digits)                                                                                               \
    {                                                                                                                  \
        OF_WHOLE(1, digits), OF_WHOLE(2, digits), OF_WHOLE(3, digits), OF_WHOLE(4, digits), OF_WHOLE(5, digits),       \
            OF_WHOLE(6, digits), OF_WHOLE(7, digits)                                                                   \
    }
static const struct form fixed_forms[FIXED_MAX][7][2] __attribute__((aligned(32))) = {
    OF_FIXED(1), OF_FIXED(2), OF_FIXED(3), OF_FIXED(4), OF_FIXED(5), OF_FIXED(6), OF_FIXED(7),
};

/* Limited, so that a larger number, infinity or NaN (min then returns its second operand) counts as one that this
 * kernel cannot print. */
INLINE __m256d scale(__m256d x, __m256d power) { return _mm256_min_pd(_mm256_mul_pd(x, power), _mm256_set1_pd(1e9)); }

/* The number of digits before the point, less one, and whether there is a sign: zeros have none. */
LANES fixed_form(__m256i n, __m256 x, int digits)
{
    static const int32_t most[8] = {0, 9, 99, 999, 9999, 99999, 999999, 9999999}; /* of this many digits */
    __m256i sign = _mm256_srli_epi32(_mm256_castps_si256(x), 31), form = both(sign, above(n, zero()));
    for (int i = digits + 1; i < 8; i++)
        form = add(form, both(above(n, all(most[i])), all(2)));
    return form;
}

INLINE void prepare_fixed(struct eight *eight, const float *src, __m256d power, int digits)
{
    __m256 x = _mm256_loadu_ps(src);
    struct doubles wide = widen(size_of(x));
    __m256i n = narrow((struct doubles){scale(wide.first, power), scale(wide.second, power)}), eight_digits[2];
    __m256i front = divide(n, 0xd1b71759, 45), last = sub(n, mul(front, 10000));
    split(either(front, _mm256_slli_epi32(last, 16)), eight_digits);
    put_sources(eight, eight_digits, zero());
    __m256i is_ours = above(all(100000000), n);
    put_forms(eight, fixed_form(n, x, digits), is_ours);
}

char *api_fixed_f32_avx2(char *dst, const float *src, size_t n, int digits, api_print_one *one)
{
    static const double powers[FIXED_MAX + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    const struct form *forms = &fixed_forms[digits - 1][0][0];
    const __m256d power = _mm256_set1_pd(powers[digits]);
    struct eight eights[GROUP];
    for (size_t i = 0; i < n; i += GROUP_NUMBERS) {
        size_t n_eights = eights_in(n - i);
        for (size_t j = 0; j < n_eights; j++)
            prepare_fixed(&eights[j], src + i + AT_ONCE * j, power, digits);
        for (size_t j = 0; j < n_eights; j++)
            dst = put_eight(dst, &eights[j], forms, src + i + AT_ONCE * j, digits, one);
    }
    return dst;
}
