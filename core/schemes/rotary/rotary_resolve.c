/* The rotary family: what the fields of a request resolve to. Here is every refusal; the tables (rotary_tables.c) are
 * computed from the result alone.
 *
 * The order is fixed, because each step needs what the one before has found: the base and the rotated share of the
 * head; the axes and how they share the channels; the width; the scaling; the pairs of each axis; the coordinates. A
 * pasted rope_parameters object states some of it a second time, and then both must agree. */
#include "core/schemes/rotary/rotary.h"

#include <string.h>

/* ---- The base, and the rotated share of the head ---- */

/* A pasted object may have the base. */
static enum pe_status resolve_base(const struct pe_plan *plan, const struct pe_rotary_fields *given, double *base,
                                   struct pe_failure *err)
{
    double pasted = given->scaling.rope_theta;
    if (isnan(pasted))
        return PE_OK;
    if (pe_plan_gave(plan, "base") && given->base != pasted)
        return pe_fail(err, "/scaling/rope_theta", "rope_theta is %s, base is %s; give one", pe_shown(pasted).text,
                       pe_shown(given->base).text);
    *base = pasted;
    return PE_OK;
}

/* The rotated share of the head; a pasted object may have it, where its rule does not keep it. */
static enum pe_status find_share(const struct pe_rotary_fields *given, double *share, struct pe_failure *err)
{
    double pasted = pe_scaling_meant(&given->scaling)->has_whole_head ? PE_UNSET : given->scaling.partial_rotary_factor;
    bool has_width = given->rotary_dim != PE_UNSET_INT;
    *share = has_width ? (double)given->rotary_dim / (double)given->head_dim : given->partial_rotary_factor;
    if (!isnan(pasted) && !isnan(*share) && *share != pasted)
        return pe_fail(err, "/scaling/partial_rotary_factor",
                       "partial_rotary_factor is %.10g, beside scaling it is %.10g; "
                       "give one",
                       pasted, *share);
    *share = has_width ? PE_UNSET : !isnan(pasted) ? pasted : *share;
    return PE_OK;
}

/* ---- The width ---- */

/* rotary_dim from head_dim or its share, or what the axes have together; int() as the libraries do: 0.3 · 80 = 24. */
static enum pe_status resolve_width(const struct pe_rotary_fields *given, double share, int64_t axes_width,
                                    int64_t *rotary_dim, struct pe_failure *err)
{
    const char *pointer = !isnan(share) ? "/partial_rotary_factor" : "/rotary_dim";
    long long r = given->rotary_dim != PE_UNSET_INT ? given->rotary_dim : axes_width;
    if (!isnan(share))
        r = (long long)((double)given->head_dim * share);
    else if (r == PE_UNSET_INT) {
        r = given->head_dim;
        pointer = "/head_dim";
    }
    *rotary_dim = r;
    if (r < 2)
        return pe_fail(err, pointer, "rotary_dim would be %lld; needed: at least one pair of channels, 2", r);
    if (r % 2)
        return pe_fail(err, pointer,
                       pointer[1] == 'r' ? "%s is %lld, which is odd: channels are rotated in pairs; write %lld or %lld"
                       : pointer[1] == 'h'
                           ? "%s makes rotary_dim %lld, which is odd: channels are rotated in pairs; write %lld or "
                             "%lld, or give an even rotary_dim"
                           : "%s makes rotary_dim %lld, which is odd: channels are rotated in pairs; write %lld or "
                             "%lld",
                       pointer + 1, r, r - 1, r + 1);
    if (given->rotary_offset + r > given->head_dim)
        return pe_fail(err, given->rotary_offset ? "/rotary_offset" : pointer,
                       "rotary_offset %lld + rotary_dim %lld is %lld; allowed: at most head_dim, %lld",
                       (long long)given->rotary_offset, r, (long long)given->rotary_offset + r,
                       (long long)given->head_dim);
    return PE_OK;
}

