/* Relations of frequencies: each states which fields of the request, or which list, give the frequencies that were
 * measured.
 *
 * No formula of a ladder is written here. A relation reads numbers off the logarithms (the base that is nearest, a
 * factor, where a ramp begins) and spells them as fields; ../search/named_ladders.c plans the request that they are,
 * and only a plan with the measured frequencies goes on. A number is the special value within its error (what is
 * published, what is usual), then the shortest decimal. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"
#include "core/schemes/rotary/rotary.h"
#include "core/numeric/numeric.h"

#include <stdlib.h>
#include <string.h>

/* ---- Fields ---- */

struct pe_spelling *pe_spell(struct pe_spellings *out, unsigned numbers)
{
    if (out->n == PE_SPELLINGS_MAX)
        return NULL;
    struct pe_spelling *s = &out->list[out->n++];
    *s = (struct pe_spelling){.base = (double)NAN, .related = {(double)NAN, (double)NAN, 0, numbers}};
    return s;
}

void pe_spell_member(struct pe_spelling *s, const char *name, double value)
{
    bool is_flag = pe_same(name, "truncate");
    if (!s || s->n_members == PE_SPELLED_MAX)
        return;
    s->members[s->n_members].name = name;
    s->members[s->n_members++].value = is_flag ? (struct pe_value){.kind = PE_BOOLEAN, .boolean = value != 0}
                                               : (struct pe_value){.kind = PE_REAL, .real = value};
}

double pe_ladder_error(const struct pe_ladder *l, size_t c)
{
    return l->found[c] > 0 ? l->error[c] / l->found[c] + 0x1p-22 : (double)INFINITY;
}

bool pe_is_base(double x) { return x >= 1e-3 && x <= 1e12 && fabs(x - 1) > 1e-9; }

double pe_ladder_base(const struct pe_ladder *l, const double *w, double most, double *base)
{
    double up = 0, down = 0;
    for (size_t c = 0; c < l->n; c++) {
        double e = l->exponent[c], error = pe_ladder_error(l, c);
        if (!(error < 0.05) || !(w[c] > 0) || !(e > 1e-6 && e <= most))
            continue;
        up += e / (error * error) * log(l->found[c] / w[c]);
        down += e * e / (error * error);
    }
    *base *= down > 0 ? exp(-up / down) : (double)NAN;
    return down > 0 ? 2 / sqrt(down) + 2e-7 : (double)INFINITY;
}

bool pe_ladder_holds(const struct pe_ladder *l, const double *w)
{
    size_t n_known = 0;
    for (size_t c = 0; c < l->n; c++) {
        n_known += isfinite(l->error[c]) != 0;
        if (isfinite(l->error[c]) && !(fabs(l->found[c] - w[c]) <= 3 * l->error[c] + 0x1p-19 * fabs(w[c])))
            return false;
    }
    return n_known > 0;
}

static bool is_scaled(const struct pe_ladder *l)
{
    const struct pe_value *type = pe_edit_value(l->d, l->edit, "scaling.type");
    return type && !pe_same(type->string, "default");
}

/* ---- The base ---- */

static void spell_base(const struct pe_ladder *l, struct pe_spellings *out, double base)
{
    if (!pe_is_base(base) || base == l->base)
        return;
    for (size_t i = 0; i < out->n; i++)
        if (out->list[i].base == base)
            return;
    struct pe_spelling *s = pe_spell(out, 1);
    if (s)
        s->base = base;
}

/* Is a special value meant? Some errors farther than a decimal. */
static bool is_near(double x, double y, double error) { return fabs(x - y) <= 3 * error * fabs(y); }

/* Those of public models within the error, the nearest use first: presets are in the order of their names. */
static void published_bases(const struct pe_ladder *l, double fitted, double error, struct pe_spellings *out)
{
    for (size_t i = 0; i < pe_n_presets(); i++)
        for (size_t j = 0; j < pe_preset_at(i)->n_layers; j++) {
            const struct pe_preset_layer *layer = &pe_preset_at(i)->layers[j];
            const struct pe_value *v = pe_field_find(layer->fields, layer->n_fields, "base");
            double base = v ? pe_value_number(v) : (double)NAN;
            if (is_near(base, fitted, error))
                spell_base(l, out, base);
        }
}

static void other_base(const struct pe_ladder *l, struct pe_spellings *out)
{
    enum { DIGITS = 4 };
    double tolerance = l->fit_error;
    if (!pe_is_base(l->fitted))
        return;
    published_bases(l, l->fitted, l->fit_error, out);
    for (int i = 0; i < DIGITS; i++, tolerance /= 10)
        spell_base(l, out, pe_shortest_decimal(l->fitted, tolerance));
}

