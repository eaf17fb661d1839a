/* Positions of batches, shards and packed sequences, by hand. */
#include "core/sequence/sequence.h"
#include "tests/support/cmocka.h"

#include <math.h>

static struct pe_sequence_fields unset(void)
{
    struct pe_sequence_fields f = {.len = PE_UNSET_INT, .offset = PE_UNSET_INT, .q_len = PE_UNSET_INT};
    f.padded.padding = f.positions_layout = f.shard.split = f.order = f.position_style = PE_UNSET_WORD;
    f.padded.pad_position = f.shard.rank = f.shard.of = f.k_len = f.q_offset = f.spatial_merge_size = PE_UNSET_INT;
    f.tokens_per_second = f.position_id_per_seconds = f.seconds_per_chunk = f.temporal_scale = (double)NAN;
    return f;
}

static void assert_list(const struct pe_positions *p, uint64_t n, uint64_t n_batches, const double *expected)
{
    assert_int_equal(p->n, n);
    assert_int_equal(p->n_batches, n_batches);
    for (uint64_t i = 0; i < pe_positions_count(p); i++)
        assert_true(pe_position_at(p, i) == expected[i]);
}

static struct pe_sequence made(struct pe_sequence_fields *f, struct pe_sequence_sizes sizes)
{
    struct pe_sequence seq;
    struct pe_failure err = {.detail = ""};
    if (pe_sequence_init(&seq, f, PE_TWO_SEQUENCES, sizes, &err) || pe_sequence_lay_out(&seq, f, &err))
        fail_msg("%s: %s", err.pointer, err.detail);
    return seq;
}

TEST(masks_count_tokens)
{
    static const double mask[] = {0, 0, 1, 1, 1, 1, 1, 0};
    struct pe_sequence_fields f = unset();
    f.padded.attention_mask = (struct pe_reals){{PE_F64, 2, {2, 4}, mask}, 8};
    struct pe_sequence seq = made(&f, (struct pe_sequence_sizes){.q = 2, .k = 4});
    assert_list(&seq.k[0], 4, 2, (double[]){1, 1, 0, 1, 0, 1, 2, 1});
    assert_list(&seq.q[0], 2, 2, (double[]){0, 1, 2, 1}); /* the last two columns */
    struct pe_sequence row = pe_sequence_of_batch(&seq, 1);
    assert_list(&row.k[0], 4, 0, (double[]){0, 1, 2, 1});
    assert_list(&row.q[0], 2, 0, (double[]){2, 1});
    assert_true(pe_positions_last(&seq.k[0]) == 2 && pe_sequence_reach(&seq) == 3);
    pe_sequence_drop(&seq);
}

TEST(levels_are_axes_or_batch)
{
    static const double list[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; /* [2][3][2] */
    struct pe_sequence_fields f = unset();
    f.positions = (struct pe_reals){{PE_F64, 3, {2, 3, 2}, list}, 12};
    f.positions_layout = PE_BY_BATCH_AXES;
    struct pe_sequence seq = made(&f, (struct pe_sequence_sizes){0});
    assert_int_equal(seq.n_axes, 3);
    assert_list(&seq.k[1], 2, 2, (double[]){2, 3, 8, 9});
    pe_sequence_drop(&seq);
    f.positions_layout = PE_BY_AXES_BATCH;
    seq = made(&f, (struct pe_sequence_sizes){0});
    assert_int_equal(seq.n_axes, 2);
    assert_list(&seq.q[1], 2, 3, (double[]){6, 7, 8, 9, 10, 11});
    pe_sequence_drop(&seq);
}

TEST(shards)
{
    static const struct {
        int64_t rank, of, len;
        int split;
        double expected[8];
    } rows[] = {{1, 4, 8, PE_UNSET_WORD, {4, 5, 6, 7, 24, 25, 26, 27}},
                {0, 4, 2, PE_SPLIT_ZIGZAG, {0, 7}},
                {3, 4, 4, PE_SPLIT_ZIGZAG, {6, 7, 8, 9}},
                {2, 3, 3, PE_SPLIT_CONTIGUOUS, {6, 7, 8}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pe_sequence_fields f = unset();
        f.len = rows[i].len;
        f.shard = (struct pe_shard_fields){true, rows[i].rank, rows[i].of, rows[i].split};
        struct pe_sequence seq = made(&f, (struct pe_sequence_sizes){0});
        assert_list(&seq.k[0], (uint64_t)rows[i].len, 0, rows[i].expected);
        pe_sequence_drop(&seq);
    }
}

TEST(ends_are_lengths)
{
    static const int32_t ends[] = {0, 2, 2, 5};
    struct pe_sequence_fields f = unset();
    f.cu_seqlens = (struct pe_reals){{PE_I32, 1, {4}, ends}, 4};
    struct pe_sequence seq = made(&f, (struct pe_sequence_sizes){0});
    assert_list(&seq.k[0], 5, 0, (double[]){0, 1, 0, 1, 2});
    assert_true(seq.piece[1] == 0 && seq.piece[2] == 1);
    pe_sequence_drop(&seq);
}
