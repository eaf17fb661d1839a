/* Faults of the ladder of frequencies: another scaling, another base, exponents over another width, a free list.
 *
 * Values that models publish are tried by name. Others are fitted, since a base can be any number: ln w_c is a line in
 * c whose slope is ln base, so the base follows from the measured frequencies by least squares, with a standard error;
 * a scaling bends the line, so several steps are taken. Then the decimal with the fewest digits within the error is
 * taken: 500000 is what was typed, 499998.7 is what was measured.
 *
 * A list of free frequencies is the last resort and has a high cost (search/hypothesis.c), for it fits any rotation. */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/rotary/rotary.h"

#include <math.h>
#include <stdlib.h>

#define OF_ROTARY (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(LADDER) | PE_EVIDENCE_BIT(MAPS))
#define OF_WAVES (OF_ROTARY | PE_EVIDENCE_BIT(ENCODING))

/* ---- Scaling ---- */

static bool is_scaled(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_value *type = pe_edit_value(d, edit, "scaling.type");
    return type && type->kind == PE_STRING && !pe_same(type->string, "default");
}

static bool no_scaling(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    if (!is_scaled(d, edit))
        return false;
    pe_edit_remove(edit, "scaling");
    pe_scalings_drop_factor(d, edit);
    return true;
}

const struct pe_fault pe_fault_scaling_missing = {
    FAULT_TEXT("scaling_missing", "ladder", LADDER, 1, "missing scaling", "The frequencies are not scaled.",
               "The frequencies are not scaled, although the configuration has a scaling."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .n_alternatives = 1,
    .apply = no_scaling,
    .cures = pe_cures_scaling};

/* How much slower than without a scaling the phases turn from row to row; 1: that is not one number. */
static struct pe_solved measured_factor(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_solved s = {1, -2, 0};
    struct pe_model *m;
    pe_edit_remove(edit, "scaling");
    pe_scalings_drop_factor(d, edit);
    if (!pe_edit_model(d, edit, &m))
        return s;
    const struct pe_reading *r = m->plan->seq.n_axes == 1 ? pe_read_waves(d, m) : NULL;
    if (r && r->n > 1)
        s = pe_measured_stride(r, m);
    double stride = pe_model_stride(m);
    pe_model_free(m);
    return (struct pe_solved){stride / s.x, s.score, fabs(stride / s.x * s.error / s.x)};
}

/* Linear scaling by any factor but 2 pi, which makes turns of radians (`scaled`). */
static bool fit_linear(struct pe_diagnosis *d, struct pe_edit *edit)
{
    const double turn = 0x1.921fb54442d18p+2;
    struct pe_solved s = measured_factor(d, edit);
    double believed = pe_edit_real(d, NULL, "scaling.factor", (double)NAN);
    double error = 4 * s.error + 1e-7 * s.x, factor = pe_shortest_decimal(s.x, error / s.x);
    struct pe_field *fields = pe_edit_room(edit, 2 * sizeof *fields);
    bool is_factor = factor > 1 + error && factor < 1e6 && fabs(factor - turn) > 1e-5 * turn;
    if (!fields || s.score < 0.99 || !is_factor || factor == believed)
        return false;
    fields[0] = (struct pe_field){"type", {.kind = PE_STRING, .string = "linear"}};
    fields[1] = (struct pe_field){"factor", {.kind = PE_REAL, .real = factor}};
    pe_edit_set(edit, "scaling", (struct pe_value){.kind = PE_OBJECT, .object = {fields, 2}});
    return true;
}

/* The last alternative is fitted. */
static size_t count_parameters(const struct pe_diagnosis *d) { return pe_scalings_count(d, true) + 1; }
static size_t count_others(const struct pe_diagnosis *d) { return pe_scalings_count(d, false) + 1; }

static bool set_scaling(struct pe_diagnosis *d, bool of_believed_type, size_t i, struct pe_edit *edit)
{
    if (i < pe_scalings_count(d, of_believed_type))
        return pe_scalings_apply(d, of_believed_type, i, edit);
    return pe_edit_is_word(d, NULL, "scaling.type", "linear") == of_believed_type && fit_linear(d, edit);
}

static bool set_parameter(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    return set_scaling(d, true, i, edit);
}

static bool set_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit) { return set_scaling(d, false, i, edit); }

