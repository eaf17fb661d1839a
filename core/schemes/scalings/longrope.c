/* LongRoPE (Ding et al. 2024, arXiv 2402.13753; Phi-3): w'_c = w_c/list_c, from a list for short sequences and one for
 * long ones. */
#include "core/schemes/scalings/scaling.h"

struct longrope {
    struct pe_reals short_factor, long_factor;
    double short_mscale, long_mscale;
    int list; /* resolved to short or long */
};

enum { AUTO, SHORT, LONG };
static const char *const lists[] = {[AUTO] = "auto", [SHORT] = "short", [LONG] = "long", NULL};

static const struct pe_param fields[] = {
    PE_P_REALS(longrope, short_factor, 1e-6, 1e9, "short list",
               "longrope: divisors of the frequencies for sequences within the original length: [pairs]"),
    PE_P_REALS(longrope, long_factor, 1e-6, 1e9, "long list",
               "longrope: divisors of the frequencies for longer sequences: [pairs]"),
    PE_P_REAL(longrope, short_mscale, PE_UNSET, 1e-3, 1e3, "factor of the short list",
              "longrope: attention_factor if the short list is used (Phi-3.5-MoE)", .usual = {0.5, 2}),
    PE_P_REAL(longrope, long_mscale, PE_UNSET, 1e-3, 1e3, "factor of the long list",
              "longrope: attention_factor if the long list is used (Phi-3.5-MoE)", .usual = {0.5, 2}),
    PE_P_WORD(longrope, list, lists, "choice of the list",
              "longrope: the list for the whole sequence; auto: long where seq_len is above "
              "original_max_position_embeddings (see convention)"),
    PE_P_END,
};

static const struct longrope *own(const struct pe_scaling_resolved *s) { return PE_S_OWN(s, longrope); }

/* Early Phi-3 configs have yarn for it; the two lists distinguish them. */
static bool claims(const struct pe_scaling *given, const struct pe_scaling_rule *said)
{
    const struct longrope *l = (const void *)given->own[PE_SCALING_longrope].bytes;
    return pe_same(said->name, "yarn") && l->short_factor.n && l->long_factor.n;
}

/* ---- Rules ---- */

static enum pe_status check_list(const struct pe_reals *list, const char *name, size_t n_pairs, struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    pe_scaling_pointer(pointer, name);
    if (list->array.rank != 1)
        return pe_fail(err, pointer, "%s has %u dimensions; allowed: one list of numbers", name, list->array.rank);
    if (list->n != n_pairs)
        return pe_fail(err, pointer, "%s has %llu numbers; needed: %zu, one per rotated pair", name,
                       (unsigned long long)list->n, n_pairs);
    return PE_OK;
}

/* Chooses one list for the whole sequence: the long list if seq_len > O (transformers), if the largest position > O
 * (vLLM), or always (mlx-lm). TGI takes rows before O from the short list and the others from the long one. */
