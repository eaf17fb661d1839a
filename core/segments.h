/* Multimodal sequences: from a list of segments (text, image, video, audio, audio inside video) to the three position
 * ids of every token, time, height and width, as the Qwen-VL and Omni models and VideoRoPE count them (wire contract:
 * SCHEMES §2, "Multimodal sequences"). One pass over the tokens at plan time. */
#ifndef PE_SEGMENTS_H
#define PE_SEGMENTS_H

#include "core/params.h"

enum pe_position_style {
    PE_QWEN2_5_VL, /* the default */
    PE_QWEN2_VL,
    PE_QWEN2_5_VL_INT_SECONDS, /* later versions of transformers: int() of the seconds a grid lasts */
    PE_QWEN3_VL,
    PE_QWEN2_5_OMNI, /* TMRoPE */
    PE_QWEN3_OMNI,
    PE_VIDEOROPE
};
extern const char *const pe_position_styles[];

/* The parameters beside the list. */
struct pe_segment_rules {
    enum pe_position_style style;
    int64_t spatial_merge_size;                        /* patches per token along each side of a grid */
    double tokens_per_second;                          /* qwen2_5_vl */
    double position_id_per_seconds, seconds_per_chunk; /* the Omni models */
    double temporal_scale;                             /* videorope: delta */
};

/* Ids of all tokens. Owned by whoever made it; freed by pe_segments_drop. */
struct pe_segments {
    uint64_t n;         /* tokens */
    double *ids[3];     /* time, height, width: [n] each; ids[0] is the one allocation */
    int64_t rope_delta; /* 1 + largest id - n: what decoding adds to the cache position */
    bool is_fractional; /* some id is no integer */
};

/* Reads the list of segments (a PE_LIST of PE_OBJECT; pointer of errors "/segments/2/grid") and lays their tokens out.
 */
enum pe_status pe_segments_init(struct pe_segments *out, const struct pe_value *segments,
                                const struct pe_segment_rules *rules, struct pe_error *err);
void pe_segments_drop(struct pe_segments *segments); /* of zeros: nothing */

#endif
