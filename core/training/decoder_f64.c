/* The decoder in f64: what tests compare gradients with. */
typedef double real;

#define NAME(name) name##_f64
#define KERNEL(name) pe_kernels()->name##_f64

#include "core/training/decoder_body.h"
