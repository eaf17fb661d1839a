/* FLOATER (Liu et al. 2020, arXiv 2003.09229): positions as a trajectory of a differential equation.
 *
 *     dp/dt = h(p, t),   p(0) = p0,   PE(k) = p(k·dt)
 *     h(p, t) = W2·[act(W1·[p, t] + b1), t] + b2      t is the last input of both layers (xuanqing94/FLOATER)
 *
 * Each row takes `substeps` equal steps s = dt/substeps of the solver. rk4_38 is the method that torchdiffeq calls
 * rk4: Kutta's 3/8 rule, not the classic tableau; they differ by about 1e-8 here. */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>

enum method { RK4_38, RK4, MIDPOINT, EULER };

struct floater {
    int64_t dim, hidden;
    double dt;
    int64_t substeps;
    int method, activation;
    bool time_input;
    int64_t seed;
    double std;
    int arith;
};

static const char *const method_words[] = {
    [RK4_38] = "rk4_38", [RK4] = "rk4", [MIDPOINT] = "midpoint", [EULER] = "euler", NULL};

enum { SUBSTEPS_MAX = 1024 };

static const struct pe_param params[] = {
    PE_P_INT(floater, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding; if p0 is sent, its own",
             .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_INT(floater, hidden, PE_UNSET, 1, PE_DIM_MAX, "hidden width",
             "channels between the two layers; default dim; if w1 is sent, its own", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_REAL(floater, dt, 0.01, -1e6, 1e6, "time step", "time from one position to the next", .usual = {0.001, 0.1}),
    PE_P_INT(floater, substeps, 5, 1, SUBSTEPS_MAX, "substeps", "steps of the solver from one position to the next",
             .usual = {1, 20}),
    PE_P_WORD(floater, method, method_words, "solver",
              "rk4_38: Kutta's 3/8 rule, torchdiffeq's \"rk4\"; rk4: the classic Runge-Kutta; midpoint; euler"),
    PE_P_ACTIVATION(floater, PE_RELU),
    PE_P_BOOL(floater, time_input, true, "time as an input", "time is the last input of both layers, as published"),
    PE_P_SEED(floater),
    PE_P_ARITH(floater),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "row k: p(k·dt)"),
    {.name = NULL},
};

enum input { P0, W1, B1, W2, B2 };

static const struct pe_input_row inputs[] = {
    [P0] = PE_INPUT("p0", "dim", PE_ENCODE, false, "first row", "p(0)"),
    [W1] = PE_INPUT("w1", "hidden,dim+1", PE_ENCODE, false, "layer 1, weight",
                    "first layer; one column less without time_input"),
    [B1] = PE_INPUT("b1", "hidden", PE_ENCODE, false, "layer 1, bias", "its bias"),
    [W2] = PE_INPUT("w2", "dim,hidden+1", PE_ENCODE, false, "layer 2, weight",
                    "second layer; one column less without time_input"),
    [B2] = PE_INPUT("b2", "dim", PE_ENCODE, false, "layer 2, bias", "its bias"),
    {.name = NULL},
};

struct tables {
    struct pe_recurrence recurrence;
    double dt, s;
    int64_t substeps;
    enum method method;
};

/* ---- One step of the solver ---- */

/* to = a + s·b */
static void go(size_t n, const double *a, double s, const double *b, double *to)
{
    for (size_t j = 0; j < n; j++)
        to[j] = a[j] + s * b[j];
}

/* Scratch of one step: the slopes k1 … k4, an intermediate point, and the network's own scratch. */
struct work {
    double *k[4], *y, *scratch;
};

enum { WORK_ROWS = 5 };

static void slope(const struct tables *f, const struct work *w, int i, double t, const double *y)
{
    pe_network_apply(f->recurrence.network, t, y, w->k[i], w->scratch);
}

/* y(t + s) = y + s·h(t, y) */
static void euler(const struct tables *f, const struct work *w, double t, double *y)
{
    slope(f, w, 0, t, y);
    go(f->recurrence.dim, y, f->s, w->k[0], y);
}

/* y(t + s) = y + s·h(t + s/2, y + s/2·h(t, y)) */
static void midpoint(const struct tables *f, const struct work *w, double t, double *y)
{
    slope(f, w, 0, t, y);
    go(f->recurrence.dim, y, f->s / 2, w->k[0], w->y);
    slope(f, w, 1, t + f->s / 2, w->y);
    go(f->recurrence.dim, y, f->s, w->k[1], y);
}

/* k1 = h(t, y), k2 = h(t + s/2, y + s·k1/2), k3 = h(t + s/2, y + s·k2/2), k4 = h(t + s, y + s·k3)
 * y(t + s) = y + s·(k1 + 2·k2 + 2·k3 + k4)/6 */
static void rk4(const struct tables *f, const struct work *w, double t, double *y)
{
    double s = f->s, *const *k = w->k;
    slope(f, w, 0, t, y);
    go(f->recurrence.dim, y, s / 2, k[0], w->y);
    slope(f, w, 1, t + s / 2, w->y);
    go(f->recurrence.dim, y, s / 2, k[1], w->y);
    slope(f, w, 2, t + s / 2, w->y);
    go(f->recurrence.dim, y, s, k[2], w->y);
    slope(f, w, 3, t + s, w->y);
    for (size_t j = 0; j < f->recurrence.dim; j++)
        y[j] += s * (k[0][j] + 2 * (k[1][j] + k[2][j]) + k[3][j]) / 6;
}

/* k1 = h(t, y), k2 = h(t + s/3, y + s·k1/3), k3 = h(t + 2s/3, y + s·(k2 - k1/3)), k4 = h(t + s, y + s·(k1 - k2 + k3))
 * y(t + s) = y + s·(k1 + 3·k2 + 3·k3 + k4)/8 */
static void rk4_38(const struct tables *f, const struct work *w, double t, double *y)
{
    double s = f->s, *const *k = w->k;
    slope(f, w, 0, t, y);
    go(f->recurrence.dim, y, s / 3, k[0], w->y);
    slope(f, w, 1, t + s / 3, w->y);
    for (size_t j = 0; j < f->recurrence.dim; j++)
        w->y[j] = y[j] + s * (k[1][j] - k[0][j] / 3);
    slope(f, w, 2, t + 2 * s / 3, w->y);
    for (size_t j = 0; j < f->recurrence.dim; j++)
        w->y[j] = y[j] + s * (k[0][j] - k[1][j] + k[2][j]);
    slope(f, w, 3, t + s, w->y);
    for (size_t j = 0; j < f->recurrence.dim; j++)
        y[j] += s * (k[0][j] + 3 * (k[1][j] + k[2][j]) + k[3][j]) / 8;
}

static const struct {
    void (*go)(const struct tables *f, const struct work *w, double t, double *y);
    int n_slopes;
} methods[] = {[RK4_38] = {rk4_38, 4}, [RK4] = {rk4, 4}, [MIDPOINT] = {midpoint, 2}, [EULER] = {euler, 1}};

static struct work work_in(double *scratch, size_t n)
{
    return (struct work){{scratch, scratch + n, scratch + 2 * n, scratch + 3 * n}, scratch + 4 * n, scratch + 5 * n};
}

/* When substep i of row k begins. */
static double time_of(const struct tables *f, uint64_t k, int64_t i) { return (double)k * f->dt + (double)i * f->s; }

static void substep(const struct tables *f, const struct work *w, double t, double *row)
{
    methods[f->method].go(f, w, t, row);
    for (size_t j = 0; f->recurrence.rounds && j < f->recurrence.dim; j++)
        row[j] = (double)(float)row[j];
}

static void step(const void *context, uint64_t k, double *row, double *scratch)
{
    const struct tables *f = context;
    struct work w = work_in(scratch, f->recurrence.dim);
    for (int64_t i = 0; i < f->substeps && !pe_is_cancelled(); i++)
        substep(f, &w, time_of(f, k, i), row);
}

/* ---- One number ---- */

/* The last substep of the solver before this row. */
static void state_substep(const struct tables *f, uint64_t k, uint64_t column, double *row, struct pe_derivation *d)
{
    static const char *const symbols[] = {"k1", "k2", "k3", "k4"};
    static const char *const texts[] = {[RK4_38] = "y + s·(k1 + 3·k2 + 3·k3 + k4)/8",
                                        [RK4] = "y + s·(k1 + 2·k2 + 2·k3 + k4)/6",
                                        [MIDPOINT] = "y + s·k2",
                                        [EULER] = "y + s·k1"};
    struct work w = work_in(row + f->recurrence.dim, f->recurrence.dim);
    double t = time_of(f, k - 1, f->substeps - 1);
    for (int64_t i = 0; i + 1 < f->substeps; i++)
        substep(f, &w, time_of(f, k - 1, i), row);
    pe_derived(d, "s", dd(f->s), "dt/substeps = %s/%lld", pe_shown(f->dt).text, (long long)f->substeps);
    pe_derived_says(d, "one step of the solver (%s)", method_words[f->method]);
    pe_derived(d, "t", dd(t), "%llu·dt + %lld·s", (unsigned long long)(k - 1), (long long)f->substeps - 1);
    pe_derived_says(d, "the time of the last step before this row");
    pe_derived(d, "y", dd(row[column]), "%s", "");
    pe_derived_says(d, "the trajectory there, integrated from p0 in %llu steps",
                    (unsigned long long)k * (unsigned long long)f->substeps - 1);
    substep(f, &w, t, row);
    for (int i = 0; i < methods[f->method].n_slopes; i++)
        pe_derived(d, symbols[i], dd(w.k[i][column]), i ? "h(…)[%llu]" : "h(t, y)[%llu]", (unsigned long long)column);
    pe_derived_says(d, "slopes: what the network computes from the whole row and the time");
    pe_derived(d, "x", dd(row[column]), "%s", texts[f->method]);
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    uint64_t k = (uint64_t)pe_position_at(plan->seq.k, at->row);
    double *row = pe_recurrence_row(plan, k - (k > 0));
    (void)id;
    if (!row)
        return pe_no_memory(err);
    d->is_looked_up = true;
    if (k == 0) {
        pe_derived(d, "x", dd(row[at->col]), "p0[%llu]", (unsigned long long)at->col);
        pe_derived_says(d, "row 0 is given");
    } else
        state_substep(plan->tables, k, at->col, row, d);
    free(row);
    return PE_OK;
}

/* ---- The plan ---- */

static void floater_cost(const struct pe_plan *p, struct pe_cost *cost)
{
    double dim = pe_size_most(p, "dim"), hidden = pe_size_most(p, "hidden");
    hidden = hidden > 0 ? hidden : dim;
    pe_network_room(cost, hidden * (dim + 2) + dim * (hidden + 2));
    pe_stepping_room(cost, p, dim, WORK_ROWS * dim + 2 * fmax(dim, hidden));
    pe_cost_weights(cost, p, P0, dim);
}

static enum pe_status floater_plan(struct pe_plan *p, struct pe_failure *err)
{
    struct floater *c = p->config;
    struct tables *t = p->tables;
    enum pe_status status = pe_fix_sizes(p, (const char *const[]){"dim", "hidden", NULL}, err);
    if (c->hidden == PE_UNSET_INT)
        c->hidden = c->dim;
    if (status)
        return status;
    t->dt = c->dt;
    t->substeps = c->substeps;
    t->s = c->dt / (double)c->substeps;
    t->method = (enum method)c->method;
    struct pe_network_form form = {.n_layers = 2,
                                   .widths = {(uint64_t)c->dim, (uint64_t)c->hidden, (uint64_t)c->dim},
                                   .w = {W1, W2},
                                   .b = {B1, B2},
                                   .time_input = c->time_input,
                                   .activation = (enum pe_activation)c->activation,
                                   .arith = p->arith};
    struct pe_steps steps = {.scratch = WORK_ROWS * (size_t)c->dim, .cost = 4 * (double)c->dim, .step = step};
    return pe_recurrence_open(p, &form, steps, (double)(methods[t->method].n_slopes * t->substeps), err);
}

static const struct pe_formula_line formula[] = {
    {"s = dt/substeps", "one step of the solver"},
    {"c[l] = { 0 if l = 1; (l - 1)/3 if method is rk4_38; 1 if l = 4; 1/2 }", "where in the step slope l is taken"},
    {"t[i, l] = s*(i + c[l])", "its time"},
    {"v[i, l, j] = { y[i, j] if l = 1; y[i, j] + s*k[i, 1, j]/3 if l = 2 and method is rk4_38; y[i, j] + s*(k[i, 2, j] "
     "- k[i, 1, j]/3) if l = 3 and method is rk4_38; y[i, j] + s*(k[i, 1, j] - k[i, 2, j] + k[i, 3, j]) if method is "
     "rk4_38; y[i, j] + s*k[i, l - 1, j]/2 if l < 4; y[i, j] + s*k[i, 3, j] }",
     "the point where it is taken"},
    {"z[i, l, u] = activation(sum(j, 0, dim - 1, w1[u, j]*v[i, l, j]) + { w1[u, dim]*t[i, l] if time_input; 0 } + "
     "b1[u])",
     "the network's first layer, whose last input is the time"},
    {"k[i, l, j] = sum(u, 0, hidden - 1, w2[j, u]*z[i, l, u]) + { w2[j, hidden]*t[i, l] if time_input; 0 } + b2[j]",
     "the slope: what the network computes"},
    {"d[i, j] = { k[i, 1, j] if method is euler; k[i, 2, j] if method is midpoint; (k[i, 1, j] + 2*k[i, 2, j] + 2*k[i, "
     "3, j] + k[i, 4, j])/6 if method is rk4; (k[i, 1, j] + 3*k[i, 2, j] + 3*k[i, 3, j] + k[i, 4, j])/8 }",
     "the mean slope of the step by the solver's method; rk4_38 is Kutta's 3/8 rule"},
    {"y[i, j] = { p0[j] if i = 0; y[i - 1, j] + s*d[i - 1, j] }", "the trajectory after i steps"},
    {"PE[p, j] = y[p*substeps, j]", "each position is so many steps later"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_floater = {
    .info =
        {
            .name = "floater",
            .family = "absolute",
            .about = {"FLOATER", "positions as a trajectory of a learned differential equation"},
            .paper = "Liu et al. 2020, arXiv 2003.09229 (FLOATER)",
            .formula = formula,
            .example = "{\"scheme\":\"floater\",\"len\":8,\"dim\":16,\"seed\":0}",
            .picture = "len=64&dim=64&seed=0&std=0.1&dt=0.05",
            .worked = "dim=2&hidden=2&seed=0&std=0.5&dt=0.1&substeps=1&position=1&channel=1",
            .traps = "The method that torchdiffeq calls rk4 is Kutta's 3/8 rule, not the classic tableau. "
                     "Time is the last input of both layers, so their weights have a column more than the "
                     "state.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
            .is_of_machine = true,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct floater),
    .tables_bytes = sizeof(struct tables),
    .is_slow = true,
    .cost = floater_cost,
    .plan = floater_plan,
    .drop = pe_recurrence_drop,
    .fill = pe_recurrence_fill,
    .derive = derive,
};
