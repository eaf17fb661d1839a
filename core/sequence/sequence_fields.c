/* The fields that give a sequence: their rows, and which combinations are allowed. */
#include "core/sequence/sequence.h"
#include "core/limits.h"

#include <math.h>
#include <string.h>

static const char *const orders[] = {[PE_ROW_MAJOR] = "row_major", [PE_MERGE] = "merge", NULL};

#define F pe_sequence_fields
#define RULE(name_, TYPE, CTYPE, fallback_, min_, max_, ...)                                                           \
    {                                                                                                                  \
        .name = #name_, .type = PE_T_##TYPE, .offset = PE_OFFSET(F, name_, CTYPE), .fallback = (fallback_),            \
        .min = (min_), .max = (max_), __VA_ARGS__                                                                      \
    }

static const char *const splits[] = {[PE_SPLIT_ZIGZAG] = "zigzag", [PE_SPLIT_CONTIGUOUS] = "contiguous", NULL};

enum { RANKS_MAX = 4096 };

static const struct pe_param of_shard[] = {
    {.name = "rank",
     .type = PE_T_INT,
     .offset = PE_OFFSET(F, shard.rank, int64_t),
     .fallback = PE_UNSET,
     .min = 0,
     .max = RANKS_MAX - 1,
     .about = {"rank", "which part, from 0 on"}},
    {.name = "of",
     .type = PE_T_INT,
     .offset = PE_OFFSET(F, shard.of, int64_t),
     .fallback = PE_UNSET,
     .min = 1,
     .max = RANKS_MAX,
     .about = {"ranks", "how many parts there are"}},
    PE_P_WORD_AT(F, shard.split, "split", splits, "split",
                 "zigzag (default): chunks rank and 2·of-1-rank of 2·of; contiguous: one chunk",
                 .fallback = PE_UNSET_WORD),
    PE_P_END,
};

