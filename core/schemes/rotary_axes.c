/* Several axes in one head: the axis and frequency of each pair, and the coordinates.
 *
 * Libraries divide a head among time, height and width in two ways, and a model that is given the other one still runs,
 * only worse. Either all pairs have the frequencies of one ladder, and a table states which axis each pair looks at
 * (Qwen2-VL's sections, Qwen3-VL's interleaving, Pixtral's even and odd); or each axis has a ladder of its own over its
 * share of the channels (Flux, Wan, HunyuanVideo). The first loses the fast or the slow frequencies of an axis; the
 * second repeats them.
 *
 * Coordinates are start + i times a unit; the unit is multiplied into the frequency in double-double, so that positions
 * stay exact integers and runs stay runs. */
#include "core/schemes/rotary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_rotary_channel_words[] = {[PE_PIXTRAL] = "pixtral",
                                               [PE_MROPE] = "mrope",
                                               [PE_MROPE_INTERLEAVED] = "mrope_interleaved",
                                               [PE_CHANNELS_VIDEOROPE] = "videorope",
                                               [PE_DINOV3] = "dinov3",
                                               NULL};
const char *const pe_rotary_coord_words[] = {[PE_COORDS_INDEX] = "index",
                                             [PE_COORDS_ONE_BASED] = "one_based",
                                             [PE_COORDS_NORMALIZED] = "normalized",
                                             [PE_COORDS_RESIZED] = "resized",
                                             [PE_COORDS_CENTERED] = "centered",
                                             [PE_COORDS_PIXEL] = "pixel",
                                             NULL};

static const struct pe_dd pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

static bool has_sections(int channels)
{
    return channels == PE_MROPE || channels == PE_MROPE_INTERLEAVED || channels == PE_CHANNELS_VIDEOROPE;
}

/* ---- Which axes ---- */

static bool same_list(const struct pe_reals *a, const struct pe_reals *b)
{
    bool same = a->n == b->n;
    for (uint64_t i = 0; same && i < a->n; i++)
        same = pe_real_at(a, i) == pe_real_at(b, i);
    return same;
}

/* Does a pasted object let the axes alternate? */
static bool interleaves(const struct pe_scaling *given)
{
    const struct pe_value *flag = given->mrope_interleaved;
    return flag && flag->kind == PE_BOOLEAN && flag->boolean;
}

/* Do pasted sections agree with the request's own fields? */
static enum pe_status check_pasted(const struct pe_plan *plan, const struct pe_rotary_fields *given,
                                   struct pe_error *err)
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
    if (has_channels && alternate && given->channels != PE_MROPE_INTERLEAVED)
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

static enum pe_status spread(struct pe_plan *plan, unsigned n_axes, const char *field, struct pe_error *err)
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
                                     struct pe_error *err)
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

static enum pe_status choose_channels(struct pe_plan *plan, const struct pe_rotary_fields *given, struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    if (given->axis_order.n)
        return pe_fail(err, "/axis_order", "axis_order is not used here: it needs axes_dim, not channels");
    if (c->mrope_section.n && !has_sections(c->channels))
        return pe_fail(err, "/mrope_section", "mrope_section is not used by channels %s",
                       pe_rotary_channel_words[c->channels]);
    if (c->channels == PE_DINOV3 && !pe_plan_gave(plan, "base"))
        c->base = 100;
    if (c->channels == PE_DINOV3 && !pe_plan_gave(plan, "coords") && plan->seq.n_grid)
        c->coords = PE_COORDS_NORMALIZED;
    return spread(plan, has_sections(c->channels) ? 3 : 2, "channels", err);
}

