/* How near a predicted number must be to the number found. Shared by the search, which looks at a sample, and
 * the answer, which looks at all numbers.
 *
 * A tensor of somebody else's code is never right to the last bit, and a bound that is too wide would call a wrong
 * configuration right. So the bounds are those of correct f32 code, as a function of the number: an angle p·w formed in
 * float32 is off by up to 2^-24 of itself, so errors may grow with position and frequency up to a limit, and nothing
 * else may. What differs by less than that is a rounding; what differs by more in a single number is a fault, but for
 * the few allowed below, because both bounds are experience and not theorems.
 *
 * u is the unit roundoff of the dtype of the evidence, S its largest magnitude.
 *
 *     exact      within 1 ulp of the predicted number rounded to the dtype: one rounding; where float32 adds products,
 *                these are as exact: a rotated tensor within 12vS, a score within 12vE, v = min(u, 2^-24)
 *     rounding   within (4v + min(g·|p|w, 1/8))·S, what right f32 code loses of an angle, and 4u of the number itself
 *                in 16 bits; a rotated tensor: within (12u + min(g·|p|w, 1/8))·S
 *                bias of head h, counted from 1: within 4u and h·min(u, 2^-24) of the number itself
 *                angles: 2u of the number and g·|p|w; frequencies: max(2^-20, g) of the number, bf16 and f16 u more
 *     maps       of a score, with E = scale·|q|·|k|: 24uE + min(2^-21·|p|, 1/8)·E + 4u of itself; a probability is off
 *                by e^2δ - 1 and 4u of itself, δ the largest of its row of scores, and 4·2^-24
 *     typed      exact half a unit of the last digit and 4uS, rounding min(g·|p|w, 1/8)·S more
 *     near       RMS error at most 5 % of the RMS of the numbers found; no infinity elsewhere
 *
 * g = max(6 + 3·|ln w|, 2c)·2^-24 for pair c of a ladder: frequencies by pow or exp lose up to the first, those by a
 * running product up to the second. Where no code rounds, in a first pair whose frequency and whose angle float32
 * holds, only the cosine is rounded: g·|p|w is at most 2^-23. Powers of a head's slope lose up to h.
 *
 * These are bounds of a number by itself. Those of one pair and of one frequency are not off independently of each
 * other: what that excludes is in ../search/own.c, and is asked of candidates that fit.
 *
 * Both bounds are experience, no theorem, so a few angles that are somewhat worse do not change an explanation: of n
 * numbers of the evidence, max(1, n/10000) may be beyond the limit of `rounding`, none beyond twice the limit. This
 * holds only where the angle's part is more than half of the limit.
 *
 * Integers (buckets, ids) are equal or not. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <string.h>

/* ---- Dtypes ---- */

double pe_roundoff(enum pe_dtype dtype) { return pe_real_type(dtype)->unit; }

double pe_steps_between(enum pe_dtype dtype, double a, double b)
{
    if (dtype == PE_F32)
        return (double)pe_steps_f32((float)a, (float)b);
    if (!pe_dtype_is_real(dtype))
        return fabs(a - b);
    int64_t x = pe_place(dtype, a), y = pe_place(dtype, b); /* a double would round steps of f64 to thousands */
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
}

/* ---- One number ---- */

struct pe_judge pe_judge_of(const struct pe_evidence *e, bool narrow)
{
    enum pe_dtype dtype = narrow && e->narrow != PE_DTYPE_NONE ? e->narrow : e->dtype;
    double u = pe_roundoff(dtype);
    for (size_t i = 0; e->kind->id == PE_OF_MAPS && i < PE_N_OPERANDS; i++)
        u = fmax(u, pe_roundoff(e->operand_is_text[i] ? PE_F32 : e->operands[i].dtype));
    return (struct pe_judge){.id = e->kind->id,
                             .dtype = dtype,
                             .u = u,
                             .largest = e->largest,
                             .are_probs = e->kind == &pe_evidence_probs,
                             .turning = e->turning,
                             .n = (double)e->n_tensors * (double)e->n_rows * (double)e->row_len};
}

struct pe_judge pe_typed_judge(const struct pe_evidence *e, size_t i)
{
    struct pe_judge j = pe_judge_of(e, false);
    j.half = pe_typed_half(e, i);
    return j;
}

