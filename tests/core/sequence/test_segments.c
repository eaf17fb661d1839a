/* Multimodal sequences: ids computed by hand from the published rules, values measured in the published code, refusals,
 * limits. tests/truth/segments.py is the same in Python, for random sequences. */
#include "core/limits.h"
#include "core/sequence/sequence.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pe_segment_rules defaults = {.spatial_merge_size = 2,
                                                 .tokens_per_second = 2,
                                                 .position_id_per_seconds = 25,
                                                 .seconds_per_chunk = 2,
                                                 .temporal_scale = 2};

static struct pe_segment_rules style(enum pe_position_style name)
{
    struct pe_segment_rules rules = defaults;
    rules.style = name;
    return rules;
}

/* ---- Asking ---- */

/* Both steps. */
static enum pe_status whole(struct pe_segments *out, const struct pe_value *segments,
                            const struct pe_segment_rules *rules, struct pe_failure *err)
{
    struct pe_segment_list list;
    enum pe_status status = pe_segments_read(&list, segments, rules, err);
    if (!status)
        status = pe_segments_lay_out(out, &list, err);
    free(list.at);
    return status;
}

static enum pe_status try(struct pe_segments *out, const struct pe_segment_rules *rules, const char *list,
                          struct pe_failure *err)
{
    struct test_request r;
    char json[2048];
    snprintf(json, sizeof json, "{'segments':%s}", list);
    test_request_parse(&r, json);
    enum pe_status status = whole(out, &r.fields[0].value, rules, err);
    test_request_drop(&r);
    return status;
}

static struct pe_segments ask(const struct pe_segment_rules *rules, const char *list)
{
    struct pe_segments s = {0};
    struct pe_failure err = {.detail = ""};
    if (try(&s, rules, list, &err))
        fail_msg("%s: refused at \"%s\": %s", list, err.pointer, err.detail);
    return s;
}

static void assert_ids(const char *list, const struct pe_segments *s, int row, const double *expected, uint64_t n)
{
    if (s->n != n)
        fail_msg("%s: %llu tokens, expected %llu", list, (unsigned long long)s->n, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        double got = s->ids[row][i];
        bool same = got == expected[i];
        if (!same)
            fail_msg("%s: row %d, token %llu is %.17g, expected %.17g", list, row, (unsigned long long)i, got,
                     expected[i]);
    }
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Rows t, h, w of a list under rules, and its rope_delta. */
#define ASSERT_LAID(rules, list, delta, t, h, w)                                                                       \
    do {                                                                                                               \
        struct pe_segments s_ = ask(&(rules), list);                                                                   \
        assert_ids(list, &s_, 0, t, COUNT(t));                                                                         \
        assert_ids(list, &s_, 1, h, COUNT(h));                                                                         \
        assert_ids(list, &s_, 2, w, COUNT(w));                                                                         \
        assert_int_equal(s_.rope_delta, delta);                                                                        \
        pe_segments_drop(&s_);                                                                                         \
    } while (0)

static uint64_t tokens(const struct pe_segment_rules *rules, const char *list)
{
    struct pe_segments s = ask(rules, list);
    uint64_t n = s.n;
    pe_segments_drop(&s);
    return n;
}

/* ---- Text and grids ---- */

TEST(text_is_one_axis)
{
    const double id[] = {0, 1, 2, 3, 4};
    for (enum pe_position_style k = 0; pe_position_styles[k]; k++) {
        struct pe_segment_rules rules = style(k);
        ASSERT_LAID(rules, "[{'type':'text','len':2},{'type':'text','len':3}]", 0, id, id, id);
    }
}

/* The example in the documentation of Qwen2-VL's get_rope_index. */
TEST(qwen2_vl_counts_frames)
{
    struct pe_segment_rules rules = style(PE_QWEN2_VL);
    const double t[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7},
                 h[] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 3, 4, 5, 6, 7},
                 w[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 3, 4, 5, 6, 7};
    ASSERT_LAID(rules, "[{'type':'video','grid':[3,4,4]},{'type':'text','len':5}]", 8 - 17, t, h, w);
}

