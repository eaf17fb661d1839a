/* KERPLE, kernelized relative positions (Chi et al. 2022, arXiv 2205.09921): the bias falls with the logarithm or a
 * power of the distance, with two learned numbers per head.
 *
 *     log:    bias[h, i, j] = -r1[h] · ln(1 + r2[h]·|q_pos - k_pos|)
 *     power:  bias[h, i, j] = -r1[h] · |q_pos - k_pos|^r2[h],  0 < r2 ≤ 2; r2 = 1 is ALiBi */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>

enum kind { LOG, POWER };

struct kerple {
    struct pe_mask_fields bias;
    int64_t num_heads;
    int kind;
    const struct pe_value *r1, *r2;
    int arith;
};

static const char *const kinds[] = {[LOG] = "log", [POWER] = "power", NULL};

static const struct pe_param params[] = {
    PE_P_INT(kerple, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads", .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_WORD(kerple, kind, kinds, "kind", "log: -r1·ln(1 + r2·distance); power: -r1·distance^r2"),
    PE_P_VALUE(kerple, r1, "factor r1", "factor: a number, or one per head; default 1", .level = PE_BASIC),
    PE_P_VALUE(kerple, r2, "scale or exponent r2",
               "scale of the distance (log), its exponent (power, at most 2): a number, or one per head; "
               "default 1",
               .level = PE_BASIC),
    PE_P_ARITH(kerple),
    PE_MASK_PARAMS,
    PE_P_END,
};

struct head {
    double r1, r2;
};

struct tables {
    struct pe_bias bias;
    struct head heads[]; /* [num_heads] */
};

/* ---- r1 and r2 ---- */

static const struct pe_value one = {.kind = PE_REAL, .real = 1};
static const double R1_MIN = 0, R2_MIN = 1e-12, R_MAX = 1e12, EXPONENT_MAX = 2;

/* How many numbers a value holds; 0 if it holds anything else. */
static uint64_t count_numbers(const struct pe_value *v)
{
    uint64_t n;
    if (v->kind == PE_INTEGER || v->kind == PE_REAL)
        return 1;
    return v->kind == PE_ARRAY && v->array.rank == 1 && pe_shape_count(v->array.shape, 1, &n) ? n : 0;
}

static double number_at(const struct pe_value *v, uint64_t i)
{
    if (v->kind == PE_ARRAY)
        return pe_element(v->array.dtype, v->array.data, i);
    return v->kind == PE_INTEGER ? (double)v->integer : v->real;
}

/* Reads a number or one per head into the field at `offset` of each head. */
static enum pe_status read_heads(const struct kerple *c, const struct pe_value *v, const char *pointer, double min,
                                 double max, struct tables *t, size_t offset, struct pe_failure *err)
{
    uint64_t n = count_numbers(v), n_heads = (uint64_t)c->num_heads;
    bool is_list = v->kind == PE_ARRAY;
    if (n == 0 || (is_list && n != n_heads))
        return pe_fail(err, pointer, "%s is %s; allowed: a number, or a list of one per head, %llu (num_heads)",
                       pointer + 1, pe_text(n ? "a list of another length" : "not a number"),
                       (unsigned long long)n_heads);
    for (uint64_t h = 0; h < n_heads; h++) {
        double x = number_at(v, is_list ? h : 0);
        if (!(x >= min && x <= max))
            return pe_fail(err, pointer, "%s is %s for head %llu; allowed: from %g to %g", pointer + 1,
                           pe_shown(x).text, (unsigned long long)h, min, max);
        *(double *)((char *)&t->heads[h] + offset) = x;
    }
    return PE_OK;
}

/* ---- The formula, n > 0 ---- */

static struct pe_dd near_value(enum kind kind, struct head h, struct pe_dd n)
{
    struct pe_dd v =
        kind == LOG ? pe_dd_fast_log1p(dd_mul_d(n, h.r2)) : pe_dd_fast_exp(dd_mul_d(pe_dd_fast_log(n), h.r2));
    return dd_neg(dd_mul_d(v, h.r1));
}

/* n^r, where the result may have few bits and be the midpoint between two floats: this happens if n has a root that
 * is a double and n^r is an integer power of that root. Otherwise the binary expansion of n^r is infinite, and
 * double-double determines its rounding. */
static struct pe_dd exact_power(struct pe_dd n, double r)
{
    while (r != floor(r)) {
        double root = sqrt(n.hi);
        struct pe_dd square = dd_two_prod(root, root);
        if (n.lo != 0 || n.hi == 1 || square.hi != n.hi || square.lo != 0)
            return pe_dd_exp(dd_mul_d(pe_dd_log(n), r));
        n = dd(root);
        r *= 2;
    }
    struct pe_dd v = n;
    for (; r > 1; r--)
        v = dd_mul(v, n);
    return v;
}

/* Natural logarithms of rational numbers other than 1 have infinite binary expansions. */
static struct pe_dd exact_value(enum kind kind, struct head h, struct pe_dd n)
{
    struct pe_dd v = kind == LOG ? pe_dd_log1p(dd_mul_d(n, h.r2)) : exact_power(n, h.r2);
    return dd_neg(dd_mul_d(v, h.r1));
}

/* The reference's code in float32: each step rounded. */
static struct pe_dd float32_value(enum kind kind, struct head h, struct pe_dd distance)
{
    float n = (float)dd_round_odd(distance), r1 = (float)h.r1, r2 = (float)h.r2, scaled = 1 + r2 * n;
    struct pe_dd v = kind == LOG ? pe_dd_log(dd((double)scaled)) : exact_power(dd((double)n), (double)r2);
    return dd((double)(-r1 * (float)dd_round_odd(v)));
}

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct kerple *c = plan->config;
    const struct tables *t = plan->tables;
    struct pe_pair g;
    (void)id;
    (void)err;
    if (pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    struct pe_dd x = dd_two_sum(g.k_pos, -g.q_pos), r1 = pe_derived_round(d, PE_F32, dd(t->heads[g.head].r1)),
                 r2 = pe_derived_round(d, PE_F32, dd(t->heads[g.head].r2));
    struct pe_shown shown = pe_shown(r2.hi);
    x = pe_derived(d, "n", x.hi < 0 ? dd_neg(x) : x, "|%s − %s|", pe_shown(g.q_pos).text, pe_shown(g.k_pos).text);
    if (c->kind == LOG) {
        struct pe_dd scaled = pe_derived_round(d, PE_F32, dd_mul(r2, x));
        scaled = pe_derived(d, "1 + r2·n", pe_derived_round(d, PE_F32, dd_add(dd(1), scaled)), "1 + %s·n", shown.text);
        x = pe_derived(d, "l", pe_derived_round(d, PE_F32, pe_dd_log(scaled)), "ln(1 + r2·n)");
    } else
        x = pe_derived(d, "l", x.hi == 0 ? dd(0) : pe_derived_round(d, PE_F32, exact_power(x, r2.hi)), "n^%s",
                       shown.text);
    pe_derived(d, "bias", pe_derived_round(d, PE_F32, dd_neg(dd_mul(r1, x))), "−r1·l = −%s·l", pe_shown(r1.hi).text);
    return PE_OK;
}

/* ---- The bias ---- */

static void store(const struct pe_plan *plan, size_t head, struct pe_dd rel, enum pe_dtype dtype, void *out, size_t i)
{
    const struct kerple *c = plan->config;
    const struct tables *t = plan->tables;
    enum kind kind = (enum kind)c->kind;
    struct head h = t->heads[head];
    struct pe_dd n = rel.hi < 0 ? dd_neg(rel) : rel;
    struct pe_dd v = {0, 0};
    if (n.hi > 0 && c->arith == PE_ARITH_FLOAT32)
        v = float32_value(kind, h, n);
    else if (n.hi > 0)
        v = near_value(kind, h, n);
    bool is_final = n.hi == 0 || c->arith == PE_ARITH_FLOAT32 || dtype == PE_F64;
    if (!is_final && pe_bias_settle(dtype, out, i, v.hi, fabs(v.hi) * 0x1p-50))
        return;
    pe_bias_store(dtype, out, i, is_final ? v : exact_value(kind, h, n));
}

static void distance(const struct pe_plan *plan, size_t head, double rel, size_t n, enum pe_dtype dtype, void *out)
{
    for (size_t i = 0; i < n; i++)
        store(plan, head, dd(rel + (double)i), dtype, out, i);
}

static void row(const struct pe_plan *plan, const struct pe_pair *first, size_t n, enum pe_dtype dtype, void *out)
{
    for (size_t j = 0; j < n; j++)
        store(plan, first->head, dd_two_sum(pe_position_at(plan->seq.k, first->key + j), -first->q_pos), dtype, out, j);
}

static void kerple_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct kerple *c = plan->config;
    pe_cost_each(cost, (double)c->num_heads, sizeof(struct head), 50);
    pe_bias_cost(plan, (double)c->num_heads, cost);
}

