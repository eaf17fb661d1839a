/* The styles of Fourier features: the parameters of each, and its features in the order of the columns. */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>

static void add(struct pe_features *t, unsigned axis, int quarter, double numerator, double denominator)
{
    t->features[t->n++] = (struct pe_feature){numerator, denominator, quarter, axis, 0};
}

/* ---- nerf ---- */

enum pe_status pe_fourier_nerf(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct pe_features *t = p->tables;
    if (c->num_freqs == PE_UNSET_INT)
        c->num_freqs = PE_NERF_FREQS;
    if (c->num_freqs > PE_NERF_FREQS_MAX)
        return pe_fail(err, "/num_freqs", "num_freqs is %lld; allowed in style nerf: an integer from 1 to %d",
                       (long long)c->num_freqs, PE_NERF_FREQS_MAX);
    t->times_pi = c->multiply_pi;
    t->exact = c->multiply_pi && !c->log_sampling && c->arith == PE_ARITH_EXACT;
    return PE_OK;
}

/* f_k = 2^k, or 1 + k·(2^(L-1) - 1)/(L - 1). */
void pe_fourier_add_nerf(const struct pe_plan *p, struct pe_features *t)
{
    const struct fourier *c = p->config;
    unsigned axes = p->seq.n_axes;
    int last = (int)c->num_freqs - 1;
    bool even = !c->log_sampling && last > 0;
    for (unsigned a = 0; c->include_input && a < axes; a++)
        add(t, a, PE_LINEAR, 1, 1);
    for (int k = 0; k <= last; k++)
        for (int quarter = 0; quarter < 2; quarter++)
            for (unsigned a = 0; a < axes; a++)
                add(t, a, quarter, even ? last + k * (ldexp(1, last) - 1) : ldexp(1, k), even ? last : 1);
}

/* ---- perceiver ---- */

/* Positions in the request are coordinates. Any other sequence is spread by index, and this function returns its
 * lengths. */
static enum pe_status lengths_of(const struct pe_plan *p, double *lengths, bool *spread, struct pe_failure *err)
{
    const struct pe_sequence *seq = &p->seq;
    *spread = !p->sequence.positions.n;
    if (p->sequence.lens.n || seq->has_segments)
        return pe_fail(err, p->sequence.lens.n ? "/lens" : "/segments",
                       "style perceiver spreads a grid or a run over [-1,1]; give len, grid, or positions as "
                       "coordinates");
    if (*spread && !seq->n_grid && seq->k->start != 0)
        return pe_fail(err, "/offset",
                       "offset is not used here: style perceiver spreads the run over [-1,1], wherever it begins");
    for (unsigned a = 0; a < seq->n_axes; a++) {
        lengths[a] = (double)(seq->n_grid ? seq->grid[a] : seq->k->n);
        if (*spread && lengths[a] > PE_RESOLUTION_MAX)
            return pe_fail(err, seq->n_grid ? "/grid" : "/len",
                           "an axis has %.0f positions; allowed in style perceiver: at most 2^31 (2147483648)",
                           lengths[a]);
    }
    return PE_OK;
}

static enum pe_status set_resolution(struct pe_plan *p, const double *lengths, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct pe_reals *list = &c->max_resolution;
    unsigned axes = p->seq.n_axes;
    enum pe_status status = PE_OK;
    if (!list->n && axes > 1 && !p->seq.n_grid)
        return pe_fail(err, "/max_resolution",
                       "max_resolution is missing; coordinates on %u axes have no lengths to derive it from", axes);
    if (list->n)
        status = pe_reals_expect(list, axes, "max_resolution", "one for each axis", err);
    for (unsigned a = 0; !status && a < axes; a++) {
        double x = list->n ? pe_real_at(list, a) : lengths[a];
        if (x != floor(x))
            return pe_fail(err, "/max_resolution", "max_resolution has %s at index %u; allowed: integers",
                           pe_shown(x).text, a);
        c->resolution[a] = (int64_t)x;
    }
    list->array = (struct pe_tensor){.dtype = PE_I64, .rank = 1, .shape = {axes}, .data = c->resolution};
    list->n = axes;
    return status;
}

/* linspace(-1, 1, n) at index i is (i - (n-1)/2)·2/(n-1): the position begins at exactly -(n-1)/2, and the factor
 * goes into the frequency. A single point is at -1, as in PyTorch. */
