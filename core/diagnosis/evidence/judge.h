/* How near a predicted number must be to the number found. Shared by the search, which looks at a sample, and the
 * answer, which looks at all numbers. u is the unit roundoff of the evidence's dtype, S its largest magnitude.
 *
 *     exact      within 1 ulp of the predicted number rounded to the dtype; a rotated tensor: within 12uS
 *     rounding   within (4u + min(g·|p|w, 1/8))·S, what right f32 code loses of an angle; a rotated tensor: 8uS more
 *                bias of head h, counted from 1: within 4u and h·min(u, 2^-24) of the number itself
 *                angles: 4u of the number and g·|p|w; frequencies: max(2^-20, g) of the number, bf16 and f16 u more
 *     near       RMS error at most 5 % of the RMS of the numbers found; no infinity elsewhere
 *
 * g = max(6 + 3·|ln w|, 2c)·2^-24 for pair c of a ladder: frequencies by pow or exp lose up to the first, those by a
 * running product up to the second. Powers of a head's slope lose up to h.
 *
 * Both bounds are experience, no theorem, so a few angles that are somewhat worse do not change an explanation: of n
 * numbers of the evidence, max(1, n/10000) may be beyond the limit of `rounding`, none beyond twice the limit. This
 * holds only where the angle's part is more than half of the limit.
 *
 * Integers (buckets, ids) are equal or not. */
#ifndef PE_JUDGE_H
#define PE_JUDGE_H

#include "core/diagnosis/evidence/evidence.h"
#include "core/numeric/dtype.h"

#include <string.h>

#define PE_NEAR_SHARE 0.05

enum pe_verdict { PE_EXACT, PE_ROUNDING, PE_NEAR, PE_NO_FIT, PE_NOT_JUDGED };
static inline bool pe_fits(enum pe_verdict v) { return v <= PE_ROUNDING; }

struct pe_judge {
    enum pe_evidence_id id;
    enum pe_dtype dtype; /* in which it is judged */
    double u, largest;
    double n; /* numbers of the evidence, of which a few may be beyond the limit of rounding */
};

/* As the evidence is sent; narrow: as the bf16 or f16 numbers that it holds (table_dtype). */
struct pe_judge pe_judge_of(const struct pe_evidence *e, bool narrow);
double pe_roundoff(enum pe_dtype dtype); /* u; 0 for integers */

/* x rounded to the dtype. */
/* Sign and magnitude of an f32 as an integer that counts steps; steps between two of them. Inline, because every number
 * of a tensor is compared, and most are f32. */
static inline int64_t pe_step_of_f32(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static inline int64_t pe_steps_f32(float a, float b)
{
    int64_t steps = pe_step_of_f32(a) - pe_step_of_f32(b);
    return steps < 0 ? -steps : steps;
}

/* Steps between two numbers of the dtype; ±infinity follow the largest. */
double pe_steps_between(enum pe_dtype dtype, double a, double b);

/* Equal infinities are exact. */
bool pe_is_exact(const struct pe_judge *j, double found, double expected);
/* What right f32 code loses of pair c's frequency, a share of it: g. */
double pe_float32_loss(double frequency, size_t c);
/* Largest |found - expected| of verdict rounding; phase: g·|p|w of the number; of a bias its head, from 1. */
double pe_rounding_tolerance(const struct pe_judge *j, double found, double phase);
/* Beyond this error, no number is within rounding, whatever its phase (not of biases). */
double pe_rounding_most(const struct pe_judge *j);

/* Is each number judged by its own size? */
bool pe_judge_is_relative(const struct pe_judge *j);
/* Is some number so far off that its verdict depends on its phase? If not, phases may be NULL in pe_tally_add. */
bool pe_judge_needs_phases(const struct pe_judge *j, const double *found, const double *expected, size_t n);

/* Running verdict over numbers. */
struct pe_tally {
    struct pe_judge judge;
    bool is_exact, has_infinity_elsewhere;
    bool is_rounding; /* no number is too far off; n_beyond may still be too many */
    double max_error, sum_error2, sum_found2;
    uint64_t n_beyond; /* numbers beyond the limit of rounding */
};
void pe_tally_init(struct pe_tally *t, const struct pe_judge *judge);
void pe_tally_add(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n);
enum pe_verdict pe_tally_verdict(const struct pe_tally *t);

#endif
