/* Swin v2's continuous relative position bias (Liu et al. 2021, arXiv 2111.09883, eqs. 3 and 4; Microsoft's
 * swin_transformer_v2.py): a small network computes the bias of each relative position from its log-spaced
 * coordinates, so the same weights serve windows of other sizes.
 *
 *     t = 8·(q - k) / (P - 1) for each axis, P = pretrained_grid;   an axis with P = 1 has t = 0
 *     coord = sign(t)·log2(1 + |t|) / log2(8)                       [y, x]; at the end of a window log2(9)/3, not 1
 *     bias[head, i, j] = 16·sigmoid(W2[head]·relu(W1·coord + b1))
 *
 * In attention, if logit_scale is sent (eq. 2): logits are exp(min(logit_scale[head], ln 100))·cos(q, k) + bias,
 * with a learned scale instead of softmax_scale; without it the usual scaled products. */
#include "core/schemes/bias/bias.h"
#include "core/schemes/network.h"

#include <stdlib.h>

struct swinv2 {
    struct pe_window_fields window;
    int64_t hidden;
    struct pe_reals pretrained_grid;
    int64_t pretrained[2]; /* what pretrained_grid resolves to */
    int arith;
};

static const struct pe_param params[] = {
    PE_P_INT(pe_window_fields, num_heads, 8, 1, PE_WINDOW_LAYER_MAX, "heads", "attention heads; if w2 is sent, its own",
             .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_INT(swinv2, hidden, 512, 1, PE_WINDOW_LAYER_MAX, "hidden width",
             "channels between the two layers; if w1 is sent, its own", .group = PE_G_SIZE, .usual = {8, 1024}),
    PE_P_REALS(swinv2, pretrained_grid, 0, PE_POSITION_MAX, "pretraining window",
               "window of the pretraining, [h,w], to which coordinates are relative; default the grid, also for 0 (as "
               "in Microsoft's configs)",
               .group = PE_G_AXES),
    PE_P_ARITH(swinv2),
    PE_WINDOW_PARAMS,
    PE_P_END,
};

enum input { W1, B1, W2, LOGIT_SCALE };

static const struct pe_input_row inputs[] = {
    [W1] = PE_INPUT("w1", "hidden,2", PE_ENCODE, false, "layer 1, weight",
                    "cpb_mlp.0.weight: first layer, of the coordinates [y, x]"),
    [B1] = PE_INPUT("b1", "hidden", PE_ENCODE, false, "layer 1, bias", "cpb_mlp.0.bias"),
    [W2] = PE_INPUT("w2", "num_heads,hidden", PE_ENCODE, false, "layer 2, weight",
                    "cpb_mlp.2.weight: second layer; it has no bias"),
    [LOGIT_SCALE] =
        PE_INPUT("logit_scale", "num_heads", PE_ATTEND, false, "logit scale", "for cosine attention; optional"),
    {.name = NULL},
};

struct tables {
    struct pe_window window;
    struct pe_network *network;
};

/* ---- What the request states ---- */

static enum pe_status resolve_pretrained(struct swinv2 *c, const struct pe_window *t, struct pe_failure *err)
{
    struct pe_reals *list = &c->pretrained_grid;
    const int64_t own[2] = {(int64_t)t->h, (int64_t)t->w};
    if (list->n && (list->n != 2 || list->array.rank != 1))
        return pe_fail(err, "/pretrained_grid",
                       "pretrained_grid has %u dimensions and %llu lengths; needed: two, [h,w]", list->array.rank,
                       (unsigned long long)list->n);
    for (unsigned a = 0; a < 2; a++) {
        double p = list->n ? pe_real_at(list, a) : 0;
        if (p != floor(p))
            return pe_fail(err, "/pretrained_grid", "pretrained_grid has %s at index %u; allowed: integers",
                           pe_shown(p).text, a);
        c->pretrained[a] = p > 0 ? (int64_t)p : own[a];
    }
    pe_reals_set(list, c->pretrained, 2);
    return PE_OK;
}

/* ---- The table ---- */

/* Under arith float32 each step is rounded to f32, in the order of Microsoft's code. */
static double step(const struct swinv2 *c, double x) { return c->arith == PE_ARITH_FLOAT32 ? (double)(float)x : x; }

/* log2 in double-double: the last bit of the C library's may differ between machines. */
static double coordinate(const struct swinv2 *c, unsigned axis, double rel)
{
    static const struct pe_dd ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    double p = (double)c->pretrained[axis];
    if (p == 1 || rel == 0)
        return 0;
    double t = step(c, 8 * step(c, fabs(rel) / (p - 1)));
    double log2 = step(c, dd_div(pe_dd_log(dd(step(c, 1 + t))), ln2).hi);
    return copysign(step(c, log2 / 3), rel);
}

/* 16 / (1 + e^-x) by the smaller of the two exponentials. */
static double sixteen_sigmoid(double x)
{
    if (isnan(x) || x < -745)
        return isnan(x) ? x : 0;
    struct pe_dd e = pe_dd_exp(dd(-fmin(fabs(x), 745)));
    return 16 * dd_div(x < 0 ? e : dd(1), dd_add(dd(1), e)).hi;
}

/* How far apart in lines and columns the places of a row are, query minus key. */
static void places_of(const struct pe_window *w, uint64_t row, double rel[2])
{
    double width = 2 * (double)w->w - 1, line = floor((double)row / width);
    rel[0] = line - ((double)w->h - 1);
    rel[1] = (double)row - line * width - ((double)w->w - 1);
}

/* What the network gives each head, before the sigmoid. */
static void apply(const struct tables *t, const double coords[2], double *out)
{
    double scratch[2 * PE_WINDOW_LAYER_MAX];
    pe_network_load(t->network, false); /* the row is stored, so the weights must be complete */
    pe_network_apply(t->network, 0, coords, out, scratch);
}

static double bias_of(const struct swinv2 *c, double z) { return 16 * step(c, sixteen_sigmoid(z) / 16); }

static void make_row(const struct pe_plan *plan, uint64_t row, double *out)
{
    const struct swinv2 *c = plan->config;
    const struct tables *t = plan->tables;
    double rel[2];
    places_of(&t->window, row, rel);
    const double coords[2] = {coordinate(c, 0, rel[0]), coordinate(c, 1, rel[1])};
    apply(t, coords, out);
    for (size_t head = 0; head < t->window.num_heads; head++)
        out[head] = bias_of(c, out[head]);
}

/* ---- One number ---- */

/* The unit of the first layer that adds most to a head, and how many are above 0. */
static void state_unit(const struct pe_plan *plan, const double coords[2], size_t head, struct pe_derivation *d)
{
    const struct swinv2 *c = plan->config;
    size_t hidden = (size_t)c->hidden, most = 0, n_on = 0;
    double best = -1, a_of_most = 0;
    for (size_t u = 0; u < hidden; u++) {
        double w1[2], b1, w2;
        pe_weights_read(&plan->weights[W1], 2 * u, 2, w1);
        pe_weights_read(&plan->weights[B1], u, 1, &b1);
        pe_weights_read(&plan->weights[W2], head * hidden + u, 1, &w2);
        double a = b1 + w1[0] * coords[0] + w1[1] * coords[1], added = a > 0 ? fabs(w2 * a) : 0;
        n_on += a > 0;
        if (added <= best)
            continue;
        best = added;
        most = u;
        a_of_most = a;
    }
    pe_derived(d, "a", dd(a_of_most), "w1[u, 0]·g_y + w1[u, 1]·g_x + b1[u], u = %zu", most);
    pe_derived_says(d, "unit %zu adds most; %zu of %zu are above 0", most, n_on, hidden);
}

static void state(const struct pe_plan *plan, uint64_t row, size_t head, struct pe_derivation *d)
{
    static const char *const symbols[] = {"g_y", "g_x"}, *const differences[] = {"d_y", "d_x"};
    const struct swinv2 *c = plan->config;
    double rel[2], coords[2], out[PE_WINDOW_LAYER_MAX];
    places_of(&((const struct tables *)plan->tables)->window, row, rel);
    for (unsigned axis = 0; axis < 2; axis++) {
        coords[axis] = coordinate(c, axis, rel[axis]);
        if (coords[axis] == 0)
            pe_derived(d, symbols[axis], dd(0), "0");
        else
            pe_derived(d, symbols[axis], dd(coords[axis]), "%slog2(1 + 8·|%s|/(%lld − 1))/3", rel[axis] < 0 ? "−" : "",
                       differences[axis], (long long)c->pretrained[axis]);
    }
    pe_derived_says(d, "on a logarithmic scale, relative to the window of the pretraining, %lld by %lld",
                    (long long)c->pretrained[0], (long long)c->pretrained[1]);
    apply(plan->tables, coords, out);
    state_unit(plan, coords, head, d);
    pe_derived(d, "z", dd(out[head]), "Σ w2[%zu, u]·max(w1[u, 0]·g_y + w1[u, 1]·g_x + b1[u], 0)", head);
    pe_derived(d, "bias", dd(bias_of(c, out[head])), "16/(1 + e^(−z))");
}

/* ---- The plan ---- */

static enum pe_status plan_network(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct swinv2 *c = plan->config;
    static const char *const sizes[] = {"hidden", "num_heads", NULL};
    enum pe_status status = pe_fix_sizes(plan, sizes, err);
    struct pe_network_form form = {.n_layers = 2,
                                   .widths = {2, (uint64_t)c->hidden, (uint64_t)c->window.num_heads},
                                   .w = {W1, W2},
                                   .b = {B1, PE_NO_BIAS},
                                   .activation = PE_RELU,
                                   .arith = plan->arith};
    if (!status)
        status = pe_network_new(plan, &form, &t->network, err);
    t->window.state = state;
    /* Two logarithms take as long as some 8000 products, a sigmoid as 1000. */
    return status ? status
                  : pe_window_keep(plan, make_row,
                                   pe_network_cost(t->network) + 8000 + 1000 * (double)c->window.num_heads, err);
}

static void swinv2_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    double hidden = pe_size_most(plan, "hidden"), heads = pe_size_most(plan, "num_heads");
    pe_window_cost(plan, cost);
    if (pe_weights_wanted(plan))
        pe_network_room(cost, 3 * hidden + heads * (hidden + 1));
}

