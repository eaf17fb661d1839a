/* Reads the segments of a multimodal sequence: checks names and the rules of the style, and computes sizes in
 * tokens. */
#include "core/sequence/sequence.h"
#include "core/limits.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Styles and types: what each has ---- */

const char *const pe_position_styles[] = {[PE_QWEN2_5_VL] = "qwen2_5_vl",
                                          [PE_QWEN2_VL] = "qwen2_vl",
                                          [PE_QWEN2_5_VL_INT_SECONDS] = "qwen2_5_vl_int_seconds",
                                          [PE_QWEN3_VL] = "qwen3_vl",
                                          [PE_QWEN2_5_OMNI] = "qwen2_5_omni",
                                          [PE_QWEN3_OMNI] = "qwen3_omni",
                                          [PE_VIDEOROPE] = "videorope",
                                          [PE_ERNIE4_5_VL] = "ernie4_5_vl",
                                          [PE_GLM4V] = "glm4v",
                                          [PE_FLUX] = "flux",
                                          [PE_FLUX2] = "flux2",
                                          [PE_QWEN_IMAGE] = "qwen_image",
                                          [PE_LUMINA2] = "lumina2",
                                          [PE_Z_IMAGE] = "z_image",
                                          [PE_IDEOGRAM4] = "ideogram4",
                                          [PE_OVIS_IMAGE] = "ovis_image",
                                          [PE_LONGCAT_IMAGE] = "longcat_image",
                                          [PE_HUNYUAN_IMAGE_3] = "hunyuan_image_3",
                                          NULL};
const char *const pe_id_rules[] = {[PE_IDS_PUBLISHED] = "published", [PE_IDS_TRANSFORMERS_5] = "transformers_5", NULL};

/* Does the style's model accept audio? A segment describes its content, so one list serves several styles: only
 * styles that count seconds use second_per_grid. */
static bool has_audio(enum pe_position_style style) { return style == PE_QWEN2_5_OMNI || style == PE_QWEN3_OMNI; }

static const char *const type_words[] = {[PE_TEXT] = "text",
                                         [PE_IMAGE] = "image",
                                         [PE_VIDEO] = "video",
                                         [PE_AUDIO] = "audio",
                                         [PE_AUDIO_IN_VIDEO] = "audio_in_video",
                                         NULL};

static const char *const examples[] = {
    [PE_TEXT] = "{\"type\":\"text\",\"len\":8}",
    [PE_IMAGE] = "{\"type\":\"image\",\"grid\":[1,16,24]}",
    [PE_VIDEO] = "{\"type\":\"video\",\"grid\":[4,16,24],\"second_per_grid\":1.0}",
    [PE_AUDIO] = "{\"type\":\"audio\",\"len\":50} or {\"type\":\"audio\",\"mel_frames\":200}",
    [PE_AUDIO_IN_VIDEO] = "{\"type\":\"audio_in_video\",\"grid\":[4,16,24],\"second_per_grid\":1.0,\"audio_len\":100}",
};

/* ---- One segment as written ---- */

struct segment {
    int type;
    int64_t len, mel_frames, audio_len, image;
    struct pe_reals grid;
    double second_per_grid;
};

#define COUNT(field, when_, excludes_, ...)                                                                            \
    {                                                                                                                  \
        .name = #field, .type = PE_T_INT, .offset = PE_OFFSET(segment, field, int64_t), .fallback = PE_UNSET,          \
        .min = 1, .max = PE_POSITION_MAX, .when = when_, .excludes = excludes_, .about = PE_ABOUT(__VA_ARGS__)         \
    }

