/* KERNELS=base, avx2 or avx512 in the environment: the kernels of every test in C. A test that runs several sets itself
 * returns to this one. */
#include "core/inside.h"
#include "core/numeric/numeric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool use(const char *name)
{
    for (int isa = 0; isa < PE_N_ISAS; isa++)
        if (strcmp(name, pe_isa_name((enum pe_isa)isa)) == 0)
            return pe_kernels_use((enum pe_isa)isa);
    return false;
}

__attribute__((constructor)) static void choose(void)
{
    const char *name = getenv("KERNELS");
    if (!name || !*name || use(name))
        return;
    fprintf(stderr, "KERNELS=%s: this machine does not have these kernels; the best it has is %s\n", name,
            pe_isa_name(pe_isa()));
    exit(2);
}