/* The example of Qwen2.5-VL's: 25 tokens a second, 2 s a grid. */
TEST(qwen2_5_vl_counts_seconds)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_VL);
    rules.tokens_per_second = 25;
    const double t[] = {0, 0, 0, 0, 50, 50, 50, 50, 100, 100, 100, 100, 101, 102, 103, 104, 105},
                 h[] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 101, 102, 103, 104, 105},
                 w[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 101, 102, 103, 104, 105};
    ASSERT_LAID(rules, "[{'type':'video','grid':[3,4,4],'second_per_grid':2},{'type':'text','len':5}]", 106 - 17, t, h,
                w);
}

/* Half-second grids at 2 tokens a second: 11, 12, 13, 14 as published, 11 four times in later transformers. */
TEST(later_transformers_cut_seconds)
{
    const char *list = "[{'type':'text','len':11},{'type':'video','grid':[4,2,2],'second_per_grid':0.5}]";
    struct pe_segment_rules published = style(PE_QWEN2_5_VL), later = style(PE_QWEN2_5_VL_INT_SECONDS);
    struct pe_segments a = ask(&published, list), b = ask(&later, list);
    for (uint64_t k = 0; k < 4; k++) {
        assert_true(a.ids[0][11 + k] == (double)(11 + k));
        assert_true(b.ids[0][11 + k] == 11);
    }
    assert_int_equal(a.rope_delta, 0);
    assert_int_equal(b.rope_delta, -3);
    pe_segments_drop(&a);
    pe_segments_drop(&b);
    struct pe_segments c = ask(&later, "[{'type':'video','grid':[2,2,2],'second_per_grid':3.9}]");
    assert_true(c.ids[0][1] == 6);
    pe_segments_drop(&c);
    /* Integers stay integers, as published float32 does not: 2^24 + 1. */
    list = "[{'type':'video','grid':[2,2,2],'second_per_grid':16777217}]";
    later.tokens_per_second = published.tokens_per_second = 1;
    a = ask(&published, list);
    b = ask(&later, list);
    assert_true(a.ids[0][1] == 16777216);
    assert_true(b.ids[0][1] == 16777217);
    pe_segments_drop(&a);
    pe_segments_drop(&b);
}

/* t of frame k of an image, and of a video with no second_per_grid (1 s). */
TEST(frames_of_images_and_default_seconds)
{
    static const double image[] = {[PE_QWEN2_5_VL] = 0,    [PE_QWEN2_VL] = 2,    [PE_QWEN2_5_VL_INT_SECONDS] = 0,
                                   [PE_QWEN2_5_OMNI] = 50, [PE_QWEN3_OMNI] = 50, [PE_VIDEOROPE] = 4};
    static const double video[] = {[PE_QWEN2_5_VL] = 4,    [PE_QWEN2_VL] = 2,    [PE_QWEN2_5_VL_INT_SECONDS] = 4,
                                   [PE_QWEN2_5_OMNI] = 50, [PE_QWEN3_OMNI] = 50, [PE_VIDEOROPE] = 4};
    for (enum pe_position_style k = 0; pe_position_styles[k]; k++) {
        struct pe_segment_rules rules = style(k);
        if (k == PE_QWEN3_VL)
            continue;
        struct pe_segments a = ask(&rules, "[{'type':'image','grid':[3,2,2]}]"),
                           b = ask(&rules, "[{'type':'video','grid':[3,2,2]}]");
        assert_true(a.ids[0][2] == image[k]);
        assert_true(b.ids[0][2] == video[k]);
        pe_segments_drop(&a);
        pe_segments_drop(&b);
    }
}

