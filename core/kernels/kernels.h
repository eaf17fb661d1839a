/* The inner loops: plain pointers in, plain pointers out. Each is compiled once per instruction set with a suffix
 * (_base, _avx2, _avx512) and has a naive reference (_ref) beside it as the truth; the chooser is core/isa.c. */
#ifndef PE_KERNELS_H
#define PE_KERNELS_H

#endif