static enum pe_status kerple_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct kerple *c = plan->config;
    struct tables *t = plan->tables = calloc(1, sizeof *t + (size_t)c->num_heads * sizeof *t->heads);
    if (!t)
        return pe_no_memory(err);
    plan->distance_work = 1024;
    plan->pace = PE_SLOW; /* a logarithm for each distance of a tile; double-double with arith float32 */
    t->bias.rule = (struct pe_bias_rule){.distance = distance, .row = row};
    c->r1 = c->r1 ? c->r1 : &one; /* shown in the resolved config */
    c->r2 = c->r2 ? c->r2 : &one;
    enum pe_status status = read_heads(c, c->r1, "/r1", R1_MIN, R_MAX, t, offsetof(struct head, r1), err);
    if (!status)
        status = read_heads(c, c->r2, "/r2", R2_MIN, c->kind == POWER ? EXPONENT_MAX : R_MAX, t,
                            offsetof(struct head, r2), err);
    return status ? status : pe_bias_init(&t->bias, plan, &c->bias, err);
}

static const struct pe_formula_line formula[] = {
    {"d = abs(q - k)", "the distance"},
    {"bias[h, q, k] = { -r1[h]*ln(1 + r2[h]*d) if kind is log; -r1[h]*d^r2[h] }",
     "added to the logits; a number for r1 or r2 is that of all heads"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_kerple = {
    .info =
        {
            .name = "kerple",
            .family = "bias",
            .about = {"KERPLE", "a bias that falls with the logarithm or a power of the distance"},
            .paper = "Chi et al. 2022, arXiv 2205.09921",
            .formula = formula,
            .example = "{\"scheme\":\"kerple\",\"num_heads\":2,\"r1\":[1,0.5],\"r2\":[1,0.1],\"len\":4}",
            .picture = "len=64",
            .worked = "num_heads=2&r1=1,0.5&r2=1,0.1&head=1&query=5&key=2",
            .traps = "`r2` is a scale inside the logarithm of `kind` log, but the exponent of `kind` power, "
                     "where 1 gives ALiBi.",
            .params = params,
            .outputs = pe_bias_outputs,
        },
    .config_bytes = sizeof(struct kerple),
    .is_pairwise = true,
    .cost = kerple_cost,
    .plan = kerple_plan,
    .drop = pe_bias_drop,
    .derive = derive,
    .fill = pe_bias_fill,
    .line = pe_bias_fill_line,
    .attend = &pe_bias_attend,
};
