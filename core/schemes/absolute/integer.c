/* The position itself in every channel: the counter-example that opens every lesson on positional encoding.
 *
 *     PE(p, j) = pe_scale · p          normalize none: grows without bound
 *     PE(p, j) = pe_scale · p / N      length
 *     PE(p, j) = pe_scale · p / (N-1)  length_minus_one; 0 where N = 1
 *
 * N is the number of positions in the request, so the code of a normalised position changes with the length. */
#include "core/scheme.h"

#include <math.h>
#include <string.h>

enum normalize { NONE, LENGTH, LENGTH_MINUS_ONE };

struct integer {
    int64_t dim;
    int normalize;
    const struct pe_value *pe_scale;
    struct pe_value scale; /* pe_scale points here once it is a number */
    int arith;
};

static const char *const normalize_words[] = {
    [NONE] = "none", [LENGTH] = "length", [LENGTH_MINUS_ONE] = "length_minus_one", NULL};

static const struct pe_param params[] = {
    PE_P_INT(integer, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_WORD(integer, normalize, normalize_words, "normalisation",
              "none: p; length: p/N, where N is the number of positions; length_minus_one: p/(N-1), or 0 if N is 1"),
    PE_P_VALUE(integer, pe_scale, "scale of the encoding",
               "factor, a number from -1e12 to 1e12 or \"sqrt_dim\"; default 1"),
    PE_P_ARITH(integer),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position"),
    {.name = NULL},
};

#define SCALE_MAX 1e12 /* with positions up to 2^40, no product comes near the limits of a double's range */

static double scale_of(const struct integer *c)
{
    const struct pe_value *v = c->pe_scale;
    if (!v)
        return 1;
    if (v->kind == PE_STRING && strcmp(v->string, "sqrt_dim") == 0)
        return sqrt((double)c->dim);
    if (v->kind == PE_INTEGER)
        return (double)v->integer;
    return v->kind == PE_REAL ? v->real : (double)NAN;
}

static enum pe_status integer_plan(struct pe_plan *p, struct pe_failure *err)
{
    struct integer *c = p->config;
    double scale = scale_of(c);
    if (isnan(scale))
        return pe_fail(err, "/pe_scale", "pe_scale is neither a number nor \"sqrt_dim\"");
    if (!(fabs(scale) <= SCALE_MAX))
        return pe_fail(err, "/pe_scale", "pe_scale is %s; allowed: from -1e12 to 1e12", pe_shown(scale).text);
    c->scale = (struct pe_value){.kind = PE_REAL, .real = scale};
    c->pe_scale = &c->scale;
    return PE_OK;
}

/* The divisor of p; 0: the value is 0. */
static double divisor(const struct pe_plan *plan)
{
    const struct integer *c = plan->config;
    double n = (double)plan->seq.k->n;
    return c->normalize == NONE ? 1 : c->normalize == LENGTH ? n : n - 1;
}

/* a / b, with the remainder as the lower part. Only the remainder's sign matters, and that is exact, so the quotient
 * is rounded correctly however near it is to the midpoint between two numbers of a narrower format. */
static struct pe_dd quotient(struct pe_dd a, double b)
{
    double q = dd_div(a, dd(b)).hi, left = dd_sub(a, dd_two_prod(q, b)).hi;
    return (struct pe_dd){q, left};
}

static double value(const struct pe_plan *plan, enum pe_dtype dtype, double p)
{
    const struct integer *c = plan->config;
    double n = divisor(plan);
    if (p == 0 || n == 0 || c->scale.real == 0)
        return 0; /* +0, never -0 */
    if (plan->arith == PE_ARITH_FLOAT32)
        return (double)((float)p * (float)c->scale.real / (float)n);
    struct pe_dd v = dd_two_prod(c->scale.real, p);
    if (n != 1)
        v = quotient(v, n);
    return dtype == PE_F64 ? v.hi : dd_round_odd(v);
}

/* PE(p, j) as above, the same for all j */
static void integer_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                         const struct pe_block *b, void *dst)
{
    (void)id;
    for (uint64_t i = 0; i < b->n_rows; i++) {
        double x = value(plan, output->dtype, pe_position_at(plan->seq.k, b->row0 + i));
        for (uint64_t j = 0; j < b->n_cols; j++)
            pe_store(output->dtype, dst, (size_t)(i * b->n_cols + j), x);
    }
}

static const struct pe_formula_line formula[] = {
    {"v = { p if normalize is none; p/N if normalize is length; 0 if N = 1; p/(N - 1) }",
     "the position, or its share of the length, which changes with the sequence"},
    {"PE[p, j] = pe_scale*v", "the same number in every channel"},
    {NULL, NULL},
};

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct integer *c = plan->config;
    double p = pe_position_at(plan->seq.k, at->row), n = divisor(plan), scale = c->scale.real;
    (void)id;
    (void)err;
    struct pe_dd x = pe_derived(d, "p", pe_derived_round(d, PE_F32, dd(p)), "%s", pe_shown(p).text);
    if (scale != 1)
        x = pe_derived(d, "s·p", pe_derived_round(d, PE_F32, dd_mul(x, pe_derived_round(d, PE_F32, dd(scale)))),
                       "pe_scale·p = %s·%s", pe_shown(scale).text, pe_shown(p).text);
    if (n != 1)
        pe_derived(d, "x", n == 0 ? dd(0) : pe_derived_round(d, PE_F32, dd_div(x, dd(n))), "%s/%s",
                   d->at[d->n - 1].symbol, pe_shown(n).text);
    return PE_OK;
}

const struct pe_scheme pe_scheme_integer = {
    .info =
        {
            .name = "integer",
            .family = "absolute",
            .about = {"position as a number", "the position itself, or its share of the length, in every channel"},
            .paper = "no model uses it; introductions begin with it as a counter-example",
            .formula = formula,
            .example = "{\"scheme\":\"integer\",\"len\":8,\"dim\":4}",
            .picture = "len=64&dim=16",
            .worked = "dim=4&len=8&normalize=length&position=3&channel=1",
            .traps = "The plain number grows without bound and soon outweighs the embeddings that it is added "
                     "to. Divided by the length, one position has another number in each sequence.",
            .params = params,
            .outputs = outputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct integer),
    .cost = pe_cost_nothing,
    .plan = integer_plan,
    .fill = integer_fill,
    .derive = derive,
};
