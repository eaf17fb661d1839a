/* `arith: float32`: tables as frameworks compute them, each step rounded to f32, for parity with models trained that
 * way. */
#ifndef PE_FLOAT32_H
#define PE_FLOAT32_H

#include "core/waves/waves.h"

/* The common parameter `arith`: a scheme computes exactly, or in float32 like the frameworks. */
enum pe_arith { PE_ARITH_EXACT, PE_ARITH_FLOAT32 };
extern const char *const pe_arith_words[];

/* Like pe_waves_fill, for n_cols columns whose F is an f32 frequency in radians: angle = f32(f32(p) · F), then the
 * cosine or sine of that float and the product with the amplitude, each rounded to f32. */
void pe_float32_fill(const struct pe_wave *columns, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                     size_t n_rows, size_t n_cols, void *dst, size_t stride);

#endif
