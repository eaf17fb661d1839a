/* The rotary family: which axis each pair of channels looks at, and which ladder its frequency is from.
 *
 * Both are data: a list of axes (channel_axis), of which every word of `channels` and every division into blocks
 * (axes_dim) is only a name; and ladders that are shared or the axis's own. Libraries divide a head among time, height
 * and width in these ways, and a model that is given another one still runs, only worse: a shared ladder loses the fast
 * or the slow frequencies of an axis; own ladders repeat them. */
#include "core/schemes/rotary/rotary.h"

#include <stdio.h>
#include <string.h>

/* ---- Words of channels ---- */

const char *const pe_rotary_layouts[] = {[PE_LAYOUT_INTERLEAVED] = "interleaved",
                                         [PE_LAYOUT_HALF] = "half",
                                         [PE_LAYOUT_HALF_PER_AXIS] = "half_per_axis",
                                         [PE_LAYOUT_INTERLEAVED_TO_HALF] = "interleaved_to_half",
                                         [PE_LAYOUT_VJEPA2] = "vjepa2",
                                         NULL};
const char *const pe_rotary_channel_words[] = {[PE_PIXTRAL] = "pixtral",
                                               [PE_MROPE] = "mrope",
                                               [PE_MROPE_INTERLEAVED] = "mrope_interleaved",
                                               [PE_CHANNELS_VIDEOROPE] = "videorope",
                                               [PE_DINOV3] = "dinov3",
                                               [PE_IMROPE] = "imrope",
                                               [PE_ALTERNATING] = "alternating",
                                               [PE_OPENPANGU] = "openpangu",
                                               [PE_XDROPE] = "xdrope",
                                               NULL};
const char *const pe_rotary_ladders[] = {[PE_LADDER_SHARED] = "shared", [PE_LADDER_OWN] = "own", NULL};

/* n_axes: 0: as many as sections, or as the sequence has. sections: 0: the word has none. */
static const struct pe_rotary_channel_word words[] = {
    [PE_PIXTRAL] = {.n_axes = 2, .has_own_ladder = true},
    [PE_DINOV3] = {.n_axes = 2, .has_own_ladder = true},
    [PE_MROPE] = {.n_axes = 3, .least = 3, .most = 3},
    [PE_MROPE_INTERLEAVED] = {.n_axes = 3, .least = 3, .most = 3, .is_loose = true},
    [PE_CHANNELS_VIDEOROPE] = {.n_axes = 3, .least = 3, .most = 3},
    [PE_IMROPE] = {.n_axes = 3, .least = 3, .most = 4},
    [PE_ALTERNATING] = {.n_axes = 0},
    [PE_OPENPANGU] = {.n_axes = 0, .least = 2, .most = 3, .needs_sections = true},
    [PE_XDROPE] = {.n_axes = 0, .least = 3, .most = 4, .needs_sections = true},
};

const struct pe_rotary_channel_word *pe_rotary_channel_word(int channels) { return &words[channels]; }

/* ---- Sections ---- */

/* A pasted object may have them. */
const struct pe_reals *pe_rotary_sections(const struct pe_rotary_fields *given)
{
    return given->scaling.mrope_section.n ? &given->scaling.mrope_section : &given->mrope_section;
}

static enum pe_status wrong_sections(const struct pe_rotary_resolved *now, uint64_t n, struct pe_failure *err)
{
    const struct pe_rotary_channel_word *word = &words[now->channels];
    const char *name = pe_rotary_channel_words[now->channels];
    if (n == 0)
        return pe_fail(err, "/mrope_section", "mrope_section is missing; channels %s needs %u or %u numbers of pairs",
                       name, word->least, word->most);
    if (word->least != word->most)
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %llu numbers; needed: %u or %u, pairs for each axis of channels %s",
                       (unsigned long long)n, word->least, word->most, name);
    return pe_fail(err, "/mrope_section", "mrope_section has %llu numbers; needed: 3, pairs for time, height, width",
                   (unsigned long long)n);
}

