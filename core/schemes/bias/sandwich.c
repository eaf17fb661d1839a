/* Sandwich (Chi et al. 2022, arXiv 2212.10356): the product of two sinusoidal encodings, which depends on the
 * distance only, is used as a bias; there are no learned parameters.
 *
 *     bias[h, i, j] = num_heads/(8(h+1)) · sum over t < bar_dim/2 of cos((q_pos - k_pos)·base^(-2t/bar_dim)) */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>
#include <string.h>

struct sandwich {
    struct pe_mask_fields bias;
    int64_t num_heads, bar_dim;
    double base;
};

/* A distance costs bar_dim/2 cosines: a tenth of a millisecond in f64. */
enum { BAR_DIM_MAX = 4096 };

static const struct pe_param params[] = {
    PE_P_INT(sandwich, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads", .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_INT(sandwich, bar_dim, 128, 2, BAR_DIM_MAX, "width of the encodings", "channels of the two encodings, even",
             .group = PE_G_SIZE, .usual = {8, 512}),
    PE_P_REAL(sandwich, base, 10000, 1e-3, 1e12, "wavelength base", "wavelength base of the two encodings",
              .group = PE_G_FREQUENCIES, .usual = {100, 1e7}),
    PE_MASK_PARAMS,
    PE_P_END,
};

struct tables {
    struct pe_bias bias;
    struct pe_waves *waves;
    double fastest;           /* the highest frequency, rounded up */
    size_t n;                 /* cosines: bar_dim/2 */
    struct pe_wave cosines[]; /* [n] */
};

/* ---- The sum of cosines, three ways ---- */

/* The sum for a distance rel.hi + rel.lo of two reals. The addition theorem gives the cosine from the cosines and
 * sines of both parts. */
static struct pe_dd exact_sum(const struct tables *t, struct pe_dd rel)
{
    struct pe_dd sum = {0, 0};
    double phase;
    for (size_t i = t->n; i-- > 0;) {
        struct pe_wave cosine = t->cosines[i], sine = cosine;
        sine.quarter = 0;
        struct pe_dd v = pe_wave_value(&cosine, rel.hi, &phase);
        if (rel.lo != 0)
            v = dd_sub(dd_mul(v, pe_wave_value(&cosine, rel.lo, &phase)),
                       dd_mul(pe_wave_value(&sine, rel.hi, &phase), pe_wave_value(&sine, rel.lo, &phase)));
        sum = dd_add(sum, v);
    }
    return sum;
}

/* The same sum with an error below n·2^-62. */
static struct pe_dd near_sum(const struct tables *t, struct pe_dd rel)
{
    struct pe_dd sum = {0, 0};
    for (size_t i = t->n; i-- > 0;)
        sum = dd_add(sum, pe_dd_fast_cos((struct pe_dd){t->cosines[i].fh, t->cosines[i].fl}, rel));
    return sum;
}

enum { ROWS = 32, COLUMNS = 64 }; /* cosines computed at once: 16 KiB */

/* sums[i] at positions i < p->n ≤ ROWS, with an error below n·2^-50. */
static void quick_sums(const struct tables *t, const struct pe_positions *p, double *sums)
{
    double values[ROWS * COLUMNS], rest[ROWS] = {0};
    size_t n = (size_t)p->n;
    memset(sums, 0, n * sizeof *sums);
    for (size_t col = 0; col < t->n; col += COLUMNS) {
        size_t m = t->n - col < COLUMNS ? t->n - col : COLUMNS;
        pe_waves_fill(t->waves, PE_F64, p, 0, n, col, m, values, m);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++) {
                struct pe_dd s = dd_two_sum(sums[i], values[i * m + j]);
                sums[i] = s.hi;
                rest[i] += s.lo;
            }
    }
    for (size_t i = 0; i < n; i++)
        sums[i] += rest[i];
}

/* ---- The bias ---- */

/* Stores a value for which quick_sums is not accurate enough: f64, for which near_sum is within 1 ulp unless the sum
 * cancels, and undecided roundings. */
static void store(const struct pe_plan *plan, size_t head, struct pe_dd rel, enum pe_dtype dtype, void *out, size_t i)
{
    const struct sandwich *c = plan->config;
    const struct tables *t = plan->tables;
    struct pe_dd sum = {0, 0};
    if (dtype == PE_F64)
        sum = near_sum(t, rel);
    if (fabs(sum.hi) < (double)t->n * 0x1p-8)
        sum = exact_sum(t, rel);
    sum = dd_div(dd_mul_d(sum, (double)c->num_heads), dd(8 * (double)(head + 1)));
    pe_bias_store(dtype, out, i, sum);
}