static enum pe_status swinv2_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct swinv2 *c = plan->config;
    struct tables *t = plan->tables;
    enum pe_status status = pe_window_init(&t->window, plan, err);
    if (!status && plan->seq.n_grid == 3)
        return pe_fail(err, "/grid", "grid has 3 axes; swinv2's network has the coordinates of two: give [h,w]");
    if (!status)
        status = resolve_pretrained(c, &t->window, err);
    if (!status && pe_weights_wanted(plan))
        status = plan_network(plan, t, err);
    if (status || !plan->attention || !pe_weights_sent(plan, LOGIT_SCALE))
        return status;
    struct pe_tensor *scale = &plan->weights[LOGIT_SCALE].tensor;
    if (scale->rank == 3 && scale->shape[1] == 1 && scale->shape[2] == 1)
        scale->rank = 1; /* checkpoints have it as [num_heads, 1, 1] */
    return pe_weights_need(plan, LOGIT_SCALE, err);
}

static void swinv2_drop(struct pe_plan *plan)
{
    pe_network_free(((struct tables *)plan->tables)->network);
    pe_window_drop(plan);
}

/* Microsoft's clamp: torch.clamp(logit_scale, max=log(1 / 0.01)).exp(). */
static bool cosine(const struct pe_plan *plan, size_t head, double *factor)
{
    double scale;
    if (!pe_weights_sent(plan, LOGIT_SCALE))
        return false;
    pe_weights_read(&plan->weights[LOGIT_SCALE], head, 1, &scale);
    *factor = exp(fmin(scale, log(100)));
    return true;
}

