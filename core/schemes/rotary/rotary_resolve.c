/* The rotary family: what the fields of a request resolve to. Here is every refusal; the tables (rotary_tables.c) are
 * computed from the result alone.
 *
 * The order is fixed, because each step needs what the one before has found: the base and the rotated share of the
 * head; the axes and how they share the channels; the width; the scaling; the pairs of each axis; the coordinates. A
 * pasted rope_parameters object states some of it a second time, and then both must agree.
 *
 * Libraries divide a head among time, height and width in two ways, and a model that is given the other one still runs,
 * only worse. Either all pairs have the frequencies of one ladder, and a table states which axis each pair looks at
 * (Qwen2-VL's sections, Qwen3-VL's interleaving, Pixtral's even and odd); or each axis has a ladder of its own over its
 * share of the channels (Flux, Wan, HunyuanVideo). The first loses the fast or the slow frequencies of an axis; the
 * second repeats them. */
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
        return pe_fail(err, "/scaling/rope_theta", "rope_theta is %.17g, base is %.17g; give one", pasted, given->base);
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

/* ---- Which axes ---- */

static bool has_sections(int channels)
{
    return channels == PE_MROPE || channels == PE_MROPE_INTERLEAVED || channels == PE_CHANNELS_VIDEOROPE ||
           channels == PE_IMROPE;
}

static bool same_list(const struct pe_reals *a, const struct pe_reals *b)
{
    bool same = a->n == b->n;
    for (uint64_t i = 0; same && i < a->n; i++)
        same = pe_real_at(a, i) == pe_real_at(b, i);
    return same;
}

/* A pasted object may have them. */
static const struct pe_reals *sections_of(const struct pe_rotary_fields *given)
{
    return given->scaling.mrope_section.n ? &given->scaling.mrope_section : &given->mrope_section;
}

/* Does a pasted object let the axes alternate? */
static bool interleaves(const struct pe_scaling *given)
{
    const struct pe_value *flag = given->mrope_interleaved;
    return flag && flag->kind == PE_BOOLEAN && flag->boolean;
}

/* Do pasted sections agree with the request's own fields? */
static enum pe_status check_pasted(const struct pe_plan *plan, const struct pe_rotary_fields *given,
                                   struct pe_failure *err)
{
    const char *pointer = "/scaling/mrope_section";
    bool alternate = interleaves(&given->scaling), has_channels = given->channels != PE_UNSET_WORD;
    if (alternate && !given->scaling.mrope_section.n && !has_channels)
        return pe_fail(err, "/scaling/mrope_interleaved", "mrope_interleaved is true without an mrope_section");
    if (!given->scaling.mrope_section.n)
        return PE_OK;
    if (!plan->scheme->has_axes)
        return pe_fail(err, pointer, "mrope_section is not used: %s has one axis", plan->scheme->info.name);
    if (given->axes_dim.n || (has_channels && !has_sections(given->channels)))
        return pe_fail(err, pointer, "mrope_section is not used with %s",
                       given->axes_dim.n ? "axes_dim" : pe_rotary_channel_words[given->channels]);
    if (has_channels && alternate && given->channels != PE_MROPE_INTERLEAVED && given->channels != PE_IMROPE)
        return pe_fail(err, pointer, "mrope_interleaved is true, channels is %s; give one",
                       pe_rotary_channel_words[given->channels]);
    if (given->mrope_section.n && !same_list(&given->mrope_section, &given->scaling.mrope_section))
        return pe_fail(err, pointer, "mrope_section differs from that beside scaling; give one");
    return PE_OK;
}

/* How axes share a ladder: as given, as the sections of a pasted object (Qwen2-VL's rope_scaling) need it, or as the
 * segments of a multimodal sequence do. */