/* Biases at the distances of p, at most ROWS of them; off: the difference of each from the exact distance, or NULL.
 * It changes a cosine by at most `fastest` times the difference. */
static void store_all(const struct pe_plan *plan, size_t head, const struct pe_positions *p, const double *off,
                      enum pe_dtype dtype, void *out)
{
    const struct sandwich *c = plan->config;
    const struct tables *t = plan->tables;
    double sums[ROWS], n = (double)t->n, slope = (double)c->num_heads / (8 * (double)(head + 1));
    if (dtype != PE_F64)
        quick_sums(t, p, sums);
    for (size_t i = 0; i < p->n; i++) {
        struct pe_dd rel = {pe_position_at(p, i), off ? off[i] : 0};
        double error = n * (0x1p-50 + fabs(rel.lo) * t->fastest);
        if (dtype == PE_F64 ||
            !pe_bias_settle(dtype, out, i, slope * sums[i], slope * (error + fabs(sums[i]) * 0x1p-49)))
            store(plan, head, rel, dtype, out, i);
    }
}

/* ---- One number ---- */

/* A cosine as the recipe computes it: its frequency, its angle and itself are rounded, without steps of their own. */
static struct pe_dd cosine_of(const struct sandwich *c, size_t i, double rel, enum pe_recipe recipe)
{
    struct pe_derivation d = {.recipe = recipe};
    struct pe_dd w = pe_derived_frequency(&d, c->base, (double)c->bar_dim / 2, i);
    return pe_derived_sine(&d, pe_derived_angle(&d, dd(rel), w, i), 1);
}

/* The first cosines of the sum, and all of it, which is rounded once: in which order a library adds is its own matter.
 * A distance of two doubles is seldom, and has no steps of its own. */
static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    static const char *const symbols[] = {"cos 0", "cos 1", "cos 2", "cos 3", "cos 4", "cos 5", "cos 6", "cos 7"};
    enum { SHOWN = sizeof symbols / sizeof *symbols };
    const struct sandwich *c = plan->config;
    const struct tables *t = plan->tables;
    struct pe_pair g;
    (void)id;
    (void)err;
    if (pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    bool is_exact = d->recipe == PE_RECIPE_EXACT;
    struct pe_dd rel = dd_two_sum(g.k_pos, -g.q_pos), sum = is_exact ? exact_sum(t, rel) : dd(0);
    pe_derived(d, "d", rel, "%s − %s", pe_shown(g.k_pos).text, pe_shown(g.q_pos).text);
    for (size_t i = 0; i < t->n; i++) {
        double phase;
        struct pe_dd x = dd(0), stated;
        if (!is_exact)
            sum = dd_add(sum, x = cosine_of(c, i, rel.hi, d->recipe));
        else if (i < SHOWN)
            x = pe_wave_value(&t->cosines[i], rel.hi, &phase);
        if (i >= SHOWN)
            continue;
        stated = pe_derived(d, symbols[i], x, "cos(d·base^(-2·%zu/%lld))", i, (long long)c->bar_dim);
        sum = dd_add(sum, dd_sub(stated, x));
    }
    sum = pe_derived(d, "S", pe_derived_round(d, PE_F32, sum), "Σ cos(d·base^(-2·t/bar_dim))");
    pe_derived_says(d, "the sum of %zu cosines", t->n);
    struct pe_dd slope = pe_derived_round(d, PE_F32, dd_div(dd((double)c->num_heads), dd(8 * (double)(g.head + 1))));
    pe_derived(d, "bias", pe_derived_round(d, PE_F32, dd_mul(slope, sum)), "num_heads/(8·(head + 1))·S = %lld/%zu·S",
               (long long)c->num_heads, 8 * (g.head + 1));
    return PE_OK;
}

/* ROWS biases of f64 with thousands of cosines take milliseconds, so between them the work may yield. */
static void distance(const struct pe_plan *plan, size_t head, double rel, size_t n, enum pe_dtype dtype, void *out)
{
    for (size_t at = 0; at < n && !pe_is_cancelled(); at += ROWS) {
        struct pe_positions p = {.n = n - at < ROWS ? n - at : ROWS, .start = rel + (double)at};
        store_all(plan, head, &p, NULL, dtype, (char *)out + at * pe_dtype_size(dtype));
    }
}

