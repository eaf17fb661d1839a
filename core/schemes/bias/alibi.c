/* ALiBi, attention with linear biases (Press et al. 2021, arXiv 2108.12409): the farther away a key is, the lower is
 * its logit, with a slope per head.
 *
 *     n = 2^⌊log2 num_heads⌋;   slope[h] = 2^(-bias_max·(h+1)/n), h < n
 *     slope[n+t] = 2^(-bias_max·(2t+1)/(2n)):  the odd terms of the sequence for 2n heads, appended
 *     bias[h, i, j] = -slope[h] · |q_pos - k_pos|      (symmetric; the other forms below) */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>

enum form { SYMMETRIC, RELATIVE, ASYMMETRIC, KEY, KEY_END, KEY_MASK };

struct alibi {
    struct pe_mask_fields bias;
    int64_t num_heads;
    int form;
    struct pe_reals slopes, slopes_left, slopes_right;
    double bias_max;
    bool bias_scaled;
    int arith;
};

static const char *const form_words[] = {[SYMMETRIC] = "symmetric",
                                         [RELATIVE] = "relative",
                                         [ASYMMETRIC] = "asymmetric",
                                         [KEY] = "key",
                                         [KEY_END] = "key_end",
                                         [KEY_MASK] = "key_mask",
                                         NULL};

#define SLOPE_LIST(field, when_, ...)                                                                                  \
    {                                                                                                                  \
        .name = #field, .type = PE_T_REALS, .offset = PE_OFFSET(alibi, field, struct pe_reals), .min = -1e12,          \
        .max = 1e12, .when = when_, PE_TEXTS(__VA_ARGS__)                                                              \
    }

static const struct pe_param params[] = {
    PE_P_INT(alibi, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads", .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_WORD(alibi, form, form_words, "form",
              "symmetric: the bias falls on both sides (encoders); relative: it falls to the left and is 0 to the "
              "right; asymmetric: each side has its own slopes; key: slope·k (fairseq); key_end: slope·(k - last) "
              "(MPT); key_mask: slope·(number of visible keys before it) (BLOOM)"),
    SLOPE_LIST(slopes, NULL, "slopes", "slope of each head: [num_heads]; default as in the paper"),
    SLOPE_LIST(slopes_left, "form=asymmetric", "slopes to the left",
               "slope towards earlier keys: [num_heads]; default slopes"),
    SLOPE_LIST(slopes_right, "form=asymmetric", "slopes to the right",
               "slope towards later keys: [num_heads]; default slopes"),
    PE_P_REAL(alibi, bias_max, 8, 1e-3, 1024, "flattest slope",
              "the flattest slope is 2^-bias_max; MPT-StoryWriter has 16", .usual = {1, 16}),
    PE_P_BOOL(alibi, bias_scaled, false, "scale the bias",
              "Falcon: attention also multiplies the bias by softmax_scale; the output `bias` stays unscaled",
              .level = PE_MORE),
    PE_P_ARITH(alibi),
    PE_MASK_PARAMS,
    PE_P_END,
};

enum output { BIAS, SLOPES };

static const struct pe_output_row outputs[] = {
    [BIAS] = PE_BIAS_OUTPUT,
    [SLOPES] = PE_OUTPUT("slopes", "num_heads", 1, PE_DTYPE_NONE, true, NULL, "slopes", "slope of each head"),
    {.name = NULL},
};

enum side { LEFT, RIGHT };

struct tables {
    struct pe_bias bias;
    double *counts; /* KEY_MASK: number of seen keys before key j, 0 if key j itself is not seen: [n_masks, k_len]; else
                       NULL */
    uint64_t n_masks;
    struct pe_dd slopes[]; /* [3, num_heads]: slopes, to the left, to the right */
};

static struct pe_dd slope(const struct pe_plan *plan, size_t head, enum side side)
{
    const struct alibi *c = plan->config;
    const struct tables *t = plan->tables;
    return t->slopes[(size_t)c->num_heads * (1 + (size_t)side) + head];
}

/* ---- Slopes ---- */

/* 2^e, exact if e is an integer, e.g. for all slopes of 1, 2, 4 or 8 heads. */
static struct pe_dd power_of_two(struct pe_dd e)
{
    static const struct pe_dd ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    if (e.lo == 0 && e.hi == floor(e.hi))
        return dd(ldexp(1, (int)e.hi));
    return pe_dd_exp(dd_mul(e, ln2));
}

