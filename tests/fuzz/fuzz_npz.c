/* Bodies that should be .npz files. */
#define CONTENT_TYPE "application/zip"
#include "tests/fuzz/body.h"