static int channels_of(const struct pe_plan *plan, const struct pe_rotary_fields *given)
{
    if (given->channels != PE_UNSET_WORD)
        return given->channels;
    if (given->scaling.mrope_section.n)
        return interleaves(&given->scaling) ? PE_MROPE_INTERLEAVED : PE_MROPE;
    return plan->seq.has_segments && !given->axes_dim.n ? PE_MROPE : PE_UNSET_WORD;
}

static enum pe_status spread(struct pe_plan *plan, unsigned n_axes, const char *field, struct pe_failure *err)
{
    char pointer[32] = "/";
    strncat(pointer, field, sizeof pointer - 2);
    pe_sequence_spread(&plan->seq, n_axes);
    if (plan->seq.n_axes == n_axes)
        return PE_OK;
    return pe_fail(err, pointer, "%s is for %u axes, the sequence has %u", field, n_axes, plan->seq.n_axes);
}

/* The widths of the axes must add up to rotary_dim, and determine it if it is not given. */
static enum pe_status check_axes_dim(const struct pe_rotary_fields *given, double share, int64_t *all,
                                     struct pe_failure *err)
{
    double sum = 0;
    if (given->axes_dim.array.rank != 1 || given->axes_dim.n > PE_AXES_MAX)
        return pe_fail(err, "/axes_dim", "axes_dim has %llu widths; allowed: one list of at most %d",
                       (unsigned long long)given->axes_dim.n, PE_AXES_MAX);
    for (uint64_t a = 0; a < given->axes_dim.n; a++) {
        double width = pe_real_at(&given->axes_dim, a);
        if (width != 2 * floor(width / 2))
            return pe_fail(err, "/axes_dim",
                           "axes_dim has %.17g at index %llu; allowed: even numbers, channels are rotated in pairs",
                           width, (unsigned long long)a);
        sum += width;
    }
    if (sum > (double)given->head_dim)
        return pe_fail(err, "/axes_dim", "axes_dim adds up to %.0f; allowed: at most head_dim, %lld", sum,
                       (long long)given->head_dim);
    *all = (int64_t)sum;
    int64_t width = given->rotary_dim != PE_UNSET_INT ? given->rotary_dim : *all;
    if (!isnan(share))
        width = (int64_t)((double)given->head_dim * share);
    if (sum == (double)width)
        return PE_OK;
    return pe_fail(err, "/axes_dim", "axes_dim adds up to %.0f; needed: rotary_dim, %lld", sum, (long long)width);
}

static enum pe_status choose_channels(struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    if (now->given->axis_order.n)
        return pe_fail(err, "/axis_order", "axis_order is not used here: it needs axes_dim, not channels");
    if (sections_of(now->given)->n && !has_sections(now->channels))
        return pe_fail(err, "/mrope_section", "mrope_section is not used by channels %s",
                       pe_rotary_channel_words[now->channels]);
    if (now->channels == PE_DINOV3 && !pe_plan_gave(plan, "base"))
        now->use.base = 100;
    if (now->channels == PE_DINOV3 && !pe_plan_gave(plan, "coords") && plan->seq.n_grid)
        now->coords = PE_COORDS_NORMALIZED;
    return spread(plan, has_sections(now->channels) ? 3 : 2, "channels", err);
}

/* segments are counted as a language model with M-RoPE counts: a configuration of other axes would get other ids than
 * its model has. A scheme without a model has M-RoPE's channels by default (channels_of). */
static enum pe_status check_segments(const struct pe_plan *plan, const struct pe_rotary_resolved *now,
                                     struct pe_failure *err)
{
    bool has_channels = pe_plan_gave(plan, "channels") || sections_of(now->given)->n;
    if (!plan->seq.has_segments || (has_channels && has_sections(now->channels)))
        return PE_OK;
    if (now->given->axes_dim.n)
        return pe_fail(err, "/segments",
                       "segments counts positions as a language model with M-RoPE does, not those of "
                       "axes_dim; give grid, or positions [axes][n]");
    if (has_channels)
        return pe_fail(err, "/segments",
                       "segments counts positions as a language model with M-RoPE does, not those of "
                       "channels %s; give grid, or positions [axes][n]",
                       pe_rotary_channel_words[now->channels]);
    if (plan->inheritance->n_inherited)
        return pe_fail(err, "/segments",
                       "segments counts positions as a language model with M-RoPE does; the model named "
                       "has one axis: give len or positions [n], or channels");
    return PE_OK;
}

