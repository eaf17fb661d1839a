/* Signatures: two models with the same one give the same numbers at every position. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

/* FNV-1a, over doubles rounded to floats, so that two ways to the same number agree. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3U;
    return h;
}

static uint64_t hash(uint64_t h, double x)
{
    float f = (float)(x + 0.0); /* -0 becomes 0 */
    return hash_bytes(h, &f, sizeof f);
}

static uint64_t hash_transforms(uint64_t h, const struct pe_transforms *t)
{
    const double parts[] = {t->recipe, (double)t->sinusoid, t->sin_cos_swapped, t->negated, t->transposed,
                            t->scaled, (double)t->zero_row, t->n_axes,          t->inverted};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        h = hash(h, parts[i]);
    if (!isnan(t->mask_value))
        h = hash(h, t->mask_value);
    if (!isnan(t->wrapped_from))
        h = hash(h, t->wrapped_from);
    return hash_bytes(h, t->order, t->n_axes);
}

/* Attention factors do not show in angles and frequencies. */
static uint64_t hash_columns(uint64_t h, const struct pe_model *m)
{
    enum pe_evidence_id id = m->d->evidence.kind->id;
    bool has_factor = id != PE_OF_ANGLES && id != PE_OF_LADDER;
    for (size_t c = 0; c < m->n_columns; c++) {
        const struct pe_wave *w = &m->columns[c];
        h = hash(hash(hash(hash(h, w->fh), has_factor ? w->ah : 1), w->quarter), w->axis);
    }
    h = hash(hash(h, (double)m->axes.n), (double)m->axes.row_step);
    for (unsigned a = 0; a < m->plan->seq.n_axes; a++)
        for (uint64_t i = 0; i < m->plan->seq.k[a].n; i++)
            h = hash(h, pe_position_at(&m->plan->seq.k[a], i));
    return h;
}

/* The numbers of the sample, where there are no waves, and where they do not show everything (xPos, channels). */
static uint64_t hash_sample(uint64_t h, const struct pe_model *m)
{
    const struct pe_sample *s = &m->d->sample;
    for (size_t i = 0; m->has_shape && i < s->n_pieces && (!m->columns || i < s->n_first); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, s->expected + p->at);
        for (size_t j = 0; j < p->n; j++)
            h = hash(h, s->expected[p->at + j] + 4 * m->d->evidence.largest);
    }
    return h;
}

/* Maps of queries and keys may agree where the evidence is, and differ farther away. */
static uint64_t hash_beyond(uint64_t h, const struct pe_model *m)
{
    enum { MOST = 1024 };
    double x[MOST];
    const struct pe_evidence_kind *kind = m->d->evidence.kind;
    size_t n = kind->fill_beyond ? kind->fill_beyond(m, MOST, x) : 0;
    for (size_t i = 0; i < n; i++)
        h = hash(h, x[i]);
    return h;
}

uint64_t pe_model_signature(const struct pe_model *m)
{
    uint64_t h = hash_transforms(0xcbf29ce484222325U, &m->transforms);
    return hash_beyond(hash_sample(hash_columns(h, m), m), m);
}
