/* The cosines and sines that rotate a tensor: of one position, or of all of them, kept. */
#include "core/diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

static void exchange(double *row, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double x = row[c];
        row[c] = row[n + c];
        row[n + c] = x;
    }
}

/* ---- The factors of rows ----
 *
 * Each is an exponential of many digits, and thousands of hypotheses scale the same rows alike. So the factors of a row
 * are kept at the place that its position and the parameters hash to: [key, position, a factor for each pair]. */

enum { KEPT_FACTORS = 1 << 15 };

static uint64_t mix(uint64_t h, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0x9e3779b97f4a7c15U;
    return h ^ h >> 32;
}

static uint64_t mix_word(uint64_t h, const char *word)
{
    while (*word)
        h = mix(h, *word++);
    return h;
}

/* Every parameter but those that are known not to matter; 0: one of them is neither a number nor a word. */
static uint64_t key_of(const struct pe_plan *plan)
{
    const struct pe_value *config = pe_plan_config(plan);
    uint64_t h = plan->arith + 1;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        if (pe_is_among("base|inv_freq|scaling|attention_factor|layout|direction|rotary_offset|form", f->name))
            continue;
        if (f->value.kind == PE_STRING)
            h = mix_word(mix_word(h, f->name), f->value.string);
        else if (f->value.kind == PE_INTEGER || f->value.kind == PE_REAL)
            h = mix(mix_word(h, f->name), f->value.kind == PE_REAL ? f->value.real : (double)f->value.integer);
        else
            return 0;
    }
    return h | 1;
}

enum pe_status pe_factors_open(struct pe_diagnosis *d, struct pe_model *m, struct pe_error *err)
{
    if (!m->plan->scheme->magnitude)
        return PE_OK;
    if (!d->factors && pe_diagnosis_admit(d, KEPT_FACTORS * sizeof *d->factors, err))
        return err->status;
    if (!d->factors)
        d->factors = calloc(KEPT_FACTORS, sizeof *d->factors);
    m->scale = key_of(m->plan);
    return d->factors ? PE_OK : pe_no_memory(err);
}

static void factors_at(const struct pe_model *m, uint64_t i, size_t pairs, double *factors)
{
    double p = pe_position_at(m->plan->seq.k, i), key;
    size_t room = (size_t)m->d->evidence.row_len / 2 + 2; /* as many pairs as a head can have: all slots are alike */
    uint64_t place = (mix(m->scale, p) >> 32) % (KEPT_FACTORS / room);
    double *slot = m->scale ? m->d->factors + place * room : NULL;
    memcpy(&key, &m->scale, sizeof key);
    if (slot && memcmp(slot, &key, sizeof key) == 0 && slot[1] == p) {
        memcpy(factors, slot + 2, pairs * sizeof *factors);
        return;
    }
    m->plan->scheme->magnitude(m->plan, m->d->evidence.kind->is_key, m->plan->seq.k, i, 1, factors);
    if (!slot)
        return;
    memcpy(slot, &key, sizeof key);
    slot[1] = p;
    memcpy(slot + 2, factors, pairs * sizeof *factors);
}

/* ---- Rows ---- */

void pe_rotary_row(const struct pe_model *m, uint64_t i, double *out)
{
    size_t n = m->n_columns, pairs = n / 2;
    double factors[PE_HEAD_DIM_MAX / 2];
    if (m->transforms.recipe)
        pe_recipe_fill(m, i, 0, n, out);
    else
        pe_fill(m->plan, 0, i * n, n, out);
    if (m->transforms.sin_cos_swapped)
        exchange(out, pairs);
    if (!m->plan->scheme->magnitude)
        return;
    factors_at(m, i, pairs, factors);
    for (size_t c = 0; c < n; c++)
        out[c] *= factors[c % pairs];
}

double pe_model_kept_bytes(const struct pe_model *m)
{
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return is_rotated ? (double)m->plan->seq.k->n * (double)m->n_columns * sizeof *m->kept : 0;
}

enum { ROWS_BETWEEN_ASKING = 16 };

enum pe_status pe_model_keep(struct pe_model *m, struct pe_error *err)
{
    size_t n = (size_t)m->plan->seq.k->n;
    if (m->kept || m->is_misfit || m->d->evidence.kind->id != PE_OF_ROTATED)
        return PE_OK;
    double *kept = malloc(n * m->n_columns * sizeof *kept);
    if (!kept)
        return pe_no_memory(err);
    for (size_t i = 0; i < n && !(i % ROWS_BETWEEN_ASKING == 0 && pe_is_cancelled()); i++)
        pe_rotary_row(m, i, kept + i * m->n_columns);
    m->kept = kept;
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

void pe_model_forget(struct pe_model *m)
{
    free(m->kept);
    m->kept = NULL;
}