static const struct pe_param rows[] = {
    PE_P_INT(F, len, PE_UNSET, 1, PE_POSITION_MAX, "length", "number of positions, from offset on", .level = PE_BASIC,
             .group = PE_G_SEQUENCE, .usual = {1, 512}),
    PE_P_INT(F, offset, PE_UNSET, -PE_POSITION_MAX, PE_POSITION_MAX, "first position",
             "first position of a run; default 0", .level = PE_BASIC, .group = PE_G_SEQUENCE, .usual = {0, 4096}),
    PE_P_REALS(F, positions, -PE_POSITION_MAX, PE_POSITION_MAX, "positions",
               "positions as given, integer or real: [n], or [axes][n]", .level = PE_BASIC, .group = PE_G_SEQUENCE),
    PE_P_WORD(F, positions_layout, pe_positions_layout_words, "levels of positions",
              "what the levels of positions are: axes (default) [axes][n]; batch [batch][n], positions for each row of "
              "the batch; batch_axes [batch][axes][n]; axes_batch [axes][batch][n]",
              .fallback = PE_UNSET_WORD, .group = PE_G_SEQUENCE),
    PE_PADDING_PARAMS,
    PE_P_REALS(F, grid, 1, PE_POSITION_MAX, "grid",
               "lengths of the axes, [h,w] or [t,h,w] …: positions from 0 on each axis, the last axis fastest",
               .level = PE_BASIC, .group = PE_G_SEQUENCE),
    PE_P_VALUE(F, grid_coords, "coordinates of a grid",
               "coordinates of each axis, as [[0,0.5],[0,1,2],[0,1,2]]: their product, the last axis fastest",
               .level = PE_MORE, .group = PE_G_SEQUENCE),
    PE_P_REALS(F, lens, 1, PE_POSITION_MAX, "packed lengths",
               "lengths of packed sequences: each begins again at offset", .group = PE_G_SEQUENCE),
    PE_P_REALS(F, cu_seqlens, 0, PE_POSITION_MAX, "ends of packed sequences",
               "0, then where each packed sequence ends, as flash attention has it: the same as lens with the "
               "differences",
               .group = PE_G_SEQUENCE),
    PE_P_OBJECT("shard", of_shard, "shard",
                "the part of a sequence that one rank of context parallelism has: len is its own number of rows",
                .group = PE_G_SEQUENCE),
    PE_P_VALUE(F, segments, "segments",
               "a multimodal sequence in reading order: a list of {\"type\":\"text\",\"len\":n}, "
               "{\"type\":\"image\",\"grid\":[t,h,w]}, video, audio, audio_in_video",
               .level = PE_BASIC, .group = PE_G_SEGMENTS),
    PE_P_VALUE(F, tokens, "tokens", "a list of words; as many positions, from 0 on", .level = PE_BASIC,
               .group = PE_G_SEQUENCE),
    PE_P_INT(F, q_len, PE_UNSET, 1, PE_POSITION_MAX, "queries", "number of queries; alone it sets k_len too",
             .group = PE_G_SEQUENCE, .usual = {1, 256}),
    PE_P_INT(F, k_len, PE_UNSET, 1, PE_POSITION_MAX, "keys", "number of keys; alone it sets q_len too",
             .group = PE_G_SEQUENCE, .usual = {1, 256}),
    PE_P_INT(F, q_offset, PE_UNSET, -PE_POSITION_MAX, PE_POSITION_MAX, "first query",
             "first query's place counted from the first key; default k_len - q_len", .group = PE_G_SEQUENCE,
             .usual = {0, 256}),
    PE_P_REALS(F, q_positions, -PE_POSITION_MAX, PE_POSITION_MAX, "query positions",
               "positions of the queries: [q_len]", .group = PE_G_SEQUENCE),
    PE_P_REALS(F, k_positions, -PE_POSITION_MAX, PE_POSITION_MAX, "key positions", "positions of the keys: [k_len]",
               .group = PE_G_SEQUENCE),
    RULE(order, WORD, int, PE_UNSET_WORD, 0, 0, .words = orders,
         .about =
             {"order of the grid",
              "of a grid: row_major (default), or merge: block after block of spatial_merge_size, as Qwen-VL's towers"},
         .group = PE_G_SEQUENCE),
    RULE(position_style, WORD, int, PE_UNSET_WORD, 0, 0, .words = pe_position_styles,
         .about = {"position rule", "whose rule gives the segments' ids; default qwen2_5_vl"}, .group = PE_G_SEGMENTS),
    RULE(
        id_rules, WORD, int, PE_UNSET_WORD, 0, 0, .words = pe_id_rules,
        .about = {"version of the rule",
                  "published (default), or transformers_5: after an image the next id is the first one plus its longer "
                  "side, and qwen2_5_vl counts whole seconds"},
        .level = PE_MORE, .group = PE_G_SEGMENTS),
    RULE(spatial_merge_size, INT, int64_t, PE_UNSET, 1, 1024,
         .about = {"merged patches", "patches that become one token along each side; default 2"},
         .group = PE_G_SEGMENTS, .usual = {1, 4}),
    RULE(tokens_per_second, REAL, double, PE_UNSET, 1e-6, 1e6,
         .about = {"ids per second of video",
                   "qwen2_5_vl: ids per second of video; default 2 (released checkpoints; class default 4)"},
         .group = PE_G_SEGMENTS, .usual = {0.5, 25}),
    RULE(position_id_per_seconds, REAL, double, PE_UNSET, 1e-6, 1e6,
         .about = {"ids per second", "Omni models: ids per second; default 25 (Qwen3-Omni's checkpoint: 13)"},
         .group = PE_G_SEGMENTS, .usual = {1, 50}),
    RULE(seconds_per_chunk, REAL, double, PE_UNSET, 1e-6, 1e6,
         .about = {"seconds of a chunk", "qwen2_5_omni: seconds of video and audio that alternate; default 2"},
         .group = PE_G_SEGMENTS, .usual = {0.5, 8}),
    RULE(temporal_scale, REAL, double, PE_UNSET, 0, 1e6,
         .about = {"ids per frame", "videorope: ids from one frame to the next; default 2"}, .group = PE_G_SEGMENTS,
         .usual = {0, 8}),
    PE_P_END,
};

const struct pe_param *pe_sequence_params(void) { return rows; }

const struct pe_param *pe_sequence_rules(void) { return pe_param_find(rows, "order"); }

/* ---- Rules about which fields go together ---- */

