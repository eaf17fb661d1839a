/* What the units that multiply and add allow: chains of such operations in registers, as many as hide an operation's
 * latency, by the widest registers of an instruction set. Where it has no fused operation, a product and a sum count as
 * one. */
#ifndef TESTS_BENCH_UNITS_H
#define TESTS_BENCH_UNITS_H

#include "core/inside.h"

#include <stddef.h>

#if defined(__x86_64__)
#define UNITS_TARGET(set) __attribute__((noinline, target(set)))
#define UNITS_REGISTER "+x"
#else
#define UNITS_TARGET(set) __attribute__((noinline))
#define UNITS_REGISTER "+w"
#endif

enum { UNITS_CHAINS = 12 }; /* two units, of a latency of five at most */

/* The chains are named one by one, so that they stay in registers; what the compiler does not see it does not omit. */
#define UNITS_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define UNITS_BEGIN(i) lanes x##i = half + i;
#define UNITS_STEP(i)                                                                                                  \
    x##i = x##i * half + half;                                                                                         \
    __asm__ volatile("" : UNITS_REGISTER(x##i));
#define UNITS(name, set, number, bytes)                                                                                \
    UNITS_TARGET(set) static void name(size_t n)                                                                       \
    {                                                                                                                  \
        typedef number lanes __attribute__((vector_size(bytes)));                                                      \
        lanes half = (lanes){0} + (number)0.5;                                                                         \
        UNITS_EACH(UNITS_BEGIN)                                                                                        \
        for (size_t k = 0; k < n; k++) {                                                                               \
            UNITS_EACH(UNITS_STEP)                                                                                     \
        }                                                                                                              \
    }

UNITS(units_base_f64, "sse2", double, 16)
UNITS(units_base_f32, "sse2", float, 16)
#if defined(__x86_64__)
UNITS(units_avx2_f64, "avx2,fma", double, 32)
UNITS(units_avx2_f32, "avx2,fma", float, 32)
UNITS(units_avx512_f64, "avx512f,fma", double, 64)
UNITS(units_avx512_f32, "avx512f,fma", float, 64)
#endif

/* Does n operations or some more, each of one number. */
static inline void units_work(enum pe_isa isa, bool of_floats, double n)
{
    static const struct {
        void (*work[2])(size_t);
        double lanes; /* doubles */
    } sets[PE_N_ISAS] = {
        [PE_ISA_BASE] = {{units_base_f64, units_base_f32}, 2},
#if defined(__x86_64__)
        [PE_ISA_AVX2] = {{units_avx2_f64, units_avx2_f32}, 4},
        [PE_ISA_AVX512] = {{units_avx512_f64, units_avx512_f32}, 8},
#endif
    };
    double lanes = sets[isa].lanes * (of_floats ? 2 : 1);
    sets[isa].work[of_floats]((size_t)(n / lanes / UNITS_CHAINS) + 1);
}

#endif
