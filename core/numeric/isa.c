/* Which instruction set the kernels use, and until when the process may choose.
 *
 * All sets are compiled into one library, and the widest that the processor has is chosen when the first plan or kernel
 * asks. A test, or a program that calls pe_isa_use before its first plan, may choose a narrower one.
 *
 * Why has a table the same bytes on every instruction set? Because a number of a table is not what some sequence of
 * instructions yields but the one nearest to the exact real value, which no machine changes. A kernel's estimate is
 * stored only if its error bound shows how it rounds; the others are computed again in double-double, by steps that are
 * the same on every machine (core/waves/wave_value.c). Kernels that have no such test, as those that rotate, perform
 * the same operations on each element in every width, with contraction off. tests/core/test_every_scheme.c compares the
 * sets, and `make arm64` another machine.
 *
 * What is not the same: attention (exponentials, products of BLAS or of kernels), the sums from which an analysis
 * computes its metrics, and training, which amplifies the difference. These fuse where the machine can, or add in an
 * order that follows the width of a register. Values of a network (is_of_machine of struct pe_scheme_info) depend on
 * the C library's exp and tanh, which themselves choose by the processor: pe_machine_fuses states which.
 *
 * For the choice at run time the file to compare is BLAKE3's c/blake3_dispatch.c. */
#include "core/kernels/kernels.h"
#include "core/numeric/numeric.h"

#include <stdatomic.h>

static const struct pe_kernels tables[PE_N_ISAS] = {
    [PE_ISA_BASE] =
        {
#define PE_KERNEL_ROW(name, type) .name = pe_##name##_base,
#include "core/kernels/names.h"
        },
#if defined(__x86_64__)
    [PE_ISA_AVX2] =
        {
#define PE_KERNEL_ROW(name, type) .name = pe_##name##_avx2,
#include "core/kernels/names.h"
        },
    [PE_ISA_AVX512] =
        {
#define PE_KERNEL_ROW(name, type) .name = pe_##name##_avx512,
#include "core/kernels/names.h"
        },
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
static atomic_int chosen = NOT_CHOSEN; /* every thread that reads NOT_CHOSEN makes the same choice */

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

bool pe_kernels_use(enum pe_isa isa)
{
    if (isa >= PE_N_ISAS || !machine_has(isa))
        return false;
    atomic_store_explicit(&chosen, (int)isa, memory_order_relaxed);
    return true;
}

static atomic_bool settled; /* by the first plan: what its tables hold would no longer be what another set computes */

void pe_settle(void)
{
    if (!atomic_load_explicit(&settled, memory_order_relaxed)) /* all plans read it, the first writes it */
        atomic_store_explicit(&settled, true, memory_order_relaxed);
}

bool pe_is_settled(void) { return atomic_load_explicit(&settled, memory_order_relaxed); }

bool pe_isa_use(enum pe_isa isa) { return !pe_is_settled() && pe_kernels_use(isa); }

bool pe_machine_fuses(void)
{
#if defined(__x86_64__)
    return machine_has(PE_ISA_AVX2);
#else
    return true;
#endif
}

const char *pe_isa_name(enum pe_isa isa)
{
    static const char *const names[PE_N_ISAS] = {"base", "avx2", "avx512"};
    return names[isa];
}

const struct pe_kernels *pe_kernels(void) { return &tables[pe_isa()]; }
