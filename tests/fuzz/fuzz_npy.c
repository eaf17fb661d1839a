/* Bodies that should be .npy files. */
#define CONTENT_TYPE "application/x-npy"
#include "tests/fuzz/body.h"