/* Numbers of pairs, which have to add up, unless the word states what becomes of the others. */
static enum pe_status read_sections(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_channel_word *word = &words[now->channels];
    const struct pe_reals *list = pe_rotary_sections(now->given);
    double sum = 0;
    if (!list->n && !word->needs_sections) {
        size_t n = now->n_pairs, share = 3 * n / 8;
        bool is_even = now->channels == PE_IMROPE;
        now->n_widths = 3;
        now->pairs[0] = is_even ? (n + 2) / 3 : n - 2 * share;
        now->pairs[1] = is_even ? (n + 1) / 3 : share;
        now->pairs[2] = is_even ? n / 3 : share;
        return PE_OK;
    }
    if (list->array.rank != 1 || list->n < word->least || list->n > word->most)
        return wrong_sections(now, list->n, err);
    now->n_widths = (unsigned)list->n;
    for (size_t i = 0; i < list->n; i++) {
        double x = pe_real_at(list, i);
        if (x != floor(x))
            return pe_fail(err, "/mrope_section", "mrope_section has %s at index %zu; allowed: integers",
                           pe_shown(x).text, i);
        now->pairs[i] = (size_t)x;
        sum += x;
    }
    if (sum > (double)now->n_pairs || (sum < (double)now->n_pairs && !word->is_loose))
        return pe_fail(err, "/mrope_section", "mrope_section adds up to %.0f; needed: %srotary_dim/2, %zu", sum,
                       word->is_loose ? pe_text("at most ") : "", now->n_pairs);
    return PE_OK;
}

static enum pe_status resolve_channels(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_channel_word *word = &words[now->channels];
    if (word->most && read_sections(now, err))
        return err->status;
    if (word->has_own_ladder && now->n_pairs % 2)
        return pe_fail(err, "/rotary_dim", "rotary_dim is %zu; channels %s need a multiple of 4", 2 * now->n_pairs,
                       pe_rotary_channel_words[now->channels]);
    if (now->channels == PE_CHANNELS_VIDEOROPE && now->pairs[1] != now->pairs[2])
        return pe_fail(err, "/mrope_section",
                       "mrope_section has %zu for height, %zu for width; videorope alternates "
                       "them, so they are equal",
                       now->pairs[1], now->pairs[2]);
    return PE_OK;
}

/* ---- A list of axes, and blocks ---- */

static enum pe_status check_list(const struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_reals *list = &now->given->channel_axis;
    if (pe_reals_expect(list, now->n_pairs, "channel_axis", "one per pair: rotary_dim/2", err))
        return err->status;
    for (uint64_t c = 0; c < list->n; c++)
        if (pe_real_at(list, c) != floor(pe_real_at(list, c)))
            return pe_fail(err, "/channel_axis", "channel_axis has %s at index %llu; allowed: integers from -1",
                           pe_shown(pe_real_at(list, c)).text, (unsigned long long)c);
    return PE_OK;
}

/* By default 2·floor(r / (2·axes)) channels for each axis, and the remainder goes to the first. */
static enum pe_status resolve_blocks(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const struct pe_rotary_fields *given = now->given;
    unsigned n = now->n_axes;
    for (unsigned a = 0; a < n; a++)
        now->pairs[a] = given->axes_dim.n ? (size_t)pe_real_at(&given->axes_dim, a) / 2
                                          : now->n_pairs / n + (a == 0 ? now->n_pairs % n : 0);
    now->n_widths = n > 1 || given->axes_dim.n ? n : 0;
    /* Reads axis_order, a permutation; the default is the axes in order. */
    unsigned seen = 0;
    for (unsigned a = 0; a < n; a++)
        now->order[a] = a;
    if (!given->axis_order.n)
        return PE_OK;
    for (unsigned a = 0; given->axis_order.n == n && a < n; a++) {
        double x = pe_real_at(&given->axis_order, a);
        if (x == floor(x) && x < n)
            seen |= 1U << (now->order[a] = (unsigned)x);
    }
    if (given->axis_order.array.rank == 1 && seen == (1U << n) - 1)
        return PE_OK;
    return pe_fail(err, "/axis_order", "axis_order is not each of 0 to %u once", n - 1);
}

static enum pe_status check_layout(const struct pe_rotary_resolved *now, struct pe_failure *err)
{
    int layout = now->given->layout;
    if (layout != PE_LAYOUT_HALF_PER_AXIS && layout != PE_LAYOUT_VJEPA2)
        return PE_OK;
    if (now->channels != PE_UNSET_WORD)
        return pe_fail(err, "/layout", "layout %s needs a block of its own for each axis (axes_dim), not channels %s",
                       pe_rotary_layouts[layout], pe_rotary_channel_words[now->channels]);
    if (now->given->channel_axis.n)
        return pe_fail(err, "/layout", "layout %s needs a block of its own for each axis (axes_dim), not channel_axis",
                       pe_rotary_layouts[layout]);
    return PE_OK;
}

/* ---- Ladders ---- */