static const struct pe_attend attend = {.cosine = cosine};

static const struct pe_formula_line formula[] = {
    {"W = grid[1]", "the width of the window"},
    {"y = floor(m/W) - floor(n/W)", "the rows from the key to the query"},
    {"x = m mod W - n mod W", "the columns from the key to the query"},
    {"g[d, e] = { 0 if e = 1; sign(d)*log2(1 + 8*abs(d)/(e - 1))/3 }",
     "a distance on a logarithmic scale, relative to the window of the pretraining"},
    {"z[u] = max(w1[u, 0]*g[y, pretrained_grid[0]] + w1[u, 1]*g[x, pretrained_grid[1]] + b1[u], 0)",
     "the first layer of the network"},
    {"bias[h, m, n] = 16/(1 + exp(-sum(u, 0, hidden - 1, w2[h, u]*z[u])))",
     "added to the logits, between 0 and 16; the same weights serve any window"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_swinv2 = {
    .info =
        {
            .name = "swinv2",
            .family = "bias",
            .about = {"Swin V2 window bias",
                      "a network's bias for each relative position in a window, from log-spaced coordinates"},
            .paper = "Liu et al. 2021, arXiv 2111.09883",
            .formula = formula,
            .example = "{\"scheme\":\"swinv2\",\"grid\":[4,4],\"num_heads\":3,\"seed\":0,\"std\":1.0}",
            .picture = "grid=8,8&seed=0&std=1",
            .worked = "grid=2,2&num_heads=2&hidden=2&seed=2&std=1&index=1,3,0",
            .traps = "Coordinates are relative to the window of the pretraining (`pretrained_grid`), not to "
                     "the window in use. At its end they are log2(9)/3 = 1.0566, not 1. The model's attention "
                     "has a learned scale of cosines (`logit_scale`) in place of the softmax scale.",
            .params = params,
            .outputs = pe_window_outputs,
            .inputs = inputs,
            .is_of_machine = true,
        },
    .config_bytes = sizeof(struct swinv2),
    .tables_bytes = sizeof(struct tables),
    .has_axes = true,
    .cost = swinv2_cost,
    .plan = swinv2_plan,
    .drop = swinv2_drop,
    .fill = pe_window_fill,
    .derive = pe_window_derive,
    .attend = &attend,
};