/* Two frames of one row of two tokens, timestamps of two tokens before each. */
TEST(qwen3_vl_frames_are_segments)
{
    struct pe_segment_rules rules = style(PE_QWEN3_VL);
    const double t[] = {0, 1, 2, 2, 4, 5, 6, 6}, h[] = {0, 1, 2, 2, 4, 5, 6, 6}, w[] = {0, 1, 2, 3, 4, 5, 6, 7};
    ASSERT_LAID(rules,
                "[{'type':'text','len':2},{'type':'video','grid':[1,2,4]},{'type':'text','len':2},{'type':'video',"
                "'grid':[1,2,4]}]",
                0, t, h, w);
}

/* The number of 100 frames for which float32 and float64 give different ids: measured in torch. */
static uint64_t moved_frames(double seconds, double rate)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    char list[128];
    uint64_t moved = 0;
    snprintf(list, sizeof list, "[{'type':'video','grid':[100,2,2],'second_per_grid':%g}]", seconds);
    struct pe_segments s = ask(&rules, list);
    for (uint64_t k = 0; k < 100; k++)
        moved += s.ids[0][k] != trunc((double)k * seconds * rate);
    if (seconds < 0.5)
        assert_true(s.ids[0][6] == 45);
    pe_segments_drop(&s);
    return moved;
}

TEST(products_are_float32)
{
    assert_true(trunc(6 * 0.3 * 25) == 44);
    assert_int_equal(moved_frames(0.3, 25), 9);
    assert_int_equal(moved_frames(0.7, 25), 17);
}

/* ---- Audio ---- */

TEST(mel_frames_become_tokens)
{
    static const uint64_t cases[][3] = {/* mel frames, Qwen2.5, Qwen3 */
                                        {3, 1, 1},     {13, 3, 2},    {99, 25, 13},  {100, 25, 13},
                                        {101, 25, 14}, {113, 28, 15}, {200, 50, 26}, {1000, 250, 130}};
    struct pe_segment_rules two = style(PE_QWEN2_5_OMNI), three = style(PE_QWEN3_OMNI);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char list[64];
        snprintf(list, sizeof list, "[{'type':'audio','mel_frames':%llu}]", (unsigned long long)cases[i][0]);
        assert_int_equal(tokens(&two, list), cases[i][1]);
        assert_int_equal(tokens(&three, list), cases[i][2]);
    }
    assert_int_equal(tokens(&three, "[{'type':'audio','mel_frames':1}]"), 1);
    assert_int_equal(tokens(&two, "[{'type':'audio','len':7},{'type':'text','len':1}]"), 8);
}

/* Frames at 0, 25, 50 and 60 tokens of sound: the third frame and the sound from 50 on are the second chunks. */
TEST(tmrope_interleaves_chunks)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    double id[67] = {0, 0, 1, 26}, space[67] = {0, 0, 1, 1};
    for (int i = 0; i < 60; i++)
        id[(i < 50 ? 4 : 5) + i] = space[(i < 50 ? 4 : 5) + i] = 1 + i;
    id[54] = 51;
    space[54] = 1;
    id[65] = id[66] = space[65] = space[66] = 61;
    ASSERT_LAID(rules, "[{'type':'audio_in_video','grid':[3,2,2],'second_per_grid':1.0,'audio_len':60}]", 62 - 67, id,
                space, space);
}

/* A gap of 120 ids is passed one token at a time: frames of three tokens at 0 and 120 are chunks of 3, 1 and 2. */
TEST(tmrope_opens_one_chunk_a_token)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    double t[2 + 6 + 130 + 2] = {0, 0, 1, 1, 1}, w[2 + 6 + 130 + 2] = {0, 0, 1, 2, 3};
    uint64_t n = 5;
    for (int i = 0; i < 130; i++) {
        if (i == 50 || i == 100)
            for (int x = i / 50 - 1; x < (i == 50 ? 1 : 3); x++, n++) {
                t[n] = 121;
                w[n] = 1 + x;
            }
        t[n] = w[n] = 1 + i;
        n++;
    }
    t[n] = w[n] = t[n + 1] = w[n + 1] = 131;
    const char *list = "[{'type':'audio_in_video','grid':[2,2,6],'second_per_grid':4.8,'audio_len':130}]";
    struct pe_segments s = ask(&rules, list);
    assert_ids(list, &s, 0, t, COUNT(t));
    assert_ids(list, &s, 2, w, COUNT(w));
    pe_segments_drop(&s);
}

