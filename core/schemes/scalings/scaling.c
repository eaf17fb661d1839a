/* Context scalings of rotary schemes: which rule a given object means, the values that follow from others, and the
 * frequencies. The list of rules and the rows are in scaling_rows.c, the rules in core/schemes/scalings/. */
#include "core/schemes/scalings/scaling.h"

#include <float.h>

/* ---- Which rule is meant ---- */

static const struct pe_scaling_rule *meant_by(const struct pe_scaling *given, int word)
{
    const struct pe_scaling_rule *said = pe_scaling_rule_of_word(word);
    for (int i = 0; i < PE_N_SCALINGS; i++)
        if (pe_scaling_at(i)->claims && pe_scaling_at(i)->claims(given, said))
            return pe_scaling_at(i);
    return said;
}

const struct pe_scaling_rule *pe_scaling_meant(const struct pe_scaling *given)
{
    return meant_by(given, given->rope_type != PE_UNSET_WORD ? given->rope_type : given->type);
}

static enum pe_status check_words(const struct pe_scaling *given, const struct pe_scaling_rule *rule,
                                  struct pe_failure *err)
{
    if (given->type == PE_UNSET_WORD || meant_by(given, given->type) == rule)
        return PE_OK;
    return pe_fail(err, "/scaling/rope_type",
                   "rope_type is \"%s\" and type is \"%s\", which are different rules; give one",
                   pe_scaling_words[given->rope_type], pe_scaling_words[given->type]);
}

/* ---- Values that follow from others ---- */

static enum pe_status find_factor(const struct pe_scaling *given, const struct pe_scaling_rule *rule, double *factor,
                                  struct pe_failure *err)
{
    *factor = given->factor;
    if (!rule->factor_is_ratio || !isnan(*factor) || given->convention == PE_CONVENTION_GGML)
        return PE_OK;
    *factor = given->max_position_embeddings / given->original_max_position_embeddings;
    if (*factor < PE_SCALING_FACTOR_MIN || *factor > PE_SCALING_FACTOR_MAX)
        return pe_fail(err, "/scaling/max_position_embeddings",
                       "max_position_embeddings/original_max_position_embeddings makes factor %.10g; allowed: from "
                       "1e-06 to 1000000",
                       *factor);
    return PE_OK;
}

/* A flag that was not given is what its row states. */
static void set_flags(const struct pe_param *row, union pe_scaling_own *own)
{
    static const struct pe_value no = {.kind = PE_BOOLEAN}, yes = {.kind = PE_BOOLEAN, .boolean = true};
    for (; row && row->name; row++) {
        const struct pe_value **flag = (const struct pe_value **)(void *)(own->bytes + row->offset);
        if (row->type == PE_T_VALUE && !*flag)
            *flag = row->fallback != 0 ? &yes : &no;
    }
}

/* With no other rule the convention of divisors is ggml, as nothing else has them. */
static enum pe_status check_divisors(const struct pe_scaling *given, const struct pe_scaling_rule *rule,
                                     const struct pe_scaling_use *use, struct pe_failure *err)
{
    const struct pe_reals *divisors = &given->divisors;
    bool is_implied = rule == pe_scaling_at(0) && given->convention == PE_CONVENTION_TRANSFORMERS;
    if (!divisors->n)
        return PE_OK;
    if (given->convention != PE_CONVENTION_GGML && !is_implied)
        return pe_fail(err, "/scaling/divisors", "divisors are used with convention \"ggml\" only");
    if (divisors->array.rank == 1 && (double)divisors->n == use->dim / 2)
        return PE_OK;
    return pe_fail(err, "/scaling/divisors", "divisors has %llu numbers; needed: %.0f, one per rotated pair",
                   (unsigned long long)divisors->n, use->dim / 2);
}