static enum pe_status choose_list(const struct pe_scaling_resolved *s, int *list, struct pe_failure *err)
{
    double original = s->original_max_position_embeddings;
    if (*list != AUTO)
        return PE_OK;
    if (s->convention == PE_CONVENTION_TGI && s->seq_len > original)
        return pe_fail(
            err, "/scaling/convention",
            "convention is \"tgi\", which mixes both lists in a sequence of %.10g positions: before "
            "original_max_position_embeddings, %.10g, rows of the short list, after it of the long one. That "
            "is no single table; ask twice, with \"list\": \"short\" and \"list\": \"long\"",
            s->seq_len, original);
    double length = s->convention == PE_CONVENTION_VLLM ? s->seq_len - 1 : s->seq_len;
    *list = length > original || s->convention == PE_CONVENTION_MLX ? LONG : SHORT;
    return PE_OK;
}

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    struct longrope *l = PE_S_OWN(s, longrope);
    size_t n_pairs = (size_t)use->dim / 2;
    if (check_list(&l->short_factor, "short_factor", n_pairs, err) ||
        check_list(&l->long_factor, "long_factor", n_pairs, err))
        return err->status;
    pe_scaling_set_seq_len(s, use);
    if (choose_list(s, &l->list, err))
        return err->status;
    /* sqrt(1 + ln s/ln O) for s > 1 (Phi-3); Phi-3.5-MoE has one number for each list instead. */
    double original = s->original_max_position_embeddings;
    if (isnan(s->attention_factor))
        s->attention_factor = own(s)->list == LONG ? own(s)->long_mscale : own(s)->short_mscale;
    if (!isnan(s->attention_factor) || s->convention == PE_CONVENTION_GGML) /* ggml has none of its own */
        return PE_OK;
    if (isnan(s->factor) && use->has_factor)
        return PE_OK;
    if (isnan(s->factor))
        return pe_fail(err, "/scaling/factor",
                       "factor is missing; type \"longrope\" needs it for its attention_factor: give factor, or "
                       "max_position_embeddings, which over original_max_position_embeddings is factor, or "
                       "attention_factor");
    if (s->factor <= 1)
        return PE_OK;
    if (original <= 1)
        return pe_fail(err, "/scaling/original_max_position_embeddings",
                       "original_max_position_embeddings is %.10g; allowed: more than 1, as its logarithm is a divisor",
                       original);
    struct pe_dd square = dd_add(dd(1), dd_div(pe_dd_log(dd(s->factor)), pe_dd_log(dd(original))));
    s->attention_factor = pe_dd_exp(dd_mul_d(pe_dd_log(square), 0.5)).hi;
    return PE_OK;
}

static double divisor(const struct pe_scaling_pair *p)
{
    const struct longrope *l = own(p->s);
    return pe_real_at(l->list == LONG ? &l->long_factor : &l->short_factor, p->c);
}

static struct pe_dd frequency(const struct pe_scaling_pair *p) { return num_below(p, divisor(p)); }

static void steps(const struct pe_scaling_pair *p, struct pe_ggml_steps *g) { g->divisor = (float)divisor(p); }

static const struct pe_formula_line formula[] = {
    {"s = factor", "how many times longer the context becomes"},
    {"O = original_max_position_embeddings", "the length of the training"},
    {"L = { seq_len - 1 if convention is vllm; seq_len }", "the length that decides; vLLM changes one position later"},
    {"u = { 1 if list is long or list is auto and (L > O or convention is mlx); 0 }",
     "1: the long list, for the whole sequence"},
    {"w'_c = { w_c/long_factor[c] if u = 1; w_c/short_factor[c] }", "each pair has a divisor of its own"},
    {"a = { long_mscale if u = 1 and long_mscale is given; short_mscale if u = 0 and short_mscale is given; 1 if s <= "
     "1; sqrt(1 + ln(s)/ln(O)) }",
     "the factor on cosine and sine"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_longrope = {
    .name = "longrope",
    .formula = formula,
    .alias = "su",
    .about = "a divisor per pair from two lists (Phi-3)",
    .alias_about = "su is an old word for longrope",
    .convention_about = "mlx always uses the long list, vllm changes lists one position later, tgi mixes rows of both, "
                        "ggml has no attention_factor of its own",
    .attention_about = "of longrope sqrt(1 + ln(factor)/ln(original_max_position_embeddings)) for a factor above 1",
    .fields = fields,
    .object = {"factor", "original_max_position_embeddings", "short_factor", "long_factor"},
    .attention = "short_mscale|long_mscale|attention_factor",
    .needs = {{.name = "original_max_position_embeddings"},
              {.name = "short_factor", .hint = ": one number per rotated pair"},
              {.name = "long_factor", .hint = ": one number per rotated pair"}},
    .takes = "factor|seq_len|attention_factor|convention",
    .factor_is_ratio = true,
    .has_one_ladder = true,
    .in_transformers = true,
    .border = "original_max_position_embeddings",
    .claims = claims,
    .resolve = resolve,
    .frequency = frequency,
    .steps = steps,
    .tried = PE_TRIED_IF_BELIEVED,
};
