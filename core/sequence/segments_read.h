/* Shared by segments_read.c, which reads the list of segments, and segments.c, which lays out their tokens. */
#ifndef PE_SEGMENTS_READ_H
#define PE_SEGMENTS_READ_H

#include "core/sequence/segments.h"

enum pe_segment_type { PE_TEXT, PE_IMAGE, PE_VIDEO, PE_AUDIO, PE_AUDIO_IN_VIDEO };

enum { PE_SEGMENT_ENDS = 2 }; /* start tokens of a video with sound, and end tokens: one of vision, one of audio */

/* A segment with its sizes in tokens. */
struct pe_segment_block {
    enum pe_segment_type type;
    uint64_t frames, rows, cols; /* of a grid, after merging; else 0 */
    uint64_t len;                /* text or audio */
    double seconds;              /* from one frame to the next */
    uint64_t n;                  /* all tokens */
};

/* TMRoPE's chunks hold int(position_id_per_seconds * seconds_per_chunk) ids. */
double pe_segment_chunk_ids(const struct pe_segment_rules *rules);

#endif
