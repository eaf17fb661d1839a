/* Numbers that people write: the shortest decimal, and the waves that a model has. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Decimals ---- */

/* Is x written with so many digits clearly beyond the tolerance? Arithmetic decides, where a text would take long. */
static bool is_beyond(double x, int digits, double tolerance)
{
    double lead = fabs(x) / pow(10, floor(log10(fabs(x)))), unit = pow(10, digits);
    return fabs(nearbyint(lead * unit) / unit - lead) > (tolerance + 1e-13) * lead;
}

double pe_shortest_decimal(double x, double tolerance)
{
    char text[40];
    for (int digits = 0; digits < 17; digits++) {
        if (is_beyond(x, digits, tolerance))
            continue;
        snprintf(text, sizeof text, "%.*e", digits, x);
        double y = strtod(text, NULL);
        if (fabs(y - x) <= tolerance * fabs(x))
            return y;
    }
    return x;
}

/* ---- What a factor is ---- */

/* Rounded to 16 bits or fewer, a factor is known less well: to a quarter of what a rounding changes, since it is a
 * mean.
 */
static double tolerance_of(const struct pe_evidence *e)
{
    enum pe_dtype dtype = e->narrow == PE_DTYPE_NONE ? e->dtype : e->narrow;
    if (e->is_typed)
        return fmax(1e-5, 2 * pe_evidence_noise(e));
    return pe_narrow_type(dtype) ? fmax(1e-3, pe_real_type(dtype)->unit / 4) : 1e-5;
}

const char *pe_factor_name(double factor, double head_dim, double attention_factor, double tolerance)
{
    const double log2e = 1.4426950408889634, two_pi = 6.283185307179586, own = attention_factor;
    const struct {
        const char *name;
        double factor;
    } known[] = {{"1/sqrt(head_dim)", 1 / sqrt(head_dim)},
                 {"log2(e)", log2e},
                 {"log2(e)/sqrt(head_dim)", log2e / sqrt(head_dim)},
                 {"sqrt(head_dim)", sqrt(head_dim)},
                 {"attention_factor", own},
                 {"attention_factor^2", own * own},
                 {"1/attention_factor", 1 / own},
                 {"1/attention_factor^2", 1 / (own * own)},
                 {"2*pi", two_pi},
                 {"1/(2*pi)", 1 / two_pi},
                 {"pi", two_pi / 2},
                 {"2/pi", 4 / two_pi},
                 {"pi/180", two_pi / 360},
                 {"180/pi", 360 / two_pi}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fabs(factor - known[i].factor) <= tolerance * known[i].factor)
            return known[i].name;
    return NULL;
}

const char *pe_factor_meaning(const struct pe_diagnosis *d, double factor)
{
    const struct pe_model *m = d->belief.model;
    bool is_turned = m->columns && d->evidence.kind->id != PE_OF_LADDER;
    double head_dim = pe_edit_real(d, NULL, "head_dim", (double)NAN), own = is_turned ? m->columns[0].ah : 1;
    return pe_factor_name(factor, head_dim, own == 1 ? (double)NAN : own, tolerance_of(&d->evidence));
}

/* ---- The waves of a model ---- */

/* The waves of a model: how many the evidence shows, and their frequencies. */

/* Rotated tensors have the cosines of all pairs first; a table has its columns; an encoding its cosines. */
static size_t count_waves(const struct pe_model *m)
{
    switch (m->d->evidence.kind->id) {
    case PE_OF_ROTATED: return m->n_columns / 2;
    case PE_OF_TABLES:
    case PE_OF_ANGLES: return m->n_columns;
    case PE_OF_LADDER: return m->d->evidence.kind == &pe_evidence_rope_freqs ? 0 : m->n_columns;
    case PE_OF_ENCODING: return m->n_columns / 2;
    default: return 0;
    }
}

static double frequency_of(const struct pe_wave *w) { return (w->fh + w->fl) * (PI / 2); }

size_t pe_wave_count(const struct pe_model *m) { return m->columns ? count_waves(m) : 0; }

void pe_wave_frequencies(const struct pe_model *m, size_t n, double *w)
{
    bool only_cosines = m->d->evidence.kind->id == PE_OF_ENCODING;
    const double *other = only_cosines && m->transforms.sinusoid ? m->state : NULL; /* of the columns */
    size_t k = 0;
    for (size_t j = 0; j < m->n_columns && k < n; j++)
        if (!only_cosines || m->columns[j].quarter == 1)
            w[k++] = other ? other[j] : pe_wave_by_recipe(m, frequency_of(&m->columns[j]));
    while (k < n)
        w[k++] = 0;
}

void pe_wave_axes(const struct pe_model *m, size_t n, unsigned char *axis)
{
    bool only_cosines = m->d->evidence.kind->id == PE_OF_ENCODING;
    size_t k = 0;
    for (size_t j = 0; j < m->n_columns && k < n; j++)
        if (!only_cosines || m->columns[j].quarter == 1)
            axis[k++] = (unsigned char)m->columns[j].axis;
    while (k < n)
        axis[k++] = 0;
}

double pe_wave_tolerance(const struct pe_model *m)
{
    switch (m->transforms.recipe) {
    case PE_RECIPE_BF16_INV_FREQ: return 0x1p-8;
    case PE_RECIPE_BF16_INV_FREQ_DIVIDED: return 0x1p-7;
    case PE_RECIPE_TF32:
    case PE_RECIPE_F16_INV_FREQ: return 0x1p-10;
    case PE_RECIPE_F16: return 0x1p-7;
    case PE_RECIPE_BF16:
    case PE_RECIPE_BF16_DIVIDED: return 0x1p-4;
    default: return 0x1p-20;
    }
}

double pe_model_stride(const struct pe_model *m)
{
    const struct pe_positions *p = &m->plan->seq.k[0];
    return p->n > 1 ? pe_position_at(p, 1) - pe_position_at(p, 0) : 1;
}
