/* Which instruction set the kernels use. */
#include "core/kernels/kernels.h"
#include "core/posenc.h"

#include <stdatomic.h>

#define TABLE(isa)                                                                                                     \
    {                                                                                                                  \
        .waves = pe_waves_##isa, .list_f32 = pe_list_f32_##isa, .list_pairs_f32 = pe_list_pairs_f32_##isa,             \
        .run_f32 = pe_run_f32_##isa, .run_f16 = pe_run_f16_##isa, .run_bf16 = pe_run_bf16_##isa,                       \
        .turn = pe_turn_##isa, .rotate_f32 = pe_rotate_f32_##isa, .rotate_f64 = pe_rotate_f64_##isa,                   \
        .rotate_rows = pe_rotate_rows_##isa, .pack = pe_pack_##isa, .angles = pe_angles_##isa,                         \
        .of_f16 = pe_of_f16_##isa, .of_bf16 = pe_of_bf16_##isa, .to_f16 = pe_to_f16_##isa,                             \
        .to_bf16 = pe_to_bf16_##isa, .exp_f32 = pe_exp_f32_##isa, .exp_f64 = pe_exp_f64_##isa,                         \
        .max_f32 = pe_max_f32_##isa, .max_f64 = pe_max_f64_##isa, .scale_f32 = pe_scale_f32_##isa,                     \
        .scale_f64 = pe_scale_f64_##isa, .add_f32 = pe_add_f32_##isa, .add_f64 = pe_add_f64_##isa,                     \
        .gather_add_f32 = pe_gather_add_f32_##isa, .gather_add_f64 = pe_gather_add_f64_##isa,                          \
        .cap_f32 = pe_cap_f32_##isa, .cap_f64 = pe_cap_f64_##isa, .sigmoid_f32 = pe_sigmoid_f32_##isa,                 \
        .sigmoid_f64 = pe_sigmoid_f64_##isa, .pick_add_f32 = pe_pick_add_f32_##isa,                                    \
        .pick_add_f64 = pe_pick_add_f64_##isa, .pick_across_add_f32 = pe_pick_across_add_f32_##isa,                    \
        .pick_across_add_f64 = pe_pick_across_add_f64_##isa, .pack_f32 = pe_pack_f32_##isa,                            \
        .pack_f64 = pe_pack_f64_##isa, .products_f32 = pe_products_f32_##isa, .products_f64 = pe_products_f64_##isa,   \
        .narrow_f16 = pe_narrow_f16_##isa, .narrow_bf16 = pe_narrow_bf16_##isa, .windows = pe_windows_##isa,           \
        .lines = pe_lines_##isa,                                                                                       \
    }

static const struct pe_kernels tables[PE_N_ISAS] = {
    [PE_ISA_BASE] = TABLE(base),
#if defined(__x86_64__)
    [PE_ISA_AVX2] = TABLE(avx2),
    [PE_ISA_AVX512] = TABLE(avx512),
#endif
};

static bool machine_has(enum pe_isa isa)
{
    switch (isa) {
    case PE_ISA_BASE: return true;
#if defined(__x86_64__)
    case PE_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    case PE_ISA_AVX512:
        return machine_has(PE_ISA_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd");
#endif
    default: return false;
    }
}

enum { NOT_CHOSEN = -1 };
static atomic_int chosen = NOT_CHOSEN; /* every thread that finds it so comes to the same choice */

enum pe_isa pe_isa(void)
{
    int isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa == NOT_CHOSEN) {
        isa = PE_N_ISAS - 1;
        while (!machine_has((enum pe_isa)isa))
            isa--;
        atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    }
    return (enum pe_isa)isa;
}

bool pe_isa_use(enum pe_isa isa)
{
    if (isa >= PE_N_ISAS || !machine_has(isa))
        return false;
    atomic_store_explicit(&chosen, (int)isa, memory_order_relaxed);
    return true;
}

const char *pe_isa_name(enum pe_isa isa)
{
    static const char *const names[PE_N_ISAS] = {"base", "avx2", "avx512"};
    return names[isa];
}

const struct pe_kernels *pe_kernels(void) { return &tables[pe_isa()]; }
