/* Resized tables: kernels are put to the numbers themselves, whatever the table is.
 *
 * A resized table is a product of one linear operator for each axis, so some tens of cells and channels of the result
 * tell one kernel from another. The parameter of cubic ones is solved for, by Gauss and Newton on these numbers, and is
 * then the usual one within its error. Estimating the operators themselves fails where a table is smooth or of few
 * bits. The tolerance is what libraries lose of a coordinate (float32), at the largest step that neighbouring rows can
 * have. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"

#include <math.h>
#include <stdlib.h>

enum { CELLS = 64, CHANNELS = 8 };

/* Numbers of the result, and the table. */
struct resized {
    struct pe_diagnosis *d;
    const struct pe_weights *table;
    uint64_t from[PE_RESIZED_AXES], to[PE_RESIZED_AXES], n_prefix, width;
    unsigned n_axes;
    size_t n_cells, n_channels;
    uint64_t cell[CELLS], channel[CHANNELS];
    double found[CELLS * CHANNELS], most; /* most: the largest of the table that was read */
    double *weights;                      /* of both axes */
};

/* ---- Numbers ---- */

static void choose(uint64_t n, size_t most, uint64_t *out, size_t *n_out)
{
    *n_out = n < most ? (size_t)n : most;
    for (size_t i = 0; i < *n_out; i++)
        out[i] = n <= most ? i : i % 2 ? n - 1 - i / 2 * n / most : i / 2 * n / most;
}

static bool open_resized(struct resized *r, struct pe_diagnosis *d, const struct pe_model *model)
{
    *r = (struct resized){
        .d = d, .table = &model->plan->weights[0], .width = d->evidence.row_len, .n_axes = model->plan->seq.n_grid};
    if (!pe_resized_sides(model->plan, r->from, r->to, &r->n_prefix) || !r->table->tensor.data ||
        d->evidence.n_rows != r->n_prefix + r->to[0] * r->to[1] * r->to[2])
        return false;
    choose(r->to[0] * r->to[1] * r->to[2], CELLS, r->cell, &r->n_cells);
    choose(r->width, CHANNELS, r->channel, &r->n_channels);
    for (size_t i = 0; i < r->n_cells; i++)
        for (size_t c = 0; c < r->n_channels; c++) {
            double *x = &r->found[i * CHANNELS + c];
            pe_evidence_read(&d->evidence, 0, r->n_prefix + r->cell[i], r->channel[c], 1, x);
            r->most = fmax(r->most, fabs(*x));
        }
    r->weights = malloc(PE_KERNEL_WEIGHTS_MAX * sizeof *r->weights);
    d->no_memory |= !r->weights;
    return r->weights;
}

/* ---- One kernel ---- */

static void add_row(const struct resized *r, uint64_t row, double weight, double *sums)
{
    for (size_t c = 0; weight != 0 && c < r->n_channels; c++) {
        double v;
        pe_weights_read(r->table, row * r->width + r->channel[c], 1, &v);
        sums[c] += weight * v;
    }
}

/* What it gives under some sides, [CELLS, CHANNELS]. */
static void predict(const struct resized *r, const struct pe_resizing *s, double *out)
{
    const uint64_t *from = s->from, *to = s->to;
    double *at[PE_RESIZED_AXES];
    pe_kernel_weights(&s->kernel, from, to, r->weights, at);
    r->d->work += 16 * pe_kernel_weights_count(from, to);
    for (size_t i = 0; i < r->n_cells && !pe_is_cancelled(); i++) {
        uint64_t place[PE_RESIZED_AXES];
        pe_kernel_place(&s->kernel, to, r->cell[i], place);
        const double *x = at[0] + place[0] * from[0], *y = at[1] + place[1] * from[1], *z = at[2] + place[2] * from[2];
        double *sums = out + i * CHANNELS;
        memset(sums, 0, r->n_channels * sizeof *sums);
        for (uint64_t a = 0; a < from[0]; a++)
            for (uint64_t b = 0; x[a] != 0 && b < from[1]; b++)
                for (uint64_t c = 0; y[b] != 0 && c < from[2]; c++)
                    add_row(r, r->n_prefix + pe_kernel_cell(&s->kernel, from, a, b, c), x[a] * y[b] * z[c], sums);
        r->d->work += (double)(from[0] + from[1] + from[2]) + 400 * (double)r->n_channels;
    }
}

static double tolerance(const struct resized *r)
{
    double u = pe_evidence_noise(&r->d->evidence), rows = (double)(r->from[0] + r->from[1] + r->from[2]);
    return (4 * u + 4e-7 + rows * 0x1p-22 * 2) * 2 * r->most;
}

static double farthest_off(const struct resized *r, const double *predicted)
{
    double most = 0;
    for (size_t i = 0; i < r->n_cells; i++)
        for (size_t c = 0; c < r->n_channels; c++)
            most = fmax(most, fabs(predicted[i * CHANNELS + c] - r->found[i * CHANNELS + c]));
    return most;
}