/* The weighted line ln w = level - slope·exponent, of pairs that turn; false: fewer than two do. */
static bool fit_line(const struct pe_ladder *l, double *level, double *slope, double *error)
{
    double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t c = 0; c < l->n; c++) {
        double relative = l->error[c] / l->found[c] + 1e-7;
        if (!(l->found[c] > 0) || !(relative < 0.05) || isnan(l->exponent[c]))
            continue;
        double weight = 1 / (relative * relative), y = log(l->found[c]);
        s += weight;
        sx += weight * l->exponent[c];
        sy += weight * y;
        sxx += weight * l->exponent[c] * l->exponent[c];
        sxy += weight * l->exponent[c] * y;
    }
    double det = s * sxx - sx * sx;
    if (!(det > 1e-9 * s * sxx))
        return false;
    *slope = -(s * sxy - sx * sy) / det;
    *level = (sy + *slope * sx) / s;
    *error = sqrt(s / det);
    return true;
}

/* Scalings leave the fastest pairs alone, or divide all. */
static void base_beside_scaling(const struct pe_ladder *l, struct pe_spellings *out)
{
    static const double shares[] = {1.0 / 6, 1.0 / 3};
    for (size_t i = 0; i < 2; i++) {
        double base = l->base, error = pe_ladder_base(l, l->plain, shares[i], &base);
        if (!pe_is_base(base) || is_near(base, l->base, error))
            continue;
        published_bases(l, base, error, out);
        spell_base(l, out, pe_shortest_decimal(base, fmin(error, 1e-2)));
    }
    double level, slope, error;
    if (!fit_line(l, &level, &slope, &error) || fabs(level - log(l->top)) < 1e-4)
        return;
    published_bases(l, exp(slope), 3 * error + 1e-6, out);
    spell_base(l, out, pe_shortest_decimal(exp(slope), 3 * error + 1e-6));
}

/* Exponents 2·(2i)/d: the square of the base. */
static void squared_base(const struct pe_ladder *l, struct pe_spellings *out)
{
    double square = l->base * l->base;
    if (!is_near(l->fitted, square, l->fit_error))
        return;
    spell_base(l, out, square);
    for (size_t i = 0; i < out->n; i++)
        out->list[i].related = (struct pe_related){square, l->base, 0, 0};
}

/* Exponents over another width: base^(r/width); of a base that models publish only the whole head is one. */
static void other_width(const struct pe_ladder *l, struct pe_spellings *out)
{
    struct pe_spellings published = {.n = 0};
    bool is_several = l->d->belief.model->plan->seq.n_axes > 1;
    published_bases(l, l->fitted, l->fit_error, &published);
    double head = pe_edit_real(l->d, l->edit, "head_dim", (double)NAN);
    const double widths[] = {head, 2 * l->width}; /* half the width is the square of the base */
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        double base = pow(l->base, l->width / widths[i]);
        size_t n = out->n;
        bool is_meant = !published.n || (widths[i] == head && !is_several);
        if (!is_meant || isnan(base) || widths[i] == l->width || !is_near(l->fitted, base, l->fit_error))
            continue;
        spell_base(l, out, base);
        if (out->n > n)
            out->list[n].related = (struct pe_related){widths[i], l->width, 0, 0};
    }
}

/* ---- Other fields ---- */

/* Exponents over h and h - 1 pairs are those of another base, of many digits. */
static void other_shift(const struct pe_ladder *l, struct pe_spellings *out)
{
    double believed = pe_edit_real(l->d, l->edit, "freq_shift", (double)NAN);
    for (int shift = 0; shift < 2 && !isnan(believed); shift++) {
        struct pe_spelling *s = shift != believed ? pe_spell(out, 0) : NULL;
        if (s)
            s->field = (struct pe_field){"freq_shift", {.kind = PE_REAL, .real = shift}};
    }
}

static void no_scaling(const struct pe_ladder *l, struct pe_spellings *out)
{
    struct pe_spelling *s = is_scaled(l) ? pe_spell(out, 0) : NULL;
    if (s)
        s->type = "";
}

/* ---- Lists ---- */

/* Every pair turns alike. */
static bool all_equal(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    double level, slope, error;
    if (l->n < 3 || !fit_line(l, &level, &slope, &error) || fabs(slope) > 4 * error + 1e-6)
        return false;
    double w = pe_shortest_decimal(exp(level), 1e-6);
    for (size_t c = 0; c < l->n; c++)
        out[c] = w;
    *r = (struct pe_related){w, l->believed[l->n - 1], 0, 1};
    return true;
}

