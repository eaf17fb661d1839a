/* The kernels of attention rows, in both types, on every instruction set of this machine: values against the C
 * library's long double, sums, specials, any length and place of a row. */
#include "core/kernels/kernels.h"
#include "tests/support/cmocka.h"
#include "tests/support/kernel_sets.h"
#include "core/inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 150, GUARD = 3, BLOCK = 1 << 12 };
enum { MANY = 90, DEEP = 37, FEW = 26 }; /* keys, channels and queries of products */

/* The n-th of numbers that look random in [0, 1). */
static double chance(uint64_t n)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ULL;
    return (double)((x ^ x >> 29) >> 11) / 0x1p53;
}

typedef float real32;
typedef double real64;
#define BITS 32
#include "tests/core/kernels/attend_cases.h"
#undef BITS
#define BITS 64
#include "tests/core/kernels/attend_cases.h"
