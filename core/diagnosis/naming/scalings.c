/* Relations of scalings: what each pair keeps of its frequency shows the rule and its parameters.
 *
 *     w_c = plain_c·((1 - k_c)/f + k_c)
 *
 * f is what the slowest pairs are divided by. The share k falls linearly with the index under YaRN, with the frequency
 * under Llama 3; where it begins and ends gives lengths over turns. Of three parameters only two quotients show, so the
 * believed and the usual values are kept as long as they agree. The plan of each spelling decides, not these estimates.
 */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"
#include "core/schemes/scalings/scaling.h"

#include <stdio.h>

static double believed(const struct pe_ladder *l, const char *name, double otherwise)
{
    char path[64];
    snprintf(path, sizeof path, "scaling.%s", name);
    return pe_edit_real(l->d, l->edit, path, otherwise);
}

static bool is_type(const struct pe_ladder *l, const char *type)
{
    return pe_edit_is_word(l->d, l->edit, "scaling.type", type);
}

/* ---- Factors ---- */

static double ratio_of(const struct pe_ladder *l, size_t c) { return l->plain[c] / l->found[c]; }

static double relative_error(const struct pe_ladder *l, size_t c)
{
    bool turns = l->found[c] > 0 && l->plain[c] > 0;
    return turns ? l->error[c] / l->found[c] : (double)INFINITY;
}

/* By what the slowest pair that is known well is divided; its relative error. */
static double slowest_ratio(const struct pe_ladder *l, double *error)
{
    size_t slowest = l->n;
    for (size_t c = 0; c < l->n; c++)
        if (relative_error(l, c) < 0.02 && (slowest == l->n || l->plain[c] < l->plain[slowest]))
            slowest = c;
    *error = slowest < l->n ? relative_error(l, slowest) + 2e-6 : (double)INFINITY;
    return slowest < l->n ? ratio_of(l, slowest) : (double)NAN;
}

enum { FACTORS_MAX = 4 };

static size_t add_factor(double *factors, size_t n, double f)
{
    for (size_t i = 0; i < n; i++)
        if (factors[i] == f)
            return n;
    if (isfinite(f) && f > 1 && n < FACTORS_MAX)
        factors[n++] = f;
    return n;
}

/* The believed one; what the slowest pairs show; what the length of the waves shows, where these are on the ramp. */
static size_t factors_of(const struct pe_ladder *l, double *factors)
{
    double error, ratio = slowest_ratio(l, &error), from_length = exp(10 * (l->length - 1));
    size_t n = add_factor(factors, 0, ratio > 1.01 ? pe_plain_number(ratio, 4 * error * ratio) : (double)NAN);
    n = add_factor(factors, n, believed(l, "factor", (double)NAN));
    return l->length > 1.01 ? add_factor(factors, n, pe_plain_number(from_length, 1e-3 * from_length)) : n;
}

/* ---- Rules of one number ---- */

static struct pe_spelling *spell_type(struct pe_spellings *out, const char *type, unsigned numbers)
{
    struct pe_spelling *s = pe_spell(out, numbers);
    if (s)
        s->type = type;
    return s;
}

static void linear(const struct pe_ladder *l, struct pe_spellings *out)
{
    double error, ratio = slowest_ratio(l, &error);
    if (fabs(ratio - 1) > 1e-4 && (ratio > 1 || is_type(l, "linear")))
        pe_spell_member(spell_type(out, "linear", 1), "factor", pe_plain_number(ratio, 4 * error * ratio));
}

/* base' = base·f^(r/(r - 2)); without a belief it is that base. */
static void ntk(const struct pe_ladder *l, struct pe_spellings *out)
{
    double power = (l->width - 2) / l->width, f = pow(l->plain_fitted / l->base, power);
    double tolerance = (l->plain_error * power + 1e-6) * f, factor = pe_plain_number(f, tolerance);
    bool is_whole = factor == nearbyint(factor) && factor > 1 && l->d->belief.is_given;
    if (l->width > 2 && isfinite(f) && fabs(f - 1) > 1e-4 && (is_whole || is_type(l, "ntk")))
        pe_spell_member(spell_type(out, "ntk", 1), "factor", factor);
}

