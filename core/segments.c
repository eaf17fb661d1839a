/* Position ids of multimodal sequences, segment by segment in reading order. The rules are those of get_rope_index in
 * transformers' models of the names in pe_position_styles, and of VideoRoPE (arXiv 2502.05173). Products of frame
 * numbers are taken in float32, as there: 6 · 0.3 · 25 is 45 in float32 and less in double, and ids are cut. */
#include "core/segments.h"
#include "core/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_position_styles[] = {[PE_QWEN2_5_VL] = "qwen2_5_vl",
                                          [PE_QWEN2_VL] = "qwen2_vl",
                                          [PE_QWEN2_5_VL_INT_SECONDS] = "qwen2_5_vl_int_seconds",
                                          [PE_QWEN3_VL] = "qwen3_vl",
                                          [PE_QWEN2_5_OMNI] = "qwen2_5_omni",
                                          [PE_QWEN3_OMNI] = "qwen3_omni",
                                          [PE_VIDEOROPE] = "videorope",
                                          NULL};

enum kind { TEXT, IMAGE, VIDEO, AUDIO, AUDIO_IN_VIDEO };
static const char *const kinds[] = {[TEXT] = "text",
                                    [IMAGE] = "image",
                                    [VIDEO] = "video",
                                    [AUDIO] = "audio",
                                    [AUDIO_IN_VIDEO] = "audio_in_video",
                                    NULL};

/* One segment: its fields, then what follows from them. */
struct segment {
    int type;
    int64_t len, mel_frames, audio_len;
    struct pe_reals grid;
    double second_per_grid;
    uint64_t frames, rows, cols; /* of tokens, after merging */
    uint64_t n_plain;            /* tokens of text or audio */
    uint64_t n;                  /* all its tokens */
};

#define LENGTH(field, when_, text_)                                                                                    \
    {                                                                                                                  \
        .name = #field, .type = PE_T_INT, .offset = PE_OFFSET(segment, field, int64_t), .fallback = PE_UNSET,          \
        .min = 1, .max = PE_LISTED_POSITIONS_MAX, .when = when_, .text = text_                                         \
    }

static const struct pe_param rows[] = {
    {.name = "type",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(segment, type, int),
     .fallback = PE_UNSET_WORD,
     .words = kinds,
     .text = "what the segment holds"},
    LENGTH(len, "type=text|audio", "tokens"),
    LENGTH(mel_frames, "type=audio|audio_in_video", "frames of 10 ms of the spectrogram; tokens follow"),
    LENGTH(audio_len, "type=audio_in_video", "tokens of the audio"),
    {.name = "grid",
     .type = PE_T_REALS,
     .offset = PE_OFFSET(segment, grid, struct pe_reals),
     .min = 1,
     .max = PE_LISTED_POSITIONS_MAX,
     .when = "type=image|video|audio_in_video",
     .text = "frames, rows, columns of patches before merging: [t,h,w]"},
    {.name = "second_per_grid",
     .type = PE_T_REAL,
     .offset = PE_OFFSET(segment, second_per_grid, double),
     .fallback = 1,
     .min = 0,
     .max = 1e6,
     .when = "type=video|audio_in_video",
     .text = "seconds from one frame of the grid to the next: temporal_patch_size / fps"},
    PE_P_END,
};

/* ---- Reading ---- */

static bool is_omni(const struct pe_segment_rules *rules)
{
    return rules->style == PE_QWEN2_5_OMNI || rules->style == PE_QWEN3_OMNI;
}

static enum pe_status fail_at(struct pe_error *err, const char *prefix, const char *name, const char *why)
{
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, prefix, name);
    return pe_fail(err, pointer, "%s %s", name, why);
}

static enum pe_status unknown_field(const char *prefix, const char *name, struct pe_error *err)
{
    static const char *const names[] = {"type", "len", "mel_frames", "audio_len", "grid", "second_per_grid", NULL};
    char pointer[PE_POINTER_MAX];
    const char *nearest = pe_nearest(name, names);
    pe_pointer_join(pointer, sizeof pointer, prefix, name);
    return pe_fail(err, pointer, "unknown field \"%.64s\" of a segment; %s%s", name,
                   nearest ? "nearest: " : "allowed: ",
                   nearest ? nearest : "type, len, mel_frames, audio_len, grid, second_per_grid");
}

