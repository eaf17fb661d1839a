/* Fully connected layers in double, products in a fixed order: for every output ((b + w0·x0) + w1·x1) + …, so the
 * number of outputs computed at once does not change a value. */
#include "core/schemes/network.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_activation_words[] = {[PE_TANH] = "tanh", [PE_RELU] = "relu",         [PE_SIGMOID] = "sigmoid",
                                           [PE_GELU] = "gelu", [PE_IDENTITY] = "identity", NULL};

struct layer {
    size_t n_in, n_out;             /* n_in includes the time */
    const struct pe_weights *w, *b; /* b is NULL: no bias, and its row of the table stays 0 */
    double *table; /* [n_in + 1, n_out]: the transpose of W, so that inner loops run over outputs; then b */
};

struct pe_network {
    struct pe_network_form form;
    struct layer layers[PE_LAYERS_MAX];
    size_t n_rows, n_weights, widest;
    double *tables;
    /* Seeded weights take 25 ns each, too long for a plan that an event loop computes itself. So the first fills
     * compute them: each takes the next free row, and waits at the end until other threads have finished theirs. */
    atomic_size_t next_row, rows_made;
};

/* ---- Making ---- */

static enum pe_status need(struct pe_plan *plan, const struct pe_network_form *f, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < f->n_layers; i++) {
        const uint64_t shape[2] = {f->widths[i + 1], f->widths[i] + f->time_input};
        status = pe_weights_need_shape(plan, f->w[i], shape, 2, err);
        if (!status && f->b[i] != PE_NO_BIAS)
            status = pe_weights_need_shape(plan, f->b[i], shape, 1, err);
    }
    return status;
}

