/* Position ids of multimodal sequences: places the tokens of the segments one after another. The rules are those of
 * get_rope_index in transformers (Qwen2-VL, arXiv 2409.12191; TMRoPE, 2503.20215) and of VideoRoPE (2502.05173),
 * whose float32 steps are float32 steps here. */
#include "core/limits.h"
#include "core/sequence/sequence.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Time of a frame, counted from the first ---- */

/* k·seconds·rate as torch does it: an integer tensor times floats is float32 after each product. This way 6 · 0.3 ·
 * 25 is 45; in double it is 44.99…. */
static double float32_time(uint64_t k, double seconds, double rate)
{
    float elapsed = (float)k * (float)seconds;
    float ids = elapsed * (float)rate;
    return (double)ids;
}

/* k·int(seconds)·rate: integer tensors as long as the rate is an integer too. Half a second becomes 0, and all
 * frames have the same time. */
static double whole_seconds_time(uint64_t k, double seconds, double rate)
{
    double whole = trunc(seconds);
    return rate == floor(rate) ? (double)k * whole * rate : trunc(float32_time(k, whole, rate));
}

/* The time T_k of frame k. */
static double frame_time(const struct pe_segment_rules *rules, const struct pe_segment_block *b, uint64_t k)
{
    bool still = b->type == PE_IMAGE;
    switch (rules->style) {
    case PE_QWEN2_VL:
    case PE_ERNIE4_5_VL: return (double)k;
    case PE_QWEN2_5_VL:
        return still                                 ? 0
               : rules->id_rules == PE_IDS_PUBLISHED ? trunc(float32_time(k, b->seconds, rules->tokens_per_second))
                                                     : whole_seconds_time(k, b->seconds, rules->tokens_per_second);
    case PE_QWEN2_5_VL_INT_SECONDS: return still ? 0 : whole_seconds_time(k, b->seconds, rules->tokens_per_second);
    case PE_QWEN3_VL:
    case PE_GLM4V: return 0;
    case PE_QWEN2_5_OMNI: return trunc(float32_time(k, b->seconds, rules->position_id_per_seconds));
    case PE_QWEN3_OMNI: return float32_time(k, b->seconds, rules->position_id_per_seconds);
    case PE_VIDEOROPE: return float32_time(k, 1, rules->temporal_scale);
    default: break; /* of image generators: segments_images.c */
    }
    return 0;
}

/* ---- Laying out ---- */

struct layout {
    const struct pe_segment_rules *rules;
    double *ids[3];
    uint64_t n;     /* tokens so far */
    double start;   /* first id of the next block */
    double largest; /* largest id so far, in the rows that count */
};

/* Where times are not integers the published ids are float32 tensors, so every sum of them is rounded to float32. */
static double sum(const struct layout *l, double a, double b)
{
    bool is_float32 = l->rules->style == PE_QWEN3_OMNI || l->rules->style == PE_VIDEOROPE;
    return is_float32 ? (double)((float)a + (float)b) : a + b;
}

static void put_ids(struct layout *l, double t, double h, double w)
{
    l->ids[0][l->n] = t;
    l->ids[1][l->n] = h;
    l->ids[2][l->n] = w;
    l->n++;
}

static void put_flat(struct layout *l, double id) { put_ids(l, id, id, id); }

/* The largest id of the tokens from first on, in the first n_rows rows. */
static double largest_from(const struct layout *l, uint64_t first, int n_rows)
{
    double largest = l->ids[0][first];
    for (int row = 0; row < n_rows; row++)
        for (uint64_t i = first; i < l->n; i++)
            largest = fmax(largest, l->ids[row][i]);
    return largest;
}

/* VideoRoPE continues from the last frame's time, the other styles from the largest id in any row. */
static int rows_that_count(const struct layout *l) { return l->rules->style == PE_VIDEOROPE ? 1 : 3; }

/* The next block starts one after the largest id of the tokens from first on. */
static void go_on(struct layout *l, uint64_t first)
{
    l->start = sum(l, largest_from(l, first, rows_that_count(l)), 1);
}

/* Text and audio, tokens first … end-1 of a block: t = h = w = start + i. */
static void lay_flat(struct layout *l, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        put_flat(l, sum(l, l->start, (double)i));
}

/* Token i of a grid, frames one after another, row by row: (start + T_k, start + y, start + x); in VideoRoPE rows and
 * columns are counted from the middle of the frame, and from its time. (VideoRoPE's code adds the text before a grid
 * and that text's start one after the other, two roundings; scales such as 2, 0.75 or 1.5 give the same.) */
static void put_patch(struct layout *l, const struct pe_segment_block *b, uint64_t i)
{
    uint64_t area = b->rows * b->cols;
    double t = sum(l, l->start, frame_time(l->rules, b, i / area));
    double y = (double)(i % area / b->cols), x = (double)(i % b->cols);
    if (l->rules->style == PE_VIDEOROPE)
        put_ids(l, t, sum(l, t, y - (double)((b->rows - 1) / 2)), sum(l, t, x - (double)((b->cols - 1) / 2)));
    else
        put_ids(l, t, sum(l, l->start, y), sum(l, l->start, x));
}

static void lay_patches(struct layout *l, const struct pe_segment_block *b, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        put_patch(l, b, i);
}

/* ---- Audio inside video ---- */

static double patch_time(const struct layout *l, const struct pe_segment_block *b, uint64_t i)
{
    return frame_time(l->rules, b, i / (b->rows * b->cols));
}

/* Chunk number c (from 1) begins at token first and ends where time reaches c chunks. It always contains its first
 * token, whatever that token's time is. After a gap, chunks therefore have single tokens until c has caught up: in
 * the published code, each token opens at most one chunk. */
