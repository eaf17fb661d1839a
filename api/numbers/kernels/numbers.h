/* Inner loops of numbers_print.c for some instruction sets. Plain arguments; the scalar code there and in
 * numbers_shortest.h is the reference that they are tested against, byte for byte. */
#ifndef API_KERNELS_NUMBERS_H
#define API_KERNELS_NUMBERS_H

#include <stddef.h>

/* Prints one number, without a comma: a kernel calls it for numbers that it cannot print itself. */
typedef char *api_print_one(char *dst, float x, int digits);

/* Each prints n numbers, a multiple of API_NUMBERS_AT_ONCE, each with a comma behind it, and returns the end. dst needs
 * room for 20 bytes per number plus 16; all of it may be overwritten. */
enum { API_NUMBERS_AT_ONCE = 8 };
#if defined(__x86_64__)
char *api_shortest_f32_avx2(char *dst, const float *src, size_t n, api_print_one *one);
/* 1 ≤ digits ≤ 7 behind the point. */
char *api_fixed_f32_avx2(char *dst, const float *src, size_t n, int digits, api_print_one *one);
#endif

#endif
