/* The rotary family: how many axes a request has, and which fields say so. The positions of a sequence of one axis
 * count for all of them; several axes have to be as many as the fields name. */
#include "core/schemes/rotary/rotary.h"

#include <string.h>

static bool has_sections(int channels) { return pe_rotary_channel_word(channels)->most > 0; }

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
    if (given->axes_dim.n || given->channel_axis.n || (has_channels && !has_sections(given->channels)))
        return pe_fail(err, pointer, "mrope_section is not used with %s",
                       given->axes_dim.n       ? "axes_dim"
                       : given->channel_axis.n ? "channel_axis"
                                               : pe_rotary_channel_words[given->channels]);
    if (has_channels && alternate && given->channels != PE_MROPE_INTERLEAVED && given->channels != PE_IMROPE)
        return pe_fail(err, pointer, "mrope_interleaved is true, channels is %s; give one",
                       pe_rotary_channel_words[given->channels]);
    if (given->mrope_section.n && !same_list(&given->mrope_section, &given->scaling.mrope_section))
        return pe_fail(err, pointer, "mrope_section differs from that beside scaling; give one");
    return PE_OK;
}

/* Are the segments those of an image generator, which count in their own way? */
static bool has_image_style(const struct pe_plan *plan)
{
    return plan->seq.has_segments && pe_position_style_is_image(plan->seq.blocks.rules.style);
}

/* How axes share a ladder: as given, as the sections of a pasted object (Qwen2-VL's rope_scaling) need it, or as the
 * segments of a multimodal sequence do. */
static int channels_of(const struct pe_plan *plan, const struct pe_rotary_fields *given)
{
    if (given->channels != PE_UNSET_WORD)
        return given->channels;
    if (given->scaling.mrope_section.n)
        return interleaves(&given->scaling) ? PE_MROPE_INTERLEAVED : PE_MROPE;
    bool is_mrope = plan->seq.has_segments && !has_image_style(plan) && !given->axes_dim.n && !given->channel_axis.n;
    return is_mrope ? PE_MROPE : PE_UNSET_WORD;
}

static enum pe_status spread(struct pe_plan *plan, unsigned n_axes, const char *field, struct pe_failure *err)
{
    char pointer[32] = "/";
    strncat(pointer, field, sizeof pointer - 2);
    pe_sequence_spread(&plan->seq, n_axes);
    if (plan->seq.n_axes == n_axes)
        return PE_OK;
    if (!pe_plan_gave_itself(plan, field))
        return pe_plan_wrong_axes(plan, n_axes, err);
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
                           "axes_dim has %s at index %llu; allowed: even numbers, channels are rotated in pairs",
                           pe_shown(width).text, (unsigned long long)a);
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

/* A list of axes names so many; a sequence of more leaves the last ones unused. */
static enum pe_status spread_list(struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_reals *list = &now->given->channel_axis;
    double largest = 0;
    for (uint64_t c = 0; c < list->n; c++)
        largest = fmax(largest, pe_real_at(list, c));
    now->n_axes = (unsigned)largest + 1;
    pe_sequence_spread(&plan->seq, now->n_axes);
    if (plan->seq.n_axes >= now->n_axes)
        return PE_OK;
    return pe_fail(err, "/channel_axis", "channel_axis names axis %.0f, the sequence has %u axes", largest,
                   plan->seq.n_axes);
}

/* The axes of a word: its own number, that of its sections, or the sequence's, of which one counts for two. */
static unsigned axes_of_word(const struct pe_plan *plan, const struct pe_rotary_resolved *now)
{
    const struct pe_rotary_channel_word *word = pe_rotary_channel_word(now->channels);
    uint64_t n_sections = pe_rotary_sections(now->given)->n;
    if (word->n_axes)
        return word->n_axes;
    if (word->most)
        return n_sections >= word->least && n_sections <= word->most ? (unsigned)n_sections : word->least;
    return plan->seq.n_axes > 1 ? plan->seq.n_axes : 2;
}

static enum pe_status choose_channels(struct pe_plan *plan, struct pe_rotary_resolved *now, struct pe_failure *err)
{
    if (now->given->axis_order.n)
        return pe_fail(err, "/axis_order", "axis_order is not used here: it needs axes_dim, not channels");
    if (pe_rotary_sections(now->given)->n && !has_sections(now->channels))
        return pe_fail(err, "/mrope_section", "mrope_section is not used by channels %s",
                       pe_rotary_channel_words[now->channels]);
    if (now->channels == PE_DINOV3 && !pe_plan_gave(plan, "base"))
        now->use.base = 100;
    if (now->channels == PE_DINOV3 && !pe_plan_gave(plan, "coords") && plan->seq.n_grid)
        now->at.coords = PE_COORDS_normalized;
    return spread(plan, axes_of_word(plan, now), "channels", err);
}