static const struct pe_param params[] = {
    PE_P_WORD(segment, type, type_words, "type", "what the tokens stand for"), /* must be first: check_shape reads it */
    COUNT(len, "type=text|audio", "mel_frames", "tokens", "tokens"),
    COUNT(mel_frames, "type=audio", NULL, "mel frames",
          "frames of the mel spectrogram, 10 ms each; about four make a token"),
    COUNT(audio_len, "type=audio_in_video", NULL, "audio tokens", "tokens of the video's sound"),
    {.name = "grid",
     .type = PE_T_REALS,
     .offset = PE_OFFSET(segment, grid, struct pe_reals),
     .min = 1,
     .max = PE_POSITION_MAX,
     .when = "type=image|video|audio_in_video",
     .about = {"grid", "patches before merging: [t, h, w]"}},
    {.name = "image",
     .type = PE_T_INT,
     .offset = PE_OFFSET(segment, image, int64_t),
     .fallback = PE_UNSET,
     .min = -1024,
     .max = 1024,
     .when = "type=image",
     .about = {"number of the image",
               "image generators: the image's own number, in place of its place among the images: a reference of "
               "Kontext 1, a layer -1"}},
    {.name = "second_per_grid",
     .type = PE_T_REAL,
     .offset = PE_OFFSET(segment, second_per_grid, double),
     .fallback = PE_UNSET,
     .min = 0,
     .max = 1e9,
     .when = "type=video|audio_in_video",
     .about = {"seconds per step", "seconds from one t to the next, temporal_patch_size / fps; default 1"}},
    PE_P_END,
};

struct reader {
    const struct pe_segment_rules *rules;
    struct pe_failure *err;
    char at[PE_POINTER_MAX];    /* "/segments/3" */
    char field[PE_POINTER_MAX]; /* "/segments/3/grid" */
    size_t n_images;            /* read so far */
};

static const char *field_at(struct reader *r, const char *name)
{
    pe_pointer_join(r->field, sizeof r->field, r->at, name);
    return r->field;
}

/* ---- Reading: names ---- */

enum { SEGMENT_FIELDS_MAX = 16 };

static enum pe_status unknown_field(struct reader *r, const struct segment *s, const char *name)
{
    const char *names[sizeof params / sizeof *params];
    size_t n = 0;
    for (const struct pe_param *row = params; row->name; row++)
        if (pe_when_holds(row->when, params, s))
            names[n++] = row->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names), *word = type_words[s->type];
    if (nearest)
        return pe_fail(r->err, field_at(r, name), "unknown field \"%.64s\" in a segment of type %s; nearest: \"%s\"",
                       name, word, nearest);
    return pe_fail(r->err, field_at(r, name), "unknown field \"%.64s\" in a segment of type %s; allowed: as in %s",
                   name, word, examples[s->type]);
}

static enum pe_status check_shape(struct reader *r, const struct pe_value *v)
{
    if (v->kind != PE_OBJECT)
        return pe_fail(r->err, r->at, "this segment is not an object; allowed: an object such as %s",
                       examples[PE_TEXT]);
    if (v->object.n > SEGMENT_FIELDS_MAX)
        return pe_fail(r->err, r->at, "this segment has %zu fields; allowed: at most %d, as in %s", v->object.n,
                       SEGMENT_FIELDS_MAX, examples[PE_VIDEO]);
    for (size_t i = 0; i < v->object.n; i++)
        if (pe_param_find(params, v->object.fields[i].name) == params)
            return PE_OK;
    return pe_fail(r->err, field_at(r, "type"),
                   "type is missing; allowed: \"text\", \"image\", \"video\", \"audio\", \"audio_in_video\"");
}

static enum pe_status read_segment(struct reader *r, const struct pe_value *v, struct segment *s)
{
    bool taken[SEGMENT_FIELDS_MAX] = {false};
    if (check_shape(r, v) || pe_params_read(params, s, v->object.fields, v->object.n, taken, r->at, r->err))
        return r->err->status;
    for (size_t i = 0; i < v->object.n; i++)
        if (!taken[i])
            return unknown_field(r, s, v->object.fields[i].name);
    return PE_OK;
}

/* ---- Reading: what the style allows ---- */

static enum pe_status check_style(struct reader *r, const struct segment *s)
{
    const char *name = pe_position_styles[r->rules->style];
    bool is_image = pe_position_style_is_image(r->rules->style);
    if (is_image && s->type != PE_TEXT && s->type != PE_IMAGE)
        return pe_fail(r->err, "/position_style",
                       "position_style \"%s\" is of an image generator, which has text and images; the segments have "
                       "type \"%s\"",
                       name, type_words[s->type]);
    if (!is_image && s->image != PE_UNSET_INT)
        return pe_fail(r->err, field_at(r, "image"), "image is not used by position_style \"%s\"", name);
    if ((s->type == PE_AUDIO || s->type == PE_AUDIO_IN_VIDEO) && !has_audio(r->rules->style))
        return pe_fail(r->err, field_at(r, "type"),
                       "type is \"%s\", and position_style \"%s\" is of a model without sound; allowed: \"text\", "
                       "\"image\", \"video\" (position_style \"qwen2_5_omni\" and \"qwen3_omni\" have audio)",
                       type_words[s->type], name);
    return PE_OK;
}