/* width: what the axes' own widths add up to; unset if they have none. */
static enum pe_status resolve_axes(struct pe_plan *plan, double share, struct pe_rotary_resolved *now, int64_t *width,
                                   struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    enum pe_status status = check_pasted(plan, given, err);
    *width = PE_UNSET_INT;
    if (status)
        return status;
    now->channels = channels_of(plan, given);
    status = check_segments(plan, now, err);
    if (status)
        return status;
    if (now->channels != PE_UNSET_WORD)
        return choose_channels(plan, now, err);
    if (given->mrope_section.n)
        return pe_fail(
            err, "/mrope_section",
            "mrope_section is not used here: it needs channels mrope, mrope_interleaved, videorope or imrope");
    if (given->axes_dim.n) {
        status = check_axes_dim(given, share, width, err);
        return status ? status : spread(plan, (unsigned)given->axes_dim.n, "axes_dim", err);
    }
    if (given->axis_order.n && plan->seq.n_axes == 1)
        return pe_fail(err, "/axis_order", "axis_order is not used here: the sequence has one axis");
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

/* ---- The pairs of each axis ---- */

/* Sections of one ladder: for time, height, width, and imrope's fourth. By default imrope's leave it no pair. */
static enum pe_status read_sections(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_reals *list = sections_of(now->given);
    size_t n_pairs = now->n_pairs, share = 3 * n_pairs / 8;
    double sum = 0;
    now->n_widths = 3;
    bool has_fourth = now->channels == PE_IMROPE;
    memcpy(now->pairs, (size_t[]){n_pairs - 2 * share, share, share}, 3 * sizeof *now->pairs);
    if (has_fourth)
        memcpy(now->pairs, (size_t[]){(n_pairs + 2) / 3, (n_pairs + 1) / 3, n_pairs / 3}, 3 * sizeof *now->pairs);
    if (!list->n)
        return PE_OK;
    if (has_fourth && (list->array.rank != 1 || list->n < 3 || list->n > 4))
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %llu numbers; needed: 3 or 4, pairs for time, height, width, and a fourth "
                       "axis",
                       (unsigned long long)list->n);
    if (!has_fourth && (list->array.rank != 1 || list->n != 3))
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %llu numbers; needed: 3, pairs for time, height, width",
                       (unsigned long long)list->n);
    now->n_widths = (unsigned)list->n;
    for (size_t i = 0; i < list->n; i++) {
        double x = pe_real_at(list, i);
        if (x != floor(x))
            return pe_fail(err, "/mrope_section", "mrope_section has %.17g at index %zu; allowed: integers", x, i);
        now->pairs[i] = (size_t)x;
        sum += x;
    }
    bool leaves_pairs = now->channels == PE_MROPE_INTERLEAVED && sum < (double)n_pairs; /* they are time's */
    if (sum != (double)n_pairs && !leaves_pairs)
        return pe_fail(err, "/mrope_section", "mrope_section adds up to %.0f; needed: %srotary_dim/2, %zu", sum,
                       now->channels == PE_MROPE_INTERLEAVED ? pe_text("at most ") : "", n_pairs);
    return PE_OK;
}