/* segments are counted as a language model with M-RoPE counts: a configuration of other axes would get other ids than
 * its model has, unless it states a style that some such model has. A scheme without a model has M-RoPE's channels by
 * default (channels_of). */
static enum pe_status check_segments(const struct pe_plan *plan, const struct pe_rotary_resolved *now,
                                     struct pe_failure *err)
{
    bool has_channels =
        now->channels != PE_UNSET_WORD && (pe_plan_gave(plan, "channels") || pe_rotary_sections(now->given)->n);
    bool has_style = plan->seq.blocks.rules.style >= PE_ERNIE4_5_VL;
    if (!plan->seq.has_segments || has_style || (has_channels && has_sections(now->channels)))
        return PE_OK;
    if (now->given->axes_dim.n || now->given->channel_axis.n)
        return pe_fail(err, "/segments",
                       "segments counts positions as a language model with M-RoPE does, not those of "
                       "%s; give grid, or positions [axes][n]",
                       now->given->axes_dim.n ? "axes_dim" : "channel_axis");
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

/* A decoder adds the delta to its cache position: an image generator decodes nothing, and coordinates that a last step
 * changes are no positions. */
static enum pe_status check_delta(const struct pe_plan *plan, const struct pe_rotary_resolved *now,
                                  struct pe_failure *err)
{
    const struct pe_request *request = plan->request;
    bool is_image = has_image_style(plan), is_asked = false;
    bool has_step = now->at.axis_scale.n || now->at.axis_divisor.n || now->at.axis_shift.n;
    bool is_fraction = now->at.coords != PE_UNSET_WORD &&
                       pe_is_among("normalized|resized|pixel|cropped|half_centered", pe_coord_words[now->at.coords]);
    for (size_t i = 0; request && i < request->n_outputs; i++)
        is_asked |= pe_same(request->outputs[i], "rope_delta");
    if (is_asked && is_image)
        return pe_fail(err, "/outputs", "rope_delta is not an output of position_style %s: no token is decoded",
                       pe_position_styles[plan->seq.blocks.rules.style]);
    if (is_asked && is_fraction && plan->seq.n_grid)
        return pe_fail(err, "/outputs", "rope_delta is not an output beside coords %s: a decoder counts in positions",
                       pe_coord_words[now->at.coords]);
    if (is_asked && has_step)
        return pe_fail(err, "/outputs",
                       "rope_delta is not an output beside axis_scale, axis_divisor or axis_shift: a decoder counts in "
                       "positions");
    return PE_OK;
}

/* Where the pairs are blocks, or one list for one axis. */
static enum pe_status choose_blocks(struct pe_plan *plan, double share, const struct pe_rotary_resolved *now,
                                    int64_t *width, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    if (given->mrope_section.n)
        return pe_fail(err, "/mrope_section",
                       "mrope_section is not used here: it needs channels mrope, mrope_interleaved, videorope, imrope, "
                       "openpangu or xdrope");
    if (given->axes_dim.n && check_axes_dim(given, share, width, err))
        return err->status;
    if (given->axes_dim.n)
        return spread(plan, (unsigned)given->axes_dim.n, "axes_dim", err);
    if (given->axis_order.n && plan->seq.n_axes == 1)
        return pe_fail(err, "/axis_order", "axis_order is not used here: the sequence has one axis");
    return PE_OK;
}

enum pe_status pe_rotary_resolve_axes(struct pe_plan *plan, double share, struct pe_rotary_resolved *now,
                                      int64_t *width, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    *width = PE_UNSET_INT;
    if (check_pasted(plan, given, err))
        return err->status;
    now->channels = channels_of(plan, given);
    if (check_delta(plan, now, err))
        return err->status;
    bool is_centered =
        now->at.coords == PE_COORDS_centered && has_image_style(plan) && plan->seq.blocks.rules.style == PE_QWEN_IMAGE;
    if (is_centered) /* which the style means */
        now->at.coords = PE_COORDS_index;
    if (check_segments(plan, now, err))
        return err->status;
    if (given->channel_axis.n)
        return spread_list(plan, now, err);
    enum pe_status status =
        now->channels != PE_UNSET_WORD ? choose_channels(plan, now, err) : choose_blocks(plan, share, now, width, err);
    now->n_axes = plan->seq.n_axes;
    return status;
}
