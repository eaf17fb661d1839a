/* f32 to text, eight numbers at a time: the arithmetic of numbers_shortest.h in 32-bit lanes, then one byte shuffle and
 * one 16-byte store for each number. */
#include "api/kernels/numbers.h"
#include "api/numbers_powers.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LANES static inline __attribute__((always_inline)) __m256i

enum { AT_ONCE = API_NUMBERS_AT_ONCE };

LANES all(int x) { return _mm256_set1_epi32(x); }
LANES add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
LANES sub(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
LANES mul(__m256i a, int b) { return _mm256_mullo_epi32(a, all(b)); }
LANES both(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
LANES either(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
LANES differ(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }
LANES equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi32(a, b); }
LANES above(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
LANES choose(__m256i mask, __m256i yes, __m256i no) { return _mm256_blendv_epi8(no, yes, mask); }
LANES zero(void) { return _mm256_setzero_si256(); }

/* Lanes 1, 3, 5, 7 where vpmuludq looks for its factors: at 0, 2, 4, 6. */
LANES odd_lanes(__m256i a) { return _mm256_srli_epi64(a, 32); }

/* The upper halves of the 64-bit products of even and of odd lanes, each in its own lane; likewise the lower ones. */
LANES join_high(__m256i even, __m256i odd) { return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa); }
LANES join_low(__m256i even, __m256i odd) { return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa); }

/* a / divisor as (a · magic) >> shift, shift ≥ 32. */
LANES divide(__m256i a, uint32_t magic, int shift)
{
    __m256i m = all((int)magic);
    __m256i high = join_high(_mm256_mul_epu32(a, m), _mm256_mul_epu32(odd_lanes(a), m));
    return _mm256_srli_epi32(high, shift - 32);
}

/* ---- Shortest: numbers_shortest.h, eight lanes wide ------------------------------------------------------------ */

struct power {
    __m256i high, low;
};

/* power · quarters, 96 bits, but for the lowest 32. */
struct product {
    __m256i whole, fraction;
};

static inline __attribute__((always_inline)) struct product scale(const struct power *p, __m256i quarters)
{
    __m256i odd = odd_lanes(quarters);
    __m256i even_low = _mm256_mul_epu32(p->low, quarters), odd_low = _mm256_mul_epu32(odd_lanes(p->low), odd);
    __m256i even_high = _mm256_mul_epu32(p->high, quarters), odd_high = _mm256_mul_epu32(odd_lanes(p->high), odd);
    even_high = _mm256_add_epi64(even_high, _mm256_srli_epi64(even_low, 32));
    odd_high = _mm256_add_epi64(odd_high, _mm256_srli_epi64(odd_low, 32));
    return (struct product){join_high(even_high, odd_high), join_low(even_high, odd_high)};
}

/* As scale_narrow(): the whole, with its last bit set where there is a fraction beyond what the power is rounded by. */
LANES to_odd(const struct product *x)
{
    __m256i rest = both(x->fraction, all(~1));
    return either(x->whole, add(all(1), equal(rest, zero()))); /* 0 where the rest is 0 or 1 */
}

/* Lanes where unsigned a ≥ limit (a constant). */
LANES from(__m256i a, uint32_t limit) { return equal(_mm256_max_epu32(a, all((int)limit)), a); }

struct binary {
    __m256i c, q, lower_near; /* the last a mask */
};

struct interval {
    struct product low_end, high_end;
    __m256i low, value, high, k;
};

struct decimal {
    __m256i digits, exponent;
    __m256i is_doubtful; /* mask: it may be read as the end of its interval */
};

static inline __attribute__((always_inline)) struct binary binary_of(__m256i bits)
{
    __m256i field = both(_mm256_srli_epi32(bits, 23), all(0xff)), fraction = both(bits, all(0x7fffff));
    __m256i is_subnormal = equal(field, zero());
    return (struct binary){
        .c = either(fraction, _mm256_andnot_si256(is_subnormal, all(1 << 23))),
        .q = sub(sub(field, is_subnormal), all(150)),
        .lower_near = both(equal(fraction, zero()), above(field, all(1))),
    };
}

static inline __attribute__((always_inline)) struct interval interval_of(const struct binary *b)
{
    const int *powers = (const int *)(const void *)api_narrow_powers;
    __m256i k = _mm256_srai_epi32(sub(mul(b->q, 1262611), both(b->lower_near, all(524031))), 22);
    __m256i log2_of_power = _mm256_srai_epi32(mul(k, -1741647), 19), place = sub(all(-API_NARROW_MIN), k);
    __m256i h = add(add(b->q, log2_of_power), all(1)), open = both(b->c, all(1));
    struct power p = {_mm256_i32gather_epi32(powers + 1, place, 8), _mm256_i32gather_epi32(powers, place, 8)};
    __m256i four = _mm256_slli_epi32(b->c, 2), below = sub(sub(four, all(2)), b->lower_near); /* a mask is -1 */
    struct product low = scale(&p, _mm256_sllv_epi32(below, h)), value = scale(&p, _mm256_sllv_epi32(four, h));
    struct product high = scale(&p, _mm256_sllv_epi32(add(four, all(2)), h));
    return (struct interval){
        .low_end = low,
        .high_end = high,
        .low = add(to_odd(&low), open),
        .value = to_odd(&value),
        .high = sub(to_odd(&high), open),
        .k = k,
    };
}

/* fine_pick(): ones or ones + 1. */
LANES fine_pick(const struct interval *v)
{
    __m256i ones = _mm256_srli_epi32(v->value, 2), quarters = _mm256_slli_epi32(ones, 2);
    __m256i middle = add(quarters, all(2));
    __m256i not_below = above(v->low, quarters), not_above = above(add(quarters, all(4)), v->high);
    __m256i tie_up = both(equal(v->value, middle), equal(both(ones, all(1)), all(1)));
    __m256i up = either(above(v->value, middle), tie_up);
    __m256i is_one_inside = differ(not_below, not_above);
    return sub(ones, choose(is_one_inside, not_below, up)); /* just one inside: the upper one if not the lower */
}

/* A coarse decimal is read as a double first. That is the very end of the interval only if the end is within 2^-53 of
 * it, which is less than 2^-23 quarters; then scalar code looks. */
LANES may_be_read_as_end(const struct interval *v, __m256i quarters)
{
    __m256i at_low = both(equal(v->low_end.whole, sub(quarters, all(1))), from(v->low_end.fraction, 0xffff0000));
    __m256i at_high = _mm256_andnot_si256(from(v->high_end.fraction, 0x10000), equal(v->high_end.whole, quarters));
    return either(at_low, at_high);
}

static inline __attribute__((always_inline)) struct decimal pick(const struct interval *v)
{
    __m256i tens = divide(_mm256_srli_epi32(v->value, 3), 0xcccccccd, 34), quarters = mul(tens, 40);
    __m256i not_below = above(v->low, quarters), not_above = above(add(quarters, all(40)), v->high);
    __m256i is_coarse = both(above(v->value, all(39)), differ(not_below, not_above));
    __m256i coarse = sub(tens, not_below), quarters_of_coarse = sub(quarters, both(not_below, all(-40)));
    return (struct decimal){
        .digits = choose(is_coarse, coarse, fine_pick(v)),
        .exponent = sub(v->k, is_coarse),
        .is_doubtful = both(is_coarse, may_be_read_as_end(v, quarters_of_coarse)),
    };
}

/* ---- Digits ------------------------------------------------------------------------------------------------------ */

/* The eight digits of a number below 10^8 in each 64-bit lane (upper half 0), one a byte, the first in the lowest. */
LANES eight_digits(__m256i x)
{
    __m256i four = _mm256_srli_epi64(_mm256_mul_epu32(x, all((int)0xd1b71759)), 45);
    __m256i rest = sub(x, _mm256_mullo_epi32(four, all(10000)));
    __m256i v = either(four, _mm256_slli_epi64(rest, 32));
    __m256i two = _mm256_srli_epi16(_mm256_mulhi_epu16(v, all(10486)), 4);
    __m256i w = either(two, _mm256_slli_epi32(sub(v, _mm256_mullo_epi16(two, all(100))), 16));
    __m256i one = _mm256_mulhi_epu16(w, _mm256_set1_epi16(6554));
    return either(one, _mm256_slli_epi16(_mm256_sub_epi16(w, _mm256_mullo_epi16(one, _mm256_set1_epi16(10))), 8));
}

/* How many digits a number from 1 to 10^9-1 has. */
LANES digit_count(__m256i x)
{
    __m256i n = all(1);
    for (int ten = 10; ten <= 100000000; ten *= 10)
        n = sub(n, above(x, all(ten - 1)));
    return n;
}

/* 10^(9-n) for n = 1 … 9. */
LANES power_to_nine(__m256i n)
{
    __m256i powers = _mm256_setr_epi32(100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10);
    __m256i place = sub(n, all(1));
    return choose(above(n, all(8)), all(1), _mm256_permutevar8x32_epi32(powers, place));
}

/* ---- Eight texts, prepared -----------------------------------------------------------------------------------------
 */

/* What a text is shuffled from: digits 2 to 9 in ASCII, the first one, and the other characters. */
union source {
    struct {
        uint64_t digits;
        char first, minus, point, zero, none[4];
    };
    __m128i all;
};
enum { FIRST = 8, MINUS, POINT, ZERO };
#define CHARACTERS (UINT64_C(0x302e2d30)) /* "0-.0" */
#define ASCII_ZEROS UINT64_C(0x3030303030303030)

/* Exponents that are written without e, as far as nine digits go. Others, and what is not finite, is SCALAR. */
enum { E_MIN = -4, E_MAX = 7, N_FORMS = 2 * (E_MAX - E_MIN + 1), SCALAR = N_FORMS };

/* Where the bytes of a text come from, and its length: the greater of least and more + n for n digits. */
struct form {
    unsigned char from[16];
    int32_t more, least;
};
/* clang-format off */
#define M MINUS
#define P POINT
#define Z ZERO
#define F FIRST
static const struct form forms[N_FORMS] = { /* for each exponent without and with a sign */
    {{Z, P, Z, Z, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 5, 0}, /* 10^-4 */
    {{M, Z, P, Z, Z, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 6, 0},
    {{Z, P, Z, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 4, 0}, /* 10^-3 */
    {{M, Z, P, Z, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 5, 0},
    {{Z, P, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 3, 0}, /* 10^-2 */
    {{M, Z, P, Z, F, 0, 1, 2, 3, 4, 5, 6, 7}, 4, 0},
    {{Z, P, F, 0, 1, 2, 3, 4, 5, 6, 7}, 2, 0}, /* 10^-1 */
    {{M, Z, P, F, 0, 1, 2, 3, 4, 5, 6, 7}, 3, 0},
    {{F, P, 0, 1, 2, 3, 4, 5, 6, 7}, 1, 3}, /* 10^0 */
    {{M, F, P, 0, 1, 2, 3, 4, 5, 6, 7}, 2, 4},
    {{F, 0, P, 1, 2, 3, 4, 5, 6, 7}, 1, 4}, /* 10^1 */
    {{M, F, 0, P, 1, 2, 3, 4, 5, 6, 7}, 2, 5},
    {{F, 0, 1, P, 2, 3, 4, 5, 6, 7}, 1, 5}, /* 10^2 */
    {{M, F, 0, 1, P, 2, 3, 4, 5, 6, 7}, 2, 6},
    {{F, 0, 1, 2, P, 3, 4, 5, 6, 7}, 1, 6}, /* 10^3 */
    {{M, F, 0, 1, 2, P, 3, 4, 5, 6, 7}, 2, 7},
    {{F, 0, 1, 2, 3, P, 4, 5, 6, 7}, 1, 7}, /* 10^4 */
    {{M, F, 0, 1, 2, 3, P, 4, 5, 6, 7}, 2, 8},
    {{F, 0, 1, 2, 3, 4, P, 5, 6, 7}, 1, 8}, /* 10^5 */
    {{M, F, 0, 1, 2, 3, 4, P, 5, 6, 7}, 2, 9},
    {{F, 0, 1, 2, 3, 4, 5, P, 6, 7}, 1, 9}, /* 10^6 */
    {{M, F, 0, 1, 2, 3, 4, 5, P, 6, 7}, 2, 10},
    {{F, 0, 1, 2, 3, 4, 5, 6, P, 7}, 1, 10}, /* 10^7 */
    {{M, F, 0, 1, 2, 3, 4, 5, 6, P, 7}, 2, 11},
};
#undef M
#undef P
#undef Z
#undef F
/* clang-format on */

struct eight {
    union source sources[AT_ONCE];
    int32_t forms[AT_ONCE];
};

static inline __attribute__((always_inline)) void put_pairs(union source *sources, __m256i digits, __m256i first)
{
    __m256i ascii = _mm256_add_epi8(digits, _mm256_set1_epi8('0'));
    __m256i rest = _mm256_add_epi64(first, _mm256_set1_epi64x((long long)CHARACTERS));
    __m256i low = _mm256_unpacklo_epi64(ascii, rest), high = _mm256_unpackhi_epi64(ascii, rest);
    sources[0].all = _mm256_castsi256_si128(low);
    sources[2].all = _mm256_castsi256_si128(high);
    sources[4].all = _mm256_extracti128_si256(low, 1);
    sources[6].all = _mm256_extracti128_si256(high, 1);
}

/* Numbers of nine digits: the first apart, the others by eight_digits(). */
static inline __attribute__((always_inline)) void put_nine(union source *sources, __m256i nine)
{
    __m256i first = divide(nine, 0x55e63b89, 57), rest = sub(nine, mul(first, 100000000));
    __m256i even = _mm256_set1_epi64x(UINT32_MAX);
    put_pairs(sources, eight_digits(both(rest, even)), both(first, even));
    put_pairs(sources + 1, eight_digits(odd_lanes(rest)), odd_lanes(first));
}

static inline __attribute__((always_inline)) void prepare(struct eight *eight, const float *src)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)src);
    struct binary b = binary_of(bits);
    struct interval v = interval_of(&b);
    struct decimal d = pick(&v);
    __m256i is_zero = equal(b.c, zero()), is_finite = above(all(0x7f800000), both(bits, all(INT32_MAX)));
    __m256i digits = _mm256_andnot_si256(is_zero, d.digits), n = digit_count(digits);
    __m256i e = _mm256_andnot_si256(is_zero, add(d.exponent, sub(n, all(1))));
    __m256i is_plain = both(above(e, all(E_MIN - 1)), above(all(E_MAX + 1), e));
    __m256i is_ours = both(both(is_plain, is_finite), either(is_zero, _mm256_andnot_si256(d.is_doubtful, all(-1))));
    __m256i form = add(mul(sub(e, all(E_MIN)), 2), _mm256_srli_epi32(bits, 31));
    _mm256_storeu_si256((__m256i *)(void *)eight->forms, choose(is_ours, form, all(SCALAR)));
    put_nine(eight->sources, _mm256_mullo_epi32(digits, power_to_nine(n)));
}

/* ---- Writing
 * --------------------------------------------------------------------------------------------------------- */

/* Digits of a source without the zeros at its end; the first always counts. */
static inline int digits_used(const union source *source)
{
    return 9 - (int)(_lzcnt_u64(source->digits ^ ASCII_ZEROS) / 8);
}

static inline char *put_text(char *dst, const union source *source, const struct form *form)
{
    __m128i from = _mm_loadu_si128((const __m128i *)(const void *)form->from);
    int n = digits_used(source) + form->more, n_bytes = n > form->least ? n : form->least;
    _mm_storeu_si128((__m128i *)(void *)dst, _mm_shuffle_epi8(source->all, from));
    dst[n_bytes] = ',';
    return dst + n_bytes + 1;
}

char *api_shortest_f32_avx2(char *dst, const float *src, size_t n, api_print_one *one)
{
    struct eight eight;
    for (size_t i = 0; i < n; i += AT_ONCE) {
        prepare(&eight, src + i);
        for (size_t j = 0; j < AT_ONCE; j++) {
            if (__builtin_expect(eight.forms[j] != SCALAR, 1)) {
                dst = put_text(dst, &eight.sources[j], &forms[eight.forms[j]]);
                continue;
            }
            dst = one(dst, src[i + j], -1);
            *dst++ = ',';
        }
    }
    return dst;
}

/* ---- Fixed digits
 * ------------------------------------------------------------------------------------------------------ */

/* |x| · 10^digits, rounded as printf does: the product of 24 bits and 5^7 is exact in a double, and adding 2^52 to it
 * rounds to the nearest integer, ties to even. Four numbers; more than fits 2^52 comes out as some other number, which
 * is as well above 10^8. */
static inline __attribute__((always_inline)) __m128i scaled(__m128 x, __m256d power)
{
    __m256d magic = _mm256_set1_pd(0x1p52), product = _mm256_mul_pd(_mm256_cvtps_pd(x), power);
    __m256d limited = _mm256_min_pd(product, _mm256_set1_pd(1e9)); /* also for NaN: the second operand */
    __m256i bits = _mm256_castpd_si256(_mm256_add_pd(limited, magic));
    return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bits, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

struct eight_fixed {
    uint64_t digits[AT_ONCE]; /* raw, the first in the lowest byte; even numbers, then odd ones */
    uint32_t scaled[AT_ONCE]; /* from 10^8 on: not ours */
};

static inline __attribute__((always_inline)) void prepare_fixed(struct eight_fixed *eight, const float *src,
                                                                __m256d power)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(src));
    __m256i x =
        _mm256_set_m128i(scaled(_mm256_extractf128_ps(size, 1), power), scaled(_mm256_castps256_ps128(size), power));
    __m256i even = _mm256_set1_epi64x(UINT32_MAX);
    _mm256_storeu_si256((__m256i *)(void *)eight->scaled, x);
    _mm256_storeu_si256((__m256i *)(void *)eight->digits, eight_digits(both(x, even)));
    _mm256_storeu_si256((__m256i *)(void *)(eight->digits + 4), eight_digits(odd_lanes(x)));
}

/* Eight digits to text: without zeros in front but for one before the point, which stands before the last `digits`. */
static inline char *put_fixed(char *dst, uint64_t raw, int digits, bool is_negative)
{
    int zeros = (int)(_tzcnt_u64(raw) / 8), whole = 8 - digits - zeros;
    whole = whole > 1 ? whole : 1;
    uint64_t ascii = raw | ASCII_ZEROS, front = ascii >> 8 * (8 - digits - whole), back = ascii >> 8 * (8 - digits);
    *dst = '-';
    dst += is_negative;
    memcpy(dst, &front, sizeof front);
    dst += whole;
    *dst++ = '.';
    memcpy(dst, &back, sizeof back);
    dst += digits;
    *dst = ',';
    return dst + 1;
}

char *api_fixed_f32_avx2(char *dst, const float *src, size_t n, int digits, api_print_one *one)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    __m256d power = _mm256_set1_pd(powers[digits]);
    struct eight_fixed eight;
    for (size_t i = 0; i < n; i += AT_ONCE) {
        prepare_fixed(&eight, src + i, power);
        for (size_t j = 0; j < AT_ONCE; j++) {
            if (__builtin_expect(eight.scaled[j] < 100000000, 1)) {
                dst = put_fixed(dst, eight.digits[j / 2 + j % 2 * 4], digits, src[i + j] < 0 && eight.scaled[j] > 0);
                continue;
            }
            dst = one(dst, src[i + j], digits);
            *dst++ = ',';
        }
    }
    return dst;
}
