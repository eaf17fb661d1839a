/* xPos (Sun et al. 2022, arXiv 2212.10554): RoPE whose scores also decay with the distance. Queries are scaled by
 *
 *     scale[p, c] = zeta_c^((p - center)/scale_base),   zeta_c = (2c + gamma·d) / ((1 + gamma)·d),   d = rotary_dim
 *
 * and keys by the reciprocal, so that a score has zeta_c^((q_pos - k_pos)/scale_base): only the scale is centred, the
 * angles count from 0. For keys after the query the ratio grows beyond 1: use it causally. */
#include "core/schemes/rotary/rotary.h"

#include <stdlib.h>
#include <string.h>

struct xpos {
    struct pe_rotary_fields rotary; /* first */
    double scale_base, gamma;
    const struct pe_value *center;
    struct pe_value resolved_center;
};

static const struct pe_param params[] = {
    PE_ROTARY_PARAMS,
    PE_ROTARY_PARAMS_LAST,
    PE_P_ARITH(pe_rotary_fields),
    PE_P_REAL(xpos, scale_base, 512, 1e-6, 1e12, "scale base",
              "number of positions over which the scale changes by a factor of zeta", .group = PE_G_FREQUENCIES,
              .usual = {64, 8192}),
    PE_P_REAL(xpos, gamma, 0.4, 1e-6, 1e6, "gamma",
              "sets zeta of the first pair, gamma/(1 + gamma); a larger gamma means less decay",
              .group = PE_G_FREQUENCIES, .usual = {0.05, 4}),
    PE_P_VALUE(xpos, center, "centre",
               "position whose scale is 1: a number, default 0; \"torchscale\": half of the last position + 1, rounded "
               "up; \"lucidrains\": half of the length, rounded down"),
    PE_P_END,
};

enum { SCALE = PE_N_ROTARY_OUTPUTS };

static const struct pe_output_row outputs[] = {
    PE_ROTARY_OUTPUTS,
    [SCALE] = PE_OUTPUT("scale", "n,rotary_dim/2", 1, PE_DTYPE_NONE, false, NULL, "scale",
                        "factor on queries; keys are multiplied by its reciprocal"),
    {.name = NULL},
};

/* The `extra` of the family's object: the values that the scale needs. */
struct scales {
    double center;
    size_t n_pairs;
    struct pe_dd log_zeta[]; /* [n_pairs], divided by scale_base */
};

/* ---- Rules ---- */

static enum pe_status resolve_center(struct pe_plan *plan, double *center, struct pe_failure *err)
{
    struct xpos *c = plan->config;
    const struct pe_value *v = c->center;
    *center = 0;
    if (v && v->kind == PE_STRING && strcmp(v->string, "torchscale") == 0)
        *center = ceil(pe_sequence_reach(&plan->seq) / 2);
    else if (v && v->kind == PE_STRING && strcmp(v->string, "lucidrains") == 0)
        *center = floor((double)plan->seq.k->n / 2);
    else if (v && v->kind == PE_INTEGER)
        *center = (double)v->integer;
    else if (v && v->kind == PE_REAL)
        *center = v->real;
    else if (v)
        return pe_fail(err, "/center", "center is neither a number nor \"torchscale\" nor \"lucidrains\"");
    if (!(fabs(*center) <= PE_POSITION_MAX))
        return pe_fail(err, "/center", "center is %s; allowed: magnitudes up to 2^40", pe_shown(*center).text);
    c->resolved_center = (struct pe_value){.kind = PE_REAL, .real = *center};
    c->center = &c->resolved_center;
    return PE_OK;
}

static struct scales *scales_of(const struct pe_plan *plan) { return ((const struct pe_rotary *)plan->tables)->extra; }

/* The family's cost, and a logarithm for each pair. */
static void xpos_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct xpos *c = plan->config;
    pe_rotary_cost(plan, cost);
    pe_cost_each(cost, (double)c->rotary.head_dim / 2, sizeof(struct pe_dd), PE_NS_DD);
}

static enum pe_status xpos_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct xpos *c = plan->config;
    c->rotary.channels = PE_UNSET_WORD;
    enum pe_status status = pe_rotary_plan(plan, err);
    if (status)
        return status;
    struct pe_rotary *r = plan->tables;
    struct scales *s = r->extra = calloc(1, sizeof *s + r->n_pairs * sizeof *s->log_zeta);
    if (!s)
        return pe_no_memory(err);
    s->n_pairs = r->n_pairs;
    plan->element_work = 4096;
    plan->pace = PE_SLOW; /* an exponential in double-double for each value of the scale */
    double d = (double)c->rotary.rotary_dim;
    struct pe_dd below = dd_mul_d(dd_two_sum(1, c->gamma), d);
    for (size_t i = 0; i < s->n_pairs; i++) {
        struct pe_dd zeta = dd_div(dd_add(dd(2 * (double)i), dd_two_prod(c->gamma, d)), below);
        if (r->float32)
            zeta = dd((double)(float)zeta.hi);
        s->log_zeta[i] = dd_div(pe_dd_log(zeta), dd(c->scale_base));
    }
    return resolve_center(plan, &s->center, err);
}

/* ---- The scale ---- */

