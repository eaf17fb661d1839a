/* FIRE, functional interpolation for relative positions (Li et al. 2023, arXiv 2310.04418): a small network maps the
 * distance to a bias. The distance is divided by the query's own position, so that longer sequences stay in the
 * range of training.
 *
 *     x = ln(1 + |c·(q - k)|) / (ln(1 + |c·max(q, |l_mult·init_l|)|) + 1e-6)
 *     bias[h, i, j] = sum over u of w2[h, u] · max(w1[u]·x + b1[u], 0) + b2[h] */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>

enum input { W1, B1, W2, B2 };

struct fire {
    struct pe_mask_fields bias;
    int64_t num_heads, hidden;
    double c, init_l, l_mult;
    int64_t seed;
    double std;
};

/* The network is stored as doubles: 32 MiB with PE_HEADS_MAX heads. The paper's network has 32 hidden units. */
enum { HIDDEN_MAX = 1024 };
_Static_assert(HIDDEN_MAX *PE_HEADS_MAX <= PE_NETWORK_WEIGHTS_MAX, "a plan's weights fit");

static const struct pe_param params[] = {
    PE_P_INT(fire, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if w2 is sent, its own",
             .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_INT(fire, hidden, 32, 1, HIDDEN_MAX, "hidden width", "units of the network; if w1 is sent, its own",
             .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_REAL(fire, c, 0.1, -1e6, 1e6, "factor in the logarithm", "factor on positions inside the logarithm (learned)",
              .usual = {0.01, 10}),
    PE_P_REAL(fire, init_l, 512, 0, PE_POSITION_MAX, "threshold",
              "threshold: it replaces the position of earlier queries in the denominator", .usual = {0, 2048}),
    PE_P_REAL(fire, l_mult, 1, -1e6, 1e6, "threshold factor", "factor on init_l (learned)", .usual = {0, 4}),
    PE_P_SEED(fire),
    PE_MASK_PARAMS,
    PE_P_END,
};

static const struct pe_input_row inputs[] = {
    [W1] = PE_INPUT("w1", "hidden,1", PE_ENCODE, false, "layer 1, weight", "first layer"),
    [B1] = PE_INPUT("b1", "hidden", PE_ENCODE, false, "layer 1, bias", "its bias"),
    [W2] = PE_INPUT("w2", "num_heads,hidden", PE_ENCODE, false, "layer 2, weight", "second layer"),
    [B2] = PE_INPUT("b2", "num_heads", PE_ENCODE, false, "layer 2, bias", "its bias"),
    {.name = NULL},
};

struct tables {
    struct pe_bias bias;
    size_t hidden;
    double least;    /* |l_mult·init_l| */
    double *b1;      /* [hidden], in w */
    double *w2, *b2; /* [num_heads, hidden], [num_heads], in w */
    double w[];      /* w1 [hidden], then the others */
};

/* ---- The bias ---- */

enum { BATCH = 64 };

/* ln(1 + |c·d|) */
static double log_of(double c, double d) { return pe_dd_fast_log1p(dd(fabs(c * d))).hi; }

/* y[j] = network of one head at x[j], j < n ≤ BATCH */
static void apply(const struct tables *t, size_t head, const double *x, size_t n, double *y)
{
    const double *w1 = t->w, *w2 = t->w2 + head * t->hidden;
    for (size_t j = 0; j < n; j++)
        y[j] = t->b2[head];
    for (size_t u = 0; u < t->hidden; u++)
        for (size_t j = 0; j < n; j++) {
            double a = w1[u] * x[j] + t->b1[u];
            y[j] += w2[u] * (a > 0 ? a : 0);
        }
}

static void row(const struct pe_plan *plan, const struct pe_pair *first, size_t n, enum pe_dtype dtype, void *out)
{
    const struct fire *f = plan->config;
    const struct tables *t = plan->tables;
    double x[BATCH], y[BATCH], whole = log_of(f->c, fmax(first->q_pos, t->least)) + 1e-6;
    for (size_t at = 0; at < n && !pe_is_cancelled(); at += BATCH) {
        size_t m = n - at < BATCH ? n - at : BATCH;
        for (size_t j = 0; j < m; j++)
            x[j] = log_of(f->c, pe_position_at(plan->seq.k, first->key + at + j) - first->q_pos) / whole;
        apply(t, first->head, x, m, y);
        for (size_t j = 0; j < m; j++)
            pe_bias_store(dtype, out, at + j, dd(y[j]));
    }
}

/* ---- One number ---- */

/* The unit of the first layer that adds most to a head, and how many are above 0. */
static void state_unit(const struct tables *t, double x, size_t head, struct pe_derivation *d)
{
    const double *w1 = t->w, *w2 = t->w2 + head * t->hidden;
    size_t most = 0, n_on = 0;
    double best = -1;
    for (size_t u = 0; u < t->hidden; u++) {
        double a = w1[u] * x + t->b1[u], added = a > 0 ? fabs(w2[u] * a) : 0;
        n_on += a > 0;
        most = added > best ? u : most;
        best = fmax(best, added);
    }
    pe_derived(d, "a", dd(w1[most] * x + t->b1[most]), "w1[u]·x + b1[u] = %s·x + %s, u = %zu", pe_shown(w1[most]).text,
               pe_shown(t->b1[most]).text, most);
    pe_derived_says(d, "unit %zu adds most; %zu of %zu are above 0", most, n_on, t->hidden);
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct fire *f = plan->config;
    const struct tables *t = plan->tables;
    struct pe_pair g;
    (void)id, (void)err;
    if (pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    d->is_looked_up = true;
    double q = fmax(g.q_pos, t->least), share = log_of(f->c, g.k_pos - g.q_pos), whole = log_of(f->c, q) + 1e-6,
           x = share / whole, y;
    struct pe_shown c = pe_shown(f->c);
    pe_derived(d, "t", dd(q), "max(q, |l_mult·init_l|) = max(%s, %s)", pe_shown(g.q_pos).text, pe_shown(t->least).text);
    pe_derived_says(d, q > g.q_pos ? "an early query: the threshold takes the place of its position"
                                   : "the query's own position");
    pe_derived(d, "n", dd(share), "ln(1 + |c·(q − k)|) = ln(1 + |%s·(%s − %s)|)", c.text, pe_shown(g.q_pos).text,
               pe_shown(g.k_pos).text);
    pe_derived(d, "m", dd(whole), "ln(1 + |c·t|) + 1e-6 = ln(1 + |%s·%s|) + 1e-6", c.text, pe_shown(q).text);
    pe_derived(d, "x", dd(x), "n/m");
    pe_derived_says(d, "the distance as a share of the query's own position");
    state_unit(t, x, g.head, d);
    apply(t, g.head, &x, 1, &y);
    pe_derived(d, "bias", dd(y), "Σ w2[%zu, u]·max(w1[u]·x + b1[u], 0) + b2[%zu]", g.head, g.head);
    return PE_OK;
}

/* ---- The plan ---- */

static struct tables *read_weights(const struct pe_plan *plan)
{
    const struct fire *f = plan->config;
    size_t hidden = (size_t)f->hidden, heads = (size_t)f->num_heads;
    struct tables *t = calloc(1, sizeof *t + (2 * hidden + heads * hidden + heads) * sizeof *t->w);
    if (!t)
        return NULL;
    t->hidden = hidden;
    t->b1 = t->w + hidden;
    t->w2 = t->b1 + hidden;
    t->b2 = t->w2 + heads * hidden;
    pe_weights_read(&plan->weights[W1], 0, hidden, t->w);
    pe_weights_read(&plan->weights[B1], 0, hidden, t->b1);
    pe_weights_read(&plan->weights[W2], 0, heads * hidden, t->w2);
    pe_weights_read(&plan->weights[B2], 0, heads, t->b2);
    return t;
}

/* The network's numbers. */
static void fire_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    double hidden = fmin(pe_size_most(plan, "hidden"), HIDDEN_MAX);
    double heads = fmin(pe_size_most(plan, "num_heads"), PE_HEADS_MAX);
    pe_cost_weights(cost, plan, W1, hidden);
    pe_cost_weights(cost, plan, B1, hidden);
    pe_cost_weights(cost, plan, W2, heads * hidden);
    pe_cost_weights(cost, plan, B2, heads);
    pe_bias_cost(plan, heads, cost);
}

static enum pe_status fire_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct fire *f = plan->config;
    static const char *const sizes[] = {"hidden", "num_heads", NULL};
    enum pe_status status = pe_fix_sizes(plan, sizes, err);
    for (size_t id = W1; !status && id <= B2; id++)
        status = pe_weights_need(plan, id, err);
    if (status)
        return status;
    struct tables *t = plan->tables = read_weights(plan);
    if (!t)
        return pe_no_memory(err);
    plan->element_work = 1024 + 32 * (double)t->hidden;
    plan->pace = PE_SLOW; /* a logarithm and the network for each element */
    t->least = fabs(f->l_mult * f->init_l);
    t->bias.rule = (struct pe_bias_rule){.row = row};
    return pe_bias_init(&t->bias, plan, &f->bias, err);
}

static const struct pe_formula_line formula[] = {
    {"t = max(q, abs(l_mult*init_l))", "the query's position, or for early queries the threshold"},
    {"x = ln(1 + abs(c*(q - k)))/(ln(1 + abs(c*t)) + 10^(-6))",
     "the distance as a share of the query's own position, between 0 and 1 for earlier keys"},
    {"bias[h, q, k] = sum(u, 0, hidden - 1, w2[h, u]*max(w1[u, 0]*x + b1[u], 0)) + b2[h]",
     "added to the logits: a small network of that share"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_fire = {
    .info =
        {
            .name = "fire",
            .family = "bias",
            .about = {"FIRE", "a small network's bias from the distance relative to the query's own position"},
            .paper = "Li et al. 2023, arXiv 2310.04418",
            .formula = formula,
            .example = "{\"scheme\":\"fire\",\"num_heads\":2,\"len\":4,\"seed\":0}",
            .picture = "len=64&seed=0&std=1&causal=true",
            .worked = "num_heads=2&hidden=2&init_l=4&seed=2&std=1&head=1&query=5&key=2",
            .traps = "The distance is divided by the query's own position, so one distance has another bias "
                     "in each row: the bias cannot be stored as a vector of distances. Queries before the "
                     "threshold (`init_l`) are divided as if they were there.",
            .params = params,
            .outputs = pe_bias_outputs,
            .inputs = inputs,
            .is_of_machine = true,
        },
    .config_bytes = sizeof(struct fire),
    .is_pairwise = true,
    .cost = fire_cost,
    .plan = fire_plan,
    .drop = pe_bias_drop,
    .fill = pe_bias_fill,
    .derive = derive,
};
