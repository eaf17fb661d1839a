/* Requests of any scheme as JSON: each is planned, or refused with a sentence; a plan obeys the law of plan.h. */
#include "tests/fuzz/plan.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    api_json_setup();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_request((const char *)data, size);
    return 0;
}