static enum pe_status check_kind(const struct pe_sequence_fields *f, struct pe_failure *err)
{
    const char *pointer = pe_given(f->q_len)      ? "/q_len"
                          : pe_given(f->k_len)    ? "/k_len"
                          : pe_given(f->q_offset) ? "/q_offset"
                          : f->q_positions.n      ? "/q_positions"
                          : f->k_positions.n      ? "/k_positions"
                                                  : NULL;
    if (!pointer)
        return PE_OK;
    return pe_fail(
        err, pointer,
        "%s is for schemes that compare queries with keys; this one encodes one sequence: give len or positions",
        pointer + 1);
}

/* Ways of giving a sequence, each with the field that names it. */
static int count_ways(const struct pe_sequence_fields *f, const char **last)
{
    bool has_mask = f->padded.attention_mask.n > 0;
    const struct {
        bool is_given;
        const char *pointer;
    } ways[] = {
        {pe_given(f->len) && !has_mask && !f->shard.is_given, "/len"},
        {f->positions.n > 0, "/positions"},
        {has_mask, "/attention_mask"},
        {f->grid.n > 0, "/grid"},
        {f->grid_coords != NULL, "/grid_coords"},
        {f->lens.n > 0, "/lens"},
        {f->cu_seqlens.n > 0, "/cu_seqlens"},
        {f->shard.is_given, "/shard"},
        {f->segments != NULL, "/segments"},
        {f->tokens != NULL, "/tokens"},
        {pe_given(f->q_len) || pe_given(f->k_len), pe_given(f->q_len) ? "/q_len" : "/k_len"},
        {f->q_positions.n || f->k_positions.n, f->q_positions.n ? "/q_positions" : "/k_positions"},
    };
    int n = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].is_given) {
            *last = ways[i].pointer;
            n++;
        }
    return n;
}

const char *pe_sequence_pointer(const struct pe_sequence_fields *f)
{
    const char *last = "/len";
    count_ways(f, &last);
    return last;
}

#define WAYS                                                                                                           \
    "len, positions, attention_mask, grid, grid_coords, lens, cu_seqlens, shard, segments, tokens, q_len and k_len, "  \
    "q_positions "                                                                                                     \
    "and k_positions"

/* A mask gives all positions; len and offset may be beside it. */
static enum pe_status check_mask(const struct pe_sequence_fields *f, struct pe_failure *err)
{
    const struct {
        bool is_given;
        const char *name;
    } others[] = {{f->positions.n > 0, "positions"},       {f->grid.n > 0, "grid"},
                  {f->grid_coords != NULL, "grid_coords"}, {f->lens.n > 0, "lens"},
                  {f->cu_seqlens.n > 0, "cu_seqlens"},     {f->shard.is_given, "shard"},
                  {f->segments != NULL, "segments"},       {f->tokens != NULL, "tokens"},
                  {pe_given(f->q_len), "q_len"},           {pe_given(f->k_len), "k_len"},
                  {pe_given(f->q_offset), "q_offset"},     {f->q_positions.n > 0, "q_positions"},
                  {f->k_positions.n > 0, "k_positions"}};
    for (size_t i = 0; f->padded.attention_mask.n && i < sizeof others / sizeof *others; i++)
        if (others[i].is_given)
            return pe_fail(err, "/attention_mask", "attention_mask gives the positions; leave it or %s out",
                           others[i].name);
    return PE_OK;
}

static enum pe_status check_one_way(const struct pe_sequence_fields *f, bool fixed, struct pe_failure *err)
{
    const char *way = "/len";
    if (check_mask(f, err))
        return err->status;
    int n = count_ways(f, &way);
    if (n == 0 && !fixed)
        return pe_fail(err, "/len", "the sequence is missing; give one of %s, as in \"len\":2048", pe_text(WAYS));
    if (n > 1)
        return pe_fail(err, way, "the sequence is given in %d ways; give exactly one of %s", n, pe_text(WAYS));
    bool run = !f->positions.n && !f->grid.n && !f->grid_coords && !f->segments && !f->tokens && !f->q_positions.n &&
               !f->k_positions.n;
    if (!run && pe_given(f->offset))
        return pe_fail(err, "/offset", "offset needs a run of positions; %s already states the positions", way + 1);
    if ((!run || f->lens.n || f->cu_seqlens.n || f->shard.is_given) && pe_given(f->q_offset))
        return pe_fail(err, "/q_offset", "q_offset needs a run of positions; %s already states the positions", way + 1);
    return PE_OK;
}