/* mel 13, two frames of 4 by 20: the last text id is 10, the largest id inside the video 13. */
TEST(tmrope_ids_go_back)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    assert_int_equal(tokens(&rules, "[{'type':'audio','mel_frames':13}]"), 3);
    struct pe_segments s = ask(&rules, "[{'type':'text','len':3},{'type':'audio_in_video','grid':[2,4,20],"
                                       "'second_per_grid':0.08,'audio_len':3},{'type':'text','len':3}]");
    double largest = 0;
    for (uint64_t i = 5; i < 5 + 40 + 3; i++)
        largest = fmax(largest, s.ids[2][i]);
    assert_int_equal(s.n, 3 + 4 + 40 + 3 + 3);
    assert_true(largest == 13);
    assert_true(s.ids[0][3] == 3 && s.ids[0][4] == 3 && s.ids[0][48] == 7 && s.ids[0][49] == 7);
    assert_true(s.ids[0][s.n - 1] == 10);
    assert_int_equal(s.rope_delta, 14 - 53);
    pe_segments_drop(&s);
}

/* 13 ids a second, frames at 2 and 15: sound 2, 3, 4 between, video first at 2; start and end tokens one id each. */
TEST(qwen3_omni_merges_by_time)
{
    struct pe_segment_rules rules = style(PE_QWEN3_OMNI);
    rules.position_id_per_seconds = 13;
    const double t[] = {0, 1, 2, 2, 3, 4, 15, 16, 17}, space[] = {0, 1, 2, 2, 3, 4, 2, 16, 17};
    ASSERT_LAID(rules, "[{'type':'audio_in_video','grid':[2,2,2],'audio_len':3}]", 18 - 9, t, space, space);
    /* Sound remains after the last frame: later ids count from the sound, though the frame is wider. */
    const double wide[] = {0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5};
    const double time[] = {0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5}, high[] = {0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5};
    ASSERT_LAID(rules, "[{'type':'audio_in_video','grid':[1,2,12],'audio_len':2}]", 8 - 12, time, high, wide);
}

/* Half a second is 6.5 ids: nothing is truncated, and rope_delta uses the floor of the largest id. */
TEST(qwen3_omni_keeps_fractions)
{
    struct pe_segment_rules rules = style(PE_QWEN3_OMNI);
    rules.position_id_per_seconds = 13;
    const double t[] = {0, 6.5, 7.5, 8.5}, space[] = {0, 0, 7.5, 8.5};
    const char *list = "[{'type':'video','grid':[2,2,2],'second_per_grid':0.5},{'type':'text','len':2}]";
    ASSERT_LAID(rules, list, 9 - 4, t, space, space);
    struct pe_segments s = ask(&rules, list);
    assert_true(s.is_fractional);
    pe_segments_drop(&s);
    /* 7 + 0.1·13, each step a float32 (NumPy): neither 8.3 nor the sum in double of the float32 product */
    s = ask(&rules, "[{'type':'text','len':7},{'type':'video','grid':[2,2,2],'second_per_grid':0.1}]");
    assert_true(s.ids[0][8] == 8.300000190734863);
    pe_segments_drop(&s);
}

/* ---- VideoRoPE ---- */

