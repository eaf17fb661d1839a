/* Texts as they are pasted, in one of the fields that take them; the first byte chooses it, and a model beside. Each is
 * refused with a sentence, or becomes objects, of which the answer says in JSON what they were; a plan is made of them
 * or refused. */
#include "tests/fuzz/plan.h"

static void check_objects(struct api_request *request)
{
    static const char *const names[] = {"hf_config", "gguf", "said"};
    struct api_json_error error;
    struct pe_plan *made = NULL;
    for (size_t i = 0; i < 3; i++)
        REQUIRE(!has_field(request, names[i]) || api_request_find(request, names[i])->kind != PE_STRING);
    REQUIRE(request->pasted);
    REQUIRE(api_json_load(&request->arena, request->pasted, strlen(request->pasted), 0, &error));
    if (plan(request, &made))
        pe_plan_free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const begins[] = {"\"said\":", "\"gguf\":", "\"hf_config\":", "\"preset\":\"qwen3\",\"said\":",
                                         "\"head_dim\":8,\"layout\":\"half\",\"said\":"};
    static struct api_request request;
    struct api_problem problem;
    struct api_text text;
    if (size == 0)
        return 0;
    api_text_init(&text, 1 << 20);
    api_text_format(&text, "{\"len\":2,%s", begins[*data % 5]);
    api_text_string_n(&text, (const char *)data + 1, size - 1);
    api_text_put(&text, "}");
    api_request_init(&request, PE_ENCODE);
    if (api_json_read(&request, text.bytes, text.n, "", &problem) && api_pasted_take(&request, &problem))
        check_objects(&request);
    else
        REQUIRE(problem.status >= 400 && problem.status < 500 && *problem.error.detail);
    api_request_drop(&request);
    api_text_drop(&text);
    return 0;
}