static void spread_axis(struct pe_plan *p, unsigned axis, double n)
{
    p->seq.q[axis].start = p->seq.k[axis].start = n > 1 ? (1 - n) / 2 : -1;
}

enum pe_status pe_fourier_perceiver(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct pe_features *t = p->tables;
    double lengths[PE_AXES_MAX];
    bool spread;
    enum pe_status status = lengths_of(p, lengths, &spread, err);
    if (!status)
        status = set_resolution(p, lengths, err);
    for (unsigned a = 0; !status && spread && a < p->seq.n_axes; a++)
        spread_axis(p, a, lengths[a]);
    t->times_pi = true;
    t->exact = c->arith == PE_ARITH_EXACT;
    return status;
}

/* f_k = 1 + k·(resolution/2 - 1)/(num_bands - 1), times the factor of the spread. */
void pe_fourier_add_perceiver(const struct pe_plan *p, struct pe_features *t)
{
    const struct fourier *c = p->config;
    double last = (double)c->num_bands - 1, numerators[PE_AXES_MAX], denominators[PE_AXES_MAX];
    for (unsigned a = 0; a < p->seq.n_axes; a++) {
        double n = (double)(p->seq.n_grid ? p->seq.grid[a] : p->seq.k->n);
        bool factor = !p->sequence.positions.n && n > 1;
        numerators[a] = factor ? 2 : 1;
        denominators[a] = factor ? n - 1 : 1;
        if (c->concat_pos)
            add(t, a, PE_LINEAR, numerators[a], denominators[a]);
    }
    for (int quarter = 0; quarter < (c->sine_only ? 1 : 2); quarter++)
        for (unsigned a = 0; a < p->seq.n_axes; a++)
            for (double k = 0; k <= last; k++) {
                double twice = last > 0 ? 2 * last + k * ((double)c->resolution[a] - 2) : 2;
                double half = 2 * (last > 0 ? last : 1);
                add(t, a, quarter, numerators[a] * twice, denominators[a] * half);
            }
}

/* ---- gaussian ---- */

/* Gets b: as sent, where its shape determines num_freqs, or from the seed. */
static enum pe_status get_b(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    enum pe_status status = PE_OK;
    bool sent = pe_weights_sent(p, PE_FOURIER_B);
    if (sent && (pe_plan_gave(p, "seed") || pe_plan_gave(p, "sigma")))
        return pe_fail(err, pe_plan_gave(p, "seed") ? "/seed" : "/sigma",
                       "seed and sigma make b at random, but b was sent; give one");
    if (sent)
        status = pe_fix_size(p, "num_freqs", pe_weights_axis(p, PE_FOURIER_B, 0), "b", err);
    else if (c->num_freqs == PE_UNSET_INT)
        c->num_freqs = PE_GAUSSIAN_FREQS;
    const uint64_t shape[] = {(uint64_t)c->num_freqs, p->seq.n_axes};
    if (!status)
        status = pe_weights_need(p, PE_FOURIER_B, shape, 2, err);
    if (sent) { /* not in use, so not in the config */
        c->sigma = PE_UNSET;
        c->seed = PE_UNSET_INT;
    }
    return status;
}

enum pe_status pe_fourier_gaussian(struct pe_plan *p, struct pe_failure *err)
{
    struct pe_features *t = p->tables;
    enum pe_status status = get_b(p, err);
    if (status)
        return status;
    size_t n = (size_t)((const struct fourier *)p->config)->num_freqs * p->seq.n_axes;
    t->four = calloc(n, sizeof *t->four);
    if (!t->four)
        return pe_no_memory(err);
    pe_weights_read(&p->weights[PE_FOURIER_B], 0, n, t->four);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(t->four[i]) < PE_PHASE_MAX / 4))
            return pe_fail(err, "/b", "b has %s at index %zu; allowed: finite numbers below 2^49",
                           pe_shown(t->four[i]).text, i);
        t->four[i] *= 4;
    }
    t->exact = true;
    return PE_OK;
}

void pe_fourier_add_gaussian(const struct pe_plan *p, struct pe_features *t)
{
    const struct fourier *c = p->config;
    for (int quarter = 1; quarter >= 0; quarter--)
        for (size_t row = 0; row < (size_t)c->num_freqs; row++)
            t->features[t->n++] = (struct pe_feature){.quarter = quarter, .row = row};
}