enum pe_status pe_rotary_choose_axes(struct pe_plan *plan, const struct pe_rotary_fields *given, double share,
                                     int64_t *width, struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    enum pe_status status = check_pasted(plan, given, err);
    if (status)
        return status;
    c->channels = channels_of(plan, given);
    if (given->scaling.mrope_section.n)
        c->mrope_section = given->scaling.mrope_section;
    if (c->channels != PE_UNSET_WORD)
        return choose_channels(plan, given, err);
    if (given->mrope_section.n)
        return pe_fail(err, "/mrope_section",
                       "mrope_section is not used here: it needs channels mrope, mrope_interleaved or videorope");
    if (given->axes_dim.n) {
        status = check_axes_dim(given, share, width, err);
        return status ? status : spread(plan, (unsigned)given->axes_dim.n, "axes_dim", err);
    }
    if (given->axis_order.n && plan->seq.n_axes == 1)
        return pe_fail(err, "/axis_order", "axis_order is not used here: the sequence has one axis");
    return PE_OK;
}

/* The widths for the resolved config, also if they were not given. */
static struct pe_reals shown(const struct pe_rotary *r, size_t n)
{
    struct pe_tensor list = {.dtype = PE_I64, .rank = 1, .shape = {n}, .data = r->widths};
    return (struct pe_reals){.array = list, .n = n};
}

/* ---- One ladder for all axes: which axis each pair looks at ---- */

struct sections {
    size_t t, h, w;
};

static enum pe_status read_sections(struct pe_rotary_fields *c, size_t n_pairs, struct sections *s,
                                    struct pe_error *err)
{
    size_t n[3];
    double sum = 0;
    *s = (struct sections){n_pairs - 2 * (3 * n_pairs / 8), 3 * n_pairs / 8, 3 * n_pairs / 8};
    if (!c->mrope_section.n)
        return PE_OK;
    if (c->mrope_section.array.rank != 1 || c->mrope_section.n != 3)
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %llu numbers; needed: 3, pairs for time, height, width",
                       (unsigned long long)c->mrope_section.n);
    for (size_t i = 0; i < 3; i++) {
        double x = pe_real_at(&c->mrope_section, i);
        if (x != floor(x))
            return pe_fail(err, "/mrope_section", "mrope_section has %.17g at index %zu; allowed: integers", x, i);
        n[i] = (size_t)x;
        sum += x;
    }
    bool leaves_pairs = c->channels == PE_MROPE_INTERLEAVED && sum < (double)n_pairs; /* axis_of: they are time's */
    if (sum != (double)n_pairs && !leaves_pairs)
        return pe_fail(err, "/mrope_section", "mrope_section adds up to %.0f; needed: %srotary_dim/2, %zu", sum,
                       c->channels == PE_MROPE_INTERLEAVED ? "at most " : "", n_pairs);
    *s = (struct sections){n[0], n[1], n[2]};
    return PE_OK;
}

/* The axis of pair c of n: 0 time (or rows), 1 height (or columns), 2 width. */
static unsigned axis_of(int channels, size_t c, size_t n, const struct sections *s)
{
    switch ((enum pe_rotary_channels)channels) {
    case PE_PIXTRAL:
    case PE_DINOV3: return c >= n / 2;
    case PE_MROPE:
        return c < s->t ? 0 : c < s->t + s->h ? 1 : 2; /* transformers Qwen2-VL */
    /* transformers Qwen3-VL: all pairs are time's, then every third is overwritten, as far as the sections reach. */
    case PE_MROPE_INTERLEAVED: return c % 3 == 1 && c < 3 * s->h ? 1 : c % 3 == 2 && c < 3 * s->w ? 2 : 0;
    case PE_CHANNELS_VIDEOROPE: return c >= s->h + s->w ? 0 : 1 + c % 2; /* time has the low frequencies */
    }
    return 0;
}

static enum pe_status check_one_ladder(const struct pe_rotary_fields *c, size_t n, const struct sections *s,
                                       struct pe_error *err)
{
    if ((c->channels == PE_PIXTRAL || c->channels == PE_DINOV3) && n % 2)
        return pe_fail(err, "/rotary_dim", "rotary_dim is %zu; channels %s need a multiple of 4", 2 * n,
                       pe_rotary_channel_words[c->channels]);
    if (c->channels == PE_CHANNELS_VIDEOROPE && s->h != s->w)
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %zu for height, %zu for width; videorope alternates "
                       "them, so they are equal",
                       s->h, s->w);
    if (c->layout == PE_LAYOUT_HALF_PER_AXIS || c->layout == PE_LAYOUT_VJEPA2)
        return pe_fail(err, "/layout", "layout %s needs a block of its own for each axis (axes_dim), not channels %s",
                       pe_rotary_layouts[c->layout], pe_rotary_channel_words[c->channels]);
    return PE_OK;
}

