/* Heads of GGUF files. One is refused with a sentence, or read; every number of it is read again, so that a sanitizer
 * detects one beyond the body. What is read is planned with and without the name of a kind of layers, or refused. */
#include "tests/fuzz/laws.h"
#include "api/inputs/inputs.h"

static volatile double sink;

static void touch(const struct pe_value *value)
{
    for (size_t i = 0; value->kind == PE_OBJECT && i < value->object.n; i++) {
        const struct pe_value *member = &value->object.fields[i].value;
        REQUIRE(*value->object.fields[i].name);
        if (member->kind == PE_ARRAY) {
            struct pe_reals list = {member->array, member->array.shape[0]};
            for (uint64_t k = 0; k < list.n; k++)
                sink = pe_real_at(&list, k);
        }
        if (strcmp(value->object.fields[i].name, "tensors") == 0)
            touch(member);
    }
}

static void plan(const struct api_request *request, const char *layer_type)
{
    struct pe_field fields[3] = {request->fields[0],
                                 {"len", {.kind = PE_INTEGER, .integer = 2}},
                                 {"layer_type", {.kind = PE_STRING, .string = layer_type}}};
    struct pe_request core = {.operation = PE_ENCODE, .fields = fields, .n_fields = layer_type ? 3 : 2};
    struct pe_plan *made = NULL;
    struct pe_model_about *about = NULL;
    struct pe_failure err;
    if (pe_plan_check(&core, &made, &err)) {
        REQUIRE(err.status == PE_INVALID && *err.detail && *err.pointer == '/');
        return;
    }
    REQUIRE(pe_model_about_new(&core, &about, &err) == PE_OK && pe_model_about_value(about)->kind == PE_OBJECT);
    pe_model_about_free(about);
    pe_plan_free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct api_request request;
    struct api_problem problem;
    api_request_init(&request, PE_ENCODE);
    if (!api_input_read(&request, "application/x-gguf", (const char *)data, size, &problem)) {
        REQUIRE((problem.status == 400 || problem.status == 422) && *problem.error.detail);
    } else {
        REQUIRE(request.n_fields == 1 && request.arena.n_bytes <= (1 << 21));
        touch(&request.fields[0].value);
        plan(&request, NULL);
        plan(&request, "sliding_attention");
    }
    api_request_drop(&request);
    return 0;
}