/* w = e^(-k·c) with a whole k: log(base)/d was rounded before it was multiplied. */
static bool whole_exponents(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    double level, slope, error, step = 2 / l->width;
    if (l->n < 3 || !fit_line(l, &level, &slope, &error) || fabs(level) > 1e-5)
        return false;
    double k = nearbyint(slope * step);
    if (k < 1 || fabs(slope * step - k) > 4 * error * step + 1e-6)
        return false;
    for (size_t c = 0; c < l->n; c++)
        out[c] = exp(-k * nearbyint(l->exponent[c] / step));
    *r = (struct pe_related){k, log(l->base) * step, 0, 1};
    return true;
}

/* A quotient of neighbours that no base gives. */
static bool geometric(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    double level, slope, error, step = 2 / l->width;
    if (l->n < 4 || is_scaled(l) || !fit_line(l, &level, &slope, &error) || pe_is_base(exp(slope)))
        return false;
    double quotient = pe_shortest_decimal(exp(-slope * step), error * step + 1e-6);
    double first = pe_shortest_decimal(exp(level), 1e-6);
    for (size_t c = 0; c < l->n; c++)
        out[c] = first * pow(quotient, nearbyint(l->exponent[c] / step));
    *r = (struct pe_related){quotient, l->believed[1] / l->believed[0], 0, 2};
    return true;
}

/* Equal steps from the first pair to the last. */
static bool evenly_spaced(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    size_t last = l->n - 1;
    double a = pe_shortest_decimal(l->found[0], 1e-6), b = pe_shortest_decimal(l->found[last], 1e-6);
    for (size_t c = 0; c < l->n; c++)
        out[c] = a + (b - a) * (double)c / (double)last;
    *r = (struct pe_related){a, b, 0, 2};
    return l->n > 4 && a != b;
}

/* Neighbours share a frequency: an index that is divided by k and rounded down. */
static bool of_groups(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    for (size_t k = 2; 2 * k <= l->n; k++) {
        for (size_t c = 0; c < l->n; c++)
            out[c] = l->believed[c - c % k];
        *r = (struct pe_related){(double)k, 1, 0, 1};
        if (pe_ladder_holds(l, out))
            return true;
    }
    return false;
}

static bool to_decimals(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    enum { DIGITS = 6 };
    for (int k = 1; k <= DIGITS; k++) {
        double unit = pow(10, k);
        for (size_t c = 0; c < l->n; c++)
            out[c] = nearbyint(l->believed[c] * unit) / unit;
        *r = (struct pe_related){k, l->believed[l->n - 1], 0, 1};
        if (pe_ladder_holds(l, out))
            return true;
    }
    return false;
}

/* A factor on every pair. */
static bool times(const struct pe_ladder *l, double factor, double *out)
{
    for (size_t c = 0; c < l->n; c++)
        out[c] = factor * l->believed[c];
    return isfinite(factor) && fabs(factor - 1) > 1e-3;
}

static bool one_rung_higher(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    *r = (struct pe_related){pow(l->base, 2 / l->width), 1, 0, 0};
    return times(l, r->found, out);
}

static bool one_rung_lower(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    *r = (struct pe_related){pow(l->base, -2 / l->width), 1, 0, 0};
    return times(l, r->found, out);
}

/* In another order: those of the pairs, or those without scaling. */
static bool turned_round(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    for (size_t c = 0; c < l->n; c++)
        out[c] = l->believed[l->n - 1 - c];
    *r = (struct pe_related){out[0], l->believed[0], 0, 0};
    return l->n > 1;
}

static bool reciprocal(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    bool all_turn = true;
    for (size_t c = 0; c < l->n; c++) {
        out[c] = 1 / l->believed[c];
        all_turn &= l->believed[c] != 0 && fabs(out[c]) < 1e6;
    }
    *r = (struct pe_related){out[l->n - 1], l->believed[l->n - 1], 0, 0};
    return all_turn;
}

/* The believed numbers at other pairs: each is that of its rank. */
static bool permuted(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    double sorted[PE_WAVES_READ];
    memcpy(sorted, l->believed, l->n * sizeof *sorted);
    qsort(sorted, l->n, sizeof *sorted, pe_rising);
    for (size_t c = 0; c < l->n; c++) {
        size_t rank = 0;
        for (size_t j = 0; j < l->n; j++)
            rank += l->found[j] < l->found[c] || (l->found[j] == l->found[c] && j < c);
        out[c] = sorted[rank];
    }
    *r = (struct pe_related){out[0], l->believed[0], 0, 1};
    return l->n > 2;
}

