/* What was done to a tensor before it was rotated, or to its rows as a whole.
 *
 * The rotation is believed to be right. Turned back by it, the tensor is compared with the input: its channels were
 * multiplied by weights, a bias was added, it was normalised. And rows may be one matrix times the believed rows:
 * weights whose channels were mixed (a Hadamard transform, a permutation with signs). */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = a·x + b·q, of the tensor before the rotation. */
static bool has_input(struct pe_numbers *s, struct pe_changed *out)
{
    static const char *const terms[] = {"x", "q"};
    struct pe_terms f = {.n = 2};
    double a[2];
    for (size_t i = 0; s->input && i < s->n; i++)
        pe_terms_add(&f, (const double[]){s->believed[i], s->input[i]}, s->found[i]);
    if (!s->input || !pe_terms_solve(&f, a) || fabs(a[0]) < 1e-3)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (fabs(a[0] * s->believed[i] + a[1] * s->input[i] - s->found[i]) > 4 * s->near)
            return false;
    out->change = PE_CHANGED_INPUT;
    pe_terms_state(a, terms, 2, out->rule);
    return true;
}

/* The same was added to the input in every head, and row of the batch. */
static bool is_added(struct pe_numbers *s, struct pe_changed *out)
{
    size_t each = s->sizes.row * s->n_cols;
    if (!s->input || s->n < 2 * each)
        return false;
    for (size_t i = each; i < s->n; i++)
        if (fabs((s->found[i] - s->input[i]) - (s->found[i % each] - s->input[i % each])) > 2 * s->near)
            return false;
    out->change = PE_CHANGED_ADDED;
    return true;
}

/* ---- Turned back ---- */

/* The tensor, turned back by the believed rotation: [n]. */
static bool turn_back(const struct pe_numbers *s, double *out)
{
    struct pe_edit edit;
    struct pe_model *back;
    double *phase = malloc(s->n_cols * sizeof *phase);
    pe_edit_init(&edit);
    pe_edit_set_integer(&edit, "direction", -pe_edit_integer(s->d, NULL, "direction", 1));
    s->d->no_memory |= !phase;
    bool is_open = phase && pe_edit_model(s->d, &edit, &back);
    bool is_turned = is_open && back->has_shape && pe_rotated_keeps_lengths(back);
    for (size_t row = 0; is_turned && row < s->n_rows; row++) {
        pe_rotated_at(back, row % s->sizes.row, s->found + row * s->n_cols, out + row * s->n_cols, phase);
        is_turned = !pe_is_cancelled();
    }
    if (is_open)
        pe_model_free(back);
    pe_edit_drop(&edit);
    free(phase);
    return is_turned;
}

static bool is_changed_before(struct pe_numbers *s, struct pe_changed *out)
{
    static const enum pe_changed_how before[][2] = {{PE_CHANGED_NUMBERS, PE_CHANGED_BEFORE},
                                                    {PE_CHANGED_OF_COLUMNS, PE_CHANGED_WEIGHTED},
                                                    {PE_CHANGED_PRODUCT, PE_CHANGED_NORMALISED}};
    struct pe_numbers view = *s;
    struct pe_changed behind = {.n = 0};
    double *back = s->input ? malloc(s->n * sizeof *back) : NULL;
    s->d->no_memory |= s->input && !back;
    view.found = back;
    view.believed = s->input;
    view.input = NULL;
    bool is_any = back && turn_back(s, back) && pe_changed_values(&view, &behind), holds = false;
    s->work = view.work + 4 * (double)s->n;
    free(back);
    for (size_t i = 0; is_any && !holds && i < sizeof before / sizeof *before; i++)
        if (behind.change == before[i][0]) {
            *out = behind;
            out->change = before[i][1];
            holds = true;
        }
    return holds;
}

/* ---- One matrix ---- */

/* Column c of every row is the believed row times m [n], by the normal equations. */
static bool is_map_of(const struct pe_numbers *s, const double *l, size_t c, double *m)
{
    size_t n = s->n_cols;
    memset(m, 0, n * sizeof *m);
    for (size_t row = 0; row < s->n_rows; row++)
        for (size_t k = 0; k < n; k++)
            m[k] += s->believed[row * n + k] * s->found[row * n + c];
    pe_solve(l, n, m);
    for (size_t row = 0; row < s->n_rows; row++) {
        double y = 0;
        for (size_t k = 0; k < n; k++)
            y += s->believed[row * n + k] * m[k];
        if (fabs(y - s->found[row * n + c]) > 8 * s->near)
            return false;
    }
    return true;
}

static bool is_linear(struct pe_numbers *s, struct pe_changed *out)
{
    enum { MOST = 256 };
    size_t n = s->n_cols;
    bool is_asked = s->d->evidence.kind->id == PE_OF_ROTATED && n <= MOST && s->n_rows >= 2 * n && !s->is_coarse;
    double *l = is_asked ? calloc(2 * n * n, sizeof *l) : NULL, *m = l ? l + n * n : NULL, off = 0;
    s->d->no_memory |= is_asked && !l;
    for (size_t row = 0; l && row < s->n_rows; row++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                l[i * n + j] += s->believed[row * n + i] * s->believed[row * n + j];
    bool holds = l && pe_factorise(l, n);
    for (size_t c = 0; holds && c < n; c++)
        holds = !pe_is_cancelled() && is_map_of(s, l, c, m + c * n);
    for (size_t i = 0; holds && i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double both = 0;
            for (size_t k = 0; k < n; k++)
                both += m[i * n + k] * m[j * n + k];
            off = fmax(off, fabs(both - (i == j)));
        }
    s->work += l ? (double)s->n * (double)n : 0;
    free(l);
    out->change = off < 1e-3 ? PE_CHANGED_ORTHOGONAL : PE_CHANGED_LINEAR;
    return holds;
}

bool pe_changed_input(struct pe_numbers *s, struct pe_changed *out)
{
    return has_input(s, out) || is_added(s, out) || is_changed_before(s, out) || pe_changed_pairs(s, out) ||
           is_linear(s, out);
}
