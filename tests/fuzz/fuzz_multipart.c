/* Bodies that should be multipart/form-data with the boundary XX. */
#define CONTENT_TYPE "multipart/form-data; boundary=XX"
#include "tests/fuzz/body.h"
