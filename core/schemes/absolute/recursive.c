/* A network computes each row from the row before it (the simplest form of FLOATER, Liu et al. 2020, arXiv
 * 2003.09229, section 3.1).
 *
 *     PE(0) = p0,   PE(k+1) = f(PE(k)),   or PE(k) + f(PE(k)) where residual
 *     f(p) = W_L·act(… act(W_1·p + b_1) …) + b_L */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>

struct recursive {
    int64_t dim, hidden;
    int activation;
    bool residual, output_activation;
    int64_t seed;
    double std;
    int arith;
};

static const struct pe_param params[] = {
    PE_P_INT(recursive, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding; if p0 is sent, its own",
             .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_INT(recursive, hidden, PE_UNSET, 1, PE_DIM_MAX, "hidden width",
             "channels between the two layers of a network from the seed; default dim; if w1 is sent, its own",
             .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_ACTIVATION(recursive, PE_TANH),
    PE_P_BOOL(recursive, residual, false, "residual", "the network computes the difference to the next row"),
    PE_P_BOOL(recursive, output_activation, false, "activation at the end",
              "apply the activation also after the last layer"),
    PE_P_SEED(recursive),
    PE_P_ARITH(recursive),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "row k: the k-th step"),
    {.name = NULL},
};

enum input { P0, W1, B1, N_INPUTS = W1 + 2 * PE_LAYERS_MAX };

#define LAYER(i, in, out)                                                                                              \
    PE_INPUT("w" #i, out "," in, PE_ENCODE, false, "layer " #i ", weight",                                             \
             "layer " #i ", as torch.nn.Linear's weight"),                                                             \
        PE_INPUT("b" #i, out, PE_ENCODE, false, "layer " #i ", bias", "layer " #i ", its bias")

static const struct pe_input_row inputs[] = {
    [P0] = PE_INPUT("p0", "dim", PE_ENCODE, false, "first row", "row 0"),
    LAYER(1, "dim", "width1"),
    LAYER(2, "width1", "width2"),
    LAYER(3, "width2", "width3"),
    LAYER(4, "width3", "width4"),
    LAYER(5, "width4", "width5"),
    LAYER(6, "width5", "width6"),
    LAYER(7, "width6", "width7"),
    LAYER(8, "width7", "width8"),
    {.name = NULL},
};

struct tables {
    struct pe_recurrence recurrence;
    bool residual;
};

/* ---- The plan ---- */

/* The number of the last layer for which a tensor was sent; 2 if there is none. */
static size_t count_layers(const struct pe_plan *plan)
{
    size_t n = 0;
    for (size_t i = 0; i < PE_LAYERS_MAX; i++)
        if (pe_weights_sent(plan, W1 + 2 * i) || pe_weights_sent(plan, B1 + 2 * i))
            n = i + 1;
    return n ? n : 2;
}

/* The width after layer i (from 0), from the shapes of the tensors around it; 0 if none was sent. */
static uint64_t width_sent(const struct pe_plan *plan, size_t i)
{
    uint64_t width = pe_weights_axis(plan, W1 + 2 * i, 0);
    if (!width)
        width = pe_weights_axis(plan, B1 + 2 * i, 0);
    return width || i + 1 == PE_LAYERS_MAX ? width : pe_weights_axis(plan, W1 + 2 * (i + 1), 1);
}

/* `hidden` is the width between two layers. More layers have several widths, which their tensors determine. */
static enum pe_status fix_hidden(struct pe_plan *plan, size_t n_layers, struct pe_failure *err)
{
    struct recursive *c = plan->config;
    if (n_layers != 2 && c->hidden != PE_UNSET_INT)
        return pe_fail(err, "/hidden", "hidden is the width between two layers; here are %zu", n_layers);
    if (n_layers == 2 && width_sent(plan, 0))
        return pe_fix_size(plan, "hidden", width_sent(plan, 0), "w1", err);
    if (n_layers == 2 && c->hidden == PE_UNSET_INT)
        c->hidden = c->dim;
    return PE_OK;
}

/* The next row's number, from what the network gives for it. */
static double next_of(const struct tables *t, double before, double y)
{
    double next = t->residual ? before + y : y;
    return t->recurrence.rounds ? (double)(float)next : next;
}

/* row = f(row), or row + f(row) */
static void step(const void *context, uint64_t k, double *row, double *scratch)
{
    const struct tables *t = context;
    (void)k;
    pe_network_apply(t->recurrence.network, 0, row, scratch, scratch + t->recurrence.dim);
    for (size_t j = 0; j < t->recurrence.dim; j++)
        row[j] = next_of(t, row[j], scratch[j]);
}

/* The step that gives this row, from the row before it. */
static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct tables *t = plan->tables;
    uint64_t k = (uint64_t)pe_position_at(plan->seq.k, at->row), j = at->col;
    unsigned long long before = k - (k > 0), column = j;
    double *row = pe_recurrence_row(plan, before);
    (void)id;
    if (!row)
        return pe_no_memory(err);
    double *y = row + t->recurrence.dim;
    d->is_looked_up = true;
    if (k == 0) {
        pe_derived(d, "x", dd(row[j]), "p0[%llu]", column);
        pe_derived_says(d, "row 0 is given");
    } else {
        pe_network_apply(t->recurrence.network, 0, row, y, y + t->recurrence.dim);
        pe_derived(d, "r", dd(row[j]), "PE[%llu, %llu]", before, column);
        pe_derived_says(d, "the row before, itself computed from the one before it: %llu steps from p0", before);
        pe_derived(d, "y", dd(y[j]), "f(PE[%llu])[%llu]", before, column);
        pe_derived_says(d, "what the network computes from that whole row");
        pe_derived(d, "x", dd(next_of(t, row[j], y[j])), t->residual ? "r + y" : "y");
    }
    free(row);
    return PE_OK;
}

static void recursive_cost(const struct pe_plan *p, struct pe_cost *cost)
{
    const struct recursive *c = p->config;
    size_t n_layers = count_layers(p);
    double dim = pe_size_most(p, "dim");
    double hidden = c->hidden == PE_UNSET_INT ? dim : (double)c->hidden, in = dim, widest = dim, n = 0;
    for (size_t i = 0; i < n_layers; i++) {
        double sent = (double)width_sent(p, i), out = i + 1 == n_layers ? dim : sent > 0 ? sent : hidden;
        n += out * (in + 1);
        widest = fmax(widest, out);
        in = out;
    }
    pe_network_room(cost, n);
    pe_stepping_room(cost, p, dim, dim + 2 * widest);
    pe_cost_weights(cost, p, P0, dim);
}

static enum pe_status recursive_plan(struct pe_plan *p, struct pe_failure *err)
{
    struct recursive *c = p->config;
    struct tables *t = p->tables;
    struct pe_network_form form = {.n_layers = count_layers(p),
                                   .activation = (enum pe_activation)c->activation,
                                   .output_activation = c->output_activation,
                                   .arith = p->arith};
    enum pe_status status = pe_fix_sizes(p, (const char *const[]){"dim", NULL}, err);
    if (!status)
        status = fix_hidden(p, form.n_layers, err);
    if (status)
        return status;
    uint64_t between = c->hidden == PE_UNSET_INT ? (uint64_t)c->dim : (uint64_t)c->hidden;
    form.widths[0] = form.widths[form.n_layers] = (uint64_t)c->dim;
    for (size_t i = 0; i < form.n_layers; i++) {
        form.w[i] = W1 + 2 * i;
        form.b[i] = B1 + 2 * i;
        if (i + 1 < form.n_layers)
            form.widths[i + 1] = width_sent(p, i) ? width_sent(p, i) : between;
    }
    t->residual = c->residual;
    return pe_recurrence_open(p, &form, (struct pe_steps){.scratch = (size_t)c->dim, .step = step}, 1, err);
}

static const struct pe_formula_line formula[] = {
    {"z[p, u] = activation(sum(j, 0, dim - 1, w1[u, j]*PE[p - 1, j]) + b1[u])",
     "the first layer, of the row before; more layers follow in the same way"},
    {"o[p, j] = sum(u, 0, hidden - 1, w2[j, u]*z[p, u]) + b2[j]", "the last layer"},
    {"y[p, j] = { activation(o[p, j]) if output_activation; o[p, j] }", "what the network computes"},
    {"PE[p, j] = { p0[j] if p = 0; PE[p - 1, j] + y[p, j] if residual; y[p, j] }",
     "each row follows from the one before it, so no row has a closed formula"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_recursive = {
    .info =
        {
            .name = "recursive",
            .family = "absolute",
            .about = {"recursive network", "each row is computed from the row before it by a network"},
            .paper = "Liu et al. 2020, arXiv 2003.09229 (FLOATER), where it is the discrete form",
            .formula = formula,
            .example = "{\"scheme\":\"recursive\",\"len\":8,\"dim\":16,\"seed\":0}",
            .picture = "len=64&dim=64&seed=0&std=0.2",
            .worked = "dim=2&seed=0&std=0.5&position=2&channel=1",
            .traps = "No row has a closed formula: row p takes p steps of the network, and an error in one "
                     "row is carried into all later ones.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
            .is_of_machine = true,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct recursive),
    .tables_bytes = sizeof(struct tables),
    .is_slow = true,
    .cost = recursive_cost,
    .plan = recursive_plan,
    .drop = pe_recurrence_drop,
    .fill = pe_recurrence_fill,
    .derive = derive,
};