static uint64_t patches_end(const struct layout *l, const struct pe_segment_block *b, uint64_t first, uint64_t c)
{
    double limit = (double)c * pe_segment_chunk_ids(l->rules);
    uint64_t n = b->frames * b->rows * b->cols, end = first + 1;
    while (end < n && patch_time(l, b, end) < limit)
        end++;
    return end;
}

/* Audio has no gaps: token i is at time i. */
static uint64_t sound_end(const struct layout *l, const struct pe_segment_block *b, uint64_t c)
{
    return (uint64_t)fmin((double)c * pe_segment_chunk_ids(l->rules), (double)b->len);
}

/* Qwen2.5-Omni: video chunk, audio chunk, video chunk, … Returns the first token of the last chunk: ids of the next
 * segment continue from that chunk, not from the whole block. */
static uint64_t lay_chunks(struct layout *l, const struct pe_segment_block *b)
{
    uint64_t n_patches = b->frames * b->rows * b->cols, last = l->n;
    for (uint64_t c = 1, patch = 0, sound = 0; patch < n_patches || sound < b->len; c++) {
        if (patch < n_patches) {
            uint64_t end = patches_end(l, b, patch, c);
            last = l->n;
            lay_patches(l, b, patch, end);
            patch = end;
        }
        if (sound < b->len) {
            uint64_t end = sound_end(l, b, c);
            last = l->n;
            lay_flat(l, sound, end);
            sound = end;
        }
    }
    return last;
}

/* Qwen3-Omni: merges by time, with video first if the times are equal; then come the remaining tokens of one of the
 * two, from which the next id continues. */
static uint64_t lay_merged(struct layout *l, const struct pe_segment_block *b)
{
    uint64_t n_patches = b->frames * b->rows * b->cols, patch = 0, sound = 0;
    while (patch < n_patches && sound < b->len) {
        if (sum(l, l->start, patch_time(l, b, patch)) <= sum(l, l->start, (double)sound))
            put_patch(l, b, patch++);
        else
            put_flat(l, sum(l, l->start, (double)sound++));
    }
    uint64_t last = l->n;
    lay_patches(l, b, patch, n_patches);
    lay_flat(l, sound, b->len);
    return last;
}

/* The two start tokens, and the two end tokens: Qwen2.5-Omni gives both one id, Qwen3-Omni one each. */
static void lay_ends(struct layout *l)
{
    uint64_t first = l->n;
    for (int i = 0; i < PE_SEGMENT_ENDS; i++)
        put_flat(l, sum(l, l->start, l->rules->style == PE_QWEN3_OMNI ? i : 0));
    go_on(l, first);
}

/* ---- All blocks ---- */

static void lay_block(struct layout *l, const struct pe_segment_block *b)
{
    uint64_t first = l->n;
    switch (b->type) {
    case PE_TEXT:
    case PE_AUDIO: lay_flat(l, 0, b->len); break;
    case PE_IMAGE:
    case PE_VIDEO: lay_patches(l, b, 0, b->n); break;
    case PE_AUDIO_IN_VIDEO:
        lay_ends(l);
        go_on(l, l->rules->style == PE_QWEN3_OMNI ? lay_merged(l, b) : lay_chunks(l, b));
        lay_ends(l);
        return;
    }
    /* transformers 5: after a grid the next id is its first plus the longer side. */
    if (l->rules->id_rules == PE_IDS_TRANSFORMERS_5 && b->rows)
        l->start = sum(l, l->start, (double)(b->rows > b->cols ? b->rows : b->cols));
    else
        go_on(l, first);
}

static enum pe_status lay_blocks(struct layout *l, const struct pe_segment_block *blocks, size_t n,
                                 struct pe_failure *err)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t first = l->n;
        lay_block(l, &blocks[i]);
        double largest = largest_from(l, first, 3);
        l->largest = fmax(l->largest, largest_from(l, first, rows_that_count(l)));
        if (largest <= PE_POSITION_MAX)
            continue;
        char pointer[PE_POINTER_MAX];
        snprintf(pointer, sizeof pointer, "/segments/%zu", i);
        return pe_fail(err, pointer, "the ids of this segment run up to %s; allowed: up to 2^40 (1099511627776)",
                       pe_shown(largest).text);
    }
    return PE_OK;
}

static bool has_fraction(const double *ids, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (ids[i] != floor(ids[i]))
            return true;
    return false;
}

enum pe_status pe_segments_lay_out(struct pe_segments *out, const struct pe_segment_list *list, struct pe_failure *err)
{
    uint64_t n = list->n_tokens;
    unsigned n_axes = pe_position_style_axes(list->rules.style);
    double *ids = malloc(n_axes * n * sizeof *ids);
    if (!ids)
        return pe_no_memory(err);
    struct pe_segments here = {.n = n, .n_axes = n_axes};
    for (unsigned a = 0; a < n_axes; a++)
        here.ids[a] = ids + a * n;
    struct layout l = {.rules = &list->rules, .ids = {here.ids[0], here.ids[1], here.ids[2]}};
    if (pe_position_style_is_image(list->rules.style))
        pe_segments_lay_images(list, here.ids); /* which has no rope_delta */
    else if (lay_blocks(&l, list->at, list->n, err)) {
        free(ids);
        return err->status;
    }
    *out = here;
    out->rope_delta = 1 + (int64_t)floor(l.largest) - (int64_t)n;
    out->is_fractional = has_fraction(ids, n_axes * n);
    return PE_OK;
}

void pe_segments_drop(struct pe_segments *segments)
{
    free(segments->ids[0]);
    *segments = (struct pe_segments){0};
}