static void set_default_slopes(const struct alibi *c, struct pe_dd *slopes)
{
    int64_t n = 1;
    while (2 * n <= c->num_heads)
        n *= 2;
    for (int64_t h = 0; h < c->num_heads; h++) {
        double numerator = h < n ? (double)(h + 1) : (double)(2 * (h - n) + 1),
               denominator = h < n ? (double)n : 2 * (double)n;
        struct pe_dd e =
            dd_two_prod(-c->bias_max, numerator); /* the denominator is a power of two: dividing is exact */
        slopes[h] = power_of_two((struct pe_dd){e.hi / denominator, e.lo / denominator});
    }
}

static enum pe_status copy_slopes(const struct alibi *c, const struct pe_reals *given, const char *name,
                                  struct pe_dd *slopes, struct pe_failure *err)
{
    if (!given->n)
        return PE_OK;
    enum pe_status status = pe_reals_expect(given, (uint64_t)c->num_heads, name, "one per head: num_heads", err);
    for (int64_t h = 0; !status && h < c->num_heads; h++)
        slopes[h] = dd(pe_real_at(given, (uint64_t)h));
    return status;
}

static enum pe_status set_slopes(const struct alibi *c, struct tables *t, struct pe_failure *err)
{
    size_t n = (size_t)c->num_heads;
    set_default_slopes(c, t->slopes);
    enum pe_status status = copy_slopes(c, &c->slopes, "slopes", t->slopes, err);
    for (size_t h = 0; !status && h < n; h++)
        t->slopes[n + h] = t->slopes[2 * n + h] = t->slopes[h];
    if (!status)
        status = copy_slopes(c, &c->slopes_left, "slopes_left", t->slopes + n, err);
    if (!status)
        status = copy_slopes(c, &c->slopes_right, "slopes_right", t->slopes + 2 * n, err);
    for (size_t h = 0; !status && c->arith == PE_ARITH_FLOAT32 && h < 3 * n; h++)
        t->slopes[h] = dd((double)(float)dd_round_odd(t->slopes[h]));
    return status;
}

/* ---- The bias ---- */

/* For the forms relative, symmetric and asymmetric: distances left of the query, then right of it. */
static void distance(const struct pe_plan *plan, size_t head, double rel, size_t n, enum pe_dtype dtype, void *out)
{
    const struct alibi *c = plan->config;
    size_t left = rel >= 0 ? 0 : -rel < (double)n ? (size_t)-rel : n;
    struct pe_dd right = c->form == RELATIVE ? dd(0) : slope(plan, head, RIGHT);
    pe_bias_products(slope(plan, head, LEFT), -rel, -1, left, dtype, out);
    if (left < n)
        pe_bias_products(right, rel + (double)left, 1, n - left, dtype, (char *)out + left * pe_dtype_size(dtype));
}

/* The distance of two reals may need two doubles. */
static struct pe_dd distance_pair(const struct pe_plan *plan, const struct pe_pair *g)
{
    const struct alibi *c = plan->config;
    struct pe_dd rel = dd_two_sum(g->k_pos, -g->q_pos);
    if (rel.hi > 0)
        return c->form == RELATIVE ? dd(0) : dd_neg(dd_mul(slope(plan, g->head, RIGHT), rel));
    return dd_mul(slope(plan, g->head, LEFT), rel);
}

static struct pe_dd key_pair(const struct pe_plan *plan, const struct pe_pair *g)
{
    const struct alibi *c = plan->config;
    const struct tables *t = plan->tables;
    struct pe_dd place = dd(g->k_pos);
    if (c->form == KEY_END)
        place = dd_two_sum(g->k_pos, -pe_position_at(plan->seq.k, plan->seq.k->n - 1));
    else if (c->form == KEY_MASK)
        place = dd(t->counts ? t->counts[g->batch % t->n_masks * plan->seq.k->n + g->key] : (double)g->key);
    return dd_mul(slope(plan, g->head, LEFT), place);
}