/* The usual ones, within the error; else the shortest decimal. */
static double tidy(double a, double error)
{
    static const double usual[] = {-0.75, -0.5, -1, 0};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (fabs(a - usual[i]) <= error)
            return usual[i];
    return pe_shortest_decimal(a, error / fabs(a));
}

/* false: the numbers do not depend on it. */
static bool solve_cubic(const struct resized *r, struct pe_resizing *s, double *room)
{
    enum { STEPS = 4 };
    const double by = 1e-4;
    double *now = room, *next = room + CELLS * CHANNELS, own = 0;
    for (int step = 0; step < STEPS && !pe_is_cancelled(); step++) {
        struct pe_resizing more = *s;
        double both = 0;
        own = 0;
        more.kernel.a += by;
        predict(r, s, now);
        predict(r, &more, next);
        for (size_t i = 0; i < r->n_cells; i++)
            for (size_t c = 0; c < r->n_channels; c++) {
                size_t at = i * CHANNELS + c;
                double slope = (next[at] - now[at]) / by;
                own += slope * slope;
                both += slope * (r->found[at] - now[at]);
            }
        if (!(own > 1e-12 * r->most * r->most))
            return false;
        s->kernel.a = fmin(fmax(s->kernel.a + both / own, -2), 1);
    }
    s->kernel.a = tidy(s->kernel.a, 12 * tolerance(r) / sqrt(own));
    return true;
}

static bool fits(const struct resized *r, struct pe_resizing *s, double *room)
{
    if (s->kernel.kind == PE_KERNEL_CUBIC && !solve_cubic(r, s, room))
        return false;
    predict(r, s, room);
    return farthest_off(r, room) <= tolerance(r);
}

/* ---- All kernels and sides ---- */

/* Divisor i of n, the square root first, then from both ends of the others; 0: there are no more. */
static uint64_t side_of(uint64_t n, size_t i)
{
    uint64_t root = (uint64_t)sqrt((double)n);
    bool is_square = root * root == n;
    if (is_square && i == 0)
        return root;
    i -= is_square;
    for (uint64_t side = root - is_square; side > 1; side--)
        if (n % side == 0 && i < 2)
            return i == 0 ? side : n / side;
        else if (n % side == 0)
            i -= 2;
    return 0;
}

/* Choice i of sides: as believed, the result or the table column by column, the grid or the table with height for
 * width, then each with any sides; of one axis or three only as believed. false: there are no more. */
static bool choose_sides(const struct resized *r, size_t i, struct pe_resizing *s)
{
    enum { BELIEVED, BY_COLUMN, TABLE_BY_COLUMN, GRID, TABLE, OTHERS };
    *s = (struct pe_resizing){.kernel = {.by_column = i == BY_COLUMN, .table_by_column = i == TABLE_BY_COLUMN}};
    memcpy(s->from, r->from, sizeof s->from);
    memcpy(s->to, r->to, sizeof s->to);
    if (i == BELIEVED || r->n_axes != 2)
        return i == BELIEVED;
    uint64_t *sides = i == GRID || (i >= OTHERS && (i - OTHERS) % 2) ? s->to : s->from, n = sides[0] * sides[1];
    if (i == BY_COLUMN || i == TABLE_BY_COLUMN)
        return true;
    if (i < OTHERS) {
        sides[0] = sides[1];
        sides[1] = n / sides[0];
        return true;
    }
    uint64_t *others = sides == s->to ? s->from : s->to, side = side_of(n, (i - OTHERS) / 2);
    if (side) {
        sides[0] = side;
        sides[1] = n / side;
    }
    return side || side_of(others[0] * others[1], (i - OTHERS) / 2);
}

static bool is_small(const struct pe_resizing *s)
{
    return pe_kernel_weights_count(s->from, s->to) <= PE_KERNEL_WEIGHTS_MAX;
}

bool pe_measure_resizing(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_kernel *kernels, size_t n,
                         struct pe_resizing *out, size_t *which)
{
    enum { CHOICES = 24 };
    struct pe_edit changed = *edit;
    struct pe_model *model;
    struct resized r;
    bool is_found = false;
    changed.n_owned = 0;
    double *room = malloc(2 * CELLS * CHANNELS * sizeof *room);
    d->no_memory |= !room;
    if (!room || !pe_edit_model(d, &changed, &model)) {
        free(room);
        return false;
    }
    bool is_open = open_resized(&r, d, model);
    for (size_t i = 0; is_open && !is_found && i < CHOICES && choose_sides(&r, i, out); i++)
        for (size_t k = 0; !is_found && k < n && is_small(out) && !pe_is_cancelled(); k++) {
            bool by_column = out->kernel.by_column, table_by_column = out->kernel.table_by_column;
            out->kernel = kernels[k];
            out->kernel.by_column = by_column;
            out->kernel.table_by_column = table_by_column;
            *which = k;
            is_found = pe_kernel_reaches(&kernels[k], out->from, out->to) && fits(&r, out, room);
        }
    if (is_open)
        free(r.weights);
    pe_model_free(model);
    free(room);
    return is_found;
}