static void row(const struct pe_plan *plan, const struct pe_pair *first, size_t n, enum pe_dtype dtype, void *out)
{
    double rel[ROWS], off[ROWS];
    for (size_t at = 0; at < n && !pe_is_cancelled(); at += ROWS) {
        struct pe_positions p = {.n = n - at < ROWS ? n - at : ROWS, .list = rel};
        for (size_t j = 0; j < p.n; j++) {
            struct pe_dd d = dd_two_sum(pe_position_at(plan->seq.k, first->key + at + j), -first->q_pos);
            rel[j] = d.hi;
            off[j] = d.lo;
        }
        store_all(plan, first->head, &p, off, dtype, (char *)out + at * pe_dtype_size(dtype));
    }
}

/* ---- The plan ---- */

static enum pe_status make_cosines(const struct sandwich *c, struct tables *t, struct pe_failure *err)
{
    struct pe_dd *freq = calloc(t->n, sizeof *freq);
    if (!freq)
        return pe_no_memory(err);
    pe_ladder(c->base, (double)t->n, t->n, freq);
    for (size_t i = 0; i < t->n; i++) {
        struct pe_dd f = pe_quarter_turns(freq[i]);
        t->cosines[i] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = 1};
        t->fastest = fmax(t->fastest, 1.01 * freq[i].hi);
    }
    free(freq);
    return pe_waves_new(t->cosines, t->n, &t->waves) ? pe_no_memory(err) : PE_OK;
}

static void sandwich_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct sandwich *c = plan->config;
    double n = (double)c->bar_dim / 2;
    pe_cost_ladder(cost, n, false);
    pe_cost_waves(cost, n);
    pe_bias_cost(plan, (double)c->num_heads, cost);
}

static enum pe_status sandwich_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct sandwich *c = plan->config;
    if (c->bar_dim % 2)
        return pe_fail(err, "/bar_dim", "bar_dim is %lld; allowed: even numbers", (long long)c->bar_dim);
    size_t n = (size_t)c->bar_dim / 2;
    struct tables *t = plan->tables = calloc(1, sizeof *t + n * sizeof *t->cosines);
    if (!t)
        return pe_no_memory(err);
    plan->pace = PE_SLOW; /* all the cosines for each distance of a tile */
    plan->distance_work = (double)n * (plan->dtype == PE_F64 ? 320 : 8);
    t->n = n;
    t->bias.rule = (struct pe_bias_rule){.distance = distance, .row = row};
    enum pe_status status = make_cosines(c, t, err);
    return status ? status : pe_bias_init(&t->bias, plan, &c->bias, err);
}

static void sandwich_drop(struct pe_plan *plan)
{
    pe_waves_free(((struct tables *)plan->tables)->waves);
    pe_bias_drop(plan);
}

static const struct pe_formula_line formula[] = {
    {"bias[h, q, k] = num_heads/(8*(h + 1))*sum(t, 0, bar_dim/2 - 1, cos((q - k)*base^(-2*t/bar_dim)))",
     "added to the logits: the product of two sinusoidal encodings, which depends on the distance only"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_sandwich = {
    .info =
        {
            .name = "sandwich",
            .family = "bias",
            .about = {"Sandwich", "a bias that is the product of two sinusoidal encodings"},
            .paper = "Chi et al. 2022, arXiv 2212.10356",
            .formula = formula,
            .example = "{\"scheme\":\"sandwich\",\"num_heads\":2,\"bar_dim\":16,\"len\":4}",
            .picture = "len=64",
            .worked = "num_heads=2&bar_dim=4&head=1&query=5&key=2",
            .traps = "A sum of cosines does not fall steadily: a farther key may have a larger bias than a "
                     "nearer one. Heads differ in a factor only.",
            .params = params,
            .outputs = pe_bias_outputs,
        },
    .config_bytes = sizeof(struct sandwich),
    .is_pairwise = true,
    .cost = sandwich_cost,
    .plan = sandwich_plan,
    .drop = sandwich_drop,
    .derive = derive,
    .fill = pe_bias_fill,
    .line = pe_bias_fill_line,
    .attend = &pe_bias_attend,
};