static const struct pe_bias_rule rules[] = {
    [SYMMETRIC] = {distance, distance_pair, false, NULL},
    [RELATIVE] = {distance, distance_pair, false, NULL},
    [ASYMMETRIC] = {distance, distance_pair, false, NULL},
    [KEY] = {NULL, key_pair, true, NULL},
    [KEY_END] = {NULL, key_pair, true, NULL},
    [KEY_MASK] = {NULL, key_pair, true, NULL},
};

/* An exponential for each slope; a count for each key of a mask. */
static void alibi_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct alibi *c = plan->config;
    const struct pe_mask *mask = plan->mask;
    double masked = mask && mask->seen ? (double)mask->n_masks * (double)plan->seq.k->n : (double)c->bias.key_mask.n;
    pe_cost_each(cost, (double)c->num_heads, 3 * sizeof(struct pe_dd), PE_NS_DD);
    pe_cost_each(cost, c->form == KEY_MASK ? masked : 0, sizeof(double), 8);
    pe_bias_cost(plan, (double)c->num_heads, cost);
}

static enum pe_status alibi_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct alibi *c = plan->config;
    struct tables *t = plan->tables = calloc(1, sizeof *t + 3 * (size_t)c->num_heads * sizeof *t->slopes);
    if (!t)
        return pe_no_memory(err);
    t->bias.rule = rules[c->form];
    enum pe_status status = set_slopes(c, t, err);
    if (!status)
        status = pe_bias_init(&t->bias, plan, &c->bias, err);
    if (status)
        return status;
    /* BLOOM counts from the first seen key: (cumsum(mask) - 1) · mask. */
    const struct pe_mask *mask = plan->mask ? plan->mask : &t->bias.mask;
    uint64_t n = plan->seq.k->n;
    if (c->form != KEY_MASK || !mask->seen)
        return PE_OK;
    t->n_masks = mask->n_masks;
    t->counts = malloc(t->n_masks * n * sizeof *t->counts);
    if (!t->counts)
        return pe_no_memory(err);
    double before = 0;
    for (uint64_t j = 0; j < t->n_masks * n; j++) {
        before = j % n ? before : 0;
        t->counts[j] = mask->seen[j] ? before : 0;
        before += mask->seen[j];
    }
    return PE_OK;
}

static void alibi_drop(struct pe_plan *plan)
{
    free(((struct tables *)plan->tables)->counts);
    pe_bias_drop(plan);
}

static void alibi_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                       void *dst)
{
    const struct tables *t = plan->tables;
    if (id == BIAS)
        pe_bias_fill(plan, output, id, b, dst);
    else
        for (size_t j = 0; j < b->n_cols; j++) {
            struct pe_dd m = t->slopes[b->col0 + j];
            pe_store(output->dtype, dst, j, output->dtype == PE_F64 ? m.hi : dd_round_odd(m));
        }
}

/* ---- One number ---- */

