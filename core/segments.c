/* Stub. */
#include "core/segments.h"
const char *const pe_position_styles[] = {
    "qwen2_5_vl", "qwen2_vl", "qwen2_5_vl_int_seconds", "qwen3_vl", "qwen2_5_omni", "qwen3_omni", "videorope", NULL};
enum pe_status pe_segments_init(struct pe_segments *out, const struct pe_value *segments,
                                const struct pe_segment_rules *rules, struct pe_error *err)
{
    (void)out;
    (void)segments;
    (void)rules;
    return pe_fail(err, "/segments", "stub");
}
void pe_segments_drop(struct pe_segments *segments) { (void)segments; }
