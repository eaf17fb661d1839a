/* The believed profile: coordinates and frequencies of a plan.
 *
 * The plan's own positions and waves give both, whatever words the request has for its coordinates, so no rule of
 * coordinates is known here. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <stdlib.h>

bool pe_profile_new(struct pe_profile *p, unsigned n_axes, size_t n_rows, size_t n_pairs)
{
    size_t n = n_axes * n_rows;
    *p = (struct pe_profile){.n_rows = n_rows, .n_pairs = n_pairs, .n_axes = n_axes};
    p->x = calloc(2 * n + 2 * n_pairs + 1, sizeof *p->x);
    if (!p->x)
        return false;
    p->x_error = p->x + n;
    p->w = p->x_error + n;
    p->w_error = p->w + n_pairs;
    return true;
}

void pe_profile_drop(struct pe_profile *p)
{
    free(p->x);
    *p = (struct pe_profile){.n_rows = 0};
}

double pe_profile_phase(const struct pe_profile *p, size_t row, size_t pair)
{
    return pe_wrap(p->x[p->axis[pair] * p->n_rows + row] * p->w[pair]);
}

bool pe_profile_believe(struct pe_profile *p, const struct pe_model *m, size_t n_rows)
{
    const struct pe_sequence *seq = &m->plan->seq;
    size_t n_pairs = pe_wave_count(m);
    if (n_pairs == 0 || n_pairs > PE_WAVES_READ || seq->n_axes == 0 || seq->k[0].n != n_rows)
        return false;
    m->no_memory[0] |= !pe_profile_new(p, seq->n_axes, n_rows, n_pairs);
    if (*m->no_memory)
        return false;
    pe_wave_frequencies(m, n_pairs, p->w);
    pe_wave_axes(m, n_pairs, p->axis);
    for (size_t k = 0; k < n_pairs; k++)
        p->w[k] /= pe_coordinate_unit(m->plan, p->axis[k]);
    for (unsigned a = 0; a < p->n_axes; a++)
        for (size_t i = 0; i < n_rows; i++)
            p->x[a * n_rows + i] = pe_coordinate(m->plan, a, i);
    return true;
}
