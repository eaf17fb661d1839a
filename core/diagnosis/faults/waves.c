/* The waves of a model: how many the evidence shows, and their frequencies. */
#include "core/diagnosis/diagnosis.h"

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
            w[k++] = other ? other[j] : frequency_of(&m->columns[j]);
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

double pe_recipe_tolerance(const struct pe_model *m)
{
    switch (m->transforms.recipe) {
    case PE_RECIPE_BF16_INV_FREQ: return 0x1p-8;
    case PE_RECIPE_BF16_INV_FREQ_DIVIDED: return 0x1p-7;
    case PE_RECIPE_F16_INV_FREQ: return 0x1p-10;
    case PE_RECIPE_BF16:
    case PE_RECIPE_BF16_DIVIDED: return 0x1p-4;
    case PE_RECIPE_NONE:
    case PE_RECIPE_F32: break;
    }
    return 0x1p-20;
}

double pe_model_stride(const struct pe_model *m)
{
    const struct pe_positions *p = &m->plan->seq.k[0];
    return p->n > 1 ? pe_position_at(p, 1) - pe_position_at(p, 0) : 1;
}
