/* Requests of any scheme as JSON: each is planned, or refused with a sentence; a plan obeys the law of plan.h. */
#include "tests/fuzz/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_request((const char *)data, size);
    return 0;
}
