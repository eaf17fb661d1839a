/* Bodies that should be safetensors files. */
#define CONTENT_TYPE "application/vnd.safetensors"
#include "tests/fuzz/body.h"