/* Angles and frequencies are judged by their own size, not by that of the largest. */
bool pe_judge_is_relative(const struct pe_judge *j) { return j->id == PE_OF_ANGLES || j->id == PE_OF_LADDER; }

/* loss: what right f32 code loses of the number. */
static double relative_tolerance(const struct pe_judge *j, double found, double loss)
{
    double a = fabs(found), least = pe_real_type(j->dtype)->least / 2;
    if (j->id == PE_OF_ANGLES)
        return loss + 2 * j->u * a;
    return loss + (j->u > 0x1p-24 ? j->u * a : 0) + least;
}

/* Of products and sums that are computed in float32, or in f64 if the tensor is of that. */
static double of_products(const struct pe_judge *j) { return fmin(j->u, 0x1p-24); }

/* Of a number of a map: u of its products and of itself, and what angles lose. */
static double map_tolerance(const struct pe_judge *j, double x, double of_score, double u)
{
    if (!j->are_probs)
        return of_score + 4 * u * fabs(x);
    return fabs(x) * (expm1(2 * of_score) + 4 * u) + 4 * of_products(j);
}

bool pe_is_exact(const struct pe_judge *j, double found, double expected, double phase)
{
    if (found == expected || (j->dtype == PE_F32 && (float)found == (float)expected))
        return true;
    if (!isfinite(found) || !isfinite(expected) || j->u == 0)
        return false;
    if (j->half > 0)
        return fabs(found - expected) <= j->half + 4 * j->u * j->largest;
    if (j->id == PE_OF_ANGLES)
        return fabs(found - expected) <= 2 * j->u * fabs(expected) + 0x1p-149;
    if (pe_steps_between(j->dtype, found, expected) <= 1)
        return true;
    double error = fabs(found - expected), v = of_products(j);
    if (j->id == PE_OF_MAPS)
        return error <= map_tolerance(j, expected, 12 * v * phase, v);
    return j->id == PE_OF_ROTATED && error <= 12 * v * j->largest;
}

double pe_exact_most(const struct pe_judge *j)
{
    int exponent;
    frexp(j->largest, &exponent); /* of 2^exponent, above the number: its step is u times that */
    double step = j->largest > 0 ? ldexp(j->u, exponent) : 0;
    return j->id == PE_OF_ROTATED ? fmax(step, 12 * of_products(j) * j->largest) : step;
}

double pe_float32_loss(double frequency, size_t c)
{
    return frequency == 0 ? 0 : fmax(6 + 3 * fabs(log(fabs(frequency))), 2 * (double)c) * 0x1p-24;
}

/* What angles may lose, as a share of S; and what the roundings of a number and of what it is computed from may. */
static double of_angle(double phase) { return fmin(phase, 0.125); }

static double of_roundings(const struct pe_judge *j, double found)
{
    if (j->id == PE_OF_ROTATED)
        return 12 * j->u * j->largest;
    return 4 * of_products(j) * j->largest + (j->u > 0x1p-24 ? 4 * j->u * fabs(found) : 0);
}

/* Half a unit typed, and what float32 may lose of the number and of its angle, or of the head's slope. */
static double typed_tolerance(const struct pe_judge *j, double phase)
{
    double lost = j->id == PE_OF_BIAS ? phase * 0x1p-24 : of_angle(phase);
    return j->half + (4 * j->u + lost) * j->largest;
}

double pe_rounding_tolerance(const struct pe_judge *j, double found, double phase)
{
    if (j->half > 0)
        return typed_tolerance(j, phase);
    if (j->id == PE_OF_MAPS)
        return map_tolerance(j, found, (24 * j->u + j->turning) * phase, j->u);
    if (j->id == PE_OF_BIAS)
        return fmax(4 * j->u, phase * fmin(j->u, 0x1p-24)) * fabs(found);
    if (pe_judge_is_relative(j))
        return relative_tolerance(j, found, phase);
    return j->u == 0 ? 0 : of_roundings(j, found) + of_angle(phase) * j->largest;
}

/* How often the limit of rounding a number may be off, if it is one of a few. */
static double slack_of(const struct pe_judge *j, double phase)
{
    bool is_of_angles = j->id != PE_OF_BIAS && j->id != PE_OF_MAPS && j->half == 0;
    return is_of_angles && of_angle(phase) * j->largest > of_roundings(j, j->largest) ? 2 : 1;
}

