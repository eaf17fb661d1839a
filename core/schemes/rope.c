/* RoPE, rotary position embedding (Su et al. 2021, arXiv 2104.09864): channels are turned in pairs by an angle that
 * grows with the position, so that the score of a query with a key depends on their distance only.
 *
 *     inv_freq[c] = base^(-2c/rotary_dim),   c = 0 … rotary_dim/2 - 1
 *     angle[p, c] = direction · p · inv_freq[c]
 *
 * The exponent's denominator is rotary_dim, not head_dim: partial rotary (GPT-NeoX, GPT-J, Phi) has its own ladder. */
#include "core/schemes/rotary.h"

struct rope {
    int64_t head_dim, rotary_dim;
    double partial_rotary_factor;
    int64_t rotary_offset;
    double base;
    int layout;
    int64_t direction;
    struct pe_reals inv_freq;
    struct {
        int type;
    } scaling;
    double attention_factor;
    int form, arith;
};

static const char *const scaling_types[] = {"default", NULL};

static const struct pe_param scaling_params[] = {
    {.name = "type",
     .alias = "rope_type",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(rope, scaling.type, int),
     .words = scaling_types,
     .text = "rule that stretches the context"},
    PE_P_END,
};

static const struct pe_param params[] = {
    PE_P_INT(rope, head_dim, 64, 2, PE_HEAD_DIM_MAX, "channels of one head; even"),
    PE_P_INT(rope, rotary_dim, PE_UNSET, 2, PE_HEAD_DIM_MAX, "channels that are rotated; even; default head_dim"),
    {.name = "partial_rotary_factor",
     .type = PE_T_REAL,
     .offset = PE_OFFSET(rope, partial_rotary_factor, double),
     .fallback = PE_UNSET,
     .min = 0,
     .max = 1,
     .excludes = "rotary_dim",
     .text = "rotary_dim as a share of head_dim, rounded down"},
    PE_P_INT(rope, rotary_offset, 0, 0, PE_HEAD_DIM_MAX,
             "first rotated channel; DeepSeek rotates its last 64 of 192: 128"),
    {.name = "base",
     .alias = "rope_theta",
     .type = PE_T_REAL,
     .offset = PE_OFFSET(rope, base, double),
     .fallback = 10000,
     .min = 1e-3,
     .max = 1e12,
     .text = "wavelength base; not 1"},
    PE_P_WORD(rope, layout, pe_rotary_layouts,
              "interleaved: neighbours are a pair (paper, Meta, GPT-J); half: first half with second half "
              "(transformers, GPT-NeoX)"),
    PE_P_INT(rope, direction, 1, -1, 1, "1: counter-clockwise, as every library; -1: the inverse rotation"),
    {.name = "inv_freq",
     .type = PE_T_REALS,
     .offset = PE_OFFSET(rope, inv_freq, struct pe_reals),
     .min = -1e6,
     .max = 1e6,
     .excludes = "base|scaling",
     .text = "explicit frequencies, radians per position: [rotary_dim/2]"},
    PE_P_OBJECT("scaling", scaling_params, "how frequencies are changed for longer contexts"),
    PE_P_REAL(rope, attention_factor, PE_UNSET, 1e-6, 1e6, "factor on cos and sin; default 1"),
    PE_P_WORD(
        rope, form, pe_rotary_forms,
        "pairs: cos, sin per pair; expanded: per channel; concat: cos_sin; complex: freqs_cis; matrix: 2×2 rotations"),
    PE_P_ARITH(rope),
    PE_P_END,
};

/* ---- Rules ---- */