/* The number of pairs, and what the width decides. */
static enum pe_status check_width(struct pe_rotary_resolved *now, int64_t rotary_dim, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    const struct pe_scaling_rule *rule = pe_scaling_rule_of_word(given->scaling.type);
    if (given->direction == 0)
        return pe_fail(err, "/direction", "direction is 0; allowed: 1 (counter-clockwise) or -1 (the inverse)");
    if (now->use.base == 1)
        return pe_fail(
            err, "/base",
            "base is 1, which gives every pair the same frequency; allowed: any other number from 0.001 to 1e12");
    if (rule->has_whole_head && rotary_dim != given->head_dim) {
        pe_fail(err, "/rotary_dim",
                "rotary_dim is %lld; scaling %s turns every channel of the head (those it leaves out by angle 0)",
                (long long)rotary_dim, rule->name);
        return pe_leave_out(err, ": leave %s out", "rotary_dim");
    }
    now->n_pairs = (size_t)rotary_dim / 2;
    if (given->inv_freq.n)
        return pe_reals_expect(&given->inv_freq, now->n_pairs, "inv_freq", "one per pair: rotary_dim/2", err);
    return PE_OK;
}

/* ---- The scaling ---- */

/* The request's own attention_factor takes precedence over the scaling's. */
static enum pe_status resolve_scaling(const struct pe_plan *plan, struct pe_rotary_resolved *now,
                                      struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    now->use.dim = 2 * (double)now->n_pairs;
    now->use.head_dim = (double)given->head_dim;
    now->use.seq_len = pe_sequence_reach(&plan->seq);
    now->use.float32 = given->arith == PE_ARITH_FLOAT32;
    now->use.has_factor = !isnan(given->attention_factor);
    now->attention_factor = 1;
    if (!given->inv_freq.n) {
        if (pe_scaling_resolve(&given->scaling, &now->use, &now->scaling, err))
            return err->status;
        now->attention_factor = now->scaling.attention_factor;
    }
    if (!isnan(given->attention_factor))
        now->attention_factor = given->attention_factor;
    return PE_OK;
}

/* ---- Coordinates ---- */

/* pixel has its own frequencies, so a base, a list or a scaling would have no effect. */
static enum pe_status check_pixel(const struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    if (now->at.coords != PE_COORDS_pixel)
        return PE_OK;
    if (now->channels != PE_UNSET_WORD || now->given->channel_axis.n)
        return pe_fail(err, "/coords",
                       "coords pixel has frequencies of its own for each axis (axes_dim), not channels "
                       "%s",
                       now->channels != PE_UNSET_WORD ? pe_rotary_channel_words[now->channels]
                                                      : pe_text("of channel_axis"));
    const char *ladder = pe_rotary_ladder_field(now->given);
    if (ladder)
        return pe_fail_at(err, "", ladder,
                          "%s is not used with coords pixel, whose frequencies are pi·linspace(1, max_freq/2)", ladder);
    if (pe_plan_gave(plan, "base"))
        return pe_fail(err, "/base",
                       "base is not used with coords pixel, whose frequencies are pi·linspace(1, max_freq/2)");
    if (now->given->inv_freq.n)
        return pe_fail(err, "/inv_freq",
                       "inv_freq is not used with coords pixel, whose frequencies are pi·linspace(1, max_freq/2)");
    if (now->scaling.rule != pe_scaling_at(0))
        return pe_fail(err, "/scaling/type",
                       "scaling is not used with coords pixel, whose frequencies are "
                       "pi·linspace(1, max_freq/2)");
    now->use.base = PE_UNSET;
    return PE_OK;
}

static enum pe_status resolve_coords(const struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    if (pe_coords_check(&now->at, &plan->seq, now->n_axes, err) || check_pixel(plan, now, err))
        return err->status;
    if (!plan->seq.n_grid)
        now->at.coords = PE_UNSET_WORD; /* has no effect, so the config does not show it */
    return PE_OK;
}

/* ---- ggml's arithmetic ---- */

/* Its positions are 32-bit integers. */
static bool has_positions_of_ggml(const struct pe_positions *p)
{
    return pe_positions_are_integers(p) && pe_positions_largest(p) < 0x1p31;
}