double pe_rounding_most(const struct pe_judge *j) { return 2 * pe_rounding_tolerance(j, j->largest, (double)INFINITY); }

/* ---- Many numbers ---- */

#define SHARE_BEYOND 1e-4

void pe_tally_init(struct pe_tally *t, const struct pe_judge *judge)
{
    *t = (struct pe_tally){.judge = *judge, .is_exact = true, .is_rounding = true};
    t->bits = judge->id == PE_OF_MAPS ? 0 : (double)INFINITY;
}

/* Sums over finite numbers; false: some number is not finite. */
static bool add_finite(struct pe_tally *t, const double *found, const double *expected, size_t n, double *largest)
{
    double most = 0, errors = 0, founds = 0;
    for (size_t i = 0; i < n; i++) {
        double error = fabs(found[i] - expected[i]);
        most = error > most ? error : most;
        errors += error * error;
        founds += found[i] * found[i];
    }
    *largest = most;
    if (!isfinite(errors) || !isfinite(founds))
        return false;
    t->max_error = most > t->max_error ? most : t->max_error;
    t->sum_error2 += errors;
    t->sum_found2 += founds;
    return true;
}

static void judge_one(struct pe_tally *t, double found, double expected, double phase)
{
    if (pe_is_exact(&t->judge, found, expected, phase))
        return;
    double error = fabs(found - expected), limit = pe_rounding_tolerance(&t->judge, found, phase);
    t->is_exact = false;
    t->is_rounding = error <= slack_of(&t->judge, phase) * limit;
    t->n_beyond += error > limit;
}

static void add_one(struct pe_tally *t, double found, double expected, double phase)
{
    double largest;
    if (found == expected && !isfinite(found * found))
        return;
    if (isinf(found) || isinf(expected)) {
        t->has_infinity_elsewhere = true;
        return;
    }
    if (!add_finite(t, &found, &expected, 1, &largest)) { /* its square overflows */
        t->max_error = fmax(t->max_error, fabs(found - expected));
        t->sum_error2 = (double)INFINITY;
    }
    if (t->is_rounding)
        judge_one(t, found, expected, phase);
}

/* Below this error, every number is exact, or at least within rounding without regard to its phase. */
static double sure_error(const struct pe_judge *j)
{
    bool is_own =
        j->id == PE_OF_BIAS || j->id == PE_OF_MAPS || pe_judge_is_relative(j); /* by the size of each number */
    return is_own ? 0 : (j->id == PE_OF_ROTATED ? 12 : 4) * of_products(j) * j->largest;
}

bool pe_judge_needs_phases(const struct pe_judge *j, const double *found, const double *expected, size_t n)
{
    double most = sure_error(j);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(found[i] - expected[i]) <= most))
            return true;
    return false;
}

/* A number whose limit is as large as itself tells nothing: so are many of a map of long vectors in 16 bits. */
static void add_bits(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double most = fmax(fabs(found[i]), fabs(expected[i]));
        double limit = pe_rounding_tolerance(&t->judge, found[i], phase ? phase[i] : 0);
        t->bits += isfinite(most) && most > limit && limit > 0 ? log2(most / limit) : 0;
    }
}

void pe_tally_add(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n)
{
    if (t->judge.id == PE_OF_MAPS && t->is_rounding)
        add_bits(t, found, expected, phase, n);
    struct pe_tally before = *t;
    double largest;
    if (!add_finite(t, found, expected, n, &largest)) {
        *t = before;
        for (size_t i = 0; i < n; i++)
            add_one(t, found[i], expected[i], phase ? phase[i] : 0);
        return;
    }
    if (t->judge.id == PE_OF_ROTATED && largest <= sure_error(&t->judge))
        return;
    for (size_t i = 0; t->is_rounding && i < n; i++)
        judge_one(t, found[i], expected[i], phase ? phase[i] : 0);
}

enum pe_verdict pe_tally_verdict(const struct pe_tally *t)
{
    if (t->has_infinity_elsewhere)
        return PE_NO_FIT;
    if (t->is_rounding && (double)t->n_beyond <= fmax(1, SHARE_BEYOND * (double)t->judge.n))
        return t->is_exact ? PE_EXACT : PE_ROUNDING;
    return t->sum_error2 <= PE_NEAR_SHARE * PE_NEAR_SHARE * t->sum_found2 ? PE_NEAR : PE_NO_FIT;
}
