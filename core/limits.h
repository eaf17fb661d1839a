/* Every ceiling of the core with its reason. */
#ifndef PE_LIMITS_H
#define PE_LIMITS_H

/* |position|: the correct rounding of tables is proven and tested up to here (double-double phases have 2^-101 relative
 * error, so 2^-61 absolute at 2^40). Also the largest number of positions. */
#define PE_POSITION_MAX 1099511627776.0 /* 2^40 */

/* Quarter turns: the reduction takes the quadrant from the low bits of p·F + 1.5·2^52. */
#define PE_PHASE_MAX 2251799813685248.0 /* 2^51 */

/* Channels of one row: a plan holds some hundred bytes per column, so this bounds it to a few MiB. */
enum { PE_DIM_MAX = 65536 };

/* Channels of one head: a row must fit a thread's stack as doubles (32 KiB) when it is rotated. Models have at most
 * 512. */
enum { PE_HEAD_DIM_MAX = 4096 };

/* Attention heads; the largest published model has 128. */
enum { PE_HEADS_MAX = 4096 };

/* Cosines and sines kept in a rotation plan, bytes: only where several heads share them; beyond it they are made anew
 * for every head. 64 MiB serve 87381 positions of 64 pairs, and as doubles 65536. */
#define PE_ROTATION_TABLE_MAX (64ULL << 20)

/* Positions that are kept one by one (packed sequences, multimodal segments): 2 MiB of doubles an axis for each answer
 * on its way; the longest context of a public multimodal model is as long. */
enum { PE_LISTED_POSITIONS_MAX = 1 << 18 };
_Static_assert(PE_LISTED_POSITIONS_MAX <= 1 << 24, "every token number is a float32: multimodal ids are");

/* Segments of one sequence: a video of Qwen3-VL takes two a frame. As read they are at most 64 bytes each, 4 MiB. */
enum { PE_SEGMENTS_MAX = 65536 };

/* Rows of a learned table that one row of a resized grid is made of: 22 by 22, shrinking each axis fivefold. A row of
 * 1024 channels then takes half a millisecond, and ten where the table is seeded. */
enum { PE_RESAMPLE_TAPS_MAX = 512 };

/* Scratch of one fill on the stack, bytes. Threads have 8 MiB of stack, musl's by default 128 KiB. */
enum { PE_SCRATCH_BYTES = 32768 };

/* Weights of a network that makes rows (recursive, floater), elements: kept as doubles, so 32 MiB a plan. Two square
 * layers of 1448 channels. */
enum { PE_NETWORK_WEIGHTS_MAX = 1 << 22 };

/* Work to reach the last row of such a scheme, in multiply-adds (what else a step costs is counted as some): rows
 * follow from the rows before them, so one row far down may cost all of it, in turns with the work of others. 7 s, and
 * 30 s where the weights are larger than the caches. A floater of 512 channels reaches position 3000. */
#define PE_STEPS_WORK_MAX 0x1p35

/* Rows of such a scheme that a plan keeps so as to go on from them, bytes. 4096 rows of 512 channels. */
#define PE_STEPS_KEPT_MAX (16ULL << 20)

/* Threads that can fill from such a plan at once without waiting for each other; a stream of the server has three. */
enum { PE_STEPS_WALKERS = 8 };

/* Biases a plan keeps for a window, num_heads · rows of its table: each is made once and looked up by every pair of
 * tokens that stand so, while the map itself, which has the square of the tokens, is never kept. 32 MiB as doubles; a
 * window of 64 by 64 has 16129 rows, so 260 heads. */
enum { PE_WINDOW_BIASES_MAX = 1 << 22 };

/* Biases of distances that a plan keeps for all heads, bytes: the whole of a Toeplitz map, of which every piece of an
 * answer copies rows. 8 heads of 2^17 positions; beyond, each piece evaluates its own distances. */
#define PE_BIAS_KEPT_MAX (8ULL << 20)

/* Heads and hidden channels of the network that makes such a table (swinv2: 512 channels in every released model): two
 * layers stand on the stack of a fill, beside a row of the table. */
enum { PE_WINDOW_LAYER_MAX = 1024 };
_Static_assert(2 * PE_WINDOW_LAYER_MAX * sizeof(double) <= PE_SCRATCH_BYTES, "a window's network fits the scratch");

/* Numbers that one piece of a reduced answer may be made of: a few milliseconds of a table, after which a client that
 * has left is noticed. */
#define PE_REDUCE_PIECE (1ULL << 22)

/* Numbers of an answer that are reduced together, where the rows of the whole are made whole: 4 MiB for each thread at
 * work. Beyond, the whole is gone through again, which pe_plan_work counts. */
enum { PE_TALLIES_MAX = 1 << 18, PE_TALLIES_ROOMS = 4 };

/* Work that may be done in place by whoever serves many clients, in multiply-adds: a few tenths of a millisecond. */
#define PE_LIGHT_WORK 0x1p18

/* An element that takes long (PE_SLOW), in multiply-adds, where its scheme does not say more: 60 ns. */
enum { PE_SLOW_WORK = 256 };

/* Logits that are worked on together stay in the second-level cache … */
enum { PE_BLOCK_BYTES = 1 << 18, PE_BLOCK_BYTES_OF_OUTPUT = 1 << 20 };
/* … but for 32 rows at least, unless they are enormous: each thread at work has one such block. */
enum { PE_BLOCK_BYTES_MAX = 32 << 20 };

/* Products of a head's keys with its whole table: 32 MiB of floats for each thread at work. */
enum { PE_RELATIVE_MEETING_MAX = 1 << 23 };

/* Keys of a head are laid out in panels up to here; beyond, each block lays them out again, as BLAS does. */
enum { PE_PANELS_BYTES_MAX = 64 << 20 };

/* Numbers of a table of relative positions, kept as doubles: DeBERTa-v2-xxlarge has 786432 in each of two. */
enum { PE_RELATIVE_TABLE_MAX = 1 << 23 };

/* Numbers of a projection of relative encodings, kept as doubles: Transformer-XL has 1024 by 1024. */
enum { PE_RELATIVE_WEIGHTS_MAX = 1 << 24 };

/* Projected encodings of distances that are kept for all heads, bytes: 4095 distances of 1024 channels are 16 MiB.
 * Beyond they are made anew for each head, by each thread. */
#define PE_RELATIVE_ENCODING_MAX (64ULL << 20)

/* Multiply-adds that may be made in order, one after the other: a third of a second. 64 words of 512 channels. */
#define PE_IN_ORDER_WORK_MAX 0x1p28

/* Multiply-adds of the projections of embeddings, in double: some seconds. 16384 positions of 2048 channels. */
#define PE_PROJECTION_WORK_MAX 0x1p38

/* Words of the textbook experiment: each is compared with those before it. */
enum { PE_TOKENS_MAX = 4096 };

_Static_assert(PE_HEAD_DIM_MAX * sizeof(double) <= PE_SCRATCH_BYTES, "a rotated row fits the scratch");

#endif
