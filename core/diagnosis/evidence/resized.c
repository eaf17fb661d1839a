/* A learned table that is resized by a kernel which no configuration has: the weights of both axes, then sums of rows
 * of the plan's own table. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

/* ---- Weights of one axis ---- */

/* Where an output is read; step: rows of the table from output to output. */
static double place_of(const struct pe_kernel *k, double from, double to, double o, double *step)
{
    *step = from / (to + k->offset);
    if (k->rule == PE_CORNERS)
        return to > 1 ? o * (from - 1) / (to - 1) : 0;
    if (k->rule == PE_FIRST_ROWS || k->rule == PE_MIDDLE_ROWS)
        return o + (k->rule == PE_MIDDLE_ROWS ? floor((from - to) / 2) : 0);
    return k->rule == PE_ASYMMETRIC ? o * *step : (o + 0.5) * *step - 0.5;
}

/* Keys 1981, with the parameter a. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1)
        return (1 - x) * (1 + x - (a + 2) * x * x);
    return x < 2 ? a * (x - 1) * (2 - x) * (2 - x) : 0;
}

static double weight_at(const struct pe_kernel *k, double x)
{
    return k->kind == PE_KERNEL_LINEAR ? fmax(1 - fabs(x), 0) : cubic(x, k->a);
}

static void nearest(const struct pe_kernel *k, double x, double from, double *row)
{
    double at = k->rule == PE_ASYMMETRIC ? floor(x) : floor(x + 0.5);
    row[(size_t)fmin(fmax(at, 0), from - 1)] = 1;
}

/* Rows beyond the border are the border's, or left out and the others larger for it. */
static void spread(const struct pe_kernel *k, double x, double width, double from, double *row)
{
    double sum = 0, reach = (k->kind == PE_KERNEL_LINEAR ? 1 : 2) * width;
    bool is_clamped = k->kind == PE_KERNEL_LINEAR && !k->is_wide;
    x = is_clamped ? fmin(fmax(x, 0), from - 1) : x;
    for (double j = ceil(x - reach); j <= floor(x + reach); j++) {
        bool is_inside = j >= 0 && j < from;
        double w = is_inside || !k->is_wide ? weight_at(k, (j - x) / width) : 0;
        if (is_inside || !k->is_wide)
            row[(size_t)fmin(fmax(j, 0), from - 1)] += w;
        sum += w;
    }
    for (size_t j = 0; j < (size_t)from && sum != 0; j++)
        row[j] /= sum;
}

static void weights_of_axis(const struct pe_kernel *k, uint64_t from, uint64_t to, double *weights)
{
    memset(weights, 0, from * to * sizeof *weights);
    for (uint64_t o = 0; o < to; o++) {
        double step, x = place_of(k, (double)from, (double)to, (double)o, &step), *row = weights + o * from;
        if (from == 1)
            row[0] = 1;
        else if (k->kind == PE_KERNEL_NEAREST)
            nearest(k, x, (double)from, row);
        else
            spread(k, x, k->is_wide ? fmax(step, 1) : 1, (double)from, row);
    }
}

void pe_kernel_weights(const struct pe_kernel *k, const uint64_t *from, const uint64_t *to, double *weights,
                       double *at[PE_RESIZED_AXES])
{
    for (unsigned a = 0; a < PE_RESIZED_AXES; a++) {
        at[a] = weights;
        weights_of_axis(k, from[a], to[a], weights);
        weights += from[a] * to[a];
    }
}

uint64_t pe_kernel_cell(const struct pe_kernel *k, const uint64_t *from, uint64_t a, uint64_t b, uint64_t c)
{
    return k->table_by_column ? b * from[0] + a : (a * from[1] + b) * from[2] + c;
}

bool pe_kernel_reaches(const struct pe_kernel *k, const uint64_t *from, const uint64_t *to)
{
    bool is_cut = k->rule == PE_FIRST_ROWS || k->rule == PE_MIDDLE_ROWS;
    return !is_cut || (from[0] >= to[0] && from[1] >= to[1] && from[2] >= to[2]);
}

double pe_kernel_weights_count(const uint64_t *from, const uint64_t *to)
{
    double n = 0;
    for (unsigned a = 0; a < PE_RESIZED_AXES; a++)
        n += (double)from[a] * (double)to[a];
    return n;
}

void pe_kernel_place(const struct pe_kernel *k, const uint64_t *to, uint64_t cell, uint64_t *place)
{
    place[0] = k->by_column ? cell % to[0] : cell / (to[1] * to[2]);
    place[1] = k->by_column ? cell / to[0] : cell / to[2] % to[1];
    place[2] = k->by_column ? 0 : cell % to[2];
}

/* ---- The table ---- */

