/* Numbers of a JSON array: the end and the point of each from one mask of 32 bytes, its digits put in line by a shuffle
 * and added up by three multiplications. No branch depends on a property that changes from number to number, because no
 * processor can predict it: the length, the sign, a leading zero. Conditions are therefore joined by | and &. */
#include "api/numbers/kernels/numbers.h"
#include "api/numbers/numbers_powers.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

/* AHEAD: this many bytes, those of the mask, must be readable from a number's start. */
enum { HALF = 16, DIGITS_MAX = 19, AHEAD = 32 };

/* Offsets of the marks of a number from its start. */
struct marks {
    int point, end; /* point: -1 if there is none */
};

/* The number that the digits in bytes 0 to end - 1, without the point, form; end ≤ 16. The bytes are less '0', and zero
 * where there is a sign. The shuffle moves the last digit to place 15 and those in front of the point one further; what
 * is left of the first becomes zero. Then neighbours are joined to pairs, these to fours, these to eights. */
INLINE uint64_t short_digits(__m128i bytes, struct marks marks)
{
    static const int8_t places[2 * HALF] = {-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1,
                                            0,   1,   2,   3,   4,   5,   6,   7,  8,  9,  10, 11, 12, 13, 14, 15};
    __m128i from = _mm_loadu_si128((const void *)(places + marks.end));
    from = _mm_add_epi8(from, _mm_cmpgt_epi8(_mm_set1_epi8((char)(marks.point + 1)), from));
    __m128i digits = _mm_shuffle_epi8(bytes, from);
    __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(10 | 1 << 8));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(100 | 1 << 16));
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(10000 | 1 << 16));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
}

/* The digits of a number whose text is longer than 16 bytes: the last 16 bytes and those before them. */
INLINE uint64_t long_digits(const char *p, __m128i bytes, struct marks marks)
{
    static const uint64_t tens[2] = {UINT64_C(10000000000000000), UINT64_C(1000000000000000)};
    int start = marks.end - HALF;
    __m128i last = _mm_sub_epi8(_mm_loadu_si128((const void *)(p + start)), _mm_set1_epi8('0'));
    bool is_in_tail = marks.point >= start;
    struct marks head = {is_in_tail ? -1 : marks.point, start}, tail = {is_in_tail ? marks.point - start : -1, HALF};
    return short_digits(bytes, head) * tens[is_in_tail] + short_digits(last, tail);
}

/* The marks of a number of the usual form, at most 19 digits, with a comma behind it; false if it has any other form.
 * digits: a bit for each byte that is one; first: of these the number's first, 1 behind a sign. */
INLINE bool marks_find(const char *p, uint32_t digits, int first, struct marks *marks)
{
    uint32_t others = ~(digits | (uint32_t)first);
    int whole = (int)_tzcnt_u32(others);
    *marks = (struct marks){-1, whole};
    if ((whole == first) | (whole > first + DIGITS_MAX) | ((p[first] == '0') & (whole > first + 1)))
        return false;
    if (p[whole] == '.')
        *marks = (struct marks){whole, (int)_tzcnt_u32(_blsr_u32(others))};
    bool is_bare_point = marks->end == marks->point + 1;
    return !is_bare_point && marks->end <= first + DIGITS_MAX + (marks->point >= 0) && p[marks->end] == ',';
}

/* 16 bytes hold at most 15 digits and a point: these digits are exact in a double, like 10^14, so one division rounds
 * once, to the nearest double. Or they hold 16 digits, and there is no division. */
INLINE double short_value(uint64_t digits, int n_behind)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
    return (double)(int64_t)digits / tens[n_behind];
}

INLINE double sign_put(double size, bool is_negative)
{
    __m128i sign = _mm_cvtsi64_si128((int64_t)((uint64_t)is_negative << 63));
    return _mm_cvtsd_f64(_mm_xor_pd(_mm_set_sd(size), _mm_castsi128_pd(sign)));
}

/* Reads one number and the comma behind it; NULL: it does not have the usual form. AHEAD bytes at p are readable. No
 * load starts behind the sign: it would have to wait until the sign is known, and each number already waits for the one
 * before it. */
INLINE const char *number_read(const char *p, double *x)
{
    bool is_negative = *p == '-';
    __m256i bytes = _mm256_sub_epi8(_mm256_loadu_si256((const void *)p), _mm256_set1_epi8('0'));
    __m256i is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(9)), bytes);
    __m128i start = _mm256_castsi256_si128(_mm256_and_si256(bytes, is_digit));
    struct marks marks;
    if (!marks_find(p, (uint32_t)_mm256_movemask_epi8(is_digit), is_negative, &marks))
        return NULL;
    int n_behind = marks.point < 0 ? 0 : marks.end - 1 - marks.point;
    double size = marks.end <= HALF ? short_value(short_digits(start, marks), n_behind)
                                    : api_decimal_value(long_digits(p, start, marks), -n_behind);
    *x = sign_put(size, is_negative);
    return p + marks.end + 1;
}

/* More spaces are the caller's, who asks in between whether the client has disconnected. */
enum { SPACES_MAX = 256 };

INLINE const char *space_skip(const char *p, const char *end)
{
    const char *most = end - p > SPACES_MAX ? p + SPACES_MAX : end;
    while (p < most && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

size_t api_numbers_read_avx2(const char **text, const char *end, double *dst, size_t n)
{
    const char *p = *text;
    size_t i = 0;
    for (; i < n && end - p >= AHEAD; i++) {
        const char *next = number_read(p, &dst[i]);
        if (!next)
            break;
        next = space_skip(next, end);
        if (next == end || !((*next == '-') | ((unsigned char)(*next - '0') < 10)))
            break; /* the caller checks the comma, and whether a number must follow */
        p = next;
    }
    *text = p;
    return i;
}