/* pixtral: the even frequencies for rows, then the odd ones for columns (mistral-inference). dinov3: 2π·base^(-4i/r)
 * for each of the two axes. The others: the usual frequencies. */
static enum pe_status spread_ladder(const struct pe_rotary_fields *c, const struct pe_scaling_use *use,
                                    struct pe_rotary *r, struct pe_error *err)
{
    size_t n = r->n_pairs;
    struct pe_scaling_use own = *use;
    struct pe_dd *ladder = malloc(n * sizeof *ladder);
    if (!ladder)
        return pe_no_memory(err);
    if (c->channels == PE_DINOV3)
        own.dim = (double)n;
    pe_scaling_ladder(&c->scaling, &own, n, ladder);
    for (size_t i = 0; i < n; i++)
        r->inv_freq[i] = c->channels == PE_PIXTRAL  ? ladder[2 * (i % (n / 2)) + (i >= n / 2)]
                         : c->channels == PE_DINOV3 ? dd_mul(dd_mul_d(pi, 2), ladder[i % (n / 2)])
                                                    : ladder[i];
    for (size_t i = 0; r->float32 && i < n; i++)
        r->inv_freq[i] = dd((double)(float)r->inv_freq[i].hi);
    free(ladder);
    return PE_OK;
}

static enum pe_status set_channels(struct pe_rotary_fields *c, const struct pe_scaling_use *use, struct pe_rotary *r,
                                   struct pe_error *err)
{
    struct sections s = {0, 0, 0};
    enum pe_status status = has_sections(c->channels) ? read_sections(c, r->n_pairs, &s, err) : PE_OK;
    if (!status && has_sections(c->channels)) {
        memcpy(r->widths, (int64_t[]){(int64_t)s.t, (int64_t)s.h, (int64_t)s.w}, 3 * sizeof *r->widths);
        c->mrope_section = shown(r, 3);
    }
    if (!status)
        status = check_one_ladder(c, r->n_pairs, &s, err);
    if (!status && !c->inv_freq.n)
        status = spread_ladder(c, use, r, err);
    for (size_t i = 0; i < r->n_pairs; i++)
        r->axis[i] = (unsigned char)axis_of(c->channels, i, r->n_pairs, &s);
    r->n_blocks = 1;
    r->block_pairs[0] = r->n_pairs;
    return status;
}

/* ---- A ladder for each axis ---- */

/* 2·floor(r / (2·axes)) channels for each axis, and the remainder goes to the first. */
static void default_widths(size_t n_pairs, unsigned n_axes, size_t *pairs)
{
    for (unsigned a = 0; a < n_axes; a++)
        pairs[a] = n_pairs / n_axes;
    pairs[0] += n_pairs % n_axes;
}

/* Reads axis_order, a permutation; the default is the axes in order. */
static enum pe_status read_order(const struct pe_reals *list, unsigned n_axes, unsigned *order, struct pe_error *err)
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

/* lucidrains' pixel: π·linspace(1, max_freq/2, n). */
static struct pe_dd pixel_frequency(double max_freq, size_t i, size_t n)
{
    struct pe_dd share = n > 1 ? dd_div(dd((double)i), dd((double)(n - 1))) : dd(0);
    return dd_mul(pi, dd_add(dd(1), dd_mul(share, dd_sub(dd(max_freq / 2), dd(1)))));
}

