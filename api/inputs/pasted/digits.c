/* Numbers in a text that a program printed: tokens, and how many digits they have. */
#include "api/inputs/pasted/pasted.h"
#include "api/numbers/numbers_powers.h"

#include <math.h>
#include <string.h>

/* ---- Tokens ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static const char *pass_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static const char *pass_word(const char *p, const char *end)
{
    while (p < end && (is_letter(*p) || is_digit(*p)))
        p++;
    return p;
}

/* nan, inf and Infinity in any case. */
static bool word_value(const char *word, size_t n, double *x)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", (double)NAN}, {"inf", (double)INFINITY}, {"infinity", (double)INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t k = 0;
        while (k < n && words[i].word[k] && (word[k] | 0x20) == words[i].word[k])
            k++;
        *x = words[i].value;
        if (k == n && !words[i].word[k])
            return true;
    }
    return false;
}

/* The digits from begin to end, which may have a point; those behind the 19th are dropped. */
static double value_of(const char *begin, const char *end, int exponent)
{
    enum { DIGITS = 19 };
    uint64_t digits = 0;
    int n = 0, at = exponent;
    bool is_behind = false;
    for (const char *p = begin; p < end; p++) {
        if (*p == '.') {
            is_behind = true;
            continue;
        }
        bool is_used = n < DIGITS;
        digits = is_used ? digits * 10 + (uint64_t)(*p - '0') : digits;
        n += is_used && digits > 0;
        at += !is_used - is_behind;
    }
    return api_decimal_value(digits, at);
}

/* An exponent of at most three digits behind p; p: there is none. */
static const char *pass_exponent(const char *p, const char *end, int *exponent)
{
    const char *digits = p + 1;
    *exponent = 0;
    if (p >= end || (*p | 0x20) != 'e')
        return p;
    bool is_negative = digits < end && *digits == '-';
    digits += digits < end && (*digits == '-' || *digits == '+');
    const char *behind = pass_digits(digits, end);
    if (behind == digits || behind - digits > 3)
        return p;
    for (; digits < behind; digits++)
        *exponent = *exponent * 10 + (*digits - '0');
    *exponent = is_negative ? -*exponent : *exponent;
    return behind;
}

/* A number as it is printed, also as C has it (0.5f); else a word. */
static void read_number(struct pasted_token *t, const char *p, const char *end, bool is_negative)
{
    const char *begin = p, *point = pass_digits(p, end);
    const char *behind = point < end && *point == '.' ? pass_digits(point + 1, end) : point;
    t->decimals = behind > point ? (int)(behind - point) - 1 : 0;
    t->has_point = behind > point;
    p = pass_exponent(behind, end, &t->exponent);
    t->has_exponent = p > behind;
    double x = value_of(begin, behind, t->exponent);
    t->value = is_negative ? -x : x;
    if (p < end && strchr("fFlLdD", *p) && !(p + 1 < end && (is_letter(p[1]) || is_digit(p[1]))))
        p++;
    t->end = pass_word(p, end);
    t->kind = t->end > p || !isfinite(x) ? PASTED_WORD : PASTED_NUMBER;
}

struct pasted_token pasted_token(const char *at, const char *end)
{
    while (at < end && *at && strchr(" \t\r,;|", *at))
        at++;
    struct pasted_token t = {.begin = at, .end = at < end ? at + 1 : at};
    bool is_signed = at + 1 < end && (*at == '-' || *at == '+');
    const char *p = at + is_signed;
    if (at == end)
        t.kind = PASTED_END;
    else if (is_digit(*p) || (*p == '.' && p + 1 < end && is_digit(p[1])))
        read_number(&t, p, end, *at == '-');
    else if (is_letter(*p)) {
        t.end = pass_word(p, end);
        t.kind = word_value(p, (size_t)(t.end - p), &t.value) ? PASTED_NUMBER : PASTED_WORD;
        t.value = *at == '-' ? -t.value : t.value;
    } else if (*at == '\n')
        t.kind = PASTED_LINE;
    else if (strchr("[{(", *at))
        t.kind = PASTED_OPEN;
    else if (strchr("]})", *at))
        t.kind = PASTED_CLOSE;
    else if (end - at >= 3 && memcmp(at, "...", 3) == 0) {
        while (t.end < end && *t.end == '.')
            t.end++;
        t.kind = PASTED_GAP;
    } else
        t.kind = PASTED_SIGN;
    return t;
}

bool pasted_is_index(const struct pasted_token *t)
{
    return t->kind == PASTED_NUMBER && is_digit(*t->begin) && !t->has_point && !t->has_exponent &&
           t->end - t->begin <= 9;
}

/* ---- Digits ---- */

static void raise(int *most, int x) { *most = x > *most ? x : *most; }

void pasted_digits_add(struct pasted_digits *d, const struct pasted_token *number)
{
    if (!isfinite(number->value))
        return;
    raise(number->has_exponent ? &d->mantissa : &d->plain, number->decimals);
    raise(&d->place, number->decimals - number->exponent);
    d->is_mixed |= !number->has_exponent;
}

void pasted_digits_join(struct pasted_digits *d, const struct pasted_digits *other)
{
    raise(&d->plain, other->plain);
    raise(&d->mantissa, other->mantissa);
    raise(&d->place, other->place);
    d->is_mixed |= other->is_mixed;
}

/* Where every number has an exponent, digits are counted before it; in Python's text of floats only the small ones
 * have, and the last digit's place counts. */
double pasted_half(const struct pasted_digits *d, bool *is_scientific)
{
    *is_scientific = !d->is_mixed && d->mantissa > 0;
    int digits = *is_scientific ? d->mantissa : d->is_mixed && d->place > d->plain ? d->place : d->plain;
    return digits > 0 ? 0.5 * pow(10, -digits) : 0;
}

bool api_print_of_json(struct api_arena *arena, const char *text, size_t n, const struct pe_print **print)
{
    struct pasted_digits digits = {0};
    uint64_t i = 0;
    for (const char *at = text, *end = text + n; at < end && !pe_is_cancelled_at(i); i++) {
        struct pasted_token t = pasted_token(at, end);
        if (t.kind == PASTED_NUMBER)
            pasted_digits_add(&digits, &t);
        at = t.end;
    }
    bool is_scientific;
    double half = pasted_half(&digits, &is_scientific);
    struct pe_print *one = half > 0 ? api_arena_alloc(arena, sizeof *one) : NULL;
    if (one)
        *one = (struct pe_print){.half = half, .is_scientific = is_scientific};
    *print = one;
    return one || half == 0;
}