enum { SEGMENT_FIELDS_MAX = 16 };

static enum pe_status check_names(const struct pe_value *v, const char *prefix, struct pe_error *err)
{
    bool has_type = false;
    for (size_t i = 0; i < v->object.n; i++) {
        const struct pe_param *row = pe_param_find(rows, v->object.fields[i].name);
        if (!row)
            return unknown_field(prefix, v->object.fields[i].name, err);
        has_type |= row == rows;
    }
    return has_type ? PE_OK
                    : fail_at(err, prefix, rows[0].name,
                              "is missing; one of \"text\", \"image\", \"video\", \"audio\", \"audio_in_video\"");
}

static enum pe_status read_fields(struct segment *s, const struct pe_value *v, const char *prefix, struct pe_error *err)
{
    bool taken[SEGMENT_FIELDS_MAX] = {false};
    if (v->kind != PE_OBJECT || v->object.n > SEGMENT_FIELDS_MAX)
        return pe_fail(err, prefix, "a segment must be an object, as {\"type\":\"text\",\"len\":5}");
    enum pe_status status = check_names(v, prefix, err);
    return status ? status : pe_params_read(rows, s, v->object.fields, v->object.n, taken, prefix, err);
}

static enum pe_status read_grid(struct segment *s, uint64_t merge, const char *prefix, struct pe_error *err)
{
    double n[3];
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, prefix, "grid");
    if (s->grid.array.rank != 1 || s->grid.n != 3)
        return pe_fail(err, pointer, "grid %s; needed: three lengths [t,h,w] of patches before merging",
                       s->grid.n ? "has another form" : "is missing");
    for (uint64_t a = 0; a < 3; a++)
        if ((n[a] = pe_real_at(&s->grid, a)) != floor(pe_real_at(&s->grid, a)))
            return pe_fail(err, pointer, "grid has %.17g at index %d; allowed: integers", n[a], (int)a);
    s->frames = (uint64_t)n[0];
    s->rows = (uint64_t)n[1] / merge;
    s->cols = (uint64_t)n[2] / merge;
    if ((uint64_t)n[1] % merge || (uint64_t)n[2] % merge)
        return pe_fail(err, pointer,
                       "grid has %.0f rows and %.0f columns of patches; needed: multiples of "
                       "spatial_merge_size, %d",
                       n[1], n[2], (int)merge);
    return PE_OK;
}

static int64_t floor_half(int64_t x) { return x >= 0 ? x / 2 : -((1 - x) / 2); }

/* Tokens of n spectrogram frames: two strided convolutions (transformers' Omni feature extractors). */
static int64_t audio_tokens(int64_t n, enum pe_position_style style)
{
    if (style == PE_QWEN2_5_OMNI)
        return floor_half(floor_half(n - 1) + 1 - 2) + 1;
    int64_t f = floor_half(n % 100 - 1) + 1;
    return floor_half(floor_half(f - 1) + 1 - 1) + 1 + n / 100 * 13;
}

static enum pe_status read_length(struct segment *s, int64_t tokens, const char *name,
                                  const struct pe_segment_rules *rules, const char *prefix, struct pe_error *err)
{
    bool has_tokens = tokens != PE_UNSET_INT, has_frames = s->mel_frames != PE_UNSET_INT;
    if (has_tokens && has_frames)
        return fail_at(err, prefix, "mel_frames", "stands beside a number of tokens; give one of them");
    if (!has_tokens && !has_frames)
        return fail_at(err, prefix, name, "is missing");
    s->n_plain = (uint64_t)(has_tokens ? tokens : audio_tokens(s->mel_frames, rules->style));
    if (s->n_plain < 1 || s->n_plain > PE_LISTED_POSITIONS_MAX)
        return fail_at(err, prefix, "mel_frames", "is too short for one token of audio");
    return PE_OK;
}