const char *pe_rotary_ladder_field(const struct pe_rotary_fields *given)
{
    return given->axis_base.n               ? "axis_base"
           : given->axis_scaling            ? "axis_scaling"
           : given->ladder != PE_UNSET_WORD ? "ladder"
                                            : NULL;
}

static enum pe_status check_ladder(const struct pe_rotary_resolved *now, struct pe_failure *err)
{
    const char *field = pe_rotary_ladder_field(now->given);
    bool is_own = now->given->axis_base.n || now->given->axis_scaling;
    if (field && now->channels != PE_UNSET_WORD && words[now->channels].has_own_ladder)
        return pe_fail_at(err, "", field, "%s is not used with channels %s, whose frequencies are its own", field,
                          pe_rotary_channel_words[now->channels]);
    if (is_own && now->ladder == PE_LADDER_SHARED)
        return pe_fail_at(err, "", field, "%s needs ladder \"own\": the pairs of all axes share one ladder here",
                          field);
    if (now->given->axis_base.n)
        return pe_reals_expect(&now->given->axis_base, now->n_axes, "axis_base", "one for each axis", err);
    return PE_OK;
}

static enum pe_status wrong_axis_scaling(unsigned n_axes, struct pe_failure *err)
{
    return pe_fail(err, "/axis_scaling",
                   "axis_scaling is not a list of %u scaling objects or nulls, one for each axis, as in "
                   "[{\"type\":\"ntk\",\"factor\":2},null]",
                   n_axes);
}

enum { SCALING_FIELDS_MAX = 32 };

/* The scaling of one axis; a refusal inside it points there. */
static enum pe_status read_axis_scaling(struct pe_rotary_resolved *now, unsigned axis, const struct pe_value *v,
                                        struct pe_failure *err)
{
    struct pe_scaling scaling;
    struct pe_scaling_use use = now->use;
    bool taken[SCALING_FIELDS_MAX] = {false};
    char at[PE_POINTER_MAX];
    snprintf(at, sizeof at, "/axis_scaling/%u", axis);
    if (v->object.n > SCALING_FIELDS_MAX)
        return wrong_axis_scaling(now->n_axes, err);
    if (pe_params_read(pe_scaling_params, &scaling, v->object.fields, v->object.n, taken, at, err))
        return err->status;
    for (size_t i = 0; i < v->object.n; i++)
        if (!taken[i])
            return pe_fail_at(err, at, v->object.fields[i].name, "unknown field \"%.64s\" in a scaling",
                              v->object.fields[i].name);
    const struct pe_scaling_rule *rule = pe_scaling_meant(&scaling);
    if (rule != pe_scaling_at(0) && !pe_is_among("linear|ntk", rule->name))
        return pe_fail_at(err, at, "type", "type is \"%s\"; in axis_scaling allowed: default, linear, ntk", rule->name);
    use.base = now->axis_base[axis];
    enum pe_status status = pe_scaling_resolve(&scaling, &use, &now->axis_scaling[axis], err);
    if (status)
        snprintf(err->pointer, sizeof err->pointer, "%s", at);
    return status;
}

static enum pe_status resolve_ladder(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    bool has_blocks = now->channels == PE_UNSET_WORD && !now->given->channel_axis.n;
    now->ladder = now->given->ladder != PE_UNSET_WORD ? (enum pe_rotary_ladder)now->given->ladder
                  : has_blocks                        ? PE_LADDER_OWN
                                                      : PE_LADDER_SHARED;
    if (check_ladder(now, err))
        return err->status;
    if (now->ladder == PE_LADDER_SHARED || now->given->inv_freq.n)
        return PE_OK;
    if (now->n_axes > 1 && (now->scaling.rule->has_one_ladder || now->scaling.divisors.n))
        return pe_fail(err, "/scaling/type",
                       "%s has factors for one list of frequencies, but each axis has its own: choose "
                       "channels, or another scaling",
                       now->scaling.rule->name);
    /* Each axis's base and scaling: those of all, or its own. */
    const struct pe_rotary_fields *given = now->given;
    const struct pe_value *list = given->axis_scaling;
    for (unsigned a = 0; a < now->n_axes; a++) {
        now->axis_base[a] = given->axis_base.n ? pe_real_at(&given->axis_base, a) : now->use.base;
        now->axis_scaling[a] = now->scaling;
        if (now->axis_base[a] == 1)
            return pe_fail(err, "/axis_base",
                           "axis_base is 1 on axis %u, which gives its pairs the same frequency; "
                           "allowed: any other number from 0.001 to 1e12",
                           a);
    }
    if (list && (list->kind != PE_LIST || list->list.n != now->n_axes))
        return wrong_axis_scaling(now->n_axes, err);
    for (unsigned a = 0; list && a < now->n_axes; a++) {
        const struct pe_value *v = &list->list.items[a];
        if (v->kind != PE_NULL && v->kind != PE_OBJECT)
            return wrong_axis_scaling(now->n_axes, err);
        if (v->kind == PE_OBJECT && read_axis_scaling(now, a, v, err))
            return err->status;
    }
    return PE_OK;
}