static enum pe_status resolve_channels(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const char *word = pe_rotary_channel_words[now->channels];
    int layout = now->given->layout;
    if (has_sections(now->channels) && read_sections(now, err))
        return err->status;
    if ((now->channels == PE_PIXTRAL || now->channels == PE_DINOV3) && now->n_pairs % 2)
        return pe_fail(err, "/rotary_dim", "rotary_dim is %zu; channels %s need a multiple of 4", 2 * now->n_pairs,
                       word);
    if (now->channels == PE_CHANNELS_VIDEOROPE && now->pairs[1] != now->pairs[2])
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %zu for height, %zu for width; videorope alternates "
                       "them, so they are equal",
                       now->pairs[1], now->pairs[2]);
    if (layout == PE_LAYOUT_HALF_PER_AXIS || layout == PE_LAYOUT_VJEPA2)
        return pe_fail(err, "/layout", "layout %s needs a block of its own for each axis (axes_dim), not channels %s",
                       pe_rotary_layouts[layout], word);
    return PE_OK;
}

/* Reads axis_order, a permutation; the default is the axes in order. */
static enum pe_status read_order(const struct pe_reals *list, unsigned n_axes, unsigned *order, struct pe_failure *err)
{
    unsigned seen = 0;
    for (unsigned a = 0; a < n_axes; a++)
        order[a] = a;
    if (!list->n)
        return PE_OK;
    for (unsigned a = 0; list->n == n_axes && a < n_axes; a++) {
        double x = pe_real_at(list, a);
        if (x == floor(x) && x < n_axes)
            seen |= 1U << (order[a] = (unsigned)x);
    }
    if (list->array.rank == 1 && seen == (1U << n_axes) - 1)
        return PE_OK;
    return pe_fail(err, "/axis_order", "axis_order is not each of 0 to %u once", n_axes - 1);
}

/* A ladder for each axis. By default 2·floor(r / (2·axes)) channels for each, and the remainder goes to the first. */
static enum pe_status resolve_blocks(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    unsigned n = now->n_axes;
    for (unsigned a = 0; a < n; a++)
        now->pairs[a] = given->axes_dim.n ? (size_t)pe_real_at(&given->axes_dim, a) / 2
                                          : now->n_pairs / n + (a == 0 ? now->n_pairs % n : 0);
    now->n_widths = n > 1 || given->axes_dim.n ? n : 0;
    if (read_order(&given->axis_order, n, now->order, err))
        return err->status;
    if (n > 1 && !given->inv_freq.n && (now->scaling.rule->has_one_ladder || now->scaling.divisors.n))
        return pe_fail(err, "/scaling/type",
                       "%s has factors for one list of frequencies, but each axis has its own: choose "
                       "channels, or another scaling",
                       now->scaling.rule->name);
    return PE_OK;
}

/* ---- Coordinates ---- */

static enum pe_status check_grid(const struct pe_plan *plan, const struct pe_rotary_resolved *now,
                                 struct pe_failure *err)
{
    const struct pe_reals *ref = &now->given->ref_grid;
    if (now->coords != PE_COORDS_INDEX && !plan->seq.n_grid)
        return pe_fail(err, "/coords", "coords %s needs a grid; positions in a list are taken as given",
                       pe_rotary_coord_words[now->coords]);
    if (now->coords == PE_COORDS_RESIZED && (ref->array.rank != 1 || ref->n != plan->seq.n_grid))
        return pe_fail(err, "/ref_grid",
                       "ref_grid has %llu lengths; coords resized needs one for each axis of the "
                       "grid, %u",
                       (unsigned long long)ref->n, plan->seq.n_grid);
    return PE_OK;
}