static enum pe_status check_style(const struct segment *s, const struct pe_segment_rules *rules, const char *prefix,
                                  struct pe_error *err)
{
    char why[128];
    if ((s->type == AUDIO || s->type == AUDIO_IN_VIDEO) && !is_omni(rules)) {
        snprintf(why, sizeof why, "is \"%s\"; the models of position_style %s take no audio", kinds[s->type],
                 pe_position_styles[rules->style]);
        return fail_at(err, prefix, "type", why);
    }
    if (rules->style == PE_QWEN3_VL && s->frames > 1)
        return fail_at(err, prefix, "grid",
                       "has more than one frame; qwen3_vl writes a timestamp as text before each: give every frame as "
                       "a segment of its own, [1,h,w]");
    return PE_OK;
}

static enum pe_status read_segment(struct segment *s, const struct pe_value *v, size_t index,
                                   const struct pe_segment_rules *rules, struct pe_error *err)
{
    char prefix[48];
    bool has_grid, has_audio;
    snprintf(prefix, sizeof prefix, "/segments/%zu", index);
    *s = (struct segment){.n = 0};
    enum pe_status status = read_fields(s, v, prefix, err);
    has_grid = !status && (s->type == IMAGE || s->type == VIDEO || s->type == AUDIO_IN_VIDEO);
    has_audio = !status && s->type == AUDIO_IN_VIDEO;
    if (has_grid)
        status = read_grid(s, (uint64_t)rules->spatial_merge_size, prefix, err);
    if (!status)
        status = check_style(s, rules, prefix, err);
    if (!status && (!has_grid || has_audio))
        status = read_length(s, has_audio ? s->audio_len : s->len, has_audio ? "audio_len" : "len", rules, prefix, err);
    double cells = (double)s->frames * (double)s->rows * (double)s->cols;
    double n = cells + (double)s->n_plain + (has_audio ? 4 : 0); /* two start and two end tokens */
    s->n = n > PE_LISTED_POSITIONS_MAX ? PE_LISTED_POSITIONS_MAX + 1 : (uint64_t)n;
    return status;
}

/* ---- Laying out ---- */

/* Ids are written one token after the other; `last_max` is the largest id of what was appended last. */
struct layout {
    struct pe_segments *out;
    const struct pe_segment_rules *rules;
    uint64_t at;
    double next;
    bool is_float32; /* Qwen3-Omni holds ids in float32 */
};

static void put(struct layout *l, double t, double h, double w)
{
    const double id[3] = {t, h, w};
    for (int a = 0; a < 3; a++)
        l->out->ids[a][l->at] = l->is_float32 ? (double)(float)id[a] : id[a];
    l->at++;
}

/* The largest id of the tokens from `from` on, all three rows. */
static double largest_since(const struct layout *l, uint64_t from)
{
    double largest = -HUGE_VAL;
    for (int a = 0; a < 3; a++)
        for (uint64_t i = from; i < l->at; i++)
            largest = fmax(largest, l->out->ids[a][i]);
    return largest;
}

static void lay_text(struct layout *l, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        put(l, l->next + (double)i, l->next + (double)i, l->next + (double)i);
    l->next += (double)n;
}

/* T_k: what frame k adds to the time. */
static double frame_time(const struct pe_segment_rules *rules, const struct segment *s, uint64_t k)
{
    float step = (float)s->second_per_grid, seconds = (float)k * step;
    bool image = s->type == IMAGE;
    switch (rules->style) {
    case PE_QWEN2_VL: return (double)k;
    case PE_QWEN2_5_VL: return image ? 0 : trunc((double)(seconds * (float)rules->tokens_per_second));
    case PE_QWEN2_5_VL_INT_SECONDS: return image ? 0 : (double)k * trunc(s->second_per_grid) * rules->tokens_per_second;
    case PE_QWEN3_VL: return 0;
    case PE_QWEN2_5_OMNI: return trunc((double)((image ? (float)k : seconds) * (float)rules->position_id_per_seconds));
    case PE_QWEN3_OMNI: return (double)((image ? (float)k : seconds) * (float)rules->position_id_per_seconds);
    case PE_VIDEOROPE: return rules->temporal_scale * (double)k;
    }
    return 0;
}

