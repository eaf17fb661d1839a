/* Derivations: the steps of one number, as the formula itself takes them.
 *
 * There is no second formula for /derive. The code that computes a table states each of its steps to a derivation, if
 * it has one, and goes on with the value that it gets back. So one formula can be run in three ways:
 *
 *     exactly             every value in double-double: what the number is, with 20 digits
 *     by a recipe         each step rounded as a library rounds it: what float32 makes of it
 *     from given values   the first n steps have the values of another run, all others are exact: what those n
 *                         roundings do to the last number
 *
 * The third is how a rounding is blamed: with E_n the last number's error of which the first n roundings are the cause,
 * E_n - E_(n-1) is what step n adds, and these add up to the whole error. Steps of two runs are the same step if they
 * have one symbol. */
#include "core/waves/waves.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct pe_derived *pe_derivation_find(const struct pe_derivation *d, const char *symbol)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->at[i].has_value && strcmp(d->at[i].symbol, symbol) == 0)
            return &d->at[i];
    return NULL;
}

static struct pe_derived *next(struct pe_derivation *d, const char *symbol)
{
    struct pe_derived *at = &d->at[d->n < PE_DERIVED_MAX ? d->n++ : PE_DERIVED_MAX - 1];
    *at = (struct pe_derived){.symbol = symbol};
    return at;
}

static struct pe_dd given(const struct pe_derivation *d, const char *symbol, struct pe_dd value)
{
    for (size_t i = 0; i < d->n_given; i++)
        if (d->given->at[i].has_value && strcmp(d->given->at[i].symbol, symbol) == 0)
            return d->given->at[i].value;
    return value;
}

struct pe_dd pe_derived(struct pe_derivation *d, const char *symbol, struct pe_dd value, const char *format, ...)
{
    struct pe_derived *at = next(d, symbol);
    va_list args;
    va_start(args, format);
    vsnprintf(at->text, sizeof at->text, format, args);
    va_end(args);
    at->has_value = true;
    at->value = given(d, symbol, value);
    return at->value;
}

void pe_derived_case(struct pe_derivation *d, const char *format, ...)
{
    struct pe_derived *at = next(d, "case");
    va_list args;
    va_start(args, format);
    vsnprintf(at->text, sizeof at->text, format, args);
    va_end(args);
}

void pe_derived_says(struct pe_derivation *d, const char *format, ...)
{
    struct pe_derived *at = &d->at[d->n - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(at->says, sizeof at->says, pe_text(format), args);
    va_end(args);
}

void pe_derived_ratio(struct pe_derivation *d, int64_t numerator, int64_t denominator)
{
    d->at[d->n - 1].numerator = numerator;
    d->at[d->n - 1].denominator = denominator;
}

struct pe_shown pe_brief(struct pe_dd x, unsigned n_digits)
{
    struct pe_shown shown;
    char text[PE_DECIMAL_MAX];
    pe_dd_print(x, n_digits, text);
    snprintf(shown.text, sizeof shown.text, "%.*s", (int)sizeof shown.text - 1, text);
    return shown;
}

/* ---- Steps that every table has ---- */

struct pe_dd pe_derived_round(const struct pe_derivation *d, enum pe_dtype dtype, struct pe_dd x)
{
    if (d->recipe == PE_RECIPE_EXACT || d->recipe == PE_RECIPE_F64 || dtype == PE_F64)
        return d->recipe == PE_RECIPE_EXACT ? x : dd(x.hi);
    return dd(pe_round_to(dtype, dd_round_odd(x)));
}

struct pe_dd pe_derived_frequency(struct pe_derivation *d, double base, double denominator, size_t c)
{
    enum pe_rungs rungs = pe_recipes[d->recipe].rungs;
    struct pe_dd log_base = pe_dd_log(dd(base)), e = dd_div(dd(-(double)c), dd(denominator)), w;
    struct pe_shown exponent = pe_brief(e, 10), shown = pe_shown(base);
    double width = 2 * denominator;
    if (rungs == PE_RUNGS_DIVISOR)
        return pe_derived(d, "b", dd(pe_recipe_frequency(d->recipe, base, width, (uint32_t)c, 0)), "%s^(%s)",
                          shown.text, exponent.text + (c > 0));
    if (rungs == PE_RUNGS_PRODUCT)
        return pe_derived(d, "t", dd(pe_recipe_frequency(d->recipe, base, width, (uint32_t)c, 0)), "base^(-2/%s)",
                          pe_shown(width).text);
    if (d->recipe == PE_RECIPE_EXACT)
        w = c ? pe_dd_exp(dd_mul(log_base, e)) : dd(1);
    else if (rungs == PE_RUNGS_RECIPROCAL)
        w = dd(pe_recipe_round(
            d->recipe, (double)(1 / pe_power_float32(pe_dd_log(dd((double)(float)base)), c, denominator)), base));
    else
        w = dd(pe_recipe_round(d->recipe, pe_recipe_frequency(d->recipe, base, width, (uint32_t)c, 0), base));
    return pe_derived(d, "w", w, "base^(-%zu/%s) = %s^(%s)", c, pe_shown(denominator).text, shown.text, exponent.text);
}

struct pe_dd pe_derived_angle(const struct pe_derivation *d, struct pe_dd x, struct pe_dd w, size_t c)
{
    return d->recipe == PE_RECIPE_EXACT ? dd_mul(w, x) : dd(pe_recipe_angle(d->recipe, x.hi, w.hi, (uint32_t)c, 1));
}

struct pe_dd pe_derived_sine(const struct pe_derivation *d, struct pe_dd angle, int quarter)
{
    struct pe_dd turns = pe_quarter_turns(angle);
    struct pe_wave wave = {.fh = turns.hi, .fl = turns.lo, .ah = 1, .quarter = quarter};
    double phase;
    if (d->recipe != PE_RECIPE_EXACT)
        return dd(pe_recipe_number(d->recipe, angle.hi, quarter, 1, 1, PE_F64));
    struct pe_dd x = pe_wave_value(&wave, 1, &phase);
    bool is_whole = fabs(x.hi) <= phase * 0x1p-100 || (fabs(x.hi) == 1 && fabs(x.lo) <= 0x1p-100);
    return is_whole ? dd(nearbyint(x.hi)) : x; /* as in pe_wave_decide: at whole quarters of a turn */
}
