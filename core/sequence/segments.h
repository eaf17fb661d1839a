/* Multimodal sequences: turns a list of segments (text, image, video, audio, audio inside video) into the three
 * position ids of every token (time, height, width), as the Qwen-VL and Omni models and VideoRoPE count them
 * (segments.c names the papers). The list is read and its tokens are counted while a plan is checked; one pass over the
 * tokens computes their ids while it is built. */
#ifndef PE_SEGMENTS_H
#define PE_SEGMENTS_H

#include "core/params.h"

enum pe_position_style {
    PE_QWEN2_5_VL, /* the default */
    PE_QWEN2_VL,
    PE_QWEN2_5_VL_INT_SECONDS, /* later versions of transformers: int() of the seconds per grid */
    PE_QWEN3_VL,               /* each frame is a segment of its own, after the text of its timestamp */
    PE_QWEN2_5_OMNI,           /* TMRoPE */
    PE_QWEN3_OMNI,
    PE_VIDEOROPE
};
extern const char *const pe_position_styles[]; /* their words, NULL-terminated */

/* The parameters beside the list; parameters that a style does not use are ignored. */
struct pe_segment_rules {
    enum pe_position_style style;
    int64_t spatial_merge_size;                        /* patches per token along each side of a grid, from 1 */
    double tokens_per_second;                          /* qwen2_5_vl, qwen2_5_vl_int_seconds */
    double position_id_per_seconds, seconds_per_chunk; /* the Omni models; chunks are of qwen2_5_omni only */
    double temporal_scale;                             /* videorope: delta */
};

/* Ids of all tokens, owned by the caller; pe_segments_drop frees them. */
struct pe_segments {
    uint64_t n;     /* tokens, at most PE_LISTED_POSITIONS_MAX */
    double *ids[3]; /* time, height, width: [n] each; ids[0] is the one allocation. VideoRoPE's may be below 0. */
    /* 1 + largest id - n: what decoding adds to the cache position. VideoRoPE looks at the time ids alone, as its next
     * text does. A largest id with a fraction (qwen3_omni, videorope) counts as its floor, because this is an integer
     * on the wire; the published code keeps the fraction. */
    int64_t rope_delta;
    bool is_fractional; /* some id is not an integer; then all ids are float32 values */
};

/* A list of segments as read (core/sequence/segments_read.h). */
struct pe_segment_list {
    struct pe_segment_rules rules;
    struct pe_segment_block *at; /* [n], owned by the caller, who frees it; NULL: none */
    size_t n;
    uint64_t n_tokens;
};

/* Reads the list of segments (a PE_LIST of PE_OBJECT; pointer of errors "/segments/2/grid") and counts their tokens.
 * PE_TOO_LARGE: more segments or tokens than core/limits.h allows. On failure list->at is NULL. */
enum pe_status pe_segments_read(struct pe_segment_list *list, const struct pe_value *segments,
                                const struct pe_segment_rules *rules, struct pe_error *err);
/* Computes the ids of their tokens. Fails without memory, or if an id passes 2^40. On failure *out is untouched. */
enum pe_status pe_segments_lay_out(struct pe_segments *out, const struct pe_segment_list *list, struct pe_error *err);
void pe_segments_drop(struct pe_segments *segments); /* of zeros: nothing */

#endif