struct resized {
    uint64_t from[PE_RESIZED_AXES], to[PE_RESIZED_AXES], n_prefix;
    double *at[PE_RESIZED_AXES]; /* the weights of each axis */
    double weights[];
};

static double member(const struct pe_plan *plan, const char *name, uint64_t i)
{
    const struct pe_value *config = pe_plan_config(plan),
                          *v = pe_field_find(config->object.fields, config->object.n, name);
    if (!v || v->kind == PE_NULL)
        return (double)NAN;
    if (v->kind != PE_ARRAY)
        return pe_value_number(v);
    struct pe_reals list = {v->array, v->array.shape[0]};
    return v->array.rank == 1 && i < list.n ? pe_real_at(&list, i) : (double)NAN;
}

bool pe_resized_sides(const struct pe_plan *plan, uint64_t *from, uint64_t *to, uint64_t *n_prefix)
{
    if (plan->seq.n_grid < 1 || plan->seq.n_grid > PE_RESIZED_AXES)
        return false;
    for (unsigned a = 0; a < PE_RESIZED_AXES; a++) {
        double side = a < plan->seq.n_grid ? member(plan, "table_grid", a) : 1;
        if (!(side >= 1))
            return false;
        from[a] = (uint64_t)side;
        to[a] = a < plan->seq.n_grid ? plan->seq.grid[a] : 1;
    }
    *n_prefix = (uint64_t)fmax(member(plan, "num_prefix", 0), 0);
    return pe_kernel_weights_count(from, to) <= PE_KERNEL_WEIGHTS_MAX;
}

bool pe_resized_is_table(const struct pe_diagnosis *d, const struct pe_plan *plan)
{
    enum { ROWS = 16, CHANNELS = 32 };
    const struct pe_weights *table = &plan->weights[0];
    uint64_t n_rows = d->evidence.n_rows, width = d->evidence.row_len;
    size_t n = width < CHANNELS ? (size_t)width : CHANNELS;
    double found[CHANNELS], row[CHANNELS], u = 4 * pe_evidence_noise(&d->evidence);
    if (d->evidence.kind->id != PE_OF_ENCODING || isnan(member(plan, "table_grid", 0)) || !table->tensor.data ||
        table->tensor.shape[0] < n_rows || table->tensor.shape[1] != width)
        return false;
    for (uint64_t i = 0; i < ROWS; i++) {
        uint64_t at = i * (n_rows - 1) / (ROWS - 1);
        pe_evidence_read(&d->evidence, 0, at, 0, n, found);
        pe_weights_read(table, at * width, n, row);
        for (size_t c = 0; c < n; c++)
            if (fabs(found[c] - row[c]) > u * d->evidence.largest)
                return false;
    }
    return true;
}

enum pe_status pe_resized_prepare(struct pe_model *m, struct pe_failure *err)
{
    struct resized sides, *r;
    if (!pe_resized_sides(m->plan, sides.from, sides.to, &sides.n_prefix))
        return pe_fail(err, "", "the width differs"); /* nothing is resized */
    r = m->state = malloc(sizeof *r + (size_t)pe_kernel_weights_count(sides.from, sides.to) * sizeof *r->weights);
    if (!r)
        return pe_no_memory(err);
    *r = sides;
    pe_kernel_weights(&m->transforms.kernel, r->from, r->to, r->weights, r->at);
    return PE_OK;
}

static void add_row(const struct pe_model *m, uint64_t row, double weight, uint64_t col0, size_t n, double *out)
{
    enum { SOME = 256 };
    double values[SOME];
    const struct pe_weights *table = &m->plan->weights[0];
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < SOME ? n - at : SOME;
        pe_weights_read(table, row * table->tensor.shape[1] + col0 + at, some, values);
        for (size_t j = 0; j < some; j++)
            out[at + j] += weight * values[j];
    }
}

void pe_resized_fill(const struct pe_model *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct resized *r = m->state;
    if (row < r->n_prefix) {
        pe_fill(m->plan, 0, row * pe_plan_output(m->plan, 0)->row_len + col0, n, out);
        return;
    }
    uint64_t place[PE_RESIZED_AXES];
    pe_kernel_place(&m->transforms.kernel, r->to, row - r->n_prefix, place);
    const double *x = r->at[0] + place[0] * r->from[0], *y = r->at[1] + place[1] * r->from[1],
                 *z = r->at[2] + place[2] * r->from[2];
    memset(out, 0, n * sizeof *out);
    for (uint64_t a = 0; a < r->from[0]; a++)
        for (uint64_t b = 0; x[a] != 0 && b < r->from[1]; b++)
            for (uint64_t c = 0; y[b] != 0 && c < r->from[2]; c++)
                if (z[c] != 0)
                    add_row(m, r->n_prefix + pe_kernel_cell(&m->transforms.kernel, r->from, a, b, c),
                            x[a] * y[b] * z[c], col0, n, out);
}