/* ERNIE 4.5 VL merges the frames of a video two by two, as its patches. */
static enum pe_status merge_frames(struct reader *r, const struct segment *s, uint64_t *frames)
{
    enum { TEMPORAL_MERGE_SIZE = 2 };
    if (r->rules->style != PE_ERNIE4_5_VL || s->type != PE_VIDEO)
        return PE_OK;
    if (*frames % TEMPORAL_MERGE_SIZE)
        return pe_fail(r->err, field_at(r, "grid"),
                       "grid has %llu frames; position_style \"ernie4_5_vl\" merges the frames of a video two by two, "
                       "so it needs an even number",
                       (unsigned long long)*frames);
    *frames /= TEMPORAL_MERGE_SIZE;
    return PE_OK;
}

/* ---- Reading: sizes ---- */

static enum pe_status missing(struct reader *r, const struct segment *s, const char *name)
{
    return pe_fail(r->err, field_at(r, name), "%s is missing; a segment of type %s is written as %s", name,
                   type_words[s->type], examples[s->type]);
}

static enum pe_status check_grid(struct reader *r, const struct segment *s)
{
    const struct pe_reals *grid = &s->grid;
    if (grid->n == 0)
        return missing(r, s, "grid");
    if (grid->array.rank != 1 || grid->n != 3)
        return pe_fail(r->err, field_at(r, "grid"),
                       "grid has %llu numbers in %u dimensions; allowed: [t, h, w], patches before merging, as in %s",
                       (unsigned long long)grid->n, grid->array.rank, examples[s->type]);
    for (uint64_t i = 0; i < 3; i++)
        if (pe_real_at(grid, i) != floor(pe_real_at(grid, i)))
            return pe_fail(r->err, field_at(r, "grid"), "grid has %s at index %llu; allowed: integers from 1",
                           pe_shown(pe_real_at(grid, i)).text, (unsigned long long)i);
    return PE_OK;
}

static enum pe_status read_grid(struct reader *r, const struct segment *s, struct pe_segment_block *b)
{
    if (check_grid(r, s))
        return r->err->status;
    uint64_t merge = (uint64_t)r->rules->spatial_merge_size, h = (uint64_t)pe_real_at(&s->grid, 1),
             w = (uint64_t)pe_real_at(&s->grid, 2);
    if (h % merge || w % merge)
        return pe_fail(r->err, field_at(r, "grid"),
                       "grid is %llu by %llu patches, and %llu by %llu of them become one token; allowed: h and w "
                       "divisible by spatial_merge_size, %llu",
                       (unsigned long long)h, (unsigned long long)w, (unsigned long long)merge,
                       (unsigned long long)merge, (unsigned long long)merge);
    b->frames = (uint64_t)pe_real_at(&s->grid, 0);
    b->rows = h / merge;
    b->cols = w / merge;
    if (merge_frames(r, s, &b->frames))
        return r->err->status;
    /* Qwen3-VL's get_rope_index splits every video into grids of one frame, and finds each grid after its timestamp and
     * start token. Only the tokenizer knows the number of those tokens, so a segment of several frames has no defined
     * positions. */
    if ((r->rules->style != PE_QWEN3_VL && r->rules->style != PE_GLM4V) || b->frames == 1)
        return PE_OK;
    return pe_fail(r->err, field_at(r, "grid"),
                   "grid has %llu frames; the model writes each frame's timestamp as text before it, so under "
                   "position_style \"%s\" a frame is a segment of its own: {\"type\":\"text\",\"len\":…},"
                   "{\"type\":\"video\",\"grid\":[1,%llu,%llu]} for each (len: tokens of the timestamp and of "
                   "vision start and end)",
                   (unsigned long long)b->frames, pe_position_styles[r->rules->style], (unsigned long long)h,
                   (unsigned long long)w);
}