static struct pe_dd state_slope(const struct alibi *c, size_t h, enum side side, struct pe_dd m,
                                struct pe_derivation *d)
{
    const struct pe_reals *own = side == LEFT ? &c->slopes_left : &c->slopes_right;
    int64_t n = 1, head = (int64_t)h;
    while (2 * n <= c->num_heads)
        n *= 2;
    m = pe_derived_round(d, PE_F32, m);
    if (own->n || c->slopes.n)
        return pe_derived(d, "m", m, "%s[%zu]", own->n ? side == LEFT ? "slopes_left" : "slopes_right" : "slopes", h);
    if (head < n)
        return pe_derived(d, "m", m, "2^(−bias_max·(head + 1)/n) = 2^(−%s·%lld/%lld)", pe_shown(c->bias_max).text,
                          (long long)head + 1, (long long)n);
    m = pe_derived(d, "m", m, "2^(−bias_max·(2·(head − n) + 1)/(2·n)) = 2^(−%s·%lld/%lld)", pe_shown(c->bias_max).text,
                   2 * (long long)(head - n) + 1, 2 * (long long)n);
    pe_derived_says(d, "heads from %lld on have the odd terms of twice as many", (long long)n);
    return m;
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct alibi *c = plan->config;
    const struct tables *t = plan->tables;
    struct pe_pair g;
    (void)err;
    if (id == SLOPES) {
        state_slope(c, (size_t)at->col, LEFT, t->slopes[at->col], d);
        return PE_OK;
    }
    if (pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    bool by_distance = rules[c->form].distance != NULL;
    double rel = g.k_pos - g.q_pos;
    enum side side = by_distance && rel > 0 ? RIGHT : LEFT;
    if (by_distance && rel > 0 && c->form == RELATIVE) {
        pe_derived(d, "bias", dd(0), "0");
        pe_derived_says(d, "the key is after the query, and form relative is 0 there");
        return PE_OK;
    }
    struct pe_dd m = state_slope(c, g.head, side, slope(plan, g.head, side), d), x = dd_two_sum(g.k_pos, -g.q_pos);
    if (by_distance) {
        x = pe_derived(d, "d", x.hi < 0 ? dd_neg(x) : x, "|%s − %s|", pe_shown(g.q_pos).text, pe_shown(g.k_pos).text);
        pe_derived_says(d, "the distance of query and key");
        x = dd_neg(x);
    } else if (c->form == KEY)
        x = pe_derived(d, "k", dd(g.k_pos), "%s", "");
    else if (c->form == KEY_END) {
        double last = pe_position_at(plan->seq.k, plan->seq.k->n - 1);
        x = pe_derived(d, "n", dd_two_sum(g.k_pos, -last), "%s − %s", pe_shown(g.k_pos).text, pe_shown(last).text);
    } else {
        double n = t->counts ? t->counts[g.batch % t->n_masks * plan->seq.k->n + g.key] : (double)g.key;
        x = pe_derived(d, "n", dd(n), "%s", "");
        pe_derived_says(d, "visible keys before this one");
    }
    pe_derived(d, "bias", pe_derived_round(d, PE_F32, dd_mul(m, x)), by_distance ? "−m·d" : "m·%s",
               d->at[d->n - 1].symbol);
    return PE_OK;
}

static bool bias_is_scaled(const struct pe_plan *plan) { return ((const struct alibi *)plan->config)->bias_scaled; }

static const struct pe_attend attend = {.bias_at = pe_bias_at, .bias_is_scaled = bias_is_scaled};

static const struct pe_formula_line formula[] = {
    {"H = 2^floor(log2(num_heads))", "the largest power of two among the numbers of heads"},
    {"m_h = { slopes[h] if slopes is given; 2^(-bias_max*(h + 1)/H) if h < H; 2^(-bias_max*(2*(h - H) + 1)/(2*H)) }",
     "the slope of head h; heads beyond a power of two get the slopes between"},
    {"l_h = { slopes_left[h] if slopes_left is given; m_h }", "asymmetric: the slope towards earlier keys"},
    {"r_h = { slopes_right[h] if slopes_right is given; m_h }", "asymmetric: the slope towards later keys"},
    {"u = { sum(t, 0, n - 1, key_mask[t]) if key_mask is given; n }", "key_mask: the visible keys before key n"},
    {"bias[h, q, k] = { -m_h*abs(q - k) if form is symmetric; -m_h*max(q - k, 0) if form is relative; -l_h*(q - k) if "
     "form is asymmetric and k <= q; -r_h*(k - q) if form is asymmetric; m_h*k if form is key; m_h*(k - k_last) if "
     "form is key_end; m_h*u }",
     "added to the logits: the farther a key, the less it counts"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_alibi = {
    .info =
        {
            .name = "alibi",
            .family = "bias",
            .about = {"linear biases (ALiBi)",
                      "a bias on the logits that falls linearly with the distance, with a slope per head"},
            .paper = "Press et al. 2021, arXiv 2108.12409",
            .formula = formula,
            .example = "{\"scheme\":\"alibi\",\"num_heads\":2,\"len\":4}",
            .picture = "len=64&causal=true",
            .worked = "num_heads=8&head=1&query=5&key=2",
            .traps = "If the number of heads is no power of two, the further slopes are the odd terms of the "
                     "sequence for twice as many heads. fairseq, MPT and BLOOM add slope·k in place of the "
                     "distance (`form`), which softmax makes equal under a causal mask only. Falcon "
                     "multiplies the bias by the softmax scale too (`bias_scaled`).",
            .params = params,
            .outputs = outputs,
        },
    .config_bytes = sizeof(struct alibi),
    .is_pairwise = true,
    .cost = alibi_cost,
    .plan = alibi_plan,
    .drop = alibi_drop,
    .fill = alibi_fill,
    .line = pe_bias_fill_line,
    .derive = derive,
    .attend = &attend,
};