const struct pe_fault pe_fault_scaling_parameter = {
    FAULT_TEXT("scaling_parameter", "ladder", LADDER, 2, "other scaling parameter",
               "The scaling is of the configuration's type, with another parameter.",
               "{pointer} is {found}; the configuration says {believed}."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .count = count_parameters,
    .apply = set_parameter,
    .n_fits = 1};
const struct pe_fault pe_fault_scaling_other = {
    FAULT_TEXT("scaling_other", "ladder", LADDER, 2, "other scaling", "The frequencies are scaled by another rule.",
               "The frequencies are scaled by another rule than the configuration's."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .count = count_others,
    .apply = set_other,
    .n_fits = 1,
    .cures = pe_cures_ladder};

/* ---- Exponents ---- */

/* The exponent counts over head_dim: base^(-2c/head_dim) is another base over rotary_dim. */
static bool width_of_head(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double head_dim = pe_edit_real(d, edit, "head_dim", 0), r = pe_edit_real(d, edit, "rotary_dim", head_dim);
    (void)i;
    if (r == head_dim || pe_edit_value(d, edit, "inv_freq") || !pe_edit_value(d, edit, "base"))
        return false;
    pe_edit_set_real(edit, "base", pow(pe_edit_real(d, edit, "base", 10000), r / head_dim));
    return true;
}

const struct pe_fault pe_fault_ladder_width = {
    FAULT_TEXT("ladder_width", "ladder", LADDER, 2, "exponent over head_dim",
               "The exponents of the frequencies are divided by head_dim instead of by rotary_dim.",
               "The exponents of the frequencies are divided by head_dim instead of by rotary_dim."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .n_alternatives = 1,
    .apply = width_of_head,
    .cures = pe_cures_ladder};

/* Writes the list of frequencies under an edit, as the field inv_freq; the factor that the scaling brought stays. */
static bool list_frequencies(struct pe_diagnosis *d, struct pe_edit *edit, double factor, bool reversed)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    const struct pe_rotary *r = m->plan->tables;
    double w[PE_HEAD_DIM_MAX / 2];
    for (size_t c = 0; c < r->n_pairs; c++)
        w[c] = r->inv_freq[reversed ? r->n_pairs - 1 - c : c].hi * factor;
    pe_edit_set_reals(edit, "inv_freq", w, r->n_pairs);
    if (r->attention_factor.hi != 1)
        pe_edit_set_real(edit, "attention_factor", r->attention_factor.hi);
    pe_model_free(m);
    return true;
}

static bool from_one(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double base = pe_edit_real(d, edit, "base", 0), r = pe_edit_real(d, edit, "rotary_dim", 0);
    (void)i;
    return base > 0 && r > 0 && list_frequencies(d, edit, pow(base, -2 / r), false);
}

const struct pe_fault pe_fault_ladder_from_one = {
    FAULT_TEXT("ladder_from_one", "ladder", LADDER, 4, "frequencies counted from one",
               "Pair c has the frequency of pair c + 1: the exponents begin at 1 instead of 0.",
               "Each pair has the frequency of the next one: pairs are counted from 1 instead of 0."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .n_alternatives = 1,
    .apply = from_one,
    .cures = pe_cures_ladder};

static bool reverse(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    return list_frequencies(d, edit, 1, true);
}

const struct pe_fault pe_fault_ladder_reversed = {
    FAULT_TEXT("ladder_reversed", "ladder", LADDER, 4, "reversed frequencies",
               "The frequencies are in reverse order: the slowest pair comes first.",
               "The frequencies are in reverse order: the slowest pair comes first."),

    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .n_alternatives = 1,
    .apply = reverse,
    .cures = pe_cures_ladder};

/* ---- Base ---- */

static const double bases[] = {1e4, 5e5,  1e6,  1e7, 150000, 160000, 100, 256, 500,
                               1e3, 2000, 25e3, 5e4, 1e5,    2e6,    5e6, 8e6, 5e7};
enum { N_BASES = sizeof bases / sizeof *bases };

static const char *name_of_base(const struct pe_diagnosis *d)
{
    return pe_edit_value(d, NULL, "temperature") ? "temperature" : "base";
}

static bool set_base(const struct pe_diagnosis *d, struct pe_edit *edit, double base)
{
    const char *name = name_of_base(d);
    if (pe_edit_real(d, edit, name, -1) == base && !pe_edit_value(d, edit, "inv_freq"))
        return false;
    pe_edit_set_real(edit, name, base);
    return true;
}

/* One step of least squares in the logarithm of the base: ln w falls by slope[k] for each unit of ln base. Returns the
 * step, and its standard error. */
struct step {
    double by, error;
};

/* Is the logarithm of a frequency known? Steps of half a turn may be of either sign. */
static bool is_measured(double measured, double error, double stride, double w)
{
    return isfinite(measured) && measured > 8 * error && measured * fabs(stride) <= 3 && w > 0;
}

static struct step base_step(const struct pe_reading *r, double stride, const double *w, const double *slope)
{
    double up = 0, down = 0;
    for (size_t k = 0; k < r->n_waves; k++) {
        double measured = r->step[k] / stride, error = r->error[k] / fabs(stride);
        if (!is_measured(measured, error, stride, w[k]))
            continue;
        double weight = measured / error * (measured / error);
        up += weight * slope[k] * (log(measured) - log(w[k]));
        down += weight * slope[k] * slope[k];
    }
    return (struct step){down > 0 ? -up / down : (double)NAN, down > 0 ? 1 / sqrt(down) : (double)INFINITY};
}

/* The frequencies of the edit with another base. */
static bool ladder_at(struct pe_diagnosis *d, struct pe_edit *edit, double base, size_t n, double *w)
{
    struct pe_model *m;
    pe_edit_set_real(edit, name_of_base(d), base);
    if (!(base >= 1e-3 && base <= 1e12) || base == 1 || !pe_edit_model(d, edit, &m))
        return false;
    pe_wave_frequencies(m, n, w);
    pe_model_free(m);
    return true;
}

/* What a fit of the base needs. */
struct fit {
    struct pe_diagnosis *d;
    struct pe_edit *edit;
    const struct pe_reading *reading;
    double stride, relative, least; /* how well a base is known at best */
    double *w, *beside, *slope;     /* [n_waves] */
};

static bool improve(const struct fit *f, double *base, double *error)
{
    const double h = 1e-3;
    size_t n = f->reading->n_waves;
    if (!ladder_at(f->d, f->edit, *base, n, f->w) || !ladder_at(f->d, f->edit, *base * exp(h), n, f->beside))
        return false;
    for (size_t k = 0; k < n; k++)
        f->slope[k] = f->w[k] > 0 && f->beside[k] > 0 ? (log(f->w[k]) - log(f->beside[k])) / h : 0;
    struct step s = base_step(f->reading, f->stride, f->w, f->slope);
    *base *= exp(s.by);
    *error = s.error;
    return isfinite(*base) && *base > 0;
}

/* How far the logarithms of the measured frequencies are from those of f->w, in standard errors: the sum of squares,
 * and of how many. */
static double distance(const struct fit *f, size_t *n)
{
    double sum = 0;
    *n = 0;
    for (size_t k = 0; k < f->reading->n_waves; k++) {
        double measured = f->reading->step[k] / f->stride, error = f->reading->error[k] / fabs(f->stride);
        if (!is_measured(measured, error, f->stride, f->w[k]))
            continue;
        double off = (log(measured) - log(f->w[k])) * measured / error;
        sum += off * off;
        (*n)++;
    }
    return sum;
}

/* The decimal with the fewest digits that is as near to what was measured as the best base is: first within a relative
 * tolerance, then with more digits, because a base that a formula gives is no short decimal. */
static double decimal_base(const struct fit *f, double best, double tolerance)
{
    enum { DIGITS = 4 };
    size_t n, waves = f->reading->n_waves;
    if (!ladder_at(f->d, f->edit, best, waves, f->w))
        return best;
    double least = 4 * distance(f, &n) + (double)n, base = pe_shortest_decimal(best, tolerance);
    for (int i = 0; i < DIGITS && ladder_at(f->d, f->edit, base, waves, f->w) && distance(f, &n) > least; i++) {
        tolerance /= 10;
        base = pe_shortest_decimal(best, tolerance);
    }
    return base;
}

/* Phases from row to row, their logarithms on the exponents, least squares; a scaling bends the line, so several
 * steps. */
static bool fit_base_from(const struct fit *f, double base)
{
    enum { STEPS = 5 };
    double error = (double)INFINITY;
    for (int i = 0; i < STEPS; i++)
        if (!improve(f, &base, &error))
            return false;
    base = decimal_base(f, base, fmax(f->least, fmin(2 * error, 1e-2)));
    return ladder_at(f->d, f->edit, base, f->reading->n_waves, f->w) &&
           pe_agrees(f->reading, f->w, f->stride, f->relative + 3e-6);
}

static bool fit_from_all(struct fit *f, double believed)
{
    size_t n = f->reading->n_waves;
    f->w = malloc(3 * n * sizeof *f->w);
    f->d->no_memory |= !f->w;
    if (!f->w)
        return false;
    f->beside = f->w + n;
    f->slope = f->beside + n;
    bool done = fit_base_from(f, believed) || fit_base_from(f, 5e5) || fit_base_from(f, 100);
    free(f->w);
    return done;
}

static bool fit_base(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    struct fit f = {.d = d, .edit = edit, .stride = pe_model_stride(m), .relative = pe_wave_tolerance(m)};
    f.reading = m->plan->seq.n_axes == 1 ? pe_read_waves(d, m) : NULL;
    f.least = d->evidence.kind->id == PE_OF_LADDER ? 5e-7 : 3e-6;
    pe_model_free(m);
    return f.reading && f.reading->n > 1 && f.stride != 0 &&
           fit_from_all(&f, pe_edit_real(d, edit, name_of_base(d), 10000));
}

static bool other_base(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!pe_edit_value(d, NULL, name_of_base(d)) && !pe_edit_value(d, NULL, "inv_freq"))
        return false;
    if (i < N_BASES)
        return set_base(d, edit, bases[i]);
    bool is_map = d->evidence.kind->id == PE_OF_BIAS || d->evidence.kind->id == PE_OF_MAPS;
    return !is_map && fit_base(d, edit); /* maps have no phases */
}

/* The line of list.h is of the bases that are seldom used; four are in most configurations. */
static int surprise_of_base(const struct pe_diagnosis *d, size_t i)
{
    enum { N_USUAL = 4 };
    (void)d;
    return i < N_USUAL ? -2 : i == N_BASES;
}

const struct pe_fault pe_fault_base_other = {FAULT_TEXT("base_other", "ladder", LADDER, 3, "other base",
                                                        "The frequencies have another base.",
                                                        "The base is {found}; the configuration says {believed}."),
                                             .schemes = "rope|xpos|sinusoidal|sandwich",
                                             .evidence = OF_WAVES | PE_EVIDENCE_BIT(BIAS),
                                             .n_alternatives = N_BASES + 1,
                                             .apply = other_base,
                                             .surprise = surprise_of_base,
                                             .n_fits = 1,
                                             .fit_rank = 0,
                                             .cures = pe_cures_ladder};

/* ---- A free list ---- */

/* The first wave of pair c: expanded tables have each pair twice, at columns that the layout shows. */
static size_t wave_of(const struct pe_model *m, const struct pe_rotary *rotary, size_t n_waves, size_t c)
{
    size_t k = 0;
    if (n_waves == rotary->n_pairs)
        return c;
    double w = pe_quarter_turns(rotary->inv_freq[c]).hi;
    while (k < n_waves && m->columns[k].fh != w)
        k++;
    return k;
}

/* A sent list that is free is only one that could be somebody's ladder. */
static bool may_be_free(const struct pe_evidence *e)
{
    bool is_list = e->kind->id == PE_OF_LADDER && e->kind != &pe_evidence_rope_freqs;
    return !is_list || pe_ladder_falls(e);
}

/* The frequencies of pairs, each as measured. */
static bool measured_list(struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_model *m)
{
    const struct pe_reading *r = pe_read_waves(d, m);
    const struct pe_rotary *rotary = m->plan->tables;
    double w[PE_HEAD_DIM_MAX];
    if (!r || r->n < 2 || m->plan->seq.n_axes > 1 || !may_be_free(&d->evidence))
        return false;
    for (size_t c = 0; c < rotary->n_pairs; c++) {
        size_t k = wave_of(m, rotary, r->n_waves, c);
        if (k == r->n_waves || !isfinite(r->step[k]))
            return false;
        w[c] = pe_shortest_decimal(r->step[k], fmin(1e-2, fmax(3e-8, r->error[k] / fabs(r->step[k]) / 4)));
    }
    pe_edit_set_reals(edit, "inv_freq", w, rotary->n_pairs);
    if (rotary->attention_factor.hi != 1)
        pe_edit_set_real(edit, "attention_factor", rotary->attention_factor.hi);
    return true;
}

static bool fit_list(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct pe_model *m;
    (void)i;
    if (!pe_edit_model(d, edit, &m))
        return false;
    bool done = measured_list(d, edit, m);
    pe_model_free(m);
    return done;
}

const struct pe_fault pe_fault_inv_freq_other = {
    FAULT_TEXT(
        "inv_freq_other", "ladder", LADDER, 8, "other frequencies",
        "The frequencies, fitted pair by pair, follow no rule that was tried.",
        "The frequencies follow no rule that was tried; `found` lists them. Nearest is {nearest.name}: {nearest.pairs} "
        "of {nearest.of} pairs have another frequency, by a factor of at most {nearest.largest}."),
    .schemes = "rope|xpos",
    .evidence = OF_ROTARY,
    .not_of = PE_EVIDENCE_BIT(MAPS),
    .n_alternatives = 1,
    .apply = fit_list,
    .n_fits = 1,
    .fit_rank = 0,
    .fit_cost = 3,
    .cures = pe_cures_ladder};