static void set_block(const struct pe_rotary_fields *c, const struct pe_scaling_use *use, struct pe_rotary *r,
                      size_t pair0, size_t n, unsigned axis)
{
    struct pe_scaling_use own = *use;
    own.dim = r->n_blocks > 1 ? 2 * (double)n : use->dim;
    for (size_t i = 0; i < n; i++)
        r->axis[pair0 + i] = (unsigned char)axis;
    if (c->inv_freq.n || n == 0)
        return;
    if (c->coords != PE_COORDS_PIXEL)
        pe_scaling_ladder(&c->scaling, &own, n, r->inv_freq + pair0);
    for (size_t i = 0; c->coords == PE_COORDS_PIXEL && i < n; i++) {
        struct pe_dd w = pixel_frequency(c->max_freq, i, n);
        r->inv_freq[pair0 + i] = r->float32 ? dd((double)(float)w.hi) : w;
    }
}

static enum pe_status set_blocks(const struct pe_plan *plan, const struct pe_scaling_use *use, struct pe_rotary *r,
                                 struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    unsigned n_axes = plan->seq.n_axes, order[PE_AXES_MAX];
    size_t pairs[PE_AXES_MAX], pair0 = 0;
    default_widths(r->n_pairs, n_axes, pairs);
    for (unsigned a = 0; a < c->axes_dim.n; a++)
        pairs[a] = (size_t)pe_real_at(&c->axes_dim, a) / 2;
    enum pe_status status = read_order(&c->axis_order, n_axes, order, err);
    if (status)
        return status;
    const struct pe_scaling_rule *rule = pe_scaling_rule_of_word(c->scaling.type);
    if (n_axes > 1 && rule->has_one_ladder)
        return pe_fail(err, "/scaling/type",
                       "%s has factors for one list of frequencies, but each axis has its own: choose "
                       "channels, or another scaling",
                       rule->name);
    for (unsigned a = 0; a < n_axes; a++)
        r->widths[a] = 2 * (int64_t)pairs[a];
    if (n_axes > 1 || c->axes_dim.n)
        c->axes_dim = shown(r, n_axes);
    r->n_blocks = n_axes;
    for (unsigned b = 0; b < n_axes; pair0 += pairs[order[b++]]) {
        r->block_pairs[b] = pairs[order[b]];
        set_block(c, use, r, pair0, pairs[order[b]], order[b]);
    }
    return PE_OK;
}

enum pe_status pe_rotary_set_pairs(struct pe_plan *plan, struct pe_rotary *r, const struct pe_scaling_use *use,
                                   struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    for (size_t i = 0; i < c->inv_freq.n; i++) {
        double w = pe_real_at(&c->inv_freq, i);
        r->inv_freq[i] = dd(r->float32 ? (double)(float)w : w);
    }
    return c->channels != PE_UNSET_WORD ? set_channels(c, use, r, err) : set_blocks(plan, use, r, err);
}

/* ---- Coordinates ---- */

/* Coordinate of index i on an axis of g: (start + i) · unit. Qwen-Image centers rows and columns; its frames count
 * from 0 (diffusers, QwenEmbedRope). */
static struct pe_dd rule(const struct pe_rotary_fields *c, unsigned n_axes, unsigned axis, double g, double *start)
{
    switch ((enum pe_rotary_coords)c->coords) {
    case PE_COORDS_INDEX: break;
    case PE_COORDS_ONE_BASED: *start = 1; break;
    case PE_COORDS_NORMALIZED: /* 2·(i + 1/2)/g - 1 (DINOv3) */ *start = (1 - g) / 2; return dd_div(dd(2), dd(g));
    case PE_COORDS_RESIZED: /* i/g · ref (EVA-02) */ return dd_div(dd(pe_real_at(&c->ref_grid, axis)), dd(g));
    case PE_COORDS_CENTERED: *start = n_axes > 2 && axis == 0 ? 0 : -(g - floor(g / 2)); break;
    case PE_COORDS_PIXEL: /* linspace(-1, 1, g), which is -1 if g is 1 */
        *start = g > 1 ? -(g - 1) / 2 : -1;
        return g > 1 ? dd_div(dd(2), dd(g - 1)) : dd(1);
    }
    return dd(1);
}

