/* Every set of kernels that this machine can run, one after the other. */
#ifndef TESTS_KERNEL_SETS_H
#define TESTS_KERNEL_SETS_H

#include "core/kernels/kernels.h"
#include "core/inside.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"

/* Uses *isa, or the next one that there is; behind the last, the usual one again. */
static inline bool kernel_set_use(enum pe_isa *isa, enum pe_isa usual)
{
    while (*isa < PE_N_ISAS && !pe_kernels_use(*isa))
        ++*isa;
    if (*isa == PE_N_ISAS)
        assert_true(pe_kernels_use(usual));
    return *isa < PE_N_ISAS;
}

/* for (EACH_KERNEL_SET): what follows with each set. */
#define EACH_KERNEL_SET                                                                                                \
    enum pe_isa usual_ = pe_isa(), isa_ = PE_ISA_BASE;                                                                 \
    kernel_set_use(&isa_, usual_);                                                                                     \
    isa_++

static inline void for_all(void (*check)(const struct pe_kernels *))
{
    for (EACH_KERNEL_SET)
        check(pe_kernels());
}

#endif
