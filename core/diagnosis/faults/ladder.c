/* Faults of the ladder of frequencies: another scaling, another base, exponents over another width. Values that models
 * publish are tried by name; others are measured (../naming/frequencies.c). */
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

static bool other_base(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!pe_edit_value(d, NULL, name_of_base(d)) && !pe_edit_value(d, NULL, "inv_freq"))
        return false;
    return set_base(d, edit, bases[i]);
}

/* The line of list.h is of the bases that are seldom used; four are in most configurations. */
static int surprise_of_base(const struct pe_diagnosis *d, size_t i)
{
    enum { N_USUAL = 4 };
    (void)d;
    return i < N_USUAL ? -2 : 0;
}

const struct pe_fault pe_fault_base_other = {FAULT_TEXT("base_other", "ladder", LADDER, 3, "other base",
                                                        "The frequencies have another base.",
                                                        "The base is {found}; the configuration says {believed}."),
                                             .schemes = "rope|xpos|sinusoidal|sandwich",
                                             .evidence = OF_WAVES | PE_EVIDENCE_BIT(BIAS),
                                             .n_alternatives = N_BASES,
                                             .apply = other_base,
                                             .surprise = surprise_of_base,
                                             .cures = pe_cures_ladder};

/* ---- A free list ---- */

/* These are measured, never tried (../naming). */
const struct pe_fault pe_fault_inv_freq_other = {
    FAULT_TEXT(
        "inv_freq_other", "ladder", LADDER, 8, "other frequencies",
        "The frequencies, fitted pair by pair, follow no rule that was tried.",
        "The frequencies follow no rule that was tried; `found` lists them. Nearest is {nearest.name}: {nearest.pairs} "
        "of {nearest.of} pairs have another frequency, by a factor of at most {nearest.largest}."),
    .cures = pe_cures_ladder};
