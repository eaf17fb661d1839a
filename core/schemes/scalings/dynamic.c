/* Dynamic NTK: base' = base · stretch^(r/(r - 2)) with
 *
 *     stretch = s·n/M - (s - 1) = 1 + s·(n - M)/M,   n = max(seq_len, M),   M = max_position_embeddings,
 *
 * which is exactly 1 within M (transformers). vLLM makes one table for n = s·M. */
#include "core/schemes/scalings/scaling.h"

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    if (s->convention == PE_CONVENTION_GGML)
        return pe_fail(err, "/scaling/convention", "convention is \"ggml\", which has no type \"dynamic\"");
    if (s->convention == PE_CONVENTION_VLLM)
        s->seq_len = PE_UNSET;
    else
        pe_scaling_set_seq_len(s, use);
    return pe_scaling_check_exponent("dynamic", use, err);
}

static struct pe_dd stretch(const struct pe_scaling_resolved *s)
{
    double m = s->max_position_embeddings;
    if (s->convention == PE_CONVENTION_VLLM)
        return dd_sub(dd_two_prod(s->factor, s->factor), dd_two_sum(s->factor, -1));
    if (s->seq_len <= m)
        return dd(1);
    return dd_add(dd(1), dd_div(dd_mul_d(dd_two_sum(s->seq_len, -m), s->factor), dd(m)));
}

static const struct pe_formula_line formula[] = {
    {"M = max_position_embeddings", "the length where stretching begins"},
    {"L = { factor*M if convention is vllm; max(seq_len, M) }",
     "the length that the table is for; vLLM makes one for the longest"},
    {"B = base*(factor*L/M - (factor - 1))^(r/(r - 2))", "the base grows with the sequence, and is the same up to M"},
    {"w'_c = B^(-2*c/r)", "the frequency of pair c under the new base"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_dynamic = {
    .name = "dynamic",
    .formula = formula,
    .about = "the same with a factor that grows with the sequence",
    .convention_about = "vllm makes one table for factor·max_position_embeddings at every length",
    .object = {"factor"},
    .needs = {{.name = "factor"}, {.name = "max_position_embeddings"}},
    .takes = "seq_len|convention",
    .in_transformers = true,
    .border = "max_position_embeddings",
    .grows = true,
    .resolve = resolve,
    .stretch = stretch,
    .tried = PE_TRIED_IF_BELIEVED,
};