/* Frames of 2 by 3 at 2 and 4, columns around the middle; text goes on after the last frame's time. */
TEST(videorope_is_diagonal)
{
    struct pe_segment_rules rules = style(PE_VIDEOROPE);
    const double t[] = {0, 1, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 5},
                 h[] = {0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5},
                 w[] = {0, 1, 1, 2, 3, 1, 2, 3, 3, 4, 5, 3, 4, 5, 5};
    ASSERT_LAID(rules, "[{'type':'text','len':2},{'type':'video','grid':[2,4,6]},{'type':'text','len':1}]", 6 - 15, t,
                h, w);
    const double zero[] = {0, 0, 0, 0, 0, 0}, around[] = {-2, -1, 0, 1, 2, 3};
    ASSERT_LAID(rules, "[{'type':'image','grid':[1,2,12]}]", 1 - 6, zero, zero, around);
    rules.temporal_scale = 0.75;
    const double quarter[] = {0, 0.75, 1.5, 2.5};
    ASSERT_LAID(rules, "[{'type':'video','grid':[3,2,2]},{'type':'text','len':1}]", 3 - 4, quarter, quarter, quarter);
}

/* ---- Laws ---- */

/* Decoding: the next token's id is its number plus rope_delta. */
TEST(rope_delta_finds_the_next_id)
{
    static const char *const begun[] = {
        "{'type':'text','len':9},{'type':'image','grid':[1,8,12]}",
        "{'type':'image','grid':[1,2,16]},{'type':'text','len':1},{'type':'video','grid':[1,6,4]}",
        "{'type':'text','len':3}"};
    for (enum pe_position_style k = 0; pe_position_styles[k]; k++)
        for (size_t i = 0; i < COUNT(begun); i++) {
            struct pe_segment_rules rules = style(k);
            char list[512];
            snprintf(list, sizeof list, "[%s]", begun[i]);
            struct pe_segments s = ask(&rules, list);
            snprintf(list, sizeof list, "[%s,{'type':'text','len':1}]", begun[i]);
            struct pe_segments next = ask(&rules, list);
            assert_true(next.ids[0][s.n] == (double)((int64_t)s.n + s.rope_delta));
            assert_int_equal(next.rope_delta, s.rope_delta);
            pe_segments_drop(&s);
            pe_segments_drop(&next);
        }
}

/* ---- Refusals ---- */