static enum pe_status unused_rule(const char *name, const char *needs, struct pe_failure *err)
{
    char pointer[64] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    return pe_fail(err, pointer, "%s is not used here: it needs %s", name, pe_text(needs));
}

static enum pe_status check_rules(const struct pe_sequence_fields *f, struct pe_failure *err)
{
    if (f->grid.n && f->position_style != PE_UNSET_WORD &&
        pe_position_style_is_placed((enum pe_position_style)f->position_style))
        return pe_fail(err, "/grid",
                       "position_style %s places an image by what is around it, so a grid alone has no positions: send "
                       "segments, for an image alone [{\"type\":\"image\",\"grid\":[1,h,w]}]",
                       pe_position_styles[f->position_style]);
    const struct {
        const char *name;
        bool is_given;
    } of_segments[] = {{"position_style", f->position_style != PE_UNSET_WORD},
                       {"id_rules", f->id_rules != PE_UNSET_WORD},
                       {"tokens_per_second", !isnan(f->tokens_per_second)},
                       {"position_id_per_seconds", !isnan(f->position_id_per_seconds)},
                       {"seconds_per_chunk", !isnan(f->seconds_per_chunk)},
                       {"temporal_scale", !isnan(f->temporal_scale)}};
    for (size_t i = 0; !f->segments && i < sizeof of_segments / sizeof *of_segments; i++)
        if (of_segments[i].is_given)
            return unused_rule(of_segments[i].name, "segments", err);
    if (f->positions_layout > PE_BY_AXES && !f->positions.n && !f->padded.attention_mask.n)
        return pe_sequence_wrong_levels(&f->positions.array, (enum pe_positions_layout)f->positions_layout, err);
    if (f->positions_layout != PE_UNSET_WORD && !f->positions.n)
        return unused_rule("positions_layout", "positions", err);
    if (f->padded.padding != PE_UNSET_WORD && !f->padded.attention_mask.n)
        return unused_rule("padding", "attention_mask", err);
    if (pe_given(f->padded.pad_position) && !f->padded.attention_mask.n)
        return unused_rule("pad_position", "attention_mask", err);
    if (f->order != PE_UNSET_WORD && !f->grid.n)
        return unused_rule("order", "a grid", err);
    if (pe_given(f->spatial_merge_size) && !f->segments && f->order != PE_MERGE)
        return unused_rule("spatial_merge_size", "segments, or a grid in order merge", err);
    return PE_OK;
}

enum pe_status pe_sequence_check(const struct pe_sequence_fields *f, enum pe_sequence_kind kind, bool fixed,
                                 struct pe_failure *err)
{
    enum pe_status status = kind == PE_ONE_SEQUENCE ? check_kind(f, err) : PE_OK;
    if (!status)
        status = check_one_way(f, fixed, err);
    return status ? status : check_rules(f, err);
}

/* ---- Sizes that tensors fix ---- */

enum pe_status pe_sequence_check_size(const char *pointer, uint64_t n, uint64_t fixed, const char *tensor,
                                      uint64_t prefix, struct pe_failure *err)
{
    if (!fixed || n == fixed)
        return PE_OK;
    if (prefix)
        return pe_fail(
            err, pointer,
            "%s gives %llu positions, which with the rows in front of them, %llu, are %llu; the tensor %s has "
            "%llu rows",
            pointer + 1, (unsigned long long)n, (unsigned long long)prefix, (unsigned long long)(n + prefix), tensor,
            (unsigned long long)(fixed + prefix));
    pe_fail(err, pointer, "%s gives %llu positions, the tensor %s has %llu; give the same number", pointer + 1,
            (unsigned long long)n, tensor, (unsigned long long)fixed);
    return pe_leave_out(err, ", or leave %s out", pointer + 1);
}

enum pe_status pe_sequence_check_sizes(const char *pointer, uint64_t n, struct pe_sequence_sizes sizes,
                                       struct pe_failure *err)
{
    enum pe_status status = pe_sequence_check_size(pointer, n, sizes.q, "q", sizes.prefix, err);
    return status
               ? status
               : pe_sequence_check_size(pointer, n, sizes.k, sizes.k_tensor ? sizes.k_tensor : "k", sizes.prefix, err);
}
