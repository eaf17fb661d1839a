/* Multimodal sequences: a law of every style, the ceiling of segments, failing allocations. Ids by hand and refusals:
 * tests/cases/segments_by_hand.jsonl; random sequences: tests/http/encode. */
#include "core/limits.h"
#include "core/sequence/sequence.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <stdio.h>
#include <stdlib.h>

static struct pe_segment_rules style(enum pe_position_style name)
{
    return (struct pe_segment_rules){.style = name,
                                     .spatial_merge_size = 2,
                                     .tokens_per_second = 2,
                                     .position_id_per_seconds = 25,
                                     .seconds_per_chunk = 2,
                                     .temporal_scale = 2};
}

/* Both steps. */
static enum pe_status whole(struct pe_segments *out, const struct pe_value *segments,
                            const struct pe_segment_rules *rules)
{
    struct pe_segment_list list;
    struct pe_failure err;
    enum pe_status status = pe_segments_read(&list, segments, rules, &err);
    if (!status)
        status = pe_segments_lay_out(out, &list, &err);
    if (status == PE_TOO_LARGE)
        assert_string_equal(err.pointer, "/segments");
    free(list.at);
    return status;
}

static struct pe_segments ask(const struct pe_segment_rules *rules, const char *begun, const char *more)
{
    struct pe_segments s = {0};
    struct test_request r;
    char json[512];
    snprintf(json, sizeof json, "{'segments':[%s%s]}", begun, more);
    test_request_parse(&r, json);
    assert_int_equal(whole(&s, &r.fields[0].value, rules), PE_OK);
    test_request_drop(&r);
    return s;
}

/* Decoding: the next token's id is its number plus rope_delta. */
TEST(rope_delta_finds_the_next_id)
{
    static const char *const begun[] = {
        "{'type':'text','len':9},{'type':'image','grid':[1,8,12]}",
        "{'type':'image','grid':[1,2,16]},{'type':'text','len':1},{'type':'video','grid':[1,6,4]}",
        "{'type':'text','len':3}"};
    for (enum pe_position_style k = 0; !pe_position_style_is_image(k); k++) /* image generators decode nothing */
        for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
            struct pe_segment_rules rules = style(k);
            if (k == PE_ERNIE4_5_VL && strstr(begun[i], "[1,6,4]")) /* merges frames two by two */
                continue;
            struct pe_segments s = ask(&rules, begun[i], ""), next = ask(&rules, begun[i], ",{'type':'text','len':1}");
            assert_true(next.ids[0][s.n] == (double)((int64_t)s.n + s.rope_delta));
            assert_int_equal(next.rope_delta, s.rope_delta);
            pe_segments_drop(&s);
            pe_segments_drop(&next);
        }
}

TEST(segments_have_a_ceiling)
{
    const struct pe_field fields[] = {{"type", {.kind = PE_STRING, .string = "text"}},
                                      {"len", {.kind = PE_INTEGER, .integer = 2}}};
    struct pe_segment_rules rules = style(PE_QWEN2_5_VL);
    struct pe_value *items = malloc((PE_SEGMENTS_MAX + 1) * sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i <= PE_SEGMENTS_MAX; i++)
        items[i] = (struct pe_value){.kind = PE_OBJECT, .object = {fields, 2}};
    struct pe_value list = {.kind = PE_LIST, .list = {items, PE_SEGMENTS_MAX}};
    struct pe_segments s = {0};
    assert_int_equal(whole(&s, &list, &rules), PE_OK);
    assert_int_equal(s.n, 2 * PE_SEGMENTS_MAX);
    assert_true(s.ids[1][s.n - 1] == 2.0 * PE_SEGMENTS_MAX - 1);
    pe_segments_drop(&s);
    list.list.n++;
    assert_int_equal(whole(&s, &list, &rules), PE_TOO_LARGE);
    free(items);
}

static enum pe_status lay_out(void *value)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_VL);
    struct pe_segments s = {.n = 77};
    enum pe_status status = whole(&s, value, &rules);
    assert_true(!status || s.n == 77); /* a failure leaves it as it was */
    if (!status)
        pe_segments_drop(&s);
    assert_true(status || !s.ids[0]);
    return status;
}

TEST(every_allocation_may_fail)
{
    struct test_request r;
    test_request_parse(&r, "{'segments':[{'type':'text','len':3},{'type':'image','grid':[1,4,4]}]}");
    test_each_allocation_fails(lay_out, (void *)&r.fields[0].value);
    test_request_drop(&r);
}
