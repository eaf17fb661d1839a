/* The decoder in f32: what is trained. */
typedef float real;

#define NAME(name) name##_f32
#define KERNEL(name) pe_kernels()->name##_f32
#define COUNTS_BYTES

#include "core/training/decoder_body.h"
