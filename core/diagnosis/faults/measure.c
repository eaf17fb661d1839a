/* Readings, kept: one for each pairing. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { READINGS_MAX = 6 };

struct pe_measure {
    struct pe_reading readings[READINGS_MAX];
    size_t n_readings, next;
};

static void drop(struct pe_reading *r)
{
    pe_free_large(r->re, 3 * r->n * r->n_waves * sizeof *r->re);
    pe_is_cancelled();
    free(r->step);
    free(r->piece);
    free(r->rows);
    *r = (struct pe_reading){.n = 0};
}

void pe_measure_drop(struct pe_diagnosis *d)
{
    for (size_t i = 0; d->measure && i < d->measure->n_readings; i++)
        drop(&d->measure->readings[i]);
    free(d->measure);
}

/* Columns of tables are read as they came, whatever they rotate. */
static uint64_t key_of(const struct pe_model *m)
{
    uint64_t h = 0xcbf29ce484222325U;
    struct pe_rotation rot;
    bool is_table = m->d->evidence.kind->id == PE_OF_TABLES;
    memset(&rot, 0, sizeof rot);
    if (m->plan->scheme->rotate && !is_table)
        m->plan->scheme->rotate(m->plan, &rot, NULL);
    double parts[] = {(double)rot.offset,
                      (double)rot.n_pairs,
                      rot.to_half,
                      rot.is_tiled,
                      (double)rot.n_blocks,
                      m->transforms.sin_cos_swapped,
                      m->transforms.negated,
                      m->transforms.scaled,
                      m->transforms.transposed,
                      m->transforms.inverted,
                      m->transforms.channels.is_after,
                      (double)rot.blocks[0].step,
                      (double)rot.blocks[0].partner,
                      (double)m->axes.n,
                      (double)m->axes.row_step,
                      m->is_by_batch};
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < sizeof parts; i++)
        h = (h ^ ((const unsigned char *)parts)[i]) * 0x100000001b3U;
    for (size_t i = 0; m->transforms.channels.order && i < m->transforms.channels.n; i++)
        h = (h ^ m->transforms.channels.order[i]) * 0x100000001b3U;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        if (pe_same(f->name, "direction"))
            h = (h ^ (uint64_t)f->value.integer) * 0x100000001b3U;
        if (!is_table && pe_is_among("layout|odd|style", f->name) && f->value.kind == PE_STRING)
            for (const char *p = f->value.string; *p; p++)
                h = (h ^ (unsigned char)*p) * 0x100000001b3U;
        if (pe_same(f->name, "flip_sin_to_cos"))
            h = (h ^ (f->value.boolean ? 7U : 3U)) * 0x100000001b3U;
    }
    return h;
}

static double bytes_of(const struct pe_reading *r)
{
    return (double)(r->n * r->n_waves * 3 * sizeof(float) + r->n * sizeof *r->rows);
}

static bool allocate(struct pe_diagnosis *d, struct pe_reading *r)
{
    struct pe_error ignored;
    size_t n = r->n * r->n_waves;
    r->no_memory = &d->no_memory;
    r->work = &d->work;
    if (n == 0)
        return false;
    d->no_memory |= pe_diagnosis_admit(d, bytes_of(r), &ignored) != PE_OK;
    if (d->no_memory)
        return false;
    r->re = malloc(3 * n * sizeof(float));
    r->step = calloc(4 * r->n_waves, sizeof(double));
    r->piece = calloc(r->n, sizeof *r->piece);
    r->rows = calloc(r->n, sizeof *r->rows);
    r->im = r->re ? r->re + n : NULL;
    r->weight = r->re ? r->re + 2 * n : NULL;
    r->error = r->step ? r->step + r->n_waves : NULL;
    r->mean_weight = r->step ? r->step + 2 * r->n_waves : NULL;
    r->w_of_rows = r->step ? r->step + 3 * r->n_waves : NULL;
    d->no_memory |= !(r->re && r->step && r->piece && r->rows);
    return !d->no_memory;
}

/* Reading a number, and each product of two rows with its angle. */
enum { READING_WORK = 160, PRODUCT_WORK = 40 };

/* Jumps and the longest lag take products of all rows, usual steps and the other lags those of some. */
double pe_reading_work(double n, double n_waves)
{
    double some = fmin(n, PE_LAG_ROWS);
    return n_waves * (n * (READING_WORK + 3 * PRODUCT_WORK) + some * PRODUCT_WORK * (4 + log2(n + 1)));
}

static bool read_all(struct pe_diagnosis *d, const struct pe_model *m, struct pe_reading *r)
{
    r->noise = fmax(pe_evidence_noise(&d->evidence), 0x1p-24); /* the waves are kept as floats */
    r->farthest = pe_positions_largest(&m->plan->seq.k[0]);
    if (!allocate(d, r))
        return false;
    *r->work += pe_reading_work((double)r->n, (double)r->n_waves);
    if (d->evidence.kind->id == PE_OF_LADDER)
        return pe_reading_ladder(r, m);
    return pe_reading_fill(r, m) && pe_reading_steps(r);
}

/* With other exponents a cosine has no sine; exchanged heads and channels are no pairs. */
static bool has_waves(const struct pe_model *m)
{
    bool is_whole = m->transforms.sinusoid == PE_SINUSOID_AS_IS || m->transforms.sinusoid == PE_LADDER_FROM_ONE;
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return m->has_shape && is_whole && !(is_rotated && m->transforms.transposed) && pe_wave_count(m) > 0;
}

static uint64_t rows_of(const struct pe_model *m)
{
    return m->d->evidence.kind->id == PE_OF_ROTATED ? m->plan->seq.k->n : m->d->belief.n;
}

const struct pe_reading *pe_read_waves(struct pe_diagnosis *d, const struct pe_model *m)
{
    if (!has_waves(m))
        return NULL;
    if (!d->measure)
        d->measure = calloc(1, sizeof *d->measure);
    d->no_memory |= !d->measure;
    if (!d->measure)
        return NULL;
    uint64_t key = key_of(m);
    for (size_t i = 0; i < d->measure->n_readings; i++)
        if (d->measure->readings[i].key == key)
            return d->measure->readings[i].n ? &d->measure->readings[i] : NULL;
    struct pe_reading *r = &d->measure->readings[d->measure->next];
    d->bytes -= bytes_of(r);
    drop(r);
    d->measure->next = (d->measure->next + 1) % READINGS_MAX;
    d->measure->n_readings += d->measure->n_readings < READINGS_MAX;
    size_t n = d->evidence.kind->id == PE_OF_LADDER ? 2 : (size_t)rows_of(m); /* positions 0 and 1 */
    *r = (struct pe_reading){.key = key, .n = n, .n_waves = pe_wave_count(m)};
    if (pe_lengths_agree(m) && read_all(d, m, r))
        return r;
    drop(r);
    r->key = key;
    return NULL;
}
