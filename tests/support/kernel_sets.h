/* A check of every set of kernels that this machine can run. */
#ifndef TESTS_KERNEL_SETS_H
#define TESTS_KERNEL_SETS_H

#include "core/kernels/kernels.h"
#include "core/inside.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"

#include <stddef.h>

static inline void for_all(void (*check)(const struct pe_kernels *))
{
    enum pe_isa best = pe_isa();
    for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS; isa++)
        if (pe_kernels_use(isa))
            check(pe_kernels());
    assert_true(pe_kernels_use(best));
}

#endif