/* As measured: believed where that is within the error, else the shortest decimal. A list that was sent states itself,
 * if it could be somebody's ladder. */
static bool listed(const struct pe_ladder *l, double *out, struct pe_related *r)
{
    const struct pe_evidence *e = &l->d->evidence;
    bool is_sent = e->kind->id == PE_OF_LADDER;
    size_t first = l->n;
    if (is_sent && !pe_ladder_falls(e))
        return false;
    for (size_t c = 0; c < l->n; c++) {
        double error = l->error[c];
        bool is_believed = isinf(error) || fabs(l->found[c] - l->believed[c]) <= 3 * error + 0x1p-19 * l->believed[c];
        double relative = fmin(1e-2, fmax(3e-8, error / fabs(l->found[c]) / 4));
        out[c] = is_believed ? l->believed[c] : pe_shortest_decimal(l->found[c], relative);
        first = !is_believed && first == l->n ? c : first;
    }
    first = first < l->n ? first : 0;
    *r = (struct pe_related){out[first], l->believed[first], first, is_sent ? 0 : (unsigned)l->n};
    return true;
}

/* ---- The faults ---- */

#define OF_ROTARY (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(LADDER) | PE_EVIDENCE_BIT(MAPS))
#define OF_WAVES (OF_ROTARY | PE_EVIDENCE_BIT(ENCODING))

/* ---- Scaling ---- */

static bool has_scaling(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_value *type = pe_edit_value(d, edit, "scaling.type");
    return type && type->kind == PE_STRING && !pe_same(type->string, "default");
}

static bool remove_scaling(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    if (!has_scaling(d, edit))
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
    .apply = remove_scaling,
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

/* Linear scaling by any factor but one that has a name, as 2 pi, which makes turns of radians (`scaled`). */
static bool fit_linear(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_solved s = measured_factor(d, edit);
    double believed = pe_edit_real(d, NULL, "scaling.factor", (double)NAN);
    double error = 4 * s.error + 1e-7 * s.x, factor = pe_shortest_decimal(s.x, error / s.x);
    struct pe_field *fields = pe_edit_room(edit, 2 * sizeof *fields);
    bool is_factor =
        factor > 1 + error && factor < 1e6 && !pe_factor_name(factor, (double)NAN, (double)NAN, fmax(1e-5, s.error));
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
               "{pointer} is {found}; the configuration has {believed}."),

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
    .role = PE_ROLE_RUNG_LOWER,
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
               "The frequencies are in reverse order: the slowest pair is first.",
               "The frequencies are in reverse order: the slowest pair is first."),

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

static bool try_base(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
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
                                                        "The base is {found}; the configuration has {believed}."),
                                             .schemes = "rope|xpos|sinusoidal|sandwich",
                                             .evidence = OF_WAVES | PE_EVIDENCE_BIT(BIAS),
                                             .n_alternatives = N_BASES,
                                             .apply = try_base,
                                             .surprise_of = surprise_of_base,
                                             .role = PE_ROLE_BASE,
                                             .cures = pe_cures_ladder};

/* ---- A free list ---- */

const struct pe_fault pe_fault_inv_freq_other = {
    FAULT_TEXT(
        "inv_freq_other", "ladder", LADDER, 8, "other frequencies",
        "The frequencies, fitted pair by pair, follow no rule that was tried.",
        "The frequencies follow no rule that was tried; `found` lists them. Nearest is {nearest.name}: {nearest.pairs} "
        "of {nearest.of} pairs have another frequency, by a factor of at most {nearest.largest}."),
    .is_free_list = true, .cures = pe_cures_ladder};

const struct pe_fault pe_fault_exponent_shifted = {
    FAULT_TEXT("exponent_shifted", "ladder", LADDER, 3, "exponents begin too early",
               "The exponents of the frequencies begin at -2/r, as where the index of a pair is one too small.",
               "Every frequency is base^(2/r) = {found} times that of the configuration."),
    .role = PE_ROLE_RUNG_HIGHER, .cures = pe_cures_ladder};

const struct pe_fault pe_fault_exponent_lost = {
    FAULT_TEXT("exponent_lost", "ladder", LADDER, 3, "exponents rounded to integers",
               "Pair c has the frequency e^(-k·c) with a whole k: an integer division in the exponent.",
               "Pair c has the frequency e^(-{found}·c)."),
    .cures = pe_cures_ladder};

