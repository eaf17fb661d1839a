/* Texts of Hugging Face's config.json: the first line may name a layer type, the rest is the file. The file is read, or
 * refused with a sentence; a plan obeys the law of plan.h. */
#include "tests/fuzz/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char begin[] = "{\"len\":3,\"hf_config\":";
    const uint8_t *newline = size && data[0] != '{' ? memchr(data, '\n', size) : NULL;
    struct api_text text;
    api_text_init(&text, 1 << 20);
    api_text_put(&text, begin);
    api_text_add(&text, newline ? (const char *)newline : (const char *)data,
                 newline ? size - (size_t)(newline - data) : size);
    if (newline) {
        api_text_put(&text, ",\"layer_type\":");
        api_text_string_n(&text, (const char *)data, (size_t)(newline - data));
    }
    api_text_put(&text, "}");
    check_request(text.bytes, text.n);
    api_text_drop(&text);
    return 0;
}