/* VideoRoPE: rows and columns are centred on the time; the next segment follows the last frame's time. */
static void lay_diagonal(struct layout *l, const struct segment *s)
{
    double t = l->next, up = (double)((s->rows - 1) / 2), left = (double)((s->cols - 1) / 2);
    for (uint64_t k = 0; k < s->frames; k++) {
        t = l->next + frame_time(l->rules, s, k);
        for (uint64_t y = 0; y < s->rows; y++)
            for (uint64_t x = 0; x < s->cols; x++)
                put(l, t, t + (double)y - up, t + (double)x - left);
    }
    l->next = t + 1;
}

/* Token i of a grid, counted from `start`: frames, then rows, then columns. */
static void put_cell(struct layout *l, const struct segment *s, double start, uint64_t i)
{
    uint64_t cells = s->rows * s->cols;
    put(l, start + frame_time(l->rules, s, i / cells), start + (double)(i % cells / s->cols),
        start + (double)(i % s->cols));
}

static void lay_grid(struct layout *l, const struct segment *s)
{
    uint64_t from = l->at, n = s->frames * s->rows * s->cols;
    for (uint64_t i = 0; i < n; i++)
        put_cell(l, s, l->next, i);
    l->next = largest_since(l, from) + 1;
}

/* ---- Audio inside video ---- */

/* One of the two streams, read in chunks. */
struct stream {
    const struct segment *video; /* NULL: audio, one id a token */
    double start;
    uint64_t at, n;
    double chunk; /* the number of the next chunk */
};

static double time_of(const struct layout *l, const struct stream *s, uint64_t i)
{
    if (!s->video)
        return s->start + (double)i;
    double t = s->start + frame_time(l->rules, s->video, i / (s->video->rows * s->video->cols));
    return l->is_float32 ? (double)(float)t : t;
}

static void put_token(struct layout *l, struct stream *s)
{
    if (s->video)
        put_cell(l, s->video, s->start, s->at);
    else
        put(l, s->start + (double)s->at, s->start + (double)s->at, s->start + (double)s->at);
    s->at++;
}

/* Up to the first token whose time has left the chunk. As published, a token closes one chunk at most: after a gap of
 * several chunks single tokens follow, each a chunk. */
static void lay_chunk(struct layout *l, struct stream *s, double ids_per_chunk)
{
    uint64_t first = s->at;
    while (s->at < s->n && (s->at == first || time_of(l, s, s->at) - s->start < s->chunk * ids_per_chunk))
        put_token(l, s);
    s->chunk++;
}

/* Qwen2.5-Omni: chunks of both streams in turn; what follows counts from the last chunk appended, even where an earlier
 * one had larger ids. */
static void lay_chunks(struct layout *l, struct stream *video, struct stream *audio)
{
    double ids = trunc(l->rules->position_id_per_seconds * l->rules->seconds_per_chunk);
    uint64_t from = l->at;
    while (video->at < video->n || audio->at < audio->n) {
        struct stream *both[] = {video, audio};
        for (int i = 0; i < 2; i++) {
            if (both[i]->at == both[i]->n)
                continue;
            from = l->at;
            lay_chunk(l, both[i], ids);
        }
    }
    l->next = largest_since(l, from) + 1;
}

/* Qwen3-Omni: token by token in order of time, video first; then the rest of the longer stream. */
static void lay_merged(struct layout *l, struct stream *video, struct stream *audio)
{
    while (video->at < video->n && audio->at < audio->n)
        put_token(l, time_of(l, video, video->at) <= time_of(l, audio, audio->at) ? video : audio);
    uint64_t from = l->at;
    while (video->at < video->n)
        put_token(l, video);
    while (audio->at < audio->n)
        put_token(l, audio);
    l->next = largest_since(l, from) + 1;
}