/* The stretch 1 + f·(n - M)/M of a sequence of n. */
static void dynamic(const struct pe_ladder *l, struct pe_spellings *out)
{
    double m = believed(l, "max_position_embeddings", believed(l, "original_max_position_embeddings", (double)NAN));
    double f = believed(l, "factor", 1), stretch = pow(l->plain_fitted / l->base, (l->width - 2) / l->width);
    double n = m * (1 + (stretch - 1) / f), tolerance = (l->plain_error + 1e-6) * stretch * m / f;
    if (!is_type(l, "dynamic") || !isfinite(n) || n < m)
        return;
    pe_spell_member(spell_type(out, "dynamic", 1), "seq_len", pe_plain_number(n, tolerance));
    double seq_len = believed(l, "seq_len", (double)NAN), by = seq_len > m ? (seq_len - m) / m : (double)NAN;
    if (stretch > 1 && by > 0)
        pe_spell_member(spell_type(out, "dynamic", 1), "factor",
                        pe_plain_number((stretch - 1) / by, (l->plain_error + 1e-6) * stretch / by));
}

/* The other list of the model. */
static void longrope(const struct pe_ladder *l, struct pe_spellings *out)
{
    static const double lengths[] = {1, 0x1p30};
    for (size_t i = 0; is_type(l, "longrope") && i < 2; i++)
        pe_spell_member(spell_type(out, "longrope", 0), "seq_len", lengths[i]);
}

/* ---- Shares ---- */

struct shares {
    double k[PE_WAVES_READ], error[PE_WAVES_READ];
    size_t kept, gone;              /* the last pair that keeps all, the first that keeps nothing; n: none */
    size_t inner[PE_WAVES_READ], n; /* those between that are known well */
};

static void measure_shares(const struct pe_ladder *l, double f, struct shares *s)
{
    s->kept = s->gone = l->n;
    s->n = 0;
    for (size_t c = 0; c < l->n; c++) {
        double e = relative_error(l, c) * 3 + 1e-6;
        s->k[c] = (f / ratio_of(l, c) - 1) / (f - 1);
        s->error[c] = e * f / ratio_of(l, c) / (f - 1);
        bool is_known = s->error[c]<0.02, keeps = s->k[c]> 1 - fmax(s->error[c], 1e-5),
             is_gone = s->k[c] < fmax(s->error[c], 1e-5);
        if (is_known && keeps)
            s->kept = c;
        if (is_known && is_gone && s->gone == l->n)
            s->gone = c;
        if (is_known && !keeps && !is_gone)
            s->inner[s->n++] = c;
    }
}

/* k = a + b·x over the inner pairs. false: fewer than two. */
static bool fit_shares(const struct shares *s, const double *x, double *a, double *b)
{
    double w = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t c = s->inner[i];
        double weight = 1 / (s->error[c] * s->error[c]);
        w += weight;
        sx += weight * x[c];
        sy += weight * s->k[c];
        sxx += weight * x[c] * x[c];
        sxy += weight * x[c] * s->k[c];
    }
    double det = w * sxx - sx * sx;
    if (s->n < 2 || !(det > 1e-12 * w * sxx))
        return false;
    *b = (w * sxy - sx * sy) / det;
    *a = (sy - *b * sx) / w;
    for (size_t i = 0; i < s->n; i++) /* is it a line at all? */
        if (fabs(*a + *b * x[s->inner[i]] - s->k[s->inner[i]]) > 4 * s->error[s->inner[i]] + 1e-4)
            return false;
    return true;
}

struct range {
    double least, most;
};

static bool is_in(struct range r, double x) { return x >= r.least && x <= r.most; }

/* The usual number in a range: the one that is preferred, a power of two, the shortest decimal; NaN: it is empty. */
static double usual_in(struct range r, double preferred)
{
    double power = exp2(floor(log2(r.most) + 1e-9)), middle = (r.least + r.most) / 2;
    if (!(r.least <= r.most) || !(r.least > 0))
        return (double)NAN;
    if (is_in(r, preferred) || is_in(r, power))
        return is_in(r, preferred) ? preferred : power;
    double x = pe_plain_number(middle, 0.98 * (r.most - r.least) / 2);
    return is_in(r, x) ? x : middle;
}

/* ---- YaRN ---- */

enum { FAST, SLOW };
static const char *const beta_names[] = {"beta_fast", "beta_slow"};
static const double usual_betas[] = {32, 1};
static const char original[] = "original_max_position_embeddings";