/* pixel has its own frequencies, so a base, a list or a scaling would have no effect. */
static enum pe_status check_pixel(const struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    if (now->coords != PE_COORDS_PIXEL)
        return PE_OK;
    if (now->channels != PE_UNSET_WORD)
        return pe_fail(err, "/coords",
                       "coords pixel has frequencies of its own for each axis (axes_dim), not channels "
                       "%s",
                       pe_rotary_channel_words[now->channels]);
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
    uint64_t listed = 0;
    if (check_grid(plan, now, err) || check_pixel(plan, now, err))
        return err->status;
    for (unsigned a = 0; now->use.float32 && now->coords != PE_COORDS_INDEX && a < plan->seq.n_grid; a++)
        listed += plan->seq.grid[a];
    if (listed > PE_LISTED_POSITIONS_MAX)
        return pe_fail(err, "/grid",
                       "grid has axes of %llu positions together; with arith float32 and these coords at "
                       "most %d",
                       (unsigned long long)listed, PE_LISTED_POSITIONS_MAX);
    if (!plan->seq.n_grid)
        now->coords = PE_UNSET_WORD; /* has no effect, so the config does not show it */
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
    bool is_three = now->n_axes == 3 && now->channels != PE_UNSET_WORD;
    int coords = now->coords;
    if (now->given->inv_freq.n)
        return pe_fail(err, "/inv_freq",
                       "inv_freq is not used with arith ggml, which multiplies from pair to pair; give base");
    if (!now->scaling.rule->steps)
        return pe_fail(err, "/scaling/type",
                       "type is \"%s\"; with arith ggml allowed: default, linear, yarn, longrope, and divisors",
                       now->scaling.rule->name);
    if (now->n_axes != 1 && !is_three)
        return pe_fail(err, "/arith", "arith ggml is for one axis, or three with channels of one list of frequencies");
    if (coords == PE_COORDS_NORMALIZED || coords == PE_COORDS_RESIZED || coords == PE_COORDS_PIXEL)
        return pe_fail(err, "/coords", "coords %s are no integers, as arith ggml needs", pe_rotary_coord_words[coords]);
    for (unsigned a = 0; a < now->n_axes; a++)
        if (!has_positions_of_ggml(&seq->k[a]) || !has_positions_of_ggml(&seq->q[a]))
            return pe_fail(err, "/arith", "arith ggml is for integer positions below 2^31");
    return PE_OK;
}

bool pe_rotary_resolve_ggml(const struct pe_plan *plan, struct pe_rotary_resolved *now)
{
    const struct pe_rotary_fields *shown = plan->config;
    struct pe_failure err;
    *now = (struct pe_rotary_resolved){.given = shown,
                                       .channels = shown->channels,
                                       .coords = shown->coords,
                                       .n_axes = plan->seq.n_axes,
                                       .n_pairs = (size_t)shown->rotary_dim / 2,
                                       .use = {.base = shown->base,
                                               .dim = (double)shown->rotary_dim,
                                               .head_dim = (double)shown->head_dim,
                                               .seq_len = pe_sequence_reach(&plan->seq)}};
    bool has_ladder = !plan->scheme->magnitude && !shown->inv_freq.n;
    bool has_channels = shown->channels != PE_UNSET_WORD;
    return has_ladder && !pe_scaling_resolve(&shown->scaling, &now->use, &now->scaling, &err) &&
           !(has_channels && resolve_channels(now, &err)) && !check_ggml(&plan->seq, now, &err);
}

/* ---- All of it ---- */

enum pe_status pe_rotary_resolve(struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = plan->config;
    double share;
    int64_t axes_width, rotary_dim;
    *now = (struct pe_rotary_resolved){.given = given, .coords = given->coords, .use = {.base = given->base}};
    if (resolve_base(plan, given, &now->use.base, err) || find_share(given, &share, err) ||
        resolve_axes(plan, share, now, &axes_width, err) || resolve_width(given, share, axes_width, &rotary_dim, err) ||
        check_width(now, rotary_dim, err) || resolve_scaling(plan, now, err))
        return err->status;
    now->n_axes = plan->seq.n_axes;
    if (now->channels != PE_UNSET_WORD ? resolve_channels(now, err) : resolve_blocks(now, err))
        return err->status;
    if (resolve_coords(plan, now, err))
        return err->status;
    return given->arith == PE_ARITH_GGML ? check_ggml(&plan->seq, now, err) : PE_OK;
}