const struct pe_fault pe_fault_frequencies_equal = {
    FAULT_TEXT("frequencies_equal", "ladder", LADDER, 3, "equal frequencies", "All pairs have the same frequency.",
               "Every pair has the frequency {found}."),
    .cures = pe_cures_ladder};

const struct pe_fault pe_fault_inverted = {
    FAULT_TEXT("inverted", "sense", SENSE, 4, "reciprocals", "Every number is the reciprocal of the right one.",
               "Every number is 1/x of the configuration's: timescales instead of frequencies."),
    .evidence = PE_EVIDENCE_BIT(LADDER), PE_TRANSFORMS({PE_TO_INVERTED, true}), .cures = pe_cures_inverted};

/* 0, the paper, and 1, fairseq and others. */
const struct pe_fault pe_fault_freq_shift_other = {
    FAULT_TEXT("freq_shift_other", "sinusoid", SINUSOID, 2, "other freq_shift",
               "The exponents of the frequencies have another divisor.",
               "freq_shift is {found}; the configuration has {believed}."),

    .schemes = "sinusoidal", PE_VALUES(PE_REAL_OF("freq_shift", 0), PE_REAL_OF("freq_shift", 1))};

/* ---- The table ---- */

const struct pe_frequency_relation pe_frequency_relations[] = {
    {{&pe_fault_scaling_missing, 1, NULL, NULL}, .spell = no_scaling, .first = no_scaling},
    {{&pe_fault_scaling_parameter, 1, NULL, NULL}, .spell = pe_spell_parameters},
    {{&pe_fault_freq_shift_other, 1, NULL, NULL}, .spell = other_shift},
    {{&pe_fault_base_other, 1, NULL,
      "The base is {found}, the square of the configuration's {believed}: the exponents are doubled."},
     .spell = squared_base},
    {{&pe_fault_ladder_width, 1, NULL,
      "The exponents of the frequencies are divided by {found} channels; in the configuration by {believed}."},
     .spell = other_width},
    {{&pe_fault_base_other, 1, NULL, NULL}, .spell = other_base, .first = base_beside_scaling},
    {{&pe_fault_inv_freq_other, 2, NULL,
      "Each frequency is {found} times the one before it; in the configuration the second is {believed} times the "
      "first."},
     .list = geometric},
    {{&pe_fault_inv_freq_other, 1, NULL,
      "Pairs share their frequencies in groups of {found}: pair c has that of pair c - c % {found}."},
     .list = of_groups},
    {{&pe_fault_scaling_other, 1, NULL, NULL}, .spell = pe_spell_other_types},
    {{&pe_fault_exponent_shifted, 1, NULL,
      "Every frequency is base^(2/r) = {found} times that of the configuration: the exponents begin at -2/r."},
     .list = one_rung_higher},
    {{&pe_fault_ladder_from_one, 1, NULL,
      "Every frequency is base^(-2/r) = {found} times that of the configuration: the exponents begin at 2/r."},
     .list = one_rung_lower},
    {{&pe_fault_frequencies_equal, 1, NULL,
      "Every pair has the frequency {found}; in the configuration the last has {believed}."},
     .list = all_equal},
    {{&pe_fault_exponent_lost, 1, NULL,
      "Pair c has the frequency e^(-{found}·c); in the configuration the exponent falls by {believed} for each pair. "
      "ln(base)·2/r was rounded to an integer."},
     .list = whole_exponents},
    {{&pe_fault_ladder_reversed, 1, NULL,
      "The frequencies are in reverse order: the first is {found}, in the configuration {believed}."},
     .list = turned_round},
    {{&pe_fault_inverted, 1, NULL,
      "The frequencies are the reciprocals: the last is {found}, in the configuration {believed}."},
     .list = reciprocal},
    {{&pe_fault_inv_freq_other, 2, NULL,
      "The frequencies are rounded to {found} decimals: the last of the configuration is {believed}."},
     .list = to_decimals},
    {{&pe_fault_inv_freq_other, 2, NULL, "The frequencies fall by equal steps, from {found} to {believed}."},
     .list = evenly_spaced},
    {{&pe_fault_inv_freq_other, 3, NULL,
      "The frequencies are those of the configuration at other pairs: the first is {found} in place of {believed}."},
     .list = permuted},
    {{&pe_fault_inv_freq_other, 3, NULL, NULL}, .list = listed},
};

const size_t pe_n_frequency_relations = sizeof pe_frequency_relations / sizeof *pe_frequency_relations;