/* rotary_dim from head_dim or its share; int() as the libraries do: 0.3 · 80 = 24. */
static enum pe_status resolve_width(struct rope *c, struct pe_error *err)
{
    const char *pointer = "/rotary_dim";
    if (!isnan(c->partial_rotary_factor)) {
        c->rotary_dim = (int64_t)((double)c->head_dim * c->partial_rotary_factor);
        c->partial_rotary_factor = PE_UNSET;
        pointer = "/partial_rotary_factor";
    } else if (c->rotary_dim == PE_UNSET_INT) {
        c->rotary_dim = c->head_dim;
        pointer = "/head_dim";
    }
    long long r = c->rotary_dim;
    if (r < 2)
        return pe_fail(err, pointer, "rotary_dim would be %lld; needed: at least one pair of channels, 2", r);
    if (r % 2)
        return pe_fail(err, pointer,
                       "%s makes rotary_dim %lld, which is odd: channels are rotated in pairs; write %lld or %lld%s",
                       pointer + 1, r, r - 1, r + 1, pointer[1] == 'h' ? ", or give an even rotary_dim" : "");
    if (c->rotary_offset + r > c->head_dim)
        return pe_fail(err, c->rotary_offset ? "/rotary_offset" : pointer,
                       "rotary_offset %lld + rotary_dim %lld is %lld; allowed: at most head_dim, %lld",
                       (long long)c->rotary_offset, r, (long long)c->rotary_offset + r, (long long)c->head_dim);
    return PE_OK;
}

static enum pe_status check(const struct rope *c, struct pe_error *err)
{
    if (c->direction == 0)
        return pe_fail(err, "/direction", "direction is 0; allowed: 1 (counter-clockwise) or -1 (the inverse)");
    if (c->base == 1)
        return pe_fail(
            err, "/base",
            "base is 1, which gives every pair the same frequency; allowed: any other number from 0.001 to 1e12");
    if (c->inv_freq.n)
        return pe_reals_expect(&c->inv_freq, (uint64_t)c->rotary_dim / 2, "inv_freq", "one per pair: rotary_dim/2",
                               err);
    return PE_OK;
}

/* ---- Frequencies ---- */

static void set_frequencies(const struct rope *c, struct pe_rotary *r)
{
    for (size_t i = 0; i < c->inv_freq.n; i++) {
        double w = pe_real_at(&c->inv_freq, i);
        r->inv_freq[i] = dd(r->float32 ? (double)(float)w : w);
    }
    if (c->inv_freq.n)
        return;
    if (r->float32)
        pe_ladder_float32(c->base, (double)r->n_pairs, r->n_pairs, r->inv_freq);
    else
        pe_ladder(c->base, (double)r->n_pairs, r->n_pairs, r->inv_freq);
}

static enum pe_status plan(struct pe_plan *plan, struct pe_error *err)
{
    struct rope *c = plan->config;
    enum pe_status status = resolve_width(c, err);
    if (!status)
        status = check(c, err);
    if (status)
        return status;
    if (isnan(c->attention_factor))
        c->attention_factor = 1;
    struct pe_rotary *r = plan->tables = pe_rotary_new((size_t)c->rotary_dim / 2);
    if (!r)
        return pe_no_memory(err);
    plan->arith = (enum pe_arith)c->arith;
    r->head_dim = (size_t)c->head_dim;
    r->rotary_offset = (size_t)c->rotary_offset;
    r->layout = (enum pe_rotary_layout)c->layout;
    r->form = (enum pe_rotary_form)c->form;
    r->direction = (int)c->direction;
    r->float32 = plan->arith == PE_ARITH_FLOAT32;
    r->attention_factor = dd(c->attention_factor);
    set_frequencies(c, r);
    return PE_OK;
}

const struct pe_scheme pe_scheme_rope = {
    .info =
        {
            .name = "rope",
            .family = "rotary",
            .summary = "rotates pairs of channels of queries and keys by angles that grow with the position",
            .paper = "Su et al. 2021, arXiv 2104.09864 (RoFormer)",
            .example = "{\"scheme\":\"rope\",\"len\":8,\"head_dim\":16}",
            .params = params,
            .outputs = pe_rotary_outputs,
            .inputs = pe_rotary_inputs,
            .operations = 1U << PE_ENCODE | 1U << PE_ROTATE,
        },
    .config_bytes = sizeof(struct rope),
    .plan = plan,
    .drop = pe_rotary_drop,
    .columns = pe_rotary_columns,
    .fill = pe_rotary_fill,
    .dtype = pe_rotary_dtype,
    .rotate = pe_rotary_rotate,
};