enum pe_status pe_rotary_resolve_pairs(struct pe_rotary_resolved *now, struct pe_failure *err)
{
    enum pe_status status = now->channels != PE_UNSET_WORD ? resolve_channels(now, err)
                            : now->given->channel_axis.n   ? check_list(now, err)
                                                           : resolve_blocks(now, err);
    if (!status)
        status = check_layout(now, err);
    return status ? status : resolve_ladder(now, err);
}

/* ---- The axis of each pair ---- */

/* openPangu (vLLM, MRotaryEmbedding): axes take turns, the one that has placed the smallest part of its pairs first,
 * never one twice in a row while another has pairs left; of three sections, the first keeps a pair for the end. */
static void spread_openpangu(const struct pe_rotary_resolved *now, signed char *axis)
{
    size_t count[3] = {now->pairs[0], now->pairs[1], now->n_widths > 2 ? now->pairs[2] : 0}, placed[3] = {0, 0, 0};
    bool keeps_one = now->n_widths == 3 && count[0] > 0;
    int last = -1;
    count[0] -= keeps_one;
    for (size_t c = 0; c < now->n_pairs - keeps_one; c++) {
        int best = -1;
        for (int a = 0; a < 3; a++)
            if (placed[a] < count[a] && a != last && (best < 0 || placed[a] * count[best] < placed[best] * count[a]))
                best = a;
        best = best < 0 ? last : best;
        placed[best]++;
        axis[c] = (signed char)(last = best);
    }
    if (keeps_one)
        axis[now->n_pairs - 1] = 0;
}

/* Consecutive sections: of xdrope and mrope, or blocks in their order. */
static void spread_sections(const struct pe_rotary_resolved *now, const unsigned *order, unsigned n, signed char *axis)
{
    size_t c = 0;
    for (unsigned k = 0; k < n; k++) {
        unsigned a = order ? order[k] : k;
        memset(axis + c, (int)a, now->pairs[a]);
        c += now->pairs[a];
    }
}

/* 0 time (or rows), 1 height (or columns), 2 width; -1: the pair does not turn. */
static int axis_of(const struct pe_rotary_resolved *now, size_t c)
{
    const size_t *pairs = now->pairs;
    switch ((enum pe_rotary_channels)now->channels) {
    case PE_PIXTRAL:
    case PE_DINOV3: return c >= now->n_pairs / 2;
    /* transformers Qwen3-VL: all pairs are time's, then every third is overwritten, as far as the sections reach. */
    case PE_MROPE_INTERLEAVED: return c % 3 == 1 && c < 3 * pairs[1] ? 1 : c % 3 == 2 && c < 3 * pairs[2] ? 2 : 0;
    /* ggml_mrope_cache_init: a pair that its own section does not reach is of a fourth axis, which has coordinate 0 in
     * text and images. */
    case PE_IMROPE: return c < 3 * pairs[c % 3] ? (int)(c % 3) : -1;
    case PE_CHANNELS_VIDEOROPE:
        return c >= pairs[1] + pairs[2] ? 0 : 1 + (int)(c % 2); /* time has the low frequencies */
    case PE_ALTERNATING: return (int)(c % now->n_axes);
    case PE_MROPE: /* transformers Qwen2-VL */
    case PE_XDROPE:
    case PE_OPENPANGU: break;
    }
    return 0;
}

void pe_rotary_axes(const struct pe_rotary_resolved *now, signed char *axis)
{
    const struct pe_reals *list = &now->given->channel_axis;
    if (list->n)
        for (size_t c = 0; c < now->n_pairs; c++)
            axis[c] = (signed char)pe_real_at(list, c);
    else if (now->channels == PE_UNSET_WORD)
        spread_sections(now, now->order, now->n_axes, axis);
    else if (now->channels == PE_MROPE || now->channels == PE_XDROPE)
        spread_sections(now, NULL, now->n_widths, axis);
    else if (now->channels == PE_OPENPANGU)
        spread_openpangu(now, axis);
    else
        for (size_t c = 0; c < now->n_pairs; c++)
            axis[c] = (signed char)axis_of(now, c);
}
