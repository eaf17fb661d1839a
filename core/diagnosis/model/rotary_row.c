/* The cosines and sines that rotate a tensor: of one position, or of all of them, kept. */
#include "core/diagnosis/model/recipe.h"

#include <stdlib.h>

static void exchange(double *row, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double x = row[c];
        row[c] = row[n + c];
        row[n + c] = x;
    }
}

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
    m->plan->scheme->magnitude(m->plan, 0, m->plan->seq.k, i, 1, factors);
    for (size_t c = 0; c < n; c++)
        out[c] *= factors[c % pairs];
}

double pe_model_kept_bytes(const struct pe_model *m)
{
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return is_rotated ? (double)m->d->belief.n * (double)m->n_columns * sizeof *m->kept : 0;
}

enum { ROWS_BETWEEN_ASKING = 16 };

enum pe_status pe_model_keep(struct pe_model *m, struct pe_error *err)
{
    size_t n = (size_t)m->d->belief.n;
    if (m->kept || m->d->evidence.kind->id != PE_OF_ROTATED)
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
