/* How near a predicted number must be to the number found. */
#include "core/diagnosis/judge.h"
#include "core/numeric/dtype.h"

#include <math.h>
#include <string.h>

/* ---- Dtypes ---- */

double pe_roundoff(enum pe_dtype dtype)
{
    switch (dtype) {
    case PE_F32: return 0x1p-24;
    case PE_F64: return 0x1p-53;
    case PE_F16: return 0x1p-11;
    case PE_BF16: return 0x1p-8;
    default: return 0;
    }
}

double pe_round_to(enum pe_dtype dtype, double x)
{
    switch (dtype) {
    case PE_F32: return (double)(float)x;
    case PE_F16: return pe_f16_value(pe_f16_round(x));
    case PE_BF16: return pe_bf16_value(pe_bf16_round(x));
    default: return x;
    }
}

/* Sign and magnitude as an integer that counts steps. */
static int64_t ordered(int64_t magnitude, bool is_negative) { return is_negative ? -magnitude : magnitude; }

static int64_t step_of(enum pe_dtype dtype, double x)
{
    double a = fabs(x);
    float f = (float)a;
    int64_t wide;
    int32_t bits;
    memcpy(&wide, &a, sizeof wide);
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case PE_F32: return ordered(bits, x < 0);
    case PE_F16: return ordered(pe_f16_round(a), x < 0);
    case PE_BF16: return ordered(pe_bf16_round(a), x < 0);
    default: return ordered(wide, x < 0);
    }
}

double pe_steps_between(enum pe_dtype dtype, double a, double b)
{
    if (!pe_dtype_is_real(dtype))
        return fabs(a - b);
    int64_t x = step_of(dtype, a), y = step_of(dtype, b); /* a double would round steps of f64 to thousands */
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
}

/* ---- One number ---- */

struct pe_judge pe_judge_of(const struct pe_evidence *e, bool narrow)
{
    enum pe_dtype dtype = narrow && e->narrow != PE_DTYPE_NONE ? e->narrow : e->dtype;
    return (struct pe_judge){.id = e->kind->id, .dtype = dtype, .u = pe_roundoff(dtype), .largest = e->largest};
}

bool pe_is_exact(const struct pe_judge *j, double found, double expected)
{
    if (found == expected)
        return true;
    if (!isfinite(found) || !isfinite(expected) || j->u == 0)
        return false;
    if (j->id == PE_OF_ROTATED)
        return fabs(found - expected) <= 12 * j->u * j->largest;
    return pe_steps_between(j->dtype, found, expected) <= 1;
}

double pe_rounding_tolerance(const struct pe_judge *j, double found, double phase)
{
    if (j->id == PE_OF_BIAS)
        return 4 * j->u * fabs(found);
    double of_angle = fmin(0x1p-22 * phase, 0.125), roundings = j->id == PE_OF_ROTATED ? 12 : 4;
    return j->u == 0 ? 0 : (roundings * j->u + of_angle) * j->largest;
}

/* ---- Many numbers ---- */

void pe_tally_init(struct pe_tally *t, const struct pe_judge *judge)
{
    *t = (struct pe_tally){.judge = *judge, .is_exact = true, .is_rounding = true};
}

static void add_one(struct pe_tally *t, double found, double expected, double phase)
{
    if (found == expected && isinf(found))
        return;
    if (!isfinite(found) || !isfinite(expected)) {
        t->has_infinity_elsewhere = true;
        return;
    }
    double error = fabs(found - expected);
    t->max_error = error > t->max_error ? error : t->max_error;
    t->sum_error2 += error * error;
    t->sum_found2 += found * found;
    if (!t->is_rounding || pe_is_exact(&t->judge, found, expected))
        return;
    t->is_exact = false;
    t->is_rounding = error <= pe_rounding_tolerance(&t->judge, found, phase);
}

void pe_tally_add(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_one(t, found[i], expected[i], phase ? phase[i] : 0);
    t->n += n;
}

enum pe_verdict pe_tally_verdict(const struct pe_tally *t)
{
    if (t->has_infinity_elsewhere)
        return PE_NO_FIT;
    if (t->is_rounding)
        return t->is_exact ? PE_EXACT : PE_ROUNDING;
    return t->sum_error2 <= PE_NEAR_SHARE * PE_NEAR_SHARE * t->sum_found2 ? PE_NEAR : PE_NO_FIT;
}