static enum pe_status too_large(const struct pe_network_form *f, double n, struct pe_failure *err)
{
    pe_fail(err, "", "the network has %.0f weights in %zu layers; allowed: at most %d", n, f->n_layers,
            PE_NETWORK_WEIGHTS_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status alloc(struct pe_plan *plan, const struct pe_network_form *f, struct pe_network **out,
                            struct pe_failure *err)
{
    struct pe_network *net = calloc(1, sizeof *net);
    double n = 0;
    for (size_t i = 0; i < f->n_layers; i++)
        n += (double)f->widths[i + 1] * (double)(f->widths[i] + f->time_input + 1);
    if (net && n <= PE_NETWORK_WEIGHTS_MAX)
        net->tables = calloc((size_t)n, sizeof *net->tables);
    if (!net || !net->tables) {
        free(net);
        return n > PE_NETWORK_WEIGHTS_MAX ? too_large(f, n, err) : pe_no_memory(err);
    }
    net->form = *f;
    net->n_weights = (size_t)n;
    double *table = net->tables;
    for (size_t i = 0; i < f->n_layers; i++) {
        struct layer *l = &net->layers[i];
        *l = (struct layer){.n_in = f->widths[i] + f->time_input, .n_out = f->widths[i + 1], .table = table};
        l->w = &plan->weights[f->w[i]];
        l->b = f->b[i] == PE_NO_BIAS ? NULL : &plan->weights[f->b[i]];
        table += (l->n_in + 1) * l->n_out;
        net->n_rows += l->n_out;
        net->widest = l->n_out > net->widest ? l->n_out : net->widest;
    }
    *out = net;
    return PE_OK;
}

enum pe_status pe_network_new(struct pe_plan *plan, const struct pe_network_form *form, struct pe_network **network,
                              struct pe_failure *err)
{
    enum pe_status status = need(plan, form, err);
    return status ? status : alloc(plan, form, network, err);
}

void pe_network_free(struct pe_network *net)
{
    if (net)
        free(net->tables);
    free(net);
}

size_t pe_network_scratch(const struct pe_network *net) { return 2 * net->widest; }

/* The C library's tanh or erf takes as long as some thirty products. */
double pe_network_cost(const struct pe_network *net) { return (double)net->n_weights + 32 * (double)net->n_rows; }

double pe_network_made(const struct pe_network *net) { return 32 * (double)net->n_weights; }

/* Only zeroing is counted: the first fills write the rest. */
void pe_network_room(struct pe_cost *cost, double n_weights)
{
    pe_cost_each(cost, fmin(n_weights, PE_NETWORK_WEIGHTS_MAX), sizeof(double), PE_NS_BYTE * sizeof(double));
}

/* ---- Weights ---- */

void pe_network_load(struct pe_network *net, bool may_leave)
{
    if (atomic_load_explicit(&net->rows_made, memory_order_acquire) == net->n_rows)
        return;
    for (size_t row;;) { /* a thread must finish a row that it has taken, because others wait for it */
        if (may_leave && pe_is_cancelled())
            return;
        row = atomic_fetch_add_explicit(&net->next_row, 1, memory_order_relaxed);
        if (row >= net->n_rows)
            break;
        const struct layer *l = net->layers;
        for (; row >= l->n_out; l++)
            row -= l->n_out;
        /* Row `o` of W becomes column `o` of the table. */
        enum { PIECE = PE_SCRATCH_BYTES / sizeof(double) };
        double piece[PIECE];
        for (size_t i = 0, n; i < l->n_in; i += n) {
            n = l->n_in - i < PIECE ? l->n_in - i : PIECE;
            pe_weights_read(l->w, (uint64_t)row * l->n_in + i, n, piece);
            for (size_t j = 0; j < n; j++)
                l->table[(i + j) * l->n_out + row] = piece[j];
        }
        if (l->b)
            pe_weights_read(l->b, row, 1, &l->table[l->n_in * l->n_out + row]);
        atomic_fetch_add_explicit(&net->rows_made, 1, memory_order_release);
    }
    while (atomic_load_explicit(&net->rows_made, memory_order_acquire) < net->n_rows)
        pe_wait(); /* other threads compute the last rows */
}

/* ---- Applying ---- */

/* y[o] += x·w[o] */
static void add_column(const double *w, double x, size_t n, double *y)
{
    for (size_t o = 0; o < n; o++)
        y[o] += x * w[o];
}

/* y[o] = b[o] + Σ_i W[o, i]·x[i], and t as the last x */
static void multiply(const struct layer *l, bool time_input, double t, const double *x, double *y)
{
    size_t n_x = l->n_in - time_input, n = l->n_out, i = 0;
    memcpy(y, l->table + l->n_in * n, n * sizeof *y);
    for (; i + 4 <= n_x; i += 4) { /* four inputs at a time save three passes over y, in the same order */
        const double *w = l->table + i * n;
        double a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        for (size_t o = 0; o < n; o++)
            y[o] = (((y[o] + a * w[o]) + b * w[n + o]) + c * w[2 * n + o]) + d * w[3 * n + o];
    }
    for (; i < n_x; i++)
        add_column(l->table + i * n, x[i], n, y);
    if (time_input)
        add_column(l->table + n_x * n, t, n, y);
}

static double activate(enum pe_activation activation, double x)
{
    switch (activation) {
    case PE_TANH: return tanh(x);
    case PE_RELU: return x <= 0 ? 0 : x; /* NaN stays */
    case PE_SIGMOID: return 1 / (1 + exp(-x));
    case PE_GELU: return 0.5 * x * (1 + erf(x * 0x1.6a09e667f3bcdp-1)); /* √½ */
    case PE_IDENTITY: break;
    }
    return x;
}

void pe_network_apply(const struct pe_network *net, double t, const double *x, double *out, double *scratch)
{
    const struct pe_network_form *f = &net->form;
    for (size_t i = 0; i < f->n_layers; i++) {
        const struct layer *l = &net->layers[i];
        double *y = scratch + (i % 2) * net->widest;
        multiply(l, f->time_input, t, x, y);
        if (i + 1 < f->n_layers || f->output_activation)
            for (size_t o = 0; o < l->n_out; o++)
                y[o] = activate(f->activation, y[o]);
        for (size_t o = 0; f->arith == PE_ARITH_FLOAT32 && o < l->n_out; o++)
            y[o] = (double)(float)y[o];
        x = y;
    }
    memcpy(out, x, f->widths[f->n_layers] * sizeof *out);
}