/* Spells a length and both betas, those that are not as in the usual or the believed object. */
static void spell_yarn(const struct pe_ladder *l, struct pe_spellings *out, double f, double length, const double *beta,
                       bool truncate)
{
    bool is_own = is_type(l, "yarn");
    const struct pe_value *rounds = is_own ? pe_edit_value(l->d, l->edit, "scaling.truncate") : NULL;
    struct pe_spelling *s =
        isfinite(length) && isfinite(beta[FAST]) && isfinite(beta[SLOW]) ? spell_type(out, "yarn", 2) : NULL;
    if (!is_own || believed(l, "factor", (double)NAN) != f)
        pe_spell_member(s, "factor", f);
    if (!is_own || believed(l, original, (double)NAN) != length)
        pe_spell_member(s, original, length);
    for (int i = FAST; i <= SLOW; i++)
        if (beta[i] != (is_own ? believed(l, beta_names[i], usual_betas[i]) : usual_betas[i]))
            pe_spell_member(s, beta_names[i], beta[i]);
    if (truncate != (rounds ? rounds->boolean : true))
        pe_spell_member(s, "truncate", truncate);
}

/* The length over the turns of an end of the ramp: 2π·base^(2x/r) of pair x. */
static double length_of(const struct pe_ladder *l, double pair) { return 2 * PI * pow(l->base, 2 * pair / l->width); }

/* A length for both ends, with betas that are believed or usual; then betas for the believed length. */
static void spell_ends(const struct pe_ladder *l, struct pe_spellings *out, double f, const struct range *ends,
                       bool truncate)
{
    double known = believed(l, original, 4096), beta[2];
    for (int i = FAST; i <= SLOW; i++)
        beta[i] = is_type(l, "yarn") ? believed(l, beta_names[i], usual_betas[i]) : usual_betas[i];
    struct range both = {fmax(ends[FAST].least * beta[FAST], ends[SLOW].least * beta[SLOW]),
                         fmin(ends[FAST].most * beta[FAST], ends[SLOW].most * beta[SLOW])};
    spell_yarn(l, out, f, usual_in(both, known), beta, truncate);
    for (int i = FAST; i <= SLOW; i++)
        beta[i] = usual_in((struct range){known / ends[i].most, known / ends[i].least}, beta[i]);
    spell_yarn(l, out, f, known, beta, truncate);
}

/* Ends that were rounded outwards to whole pairs, and clamped at 0. */
static void whole_ends(const struct pe_ladder *l, struct pe_spellings *out, double f, double low, double high)
{
    const double least = 1e-9;
    const struct range ends[] = {{low > 0 ? length_of(l, low) : least, length_of(l, low + 1) * (1 - 1e-9)},
                                 {length_of(l, high - 1) * (1 + 1e-9), length_of(l, high)}};
    spell_ends(l, out, f, ends, true);
}

static void exact_ends(const struct pe_ladder *l, struct pe_spellings *out, double f, double low, double high,
                       double error)
{
    const struct range ends[] = {{length_of(l, low - error), length_of(l, low + error)},
                                 {length_of(l, high - error), length_of(l, high + error)}};
    spell_ends(l, out, f, ends, false);
}

static void yarn_by(const struct pe_ladder *l, struct pe_spellings *out, double f)
{
    struct shares s;
    double index[PE_WAVES_READ] = {0}, a, b;
    measure_shares(l, f, &s);
    for (size_t c = 0; c < l->n; c++)
        index[c] = (double)c;
    bool has_line = fit_shares(&s, index, &a, &b) && b < 0;
    double low = has_line ? (1 - a) / b : (double)NAN, high = has_line ? -a / b : (double)NAN;
    bool is_whole = has_line && fabs(low - nearbyint(low)) < 0.02 && fabs(high - nearbyint(high)) < 0.02;
    if (is_whole)
        whole_ends(l, out, f, nearbyint(low), nearbyint(high));
    else if (s.kept < l->n && s.gone < l->n && s.kept < s.gone)
        whole_ends(l, out, f, (double)s.kept, (double)s.gone);
    if (has_line && !is_whole)
        exact_ends(l, out, f, low, high, 1e-4);
}

static void yarn(const struct pe_ladder *l, struct pe_spellings *out)
{
    double factors[FACTORS_MAX];
    size_t n = factors_of(l, factors);
    if (is_type(l, "yarn")) { /* exchanged: the ramp rises */
        const double beta[] = {believed(l, beta_names[SLOW], 1), believed(l, beta_names[FAST], 32)};
        const struct pe_value *rounds = pe_edit_value(l->d, l->edit, "scaling.truncate");
        spell_yarn(l, out, believed(l, "factor", (double)NAN), believed(l, original, (double)NAN), beta,
                   !rounds || rounds->boolean);
    }
    for (size_t i = 0; i < n; i++)
        yarn_by(l, out, factors[i]);
}

/* ---- Llama 3 ---- */

struct limits {
    double length, low, high;
};

