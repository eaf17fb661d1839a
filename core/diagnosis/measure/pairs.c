/* What each pair of channels was multiplied by, where it is not the believed rotation: the two channels that were sent
 * are sums of those before the rotation, of their products with the cosine and the sine, and of the channel of the pair
 * that was computed first (a tensor that was changed in place while it was still read).
 *
 * The believed rotation of unit vectors gives the pairs, and the cosine and sine of each at each row. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN_1, PLAIN_2, COS_1, SIN_1, COS_2, SIN_2, COS_MADE, SIN_MADE, N_TERMS };

struct pairs {
    struct pe_numbers *s;
    const struct pe_model *model;
    size_t n, *first, *second; /* channels */
    double *in, *out, *room;   /* [n_cols] */
};

/* The channel that channel j is turned with, at a row; j: it passes by. */
static size_t partner_of(const struct pairs *p, uint64_t row, size_t j)
{
    size_t n = p->s->n_cols, other = j;
    memset(p->in, 0, n * sizeof *p->in);
    p->in[j] = 1;
    pe_rotated_at(p->model, row, p->in, p->out, p->room);
    for (size_t i = 0; i < n; i++)
        other = i != j && fabs(p->out[i]) > 1e-9 && (other == j || fabs(p->out[i]) > fabs(p->out[other])) ? i : other;
    return other;
}

/* In every layout the first channel of a pair is the one before the other. */
static void find_pairs(struct pairs *p)
{
    uint64_t row = p->s->sizes.row / 2;
    for (size_t j = 0; j < p->s->n_cols && !pe_is_cancelled(); j++) {
        size_t other = partner_of(p, row, j);
        if (other <= j || partner_of(p, row, other) != j)
            continue;
        p->first[p->n] = j;
        p->second[p->n++] = other;
    }
}

/* The terms of channel `which` of pair k; `out` has the cosine and the sine of each pair at its row. */
static void terms_of(const struct pairs *p, size_t row, size_t k, int which, double *x)
{
    size_t i = p->first[k], j = p->second[k], at = row * p->s->n_cols;
    double c = p->out[i], s = p->out[j], q1 = p->s->input[at + i], q2 = p->s->input[at + j],
           made = p->s->found[at + (which ? i : j)];
    const double terms[N_TERMS] = {[PLAIN_1] = q1,   [PLAIN_2] = q2,   [COS_1] = c * q1,      [SIN_1] = s * q1,
                                   [COS_2] = c * q2, [SIN_2] = s * q2, [COS_MADE] = c * made, [SIN_MADE] = s * made};
    memcpy(x, terms, sizeof terms);
}

static void turn_row(const struct pairs *p, size_t row)
{
    memset(p->in, 0, p->s->n_cols * sizeof *p->in);
    for (size_t k = 0; k < p->n; k++)
        p->in[p->first[k]] = 1;
    pe_rotated_at(p->model, row % p->s->sizes.row, p->in, p->out, p->room);
}

/* Of the first n terms: what channel `which` is of them. */
static bool fit(const struct pairs *p, int which, size_t n, double *a)
{
    struct pe_terms f = {.n = n};
    double x[N_TERMS];
    for (size_t row = 0; row < p->s->n_rows && !pe_is_cancelled(); row++) {
        turn_row(p, row);
        for (size_t k = 0; k < p->n; k++) {
            terms_of(p, row, k, which, x);
            pe_terms_add(&f, x, p->s->found[row * p->s->n_cols + (which ? p->second[k] : p->first[k])]);
        }
    }
    p->s->work += 40 * (double)p->s->n;
    if (pe_is_cancelled() || !pe_terms_solve(&f, a))
        return false;
    for (size_t row = 0; row < p->s->n_rows; row++) {
        turn_row(p, row);
        for (size_t k = 0; k < p->n; k++) {
            double y = -p->s->found[row * p->s->n_cols + (which ? p->second[k] : p->first[k])];
            terms_of(p, row, k, which, x);
            for (size_t t = 0; t < n; t++)
                y += a[t] * x[t];
            if (fabs(y) > 8 * p->s->near)
                return false;
        }
    }
    return true;
}

/* Without what was made before it, if that is enough. */
static bool state(const struct pairs *p, int which, char text[PE_CHANGED_TEXT])
{
    static const char *const terms[2][N_TERMS] = {{"q1", "q2", "c*q1", "s*q1", "c*q2", "s*q2", "c*y2", "s*y2"},
                                                  {"q1", "q2", "c*q1", "s*q1", "c*q2", "s*q2", "c*y1", "s*y1"}};
    double a[N_TERMS];
    for (size_t n = COS_MADE; n <= N_TERMS; n += N_TERMS - COS_MADE)
        if (fit(p, which, n, a)) {
            pe_terms_state(a, terms[which], n, text);
            return true;
        }
    return false;
}

bool pe_changed_pairs(struct pe_numbers *s, struct pe_changed *out)
{
    const struct pe_model *model = s->d->belief.model;
    bool is_asked = s->input && s->d->evidence.kind->id == PE_OF_ROTATED && pe_rotated_keeps_lengths(model);
    size_t n = s->n_cols;
    double *room = is_asked ? malloc(n * (3 * sizeof *room + 2 * sizeof(size_t))) : NULL;
    s->d->no_memory |= is_asked && !room;
    if (!room)
        return false;
    struct pairs p = {.s = s, .model = model, .in = room, .out = room + n, .room = room + 2 * n};
    p.first = (size_t *)(void *)(room + 3 * n);
    p.second = p.first + n;
    find_pairs(&p);
    bool holds = p.n > 0 && state(&p, 0, out->rule) && state(&p, 1, out->first);
    free(room);
    out->change = PE_CHANGED_PAIRS;
    return holds;
}