/* style, list, pointer, a word of the detail */
static const struct {
    enum pe_position_style style;
    const char *list, *pointer, *word;
} refused[] = {
    {PE_QWEN2_VL, "[]", "/segments", "empty"},
    {PE_QWEN2_VL, "3", "/segments", "not a list"},
    {PE_QWEN2_VL, "[1,2]", "/segments", "list of numbers"},
    {PE_QWEN2_VL, "['text']", "/segments/0", "not an object"},
    {PE_QWEN2_VL, "[{'type':'text','len':1},{'len':1}]", "/segments/1/type", "missing"},
    {PE_QWEN2_VL, "[{'type':'txt','len':1}]", "/segments/0/type", "nearest: \"text\""},
    {PE_QWEN2_VL, "[{'type':1}]", "/segments/0/type", "\"audio_in_video\""},
    {PE_QWEN2_VL, "[{'type':'text'}]", "/segments/0/len", "missing"},
    {PE_QWEN2_VL, "[{'type':'text','len':0}]", "/segments/0/len", "from 1"},
    {PE_QWEN2_VL, "[{'type':'text','len':1.5}]", "/segments/0/len", "1.5"},
    {PE_QWEN2_VL, "[{'type':'text','length':4}]", "/segments/0/length", "nearest: \"len\""},
    {PE_QWEN2_VL, "[{'type':'text','len':4,'frobnicate':1}]", "/segments/0/frobnicate", "\"len\":8"},
    {PE_QWEN2_VL, "[{'type':'text','len':4,'a/b':1}]", "/segments/0/a~1b", "unknown"},
    {PE_QWEN2_VL, "[{'type':'text','len':4,'grid':[1,2,2]}]", "/segments/0/grid", "not used here"},
    {PE_QWEN2_VL, "[{'type':'text','mel_frames':4}]", "/segments/0/mel_frames", "type=audio"},
    {PE_QWEN2_5_VL, "[{'type':'image','grid':[1,2,2],'second_per_grid':1}]", "/segments/0/second_per_grid",
     "type=video"},
    {PE_QWEN2_VL, "[{'type':'video'}]", "/segments/0/grid", "missing"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[2,2]}]", "/segments/0/grid", "[t, h, w]"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[[1,2,2]]}]", "/segments/0/grid", "2 dimensions"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[1,2,2.5]}]", "/segments/0/grid", "2.5 at index 2"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[1,0,2]}]", "/segments/0/grid", "index 1"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[1,4,5]}]", "/segments/0/grid", "spatial_merge_size, 2"},
    {PE_QWEN2_VL, "[{'type':'image','grid':[1,5,4]}]", "/segments/0/grid", "spatial_merge_size, 2"},
    {PE_QWEN3_VL, "[{'type':'video','grid':[4,8,6]}]", "/segments/0/grid", "\"grid\":[1,8,6]"},
    {PE_QWEN2_5_VL, "[{'type':'video','grid':[1,2,2],'second_per_grid':-1}]", "/segments/0/second_per_grid", "from 0"},
    {PE_QWEN2_5_VL, "[{'type':'audio','len':4}]", "/segments/0/type", "without sound"},
    {PE_VIDEOROPE, "[{'type':'audio_in_video','grid':[1,2,2],'audio_len':4}]", "/segments/0/type", "\"qwen3_omni\""},
    {PE_QWEN2_5_OMNI, "[{'type':'audio'}]", "/segments/0/len", "mel_frames"},
    {PE_QWEN2_5_OMNI, "[{'type':'audio','len':3,'mel_frames':12}]", "/segments/0/len", "exclude"},
    {PE_QWEN2_5_OMNI, "[{'type':'audio','mel_frames':2}]", "/segments/0/mel_frames", "at least 3"},
    {PE_QWEN2_5_OMNI, "[{'type':'audio_in_video','grid':[1,2,2]}]", "/segments/0/audio_len", "missing"},
    {PE_QWEN2_5_OMNI, "[{'type':'audio_in_video','audio_len':2}]", "/segments/0/grid", "missing"},
    {PE_QWEN2_5_OMNI, "[{'type':'audio_in_video','grid':[1,2,2],'len':2}]", "/segments/0/len", "type=text|audio"},
    {PE_QWEN2_5_OMNI,
     "[{'type':'text','len':1},{'type':'video','grid':[100,2,2],'second_per_grid':1e9},{'type':'text','len':1}]",
     "/segments/1", "2^40"},
};

static void assert_refused(const struct pe_segment_rules *rules, const char *list, enum pe_status status,
                           const char *pointer, const char *word)
{
    struct pe_segments s = {.n = 77};
    struct pe_failure err = {.detail = ""};
    if (try(&s, rules, list, &err) != status)
        fail_msg("%s: status %d, expected %d: %s", list, (int)err.status, (int)status, err.detail);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.detail, word))
        fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", list, word, pointer, err.detail, err.pointer);
    assert_int_equal(err.status, status);
    assert_int_equal(s.n, 77);
}

TEST(refusals_name_field_and_rule)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct pe_segment_rules rules = style(refused[i].style);
        assert_refused(&rules, refused[i].list, PE_INVALID, refused[i].pointer, refused[i].word);
    }
}

TEST(rules_have_ranges)
{
    const char *list = "[{'type':'audio_in_video','grid':[1,2,2],'audio_len':4}]";
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    rules.seconds_per_chunk = 0.03;
    assert_refused(&rules, list, PE_INVALID, "/seconds_per_chunk", "at least 1");
    rules = style(PE_QWEN3_OMNI); /* which has no chunks */
    rules.seconds_per_chunk = 0.03;
    assert_int_equal(tokens(&rules, list), 9);
    rules.position_id_per_seconds = (double)NAN;
    assert_refused(&rules, list, PE_INVALID, "/position_id_per_seconds", "nan");
    rules = style(PE_VIDEOROPE);
    rules.temporal_scale = -1;
    assert_refused(&rules, "[{'type':'text','len':1}]", PE_INVALID, "/temporal_scale", "-1");
    rules = defaults;
    rules.spatial_merge_size = 0;
    assert_refused(&rules, "[{'type':'text','len':1}]", PE_INVALID, "/spatial_merge_size", "from 1");
    rules.spatial_merge_size = 3;
    assert_int_equal(tokens(&rules, "[{'type':'image','grid':[1,6,9]}]"), 6);
}