static void spell_llama3(const struct pe_ladder *l, struct pe_spellings *out, double f, struct limits x)
{
    bool is_own = is_type(l, "llama3");
    const struct {
        const char *name;
        double value;
    } members[] = {{original, x.length}, {"low_freq_factor", x.low}, {"high_freq_factor", x.high}};
    if (!(x.length > 0 && x.low > 0 && x.high >= x.low && isfinite(x.length) && isfinite(x.high)))
        return;
    struct pe_spelling *s = spell_type(out, "llama3", 2);
    if (!is_own || believed(l, "factor", (double)NAN) != f)
        pe_spell_member(s, "factor", f);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!is_own || believed(l, members[i].name, (double)NAN) != members[i].value)
            pe_spell_member(s, members[i].name, members[i].value);
}

static double near_number(double x, double relative) { return pe_plain_number(x, relative * fabs(x)); }

/* One equation, of the pair in the middle of the blend: each of the three numbers by the other two. */
static void by_one_pair(const struct pe_ladder *l, struct pe_spellings *out, double f, const struct shares *s,
                        struct limits x)
{
    size_t c = s->inner[s->n / 2];
    double k = s->k[c], turns = l->plain[c] / (2 * PI), e = 8 * s->error[c] + 1e-5, r = x.length * turns;
    spell_llama3(l, out, f, (struct limits){near_number((x.low + k * (x.high - x.low)) / turns, e), x.low, x.high});
    spell_llama3(l, out, f, (struct limits){x.length, x.low, near_number(x.low + (r - x.low) / k, e)});
    spell_llama3(l, out, f, (struct limits){x.length, near_number((r - k * x.high) / (1 - k), e), x.high});
}

/* Two equations: each of the three numbers believed, the others by the line. */
static void by_line(const struct pe_ladder *l, struct pe_spellings *out, double f, struct limits x, double a, double b,
                    double e)
{
    double width = -x.low / a;
    spell_llama3(l, out, f, (struct limits){near_number(b * width, e), x.low, near_number(x.low + width, e)});
    width = x.length / b;
    spell_llama3(l, out, f, (struct limits){x.length, near_number(-a * width, e), near_number((1 - a) * width, e)});
    width = x.high / (1 - a);
    spell_llama3(l, out, f, (struct limits){near_number(b * width, e), near_number(-a * width, e), x.high});
}

static void llama3_by(const struct pe_ladder *l, struct pe_spellings *out, double f)
{
    struct shares s;
    double turns[PE_WAVES_READ] = {0}, a, b, worst = 0;
    bool is_own = is_type(l, "llama3");
    struct limits x = {believed(l, original, 8192), is_own ? believed(l, "low_freq_factor", 1) : 1,
                       is_own ? believed(l, "high_freq_factor", 4) : 4};
    measure_shares(l, f, &s);
    for (size_t c = 0; c < l->n; c++)
        turns[c] = l->plain[c] / (2 * PI);
    for (size_t i = 0; i < s.n; i++)
        worst = fmax(worst, s.error[s.inner[i]]);
    spell_llama3(l, out, f, x);
    if (s.n == 0 && s.kept < l->n && s.gone < l->n) {
        x.length = usual_in((struct range){x.high / turns[s.kept], x.low / turns[s.gone]}, x.length);
        spell_llama3(l, out, f, x);
    }
    if (s.n > 0)
        by_one_pair(l, out, f, &s, x);
    if (fit_shares(&s, turns, &a, &b) && b > 0 && a < 0)
        by_line(l, out, f, x, a, b, fmin(2e-2, 16 * worst + 1e-4));
}

static void llama3(const struct pe_ladder *l, struct pe_spellings *out)
{
    double factors[FACTORS_MAX];
    size_t n = factors_of(l, factors);
    for (size_t i = 0; i < n; i++)
        llama3_by(l, out, factors[i]);
}

/* ---- The rules ---- */

static const struct {
    const char *type;
    void (*spell)(const struct pe_ladder *l, struct pe_spellings *out);
} rules[] = {{"linear", linear}, {"ntk", ntk},       {"dynamic", dynamic},
             {"yarn", yarn},     {"llama3", llama3}, {"longrope", longrope}};

static void spell_rules(const struct pe_ladder *l, struct pe_spellings *out, bool of_believed_type)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_type(l, rules[i].type) == of_believed_type)
            rules[i].spell(l, out);
}

void pe_spell_parameters(const struct pe_ladder *l, struct pe_spellings *out) { spell_rules(l, out, true); }

void pe_spell_other_types(const struct pe_ladder *l, struct pe_spellings *out) { spell_rules(l, out, false); }