/* ⌊x/2⌋, also below 0. */
static int64_t half(int64_t x) { return (x - (x & 1)) / 2; }

/* Tokens of n mel frames: a convolution of stride 2, then (Qwen2.5) a pooling of 2 without padding, or (Qwen3) two more
 * convolutions of stride 2 within each hundred frames, 13 tokens. Qwen2.5: ((n-1)//2+1-2)//2+1. */
static int64_t audio_tokens(enum pe_position_style style, int64_t n)
{
    if (style == PE_QWEN2_5_OMNI)
        return half(half(n - 1) - 1) + 1;
    int64_t f = half(n % 100 - 1) + 1;
    return half(half(f - 1)) + 1 + n / 100 * 13;
}

static enum pe_status read_audio(struct reader *r, const struct segment *s, struct pe_segment_block *b)
{
    if (s->len == PE_UNSET_INT && s->mel_frames == PE_UNSET_INT)
        return missing(r, s, "len");
    int64_t n = s->len != PE_UNSET_INT ? s->len : audio_tokens(r->rules->style, s->mel_frames);
    if (n < 1)
        return pe_fail(r->err, field_at(r, "mel_frames"),
                       "mel_frames is %lld, too few for one token of position_style \"%s\"; allowed: at least 3",
                       (long long)s->mel_frames, pe_position_styles[r->rules->style]);
    b->len = (uint64_t)n;
    return PE_OK;
}

double pe_segment_chunk_ids(const struct pe_segment_rules *rules)
{
    return trunc(rules->position_id_per_seconds * rules->seconds_per_chunk);
}

static enum pe_status read_sizes(struct reader *r, const struct segment *s, struct pe_segment_block *b)
{
    switch ((enum pe_segment_type)s->type) {
    case PE_TEXT: b->len = (uint64_t)s->len; return s->len == PE_UNSET_INT ? missing(r, s, "len") : PE_OK;
    case PE_IMAGE:
    case PE_VIDEO: return read_grid(r, s, b);
    case PE_AUDIO: return read_audio(r, s, b);
    case PE_AUDIO_IN_VIDEO:
        if (read_grid(r, s, b))
            return r->err->status;
        if (s->audio_len == PE_UNSET_INT)
            return missing(r, s, "audio_len");
        if (r->rules->style == PE_QWEN2_5_OMNI && pe_segment_chunk_ids(r->rules) < 1)
            return pe_fail(r->err, "/seconds_per_chunk",
                           "seconds_per_chunk is %.10g at %.10g ids per second, which is less than one id; allowed: "
                           "position_id_per_seconds * seconds_per_chunk of at least 1",
                           r->rules->seconds_per_chunk, r->rules->position_id_per_seconds);
        b->len = (uint64_t)s->audio_len;
        return PE_OK;
    }
    return PE_OK;
}

/* ---- Reading: all segments, and how many tokens they are ---- */

/* The product, or at least one more than the limit if a factor exceeds it. Nothing overflows, because factors are
 * cut to 23 bits. */
static uint64_t capped(uint64_t a, uint64_t b)
{
    const uint64_t cap = (uint64_t)PE_LISTED_POSITIONS_MAX + 1;
    return (a < cap ? a : cap) * (b < cap ? b : cap);
}

static uint64_t token_count(const struct pe_segment_block *b)
{
    return capped(capped(b->frames, b->rows), b->cols) + b->len +
           (b->type == PE_AUDIO_IN_VIDEO ? 2 * PE_SEGMENT_ENDS : 0);
}

static enum pe_status read_block(struct reader *r, const struct pe_value *v, struct pe_segment_block *b)
{
    struct segment s;
    *b = (struct pe_segment_block){0};
    if (read_segment(r, v, &s) || check_style(r, &s))
        return r->err->status;
    b->type = (enum pe_segment_type)s.type;
    b->seconds = isnan(s.second_per_grid) ? 1 : s.second_per_grid;
    b->has_number = s.image != PE_UNSET_INT;
    b->number = s.image;
    if (read_sizes(r, &s, b) ||
        (b->type == PE_IMAGE &&
         pe_position_style_check_image(r->rules->style, b->frames, r->n_images, b->has_number, r->at, r->err)))
        return r->err->status;
    r->n_images += b->type == PE_IMAGE;
    b->n = token_count(b);
    return PE_OK;
}

