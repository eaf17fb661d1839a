/* Every limit of the core, with its reason. */
#ifndef PE_LIMITS_H
#define PE_LIMITS_H

/* |position|: correct rounding of tables is proven and tested up to this value (double-double phases have a relative
 * error of 2^-101, so 2^-61 absolute at 2^40). Also the largest number of positions. */
#define PE_POSITION_MAX 1099511627776.0 /* 2^40 */

/* Phases, in quarter turns: the range reduction reads the quadrant from the low bits of p·F + 1.5·2^52. */
#define PE_PHASE_MAX 2251799813685248.0 /* 2^51 */

/* Channels of one row: a plan holds some hundred bytes per column, so this bounds it to a few MiB. */
enum { PE_DIM_MAX = 65536 };

/* Channels of one head: a row must fit a thread's stack as doubles (32 KiB) when it is rotated. Models have at most
 * 512. */
enum { PE_HEAD_DIM_MAX = 4096 };

/* Attention heads; the largest published model has 128. */
enum { PE_HEADS_MAX = 4096 };

/* Cosines and sines that a rotation plan stores if several heads share them, in bytes; larger tables are computed again
 * for every head. 64 MiB hold 87381 positions of 64 pairs, or 65536 as doubles. */
#define PE_ROTATION_TABLE_MAX (64ULL << 20)

/* Positions that are stored one by one (packed sequences, multimodal segments): 2 MiB of doubles per axis for each
 * running answer, as many as the longest context of a public multimodal model. */
enum { PE_LISTED_POSITIONS_MAX = 1 << 18 };
_Static_assert(PE_LISTED_POSITIONS_MAX <= 1 << 24, "every token number is a float32: multimodal ids are");

/* Segments of one sequence: a video for Qwen3-VL has two per frame. Each takes at most 64 bytes when read, so 4 MiB. */
enum { PE_SEGMENTS_MAX = 65536 };

/* Rows of a learned table that contribute to one row of a resized grid: all of a table of 45 by 45. A row of 1024
 * channels then takes two milliseconds, or forty if the table comes from a seed. */
enum { PE_RESAMPLE_TAPS_MAX = 2048 };

/* Scratch of one fill on the stack, bytes. Threads have 8 MiB of stack, musl's by default 128 KiB. */
enum { PE_SCRATCH_BYTES = 32768 };

/* Weights of a network that computes rows (recursive, floater), elements: stored as doubles, so 32 MiB per plan. Enough
 * for two square layers of 1448 channels. */
enum { PE_NETWORK_WEIGHTS_MAX = 1 << 22 };

/* Work to reach the last row of such a scheme, in multiply-adds (the rest of a step is counted in the same unit). Each
 * row is computed from the row before it, so one row far down may cost all of it, alternating with other clients' work.
 * It takes 7 s, or 30 s if the weights are larger than the caches. A floater of 512 channels reaches position 3000. */
#define PE_STEPS_WORK_MAX 0x1p35

/* Rows of such a scheme that a plan stores to continue from them, bytes. 4096 rows of 512 channels. */
#define PE_STEPS_KEPT_MAX (16ULL << 20)

/* Threads that can fill from such a plan at once without waiting for each other; a stream of the server uses three. */
enum { PE_STEPS_WALKERS = 8 };

/* Biases that a plan stores for a window: num_heads times the rows of its table. Each is computed once, and all pairs
 * of tokens with the same offset share it; the map itself, whose size is the square of the tokens, is never stored.
 * 32 MiB as doubles; a window of 64 by 64 has 16129 rows, so 260 heads. */
enum { PE_WINDOW_BIASES_MAX = 1 << 22 };

/* Biases by distance that a plan stores for all heads, bytes: they determine a whole Toeplitz map, and every piece of
 * an answer copies its rows from them. 8 heads of 2^17 positions; above that, each piece evaluates its own distances.
 */
#define PE_BIAS_KEPT_MAX (8ULL << 20)

/* Heads and hidden channels of the network that computes a window's table (swinv2: 512 channels in every released
 * model): a fill has two layers on its stack, beside a row of the table. */
enum { PE_WINDOW_LAYER_MAX = 1024 };
_Static_assert(2 * PE_WINDOW_LAYER_MAX * sizeof(double) <= PE_SCRATCH_BYTES, "a window's network fits the scratch");

/* Numbers that one piece of a reduced answer may read: a few milliseconds of a table. Between pieces the server notices
 * that a client has disconnected. */
#define PE_REDUCE_PIECE (1ULL << 22)

/* Numbers of an answer that are reduced together if rows can only be computed whole: 4 MiB for each working thread.
 * Above that the rows are computed again for each part, which pe_plan_work counts. */
enum { PE_TALLIES_MAX = 1 << 18, PE_TALLIES_ROOMS = 4 };

/* Planning that any thread may do, in nanoseconds on a slow machine (struct pe_cost); the rest is left to a worker. */
#define PE_READY_NS_MAX 1e6

/* Work that an event loop may do itself, in multiply-adds: a few tenths of a millisecond. */
#define PE_LIGHT_WORK 0x1p18

/* Work of one element of a slow plan (PE_SLOW), in multiply-adds, unless its scheme states more: 60 ns. */
enum { PE_SLOW_WORK = 256 };

/* A block of logits fits the second-level cache … */
enum { PE_BLOCK_BYTES = 1 << 18, PE_BLOCK_BYTES_OF_OUTPUT = 1 << 20 };
/* … but has at least 32 rows, unless it would then exceed this. Each working thread has one such block. */
enum { PE_BLOCK_BYTES_MAX = 32 << 20 };

/* Products of a head's keys with its whole table: 32 MiB of floats for each working thread. */
enum { PE_RELATIVE_MEETING_MAX = 1 << 23 };

/* Keys of a head that are laid out in panels once; above that, each block lays them out again, as BLAS does. */
enum { PE_PANELS_BYTES_MAX = 64 << 20 };

/* Numbers of a table of relative positions, stored as doubles: DeBERTa-v2-xxlarge has two tables of 786432. */
enum { PE_RELATIVE_TABLE_MAX = 1 << 23 };

/* Numbers of a projection of relative encodings, stored as doubles: Transformer-XL has 1024 by 1024. */
enum { PE_RELATIVE_WEIGHTS_MAX = 1 << 24 };

/* Projected encodings of distances that are stored for all heads, bytes: 4095 distances of 1024 channels are 16 MiB.
 * Above that each thread computes them again for each head. */
#define PE_RELATIVE_ENCODING_MAX (64ULL << 20)

/* Multiply-adds that are computed strictly one after the other: a third of a second. 64 words of 512 channels. */
#define PE_IN_ORDER_WORK_MAX 0x1p28

/* Multiply-adds of the projections of embeddings, in double: some seconds. 16384 positions of 2048 channels. */
#define PE_PROJECTION_WORK_MAX 0x1p38

/* Words of the textbook experiment: each is compared with those before it. */
enum { PE_TOKENS_MAX = 4096 };

_Static_assert(PE_HEAD_DIM_MAX * sizeof(double) <= PE_SCRATCH_BYTES, "a rotated row fits the scratch");

#endif
