/* RIFLEx (Zhao et al. 2025, arXiv 2502.15894, section 3.3; thu-ml/RIFLEx): of a video model's time axis the pair
 * whose period the first repeated frame shows, the k-th counted from 1, makes less than one turn in the sequence:
 *
 *     w'_(k-1) = 0.9 · 2π/L,   L = seq_len
 *
 * All others stay. It is meant where L is beyond that pair's own period. */
#include "core/schemes/scalings/scaling.h"

struct riflex {
    int64_t k;
};

static const struct pe_param fields[] = {
    PE_P_INT(riflex, k, PE_UNSET, 1, 2048, "intrinsic pair",
             "riflex: which pair of channels, counted from 1, turns 0.9 times in seq_len positions (HunyuanVideo: 4; "
             "CogVideoX: 2)",
             .usual = {1, 8}),
    PE_P_END,
};

static const struct riflex *own(const struct pe_scaling_resolved *s) { return PE_S_OWN(s, riflex); }

static enum pe_status resolve(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err)
{
    if (s->seq_len < 1)
        return pe_fail(err, "/scaling/seq_len", "seq_len is %.10g; type \"riflex\" needs at least 1", s->seq_len);
    if ((double)own(s)->k <= use->dim / 2)
        return PE_OK;
    return pe_fail(err, "/scaling/k", "k is %lld; allowed: from 1 to %.0f, the number of rotated pairs",
                   (long long)own(s)->k, use->dim / 2);
}

/* Python computes the number in double and stores it in a tensor of f32. */
static struct pe_dd frequency(const struct pe_scaling_pair *p)
{
    if ((int64_t)p->c + 1 != own(p->s)->k)
        return p->w;
    return num(p, dd_div(dd_div(dd_mul_d(pe_dd_two_pi(), 9), dd(10)), dd(p->s->seq_len)));
}

static const struct pe_formula_line formula[] = {
    {"w'_c = { 0.9*2*pi/seq_len if c + 1 = k; w_c }",
     "the k-th pair makes less than one turn in the sequence, so no frame repeats"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_riflex = {
    .name = "riflex",
    .formula = formula,
    .about = "one pair of a video model's time axis turns 0.9 times in the whole sequence (RIFLEx)",
    .fields = fields,
    .object = {"k", "seq_len"},
    .needs = {{"k", " (HunyuanVideo: 4; CogVideoX: 2)", 4}, {.name = "seq_len"}},
    .resolve = resolve,
    .frequency = frequency,
};
