/* A double-double as decimal digits, rounded once.
 *
 * The sum hi + lo is a binary fraction, and every binary fraction ends in decimal. So it is written out in full, as a
 * fixed-point number in limbs of nine decimal digits: a double is an integer times a power of two, which is multiplied
 * or divided 29 bits at a time, and hi and lo are then added limb by limb. The digits that are asked for are cut off,
 * and what is left decides the rounding, ties to even. Nothing is approximated, so no digit depends on the C library.
 * 2^1024 has 309 digits before the point, and 2^-1074 has 1074 behind it. */
#include "core/numeric/numeric.h"

#include <stdio.h>
#include <string.h>

enum { LIMB = 1000000000, LIMB_DIGITS = 9, WHOLE = 36, LIMBS = WHOLE + 122, SHIFT = 29 };

struct fixed {
    uint32_t limb[LIMBS]; /* the highest first; limb WHOLE is the first behind the point */
};

static void halve(struct fixed *x, int times)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        uint64_t now = rest * LIMB + x->limb[i];
        x->limb[i] = (uint32_t)(now >> times);
        rest = now & ((UINT64_C(1) << times) - 1);
    }
}

/* |x|, which is finite. */
static void set(struct fixed *out, double x)
{
    enum { BITS = 53 };
    int exponent;
    uint64_t whole = (uint64_t)ldexp(frexp(fabs(x), &exponent), BITS);
    memset(out, 0, sizeof *out);
    out->limb[WHOLE - 1] = (uint32_t)(whole % LIMB);
    out->limb[WHOLE - 2] = (uint32_t)(whole / LIMB);
    exponent -= BITS;
    for (int left = exponent; left > 0; left -= SHIFT) {
        uint64_t carry = 0;
        for (size_t i = LIMBS; i-- > 0;) {
            uint64_t now = ((uint64_t)out->limb[i] << (left < SHIFT ? left : SHIFT)) + carry;
            out->limb[i] = (uint32_t)(now % LIMB);
            carry = now / LIMB;
        }
    }
    for (int left = -exponent; left > 0; left -= SHIFT)
        halve(out, left < SHIFT ? left : SHIFT);
}

static int digit_at(const struct fixed *x, size_t place)
{
    uint32_t limb = x->limb[place / LIMB_DIGITS];
    for (size_t i = place % LIMB_DIGITS; i + 1 < LIMB_DIGITS; i++)
        limb /= 10;
    return (int)(limb % 10);
}

/* Is what begins at a place above half of the place before it (1), the half itself (0), or below (-1)? */
static int compare_half(const struct fixed *x, size_t place)
{
    const size_t end = (size_t)LIMBS * LIMB_DIGITS;
    int first = place < end ? digit_at(x, place) : 0;
    if (first != 5)
        return first > 5 ? 1 : -1;
    for (size_t i = place + 1; i < end; i++)
        if (digit_at(x, i))
            return 1;
    return 0;
}

/* Adds 1 to the last of n digits; true: all were nines, and the first is 1 now. */
static bool round_up(char *digits, size_t n)
{
    while (n > 0 && digits[n - 1] == '9')
        digits[--n] = '0';
    if (n > 0)
        digits[n - 1]++;
    else
        digits[0] = '1';
    return n == 0;
}

/* Where the point is: behind so many digits; at most 0: zeros come first. */
static void lay_out(char *out, bool is_negative, const char *digits, size_t n, int point)
{
    enum { LEAST = -6, MOST = 21 };
    char *at = out;
    if (is_negative)
        *at++ = '-';
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (point <= LEAST || point > MOST) {
        sprintf(at, n > 1 ? "%c.%.*se%d" : "%c%.*se%d", digits[0], (int)n - 1, digits + 1, point - 1);
        return;
    }
    if (point <= 0) {
        at += sprintf(at, "0.");
        for (int i = point; i < 0; i++)
            *at++ = '0';
        sprintf(at, "%.*s", (int)n, digits);
        return;
    }
    for (size_t i = 0; i < (size_t)point || i < n; i++) {
        if (i == (size_t)point)
            *at++ = '.';
        *at++ = i < n ? digits[i] : '0';
    }
    *at = '\0';
}

void pe_dd_print(struct pe_dd x, unsigned n_digits, char out[PE_DECIMAL_MAX])
{
    struct fixed all, low;
    char digits[PE_DIGITS_MAX];
    size_t n = n_digits < PE_DIGITS_MAX ? n_digits : PE_DIGITS_MAX, first = 0;
    if (!isfinite(x.hi) || x.hi == 0) {
        strcpy(out, isnan(x.hi) ? "nan" : x.hi == 0 ? "0" : x.hi > 0 ? "inf" : "-inf");
        return;
    }
    set(&all, x.hi);
    set(&low, x.lo);
    /* Both are of one sign, or their difference is not below 0. */
    int64_t carry = 0, sign = (x.lo < 0) == (x.hi < 0) ? 1 : -1;
    for (size_t i = LIMBS; i-- > 0;) {
        int64_t now = (int64_t)all.limb[i] + sign * (int64_t)low.limb[i] + carry;
        carry = now < 0 ? -1 : now / LIMB;
        all.limb[i] = (uint32_t)(now - carry * LIMB);
    }
    while (!digit_at(&all, first))
        first++;
    for (size_t i = 0; i < n; i++)
        digits[i] = (char)('0' + (first + i < (size_t)LIMBS * LIMB_DIGITS ? digit_at(&all, first + i) : 0));
    int half = compare_half(&all, first + n), point = WHOLE * LIMB_DIGITS - (int)first;
    if (half > 0 || (half == 0 && (digits[n - 1] - '0') % 2))
        point += round_up(digits, n);
    lay_out(out, x.hi < 0, digits, n, point);
}