enum pe_status pe_scaling_resolve(const struct pe_scaling *given, const struct pe_scaling_use *use,
                                  struct pe_scaling_resolved *resolved, struct pe_failure *err)
{
    const struct pe_scaling_rule *rule = pe_scaling_meant(given);
    double factor;
    if (check_words(given, rule, err) || find_factor(given, rule, &factor, err) ||
        pe_scaling_check_fields(given, rule, factor, err) || check_divisors(given, rule, use, err))
        return err->status;
    *resolved = (struct pe_scaling_resolved){
        .rule = rule,
        .convention = given->divisors.n ? PE_CONVENTION_GGML : given->convention,
        .factor = factor,
        .max_position_embeddings = given->max_position_embeddings,
        .original_max_position_embeddings = given->original_max_position_embeddings,
        .seq_len = given->seq_len,
        .partial_rotary_factor = given->partial_rotary_factor,
        .attention_factor = given->attention_factor,
        .softmax_scale_factor = given->softmax_scale_factor,
        .divisors = given->divisors,
        .own = given->own[pe_scaling_place(rule)],
    };
    set_flags(rule->fields, &resolved->own);
    if (rule->resolve && rule->resolve(resolved, use, err))
        return err->status;
    if (isnan(resolved->attention_factor))
        resolved->attention_factor = 1;
    return PE_OK;
}

/* ---- Frequencies ---- */

/* ln base' = ln base + dim/(dim - 2) · ln stretch. In float32, base' is a Python double that torch.pow rounds. */
static struct pe_dd log_base_of(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use)
{
    struct pe_dd log_base = pe_dd_log(dd(use->base));
    float base = (float)use->base;
    if (s->rule->stretch) {
        struct pe_dd power = dd_div(dd(use->dim), dd(use->dim - 2));
        log_base = dd_add(log_base, dd_mul(power, pe_dd_log(s->rule->stretch(s))));
        base = (float)fmin(pe_dd_exp(log_base).hi, (double)FLT_MAX);
    }
    return use->float32 ? pe_dd_log(dd((double)base)) : log_base;
}

/* False: the pair does not turn. */
static bool divide(struct pe_scaling_pair *p, double divisor)
{
    p->w = num_div(p, p->w, dd(divisor));
    p->power = num_mul(p, p->power, dd(divisor));
    return divisor < PE_SCALING_DIVISOR_STILL;
}

void pe_scaling_ladder(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use, size_t n_pairs,
                       struct pe_dd *inv_freq)
{
    const struct pe_scaling_rule *rule = s->rule;
    struct pe_scaling_pair p = {.s = s, .use = use};
    struct pe_dd log_base = log_base_of(s, use);
    if (rule->prepare)
        rule->prepare(&p);
    if (!use->float32)
        pe_ladder_dd(log_base, use->dim / 2, n_pairs, inv_freq);
    for (p.c = 0; p.c < n_pairs; p.c++) {
        if (use->float32)
            p.power = dd((double)pe_power_float32(log_base, p.c, use->dim / 2));
        p.w = use->float32 ? num_div(&p, dd(1), p.power) : inv_freq[p.c];
        bool turns = !s->divisors.n || divide(&p, pe_real_at(&s->divisors, p.c));
        inv_freq[p.c] = !turns ? dd(0) : rule->frequency ? rule->frequency(&p) : p.w;
    }
}

/* The recipes that begin with another number than the frequency have no rule that changes it. */
static enum pe_status check_recipe(const struct pe_scaling_resolved *s, enum pe_recipe recipe, struct pe_failure *err)
{
    enum pe_rungs rungs = pe_recipes[recipe].rungs;
    bool is_plain = !s->rule->frequency && !s->divisors.n;
    if (rungs == PE_RUNGS_EXACT || rungs == PE_RUNGS_RECIPROCAL || is_plain)
        return PE_OK;
    return pe_fail(err, "/recipe", "recipe %s is known for frequencies without scaling; this scaling is %s",
                   pe_recipes[recipe].name, s->rule->name);
}

/* What a recipe begins with: the frequency, or what takes its place. */
static struct pe_dd state_rung(const struct pe_scaling_pair *p, struct pe_dd log_base, double base)
{
    struct pe_derivation *d = p->steps;
    double dim = p->use->dim;
    struct pe_shown place = pe_shown(2 * (double)p->c / dim);
    switch (pe_recipes[d->recipe].rungs) {
    case PE_RUNGS_DIVISOR:
        return pe_derived(d, "b", dd(pe_recipe_frequency(d->recipe, base, dim, (uint32_t)p->c, 0)), "base^(%s)",
                          place.text);
    case PE_RUNGS_PRODUCT:
        return pe_derived(d, "t", dd(pe_recipe_frequency(d->recipe, base, dim, (uint32_t)p->c, 0)), "base^(-2/%s)",
                          pe_shown(dim).text);
    default: break;
    }
    struct pe_dd w =
        d->recipe == PE_RECIPE_EXACT ? pe_dd_exp(dd_div(dd_mul_d(log_base, -2 * (double)p->c), dd(dim)))
        : p->use->float32
            ? num_div(p, dd(1), p->power)
            : dd(pe_recipe_frequency(pe_recipes[d->recipe].rungs == PE_RUNGS_EXPONENTIAL ? d->recipe : PE_RECIPE_F64,
                                     base, dim, (uint32_t)p->c, 0));
    return pe_derived(d, "w", w, "base^(-2·%zu/%s) = %s^(-%s)", p->c, pe_shown(dim).text, pe_shown(base).text,
                      pe_shown(2 * (double)p->c / dim).text);
}

