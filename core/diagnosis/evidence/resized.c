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

void pe_kernel_weights(const struct pe_kernel *k, uint64_t from, uint64_t to, double *weights)
{
    memset(weights, 0, from * to * sizeof *weights);
    for (uint64_t o = 0; o < to; o++) {
        double step, x = place_of(k, (double)from, (double)to, (double)o, &step), *row = weights + o * from;
        if (k->kind == PE_KERNEL_NEAREST)
            nearest(k, x, (double)from, row);
        else
            spread(k, x, k->is_wide ? fmax(step, 1) : 1, (double)from, row);
    }
}

/* ---- The table ---- */

struct resized {
    uint64_t from[2], to[2], n_prefix;
    double weights[]; /* [to[0], from[0]], [to[1], from[1]] */
};

static double member(const struct pe_plan *plan, const char *name, uint64_t i)
{
    const struct pe_value *config = pe_plan_config(plan),
                          *v = pe_field_find(config->object.fields, config->object.n, name);
    if (!v || v->kind == PE_NULL)
        return (double)NAN;
    if (v->kind != PE_ARRAY)
        return pe_value_number(v);
    struct pe_reals list = {v->array, 2};
    return v->array.rank == 1 && v->array.shape[0] == 2 ? pe_real_at(&list, i) : (double)NAN;
}

bool pe_resized_sides(const struct pe_plan *plan, uint64_t *from, uint64_t *to, uint64_t *n_prefix)
{
    for (uint64_t a = 0; a < 2; a++) {
        double side = member(plan, "table_grid", a);
        if (plan->seq.n_grid != 2 || !(side >= 1))
            return false;
        from[a] = (uint64_t)side;
        to[a] = plan->seq.grid[a];
    }
    *n_prefix = (uint64_t)fmax(member(plan, "num_prefix", 0), 0);
    return from[0] * to[0] + from[1] * to[1] <= PE_KERNEL_WEIGHTS_MAX;
}

enum pe_status pe_resized_prepare(struct pe_model *m, struct pe_failure *err)
{
    uint64_t from[2], to[2], n_prefix;
    if (!pe_resized_sides(m->plan, from, to, &n_prefix))
        return pe_fail(err, "", "the width differs"); /* nothing is resized */
    size_t n = (size_t)(from[0] * to[0] + from[1] * to[1]);
    struct resized *r = m->state = malloc(sizeof *r + n * sizeof *r->weights);
    if (!r)
        return pe_no_memory(err);
    *r = (struct resized){{from[0], from[1]}, {to[0], to[1]}, n_prefix};
    pe_kernel_weights(&m->transforms.kernel, from[0], to[0], r->weights);
    pe_kernel_weights(&m->transforms.kernel, from[1], to[1], r->weights + from[0] * to[0]);
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
    uint64_t cell = row - r->n_prefix, y = cell / r->to[1], x = cell % r->to[1];
    if (m->transforms.kernel.by_column) {
        y = cell % r->to[0];
        x = cell / r->to[0];
    }
    const double *down = r->weights + y * r->from[0], *across = r->weights + r->from[0] * r->to[0] + x * r->from[1];
    memset(out, 0, n * sizeof *out);
    for (uint64_t a = 0; a < r->from[0]; a++)
        for (uint64_t b = 0; down[a] != 0 && b < r->from[1]; b++)
            if (across[b] != 0)
                add_row(m, r->n_prefix + a * r->from[1] + b, down[a] * across[b], col0, n, out);
}