/* ---- Ceilings ---- */

TEST(tokens_have_a_ceiling)
{
    struct pe_segment_rules rules = style(PE_QWEN2_5_OMNI);
    assert_int_equal(tokens(&rules, "[{'type':'text','len':262143},{'type':'text','len':1}]"), 1 << 18);
    assert_refused(&rules, "[{'type':'text','len':262144},{'type':'text','len':1}]", PE_TOO_LARGE, "/segments/1",
                   "262144");
    assert_refused(&rules, "[{'type':'video','grid':[131073,4,2]}]", PE_TOO_LARGE, "/segments/0", "262144");
    /* 2^40 · 2^39 · 2^39 is 2^118: in 64 bits it would wrap to 0. */
    assert_refused(&rules, "[{'type':'video','grid':[1099511627776,1099511627776,1099511627776]}]", PE_TOO_LARGE,
                   "/segments/0", "262144");
    assert_refused(&rules, "[{'type':'audio','mel_frames':1099511627776}]", PE_TOO_LARGE, "/segments/0", "262144");
    assert_refused(&rules, "[{'type':'audio_in_video','grid':[1,2,2],'audio_len':4194300}]", PE_TOO_LARGE,
                   "/segments/0", "262144");
}

TEST(segments_have_a_ceiling)
{
    const struct pe_field fields[] = {{"type", {.kind = PE_STRING, .string = "text"}},
                                      {"len", {.kind = PE_INTEGER, .integer = 2}}};
    struct pe_value *items = malloc((PE_SEGMENTS_MAX + 1) * sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i <= PE_SEGMENTS_MAX; i++)
        items[i] = (struct pe_value){.kind = PE_OBJECT, .object = {fields, 2}};
    struct pe_value list = {.kind = PE_LIST, .list = {items, PE_SEGMENTS_MAX}};
    struct pe_segments s = {0};
    struct pe_failure err;
    assert_int_equal(whole(&s, &list, &defaults, &err), PE_OK);
    assert_int_equal(s.n, 2 * PE_SEGMENTS_MAX);
    assert_true(s.ids[1][s.n - 1] == 2.0 * PE_SEGMENTS_MAX - 1);
    pe_segments_drop(&s);
    list.list.n++;
    assert_int_equal(whole(&s, &list, &defaults, &err), PE_TOO_LARGE);
    assert_int_equal(err.status, PE_TOO_LARGE);
    assert_string_equal(err.pointer, "/segments");
    free(items);
}

TEST(every_allocation_may_fail)
{
    struct test_request r;
    test_request_parse(&r, "{'segments':[{'type':'text','len':3},{'type':'image','grid':[1,4,4]}]}");
    struct pe_segments s = {.n = 77};
    struct pe_failure err;
    long before = alloc_count();
    assert_int_equal(whole(&s, &r.fields[0].value, &defaults, &err), PE_OK);
    long n = alloc_count() - before;
    assert_true(n >= 1);
    pe_segments_drop(&s);
    assert_null(s.ids[0]);
    pe_segments_drop(&s);
    for (long i = 0; i < n; i++) {
        s.n = 77;
        alloc_fail_at(i);
        assert_int_equal(whole(&s, &r.fields[0].value, &defaults, &err), PE_NO_MEMORY);
        assert_int_equal(s.n, 77);
    }
    alloc_fail_at(-1);
    test_request_drop(&r);
}