/* A base that the rule stretches, with its logarithm. */
static double state_base(const struct pe_scaling_pair *p, struct pe_dd *log_base)
{
    const struct pe_scaling_resolved *s = p->s;
    double r = p->use->dim, base = p->use->base;
    if (!s->rule->stretch)
        return base;
    struct pe_dd by = s->rule->stretch(s);
    if (s->rule->border)
        pe_derived(p->steps, "s", by, "1 + factor·(max(seq_len, M) − M)/M, seq_len = %s, M = %s",
                   pe_shown(s->seq_len).text, pe_shown(s->max_position_embeddings).text);
    struct pe_dd stretched = pe_derived(p->steps, "base'", pe_dd_exp(*log_base), "base·%s^(r/(r − 2)) = %s·%s^(%s/%s)",
                                        s->rule->border ? "s" : "factor", pe_shown(base).text, pe_brief(by, 7).text,
                                        pe_shown(r).text, pe_shown(r - 2).text);
    if (p->steps->n_given)
        *log_base = pe_dd_log(stretched);
    return stretched.hi;
}

enum pe_status pe_scaling_derive(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use, size_t c,
                                 struct pe_derivation *d, struct pe_dd *w, struct pe_failure *err)
{
    const struct pe_recipe_row *recipe = &pe_recipes[d->recipe];
    struct pe_scaling_use as = *use;
    as.float32 = recipe->rungs == PE_RUNGS_RECIPROCAL;
    struct pe_scaling_pair p = {.s = s, .use = &as, .c = c, .steps = d};
    if (check_recipe(s, d->recipe, err))
        return err->status;
    struct pe_dd log_base = log_base_of(s, &as);
    double base = state_base(&p, &log_base);
    if (s->rule->prepare)
        s->rule->prepare(&p);
    if (as.float32)
        p.power = dd((double)pe_power_float32(log_base, c, as.dim / 2));
    p.w = state_rung(&p, log_base, base);
    bool turns = true;
    if (s->divisors.n) {
        double divisor = pe_real_at(&s->divisors, c);
        turns = divide(&p, divisor);
        p.w = pe_derived(d, "w°", turns ? p.w : dd(0), "w/divisors[%zu] = w/%s", c, pe_shown(divisor).text);
    }
    *w = turns && s->rule->frequency ? s->rule->frequency(&p) : p.w;
    bool rounds = recipe->rungs == PE_RUNGS_EXACT || recipe->rungs == PE_RUNGS_RECIPROCAL;
    if (d->recipe != PE_RECIPE_EXACT && rounds) /* the last frequency, in the type that the recipe has for it */
        *w = d->at[d->n - 1].value = dd(pe_recipe_round(d->recipe, w->hi, base));
    return PE_OK;
}

void pe_scaling_steps(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use, size_t n_pairs,
                      struct pe_ggml_steps *steps)
{
    struct pe_scaling_pair p = {.s = s, .use = use};
    struct pe_dd log_base = pe_dd_log(dd((double)(float)use->base));
    double exponent = (double)(-2 / (float)use->dim);
    float power = (float)dd_round_odd(pe_dd_exp(dd_mul_d(log_base, exponent)));
    if (s->rule->prepare)
        s->rule->prepare(&p);
    for (p.c = 0; p.c < n_pairs; p.c++) {
        float divisor = s->divisors.n ? (float)pe_real_at(&s->divisors, p.c) : 1;
        steps[p.c] = (struct pe_ggml_steps){(uint32_t)p.c, power, divisor, 1, 0};
        s->rule->steps(&p, &steps[p.c]);
    }
}
