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
 * for every head. 64 MiB serve 65536 positions of 64 pairs. */
#define PE_ROTATION_TABLE_MAX (64ULL << 20)

/* Positions that are kept one by one (packed sequences, multimodal segments): 8 MiB of doubles an axis, and some
 * milliseconds to lay out. */
enum { PE_LISTED_POSITIONS_MAX = 1 << 20 };

/* Rows of a learned table that one row of a resized grid is made of: 64 by 64, shrinking each axis sixteenfold. A row
 * of 1024 channels then takes some ten milliseconds. */
enum { PE_RESAMPLE_TAPS_MAX = 4096 };

/* Scratch of one fill on the stack, bytes. libuv's workers have 8 MiB of stack, musl's default threads 128 KiB. */
enum { PE_SCRATCH_BYTES = 32768 };

_Static_assert(PE_HEAD_DIM_MAX * sizeof(double) <= PE_SCRATCH_BYTES, "a rotated row fits the scratch");

#endif