/* scale[p, c] to the power of sign. */
static struct pe_dd scale_at(const struct scales *s, double p, size_t c, int sign)
{
    struct pe_dd t = dd_two_sum(p, -s->center);
    /* e^x; 0 or infinity beyond the range of a double. */
    struct pe_dd x = dd_mul(sign < 0 ? dd_neg(t) : t, s->log_zeta[c]);
    if (x.hi < -740)
        return dd(0);
    return x.hi > 709 ? dd(HUGE_VAL) : pe_dd_exp(x);
}

static void xpos_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                      void *dst)
{
    if (id != SCALE) {
        pe_rotary_fill(plan, output, id, b, dst);
        return;
    }
    for (uint64_t i = 0; i < b->n_rows; i++) {
        double p = pe_position_at(plan->seq.k, b->row0 + i);
        for (uint64_t j = 0; j < b->n_cols; j++) {
            struct pe_dd v = scale_at(scales_of(plan), p, (size_t)(b->col0 + j), 1);
            pe_store(output->dtype, dst, (size_t)(i * b->n_cols + j), output->dtype == PE_F64 ? v.hi : dd_round_odd(v));
        }
    }
}

static void magnitude(const struct pe_plan *plan, size_t id, const struct pe_positions *positions, uint64_t row0,
                      size_t n_rows, double *factors)
{
    const struct scales *s = scales_of(plan);
    int sign = pe_rotary_inputs[id].name[0] == 'q' ? 1 : -1;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t c = 0; c < s->n_pairs; c++)
            factors[i * s->n_pairs + c] = scale_at(s, pe_position_at(positions, row0 + i), c, sign).hi;
}

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct xpos *c = plan->config;
    const struct scales *s = scales_of(plan);
    if (id != SCALE)
        return pe_rotary_derive(plan, id, at, d, err);
    double width = (double)c->rotary.rotary_dim, p = pe_position_at(plan->seq.k, at->row);
    size_t pair = (size_t)at->col;
    struct pe_dd below = dd_mul_d(dd_two_sum(1, c->gamma), width),
                 zeta = dd_div(dd_add(dd(2 * (double)pair), dd_two_prod(c->gamma, width)), below);
    zeta = pe_derived(d, "ζ", pe_derived_round(d, PE_F32, zeta), "(2·%zu + γ·d)/((1 + γ)·d) = (%zu + %s·%s)/(%s·%s)",
                      pair, 2 * pair, pe_shown(c->gamma).text, pe_shown(width).text, pe_shown(1 + c->gamma).text,
                      pe_shown(width).text);
    struct pe_dd x = dd_div(dd_two_sum(p, -s->center), dd(c->scale_base));
    x = pe_derived(d, "x", pe_derived_round(d, PE_F32, x), "(p − center)/scale_base = (%s − %s)/%s", pe_shown(p).text,
                   pe_shown(s->center).text, pe_shown(c->scale_base).text);
    struct pe_dd e = dd_mul(x, pe_dd_log(zeta)), /* as in scale_at */
        power = e.hi < -740  ? dd(0)
                : e.hi > 709 ? dd(HUGE_VAL)
                             : pe_dd_exp(e);
    pe_derived(d, "ζ^x", pe_derived_round(d, PE_F32, power), "%s^%s", pe_brief(zeta, 7).text, pe_brief(x, 7).text);
    pe_derived_says(d, "the factor on queries; keys have its reciprocal");
    return PE_OK;
}

static bool columns(const struct pe_plan *plan, size_t id, struct pe_wave *waves)
{
    return id != SCALE && pe_rotary_columns(plan, id, waves);
}

static const struct pe_formula_line formula[] = {
    PE_ROTARY_FORMULA,
    {"zeta_c = (2*c + gamma*r)/((1 + gamma)*r)", "how much pair c keeps over scale_base positions, below 1"},
    {"scale[p, c] = zeta_c^((p - center)/scale_base)", "queries are multiplied by it and keys divided by it"},
    {"y_1 = scale[p, c]*(x_1*cos[p, c] - x_2*sin[p, c])", "a pair of a query, rotated and scaled"},
    {"y_2 = scale[p, c]*(x_2*cos[p, c] + x_1*sin[p, c])",
     "the same for its second channel: a score then decays with the distance"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_xpos = {
    .info =
        {
            .name = "xpos",
            .family = "rotary",
            .about = {"xPos", "rotary positions whose scores decay with the distance"},
            .paper = "Sun et al. 2022, arXiv 2212.10554",
            .formula = formula,
            .example = "{\"scheme\":\"xpos\",\"len\":8,\"head_dim\":16}",
            .picture = "len=128&head_dim=128&outputs=scale",
            .worked = "head_dim=8&tensor=scale&position=3&pair=1",
            .traps = "Keys have the reciprocal of the queries' scale, so queries and keys cannot share one "
                     "table. For keys after the query the ratio grows beyond 1: use it causally. torchscale "
                     "and lucidrains centre the scale at different positions (`center`); the angles count "
                     "from 0 in both.",
            .params = params,
            .outputs = outputs,
            .inputs = pe_rotary_inputs,
        },
    .config_bytes = sizeof(struct xpos),
    .cost = xpos_cost,
    .plan = xpos_plan,
    .drop = pe_rotary_drop,
    .columns = columns,
    .fill = xpos_fill,
    .dtype = pe_rotary_dtype,
    .coords = pe_rotary_coords,
    .rotate = pe_rotary_rotate,
    .attend = &pe_rotary_attend,
    .magnitude = magnitude,
    .derive = derive,
};