static enum pe_status read_blocks(struct reader *r, const struct pe_value *segments, struct pe_segment_block *blocks,
                                  uint64_t *n)
{
    *n = 0;
    for (size_t i = 0; i < segments->list.n; i++) {
        snprintf(r->at, sizeof r->at, "/segments/%zu", i);
        if (read_block(r, &segments->list.items[i], &blocks[i]))
            return r->err->status;
        *n += blocks[i].n;
        if (*n <= PE_LISTED_POSITIONS_MAX)
            continue;
        pe_fail(r->err, r->at, "the segments up to this one are more than %d tokens, the most of one sequence",
                PE_LISTED_POSITIONS_MAX);
        return r->err->status = PE_TOO_LARGE;
    }
    return PE_OK;
}

/* ---- The list and the rules ---- */

static enum pe_status check_list(const struct pe_value *segments, struct pe_failure *err)
{
    bool is_list = segments->kind == PE_LIST || segments->kind == PE_ARRAY;
    if (!is_list || (segments->kind == PE_ARRAY && segments->array.rank == 0))
        return pe_fail(err, "/segments", "segments is not a list; allowed: a list of objects such as [%s,%s]",
                       examples[PE_TEXT], examples[PE_IMAGE]);
    if (segments->kind == PE_ARRAY && segments->array.shape[0] > 0)
        return pe_fail(err, "/segments", "segments is a list of numbers; allowed: a list of objects such as [%s,%s]",
                       examples[PE_TEXT], examples[PE_IMAGE]);
    if (segments->kind == PE_ARRAY || segments->list.n == 0)
        return pe_fail(err, "/segments", "segments is empty; allowed: at least one segment such as %s",
                       examples[PE_TEXT]);
    if (segments->list.n <= PE_SEGMENTS_MAX)
        return PE_OK;
    pe_fail(err, "/segments", "segments has %zu entries; allowed: at most %d", segments->list.n, PE_SEGMENTS_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status check_rate(const char *name, double rate, struct pe_failure *err)
{
    if (rate >= 0 && rate <= PE_POSITION_MAX)
        return PE_OK;
    return pe_fail_at(err, "", name, "%s is %s; allowed: a number from 0 to 2^40", name, pe_shown(rate).text);
}

/* The caller's parameter rows are stricter; these ranges are the minimum that computing the ids needs. */
static enum pe_status check_rules(const struct pe_segment_rules *rules, struct pe_failure *err)
{
    if (rules->spatial_merge_size < 1)
        return pe_fail(err, "/spatial_merge_size", "spatial_merge_size is %lld; allowed: an integer from 1",
                       (long long)rules->spatial_merge_size);
    switch (rules->style) {
    case PE_QWEN2_5_VL:
    case PE_QWEN2_5_VL_INT_SECONDS: return check_rate("tokens_per_second", rules->tokens_per_second, err);
    case PE_QWEN2_5_OMNI:
        if (check_rate("seconds_per_chunk", rules->seconds_per_chunk, err))
            return err->status;
        return check_rate("position_id_per_seconds", rules->position_id_per_seconds, err);
    case PE_QWEN3_OMNI: return check_rate("position_id_per_seconds", rules->position_id_per_seconds, err);
    case PE_VIDEOROPE: return check_rate("temporal_scale", rules->temporal_scale, err);
    default: break;
    }
    return PE_OK;
}

enum pe_status pe_segments_read(struct pe_segment_list *list, const struct pe_value *segments,
                                const struct pe_segment_rules *rules, struct pe_failure *err)
{
    *list = (struct pe_segment_list){.rules = *rules};
    if (check_list(segments, err) || check_rules(rules, err))
        return err->status;
    struct pe_segment_block *all = malloc(segments->list.n * sizeof *all);
    if (!all)
        return pe_no_memory(err);
    struct reader r = {.rules = rules, .err = err};
    if (read_blocks(&r, segments, all, &list->n_tokens)) {
        free(all);
        return err->status;
    }
    list->at = all;
    list->n = segments->list.n;
    return PE_OK;
}