/* What ggml's rope operator can compute: one list of frequencies from a base, of one axis or of three, with the rules
 * that it has. */
static enum pe_status check_ggml(const struct pe_sequence *seq, const struct pe_rotary_resolved *now,
                                 struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    bool is_three = now->n_axes == 3 && now->channels != PE_UNSET_WORD && now->ladder == PE_LADDER_SHARED;
    const struct pe_coord_fields *at = &now->at;
    int coords = at->coords == PE_UNSET_WORD ? PE_COORDS_index : at->coords;
    if (now->given->inv_freq.n)
        return pe_fail(err, "/inv_freq",
                       "inv_freq is not used with arith ggml, which multiplies from pair to pair; give base");
    if (!now->scaling.rule->steps)
        return pe_fail(err, "/scaling/type",
                       "type is \"%s\"; with arith ggml allowed: default, linear, yarn, longrope, and divisors",
                       now->scaling.rule->name);
    if ((now->n_axes != 1 && !is_three) || given->channel_axis.n || given->axis_scaling)
        return pe_fail(err, "/arith", "arith ggml is for one axis, or three with channels of one list of frequencies");
    if (at->axis_scale.n || at->axis_divisor.n || at->axis_shift.n ||
        (coords != PE_COORDS_index && coords != PE_COORDS_one_based && coords != PE_COORDS_centered))
        return pe_fail(err, "/coords", "coords %s are no integers, as arith ggml needs",
                       coords == PE_COORDS_index ? pe_text("with axis_scale, axis_divisor or axis_shift")
                                                 : pe_coord_words[coords]);
    for (unsigned a = 0; a < now->n_axes; a++)
        if (!has_positions_of_ggml(&seq->k[a]) || !has_positions_of_ggml(&seq->q[a]))
            return pe_fail(err, "/arith", "arith ggml is for integer positions below 2^31");
    return PE_OK;
}

bool pe_rotary_resolve_built(const struct pe_plan *plan, struct pe_rotary_resolved *now)
{
    const struct pe_rotary_fields *shown = plan->config;
    struct pe_failure err;
    *now = (struct pe_rotary_resolved){.given = shown,
                                       .channels = shown->channels,
                                       .at = shown->at,
                                       .n_axes = plan->seq.n_axes,
                                       .n_pairs = (size_t)shown->rotary_dim / 2,
                                       .use = {.base = shown->base,
                                               .dim = (double)shown->rotary_dim,
                                               .head_dim = (double)shown->head_dim,
                                               .seq_len = pe_sequence_reach(&plan->seq)}};
    return (shown->inv_freq.n || !pe_scaling_resolve(&shown->scaling, &now->use, &now->scaling, &err)) &&
           !pe_rotary_resolve_pairs(now, &err);
}

bool pe_rotary_resolve_ggml(const struct pe_plan *plan, struct pe_rotary_resolved *now)
{
    const struct pe_rotary_fields *shown = plan->config;
    struct pe_failure err;
    bool has_ladder = !plan->scheme->magnitude && !shown->inv_freq.n;
    return has_ladder && pe_rotary_resolve_built(plan, now) && !check_ggml(&plan->seq, now, &err);
}

/* ---- All of it ---- */

enum pe_status pe_rotary_resolve(struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = plan->config;
    double share;
    int64_t axes_width, rotary_dim;
    *now = (struct pe_rotary_resolved){.given = given, .at = given->at, .use = {.base = given->base}};
    if (resolve_base(plan, given, &now->use.base, err) || find_share(given, &share, err) ||
        pe_rotary_resolve_axes(plan, share, now, &axes_width, err) ||
        resolve_width(given, share, axes_width, &rotary_dim, err) || check_width(now, rotary_dim, err) ||
        resolve_scaling(plan, now, err))
        return err->status;
    if (pe_rotary_resolve_pairs(now, err) || resolve_coords(plan, now, err))
        return err->status;
    return given->arith == PE_ARITH_GGML ? check_ggml(&plan->seq, now, err) : PE_OK;
}