static enum pe_status check_coords(const struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_rotary_fields *c = plan->config;
    if (c->coords != PE_COORDS_INDEX && !plan->seq.n_grid)
        return pe_fail(err, "/coords", "coords %s needs a grid; positions in a list are taken as given",
                       pe_rotary_coord_words[c->coords]);
    if (c->coords == PE_COORDS_RESIZED && (c->ref_grid.array.rank != 1 || c->ref_grid.n != plan->seq.n_grid))
        return pe_fail(err, "/ref_grid",
                       "ref_grid has %llu lengths; coords resized needs one for each axis of the "
                       "grid, %u",
                       (unsigned long long)c->ref_grid.n, plan->seq.n_grid);
    if (c->coords == PE_COORDS_PIXEL && c->channels != PE_UNSET_WORD)
        return pe_fail(err, "/coords",
                       "coords pixel has frequencies of its own for each axis (axes_dim), not channels "
                       "%s",
                       pe_rotary_channel_words[c->channels]);
    return PE_OK;
}

/* pixel has its own frequencies, so a base or scaling would have no effect. */
static enum pe_status check_pixel(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    if (c->coords != PE_COORDS_PIXEL)
        return PE_OK;
    if (pe_plan_gave(plan, "base"))
        return pe_fail(err, "/base",
                       "base is not used with coords pixel, whose frequencies are pi·linspace(1, max_freq/2)");
    if (!pe_scaling_is_default(&c->scaling))
        return pe_fail(err, "/scaling/type",
                       "scaling is not used with coords pixel, whose frequencies are "
                       "pi·linspace(1, max_freq/2)");
    c->base = PE_UNSET;
    return PE_OK;
}

/* The frameworks store coordinates in f32, so arith float32 stores a list of them; otherwise the unit is multiplied
 * into the frequencies. */
static enum pe_status list_float32(struct pe_plan *plan, struct pe_rotary *r, struct pe_error *err)
{
    uint64_t n = 0, at = 0;
    for (unsigned a = 0; a < plan->seq.n_grid; a++)
        n += plan->seq.grid[a];
    if (n > PE_LISTED_POSITIONS_MAX)
        return pe_fail(err, "/grid",
                       "grid has axes of %llu positions together; with arith float32 and these coords at "
                       "most %d",
                       (unsigned long long)n, PE_LISTED_POSITIONS_MAX);
    r->coords = malloc(n * sizeof *r->coords);
    if (!r->coords)
        return pe_no_memory(err);
    for (unsigned a = 0; a < plan->seq.n_grid; at += plan->seq.grid[a++]) {
        struct pe_positions *p = &plan->seq.k[a];
        for (uint64_t i = 0; i < plan->seq.grid[a]; i++)
            r->coords[at + i] = (double)(float)dd_mul_d(r->unit[a], p->start + (double)i).hi;
        p->list = r->coords + at;
        plan->seq.q[a].list = p->list;
        r->unit[a] = dd(1);
    }
    return PE_OK;
}

enum pe_status pe_rotary_set_coords(struct pe_plan *plan, struct pe_rotary *r, struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    enum pe_status status = check_coords(plan, err);
    if (!status)
        status = check_pixel(plan, err);
    for (unsigned a = 0; a < PE_AXES_MAX; a++)
        r->unit[a] = dd(1);
    if (!plan->seq.n_grid)
        c->coords = PE_UNSET_WORD; /* has no effect, so the config does not show it */
    if (status || !plan->seq.n_grid || c->coords == PE_COORDS_INDEX)
        return status;
    for (unsigned a = 0; a < plan->seq.n_grid; a++) {
        r->unit[a] = rule(c, plan->seq.n_grid, a, (double)plan->seq.grid[a], &plan->seq.k[a].start);
        plan->seq.q[a].start = plan->seq.k[a].start;
    }
    return r->float32 ? list_float32(plan, r, err) : PE_OK;
}