/* Two tokens that mark a start or an end: Qwen2.5-Omni gives both one id, Qwen3-Omni one after the other. */
static void lay_marks(struct layout *l)
{
    bool share = l->rules->style == PE_QWEN2_5_OMNI;
    put(l, l->next, l->next, l->next);
    l->next += !share;
    put(l, l->next, l->next, l->next);
    l->next++;
}

static void lay_audio_in_video(struct layout *l, const struct segment *s)
{
    lay_marks(l);
    struct stream video = {.video = s, .start = l->next, .n = s->frames * s->rows * s->cols, .chunk = 1};
    struct stream audio = {.start = l->next, .n = s->n_plain, .chunk = 1};
    if (l->rules->style == PE_QWEN2_5_OMNI)
        lay_chunks(l, &video, &audio);
    else
        lay_merged(l, &video, &audio);
    lay_marks(l);
}

static void lay_segment(struct layout *l, const struct segment *s)
{
    if (s->type == TEXT || s->type == AUDIO)
        lay_text(l, s->n_plain);
    else if (s->type == AUDIO_IN_VIDEO)
        lay_audio_in_video(l, s);
    else if (l->rules->style == PE_VIDEOROPE)
        lay_diagonal(l, s);
    else
        lay_grid(l, s);
}

/* ---- The whole ---- */

static enum pe_status check_ids(struct pe_segments *out, struct pe_error *err)
{
    double largest = -HUGE_VAL;
    for (uint64_t i = 0; i < 3 * out->n; i++) {
        double id = out->ids[0][i];
        largest = fmax(largest, fabs(id));
        out->is_fractional |= id != floor(id);
    }
    if (!(largest <= PE_POSITION_MAX))
        return pe_fail(err, "/segments", "the segments reach position %.17g; allowed: magnitudes up to 2^40", largest);
    double most = out->ids[0][0];
    for (uint64_t i = 0; i < 3 * out->n; i++)
        most = fmax(most, out->ids[0][i]);
    out->rope_delta = (int64_t)floor(1 + most) - (int64_t)out->n;
    return PE_OK;
}

static enum pe_status lay_out(struct pe_segments *out, const struct segment *segments, size_t n,
                              const struct pe_segment_rules *rules, struct pe_error *err)
{
    for (size_t i = 0; i < n; i++)
        if ((out->n += segments[i].n) > PE_LISTED_POSITIONS_MAX) {
            pe_fail(err, "/segments", "the segments have more than %d tokens; allowed: at most that",
                    PE_LISTED_POSITIONS_MAX);
            return err->status = PE_TOO_LARGE;
        }
    out->ids[0] = malloc(3 * out->n * sizeof *out->ids[0]);
    if (!out->ids[0])
        return pe_no_memory(err);
    out->ids[1] = out->ids[0] + out->n;
    out->ids[2] = out->ids[1] + out->n;
    struct layout l = {.out = out, .rules = rules, .is_float32 = rules->style == PE_QWEN3_OMNI};
    for (size_t i = 0; i < n; i++)
        lay_segment(&l, &segments[i]);
    return check_ids(out, err);
}

enum { SEGMENTS_MAX = 65536 };

enum pe_status pe_segments_init(struct pe_segments *out, const struct pe_value *list,
                                const struct pe_segment_rules *rules, struct pe_error *err)
{
    *out = (struct pe_segments){.n = 0};
    if (list->kind != PE_LIST || list->list.n == 0 || list->list.n > SEGMENTS_MAX)
        return pe_fail(err, "/segments",
                       "segments must be a list of 1 to %d objects, as [{\"type\":\"text\",\"len\":5}]", SEGMENTS_MAX);
    struct segment *segments = malloc(list->list.n * sizeof *segments);
    if (!segments)
        return pe_no_memory(err);
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < list->list.n; i++)
        status = read_segment(&segments[i], &list->list.items[i], i, rules, err);
    if (!status)
        status = lay_out(out, segments, list->list.n, rules, err);
    free(segments);
    return status;
}

void pe_segments_drop(struct pe_segments *segments) { free(segments->ids[0]); }
