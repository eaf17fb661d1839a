/* The tensors' bytes and nothing else; the header Posenc-Tensors describes them (a list as in RFC 8941). */
#include "api/formats/format.h"

#include <inttypes.h>

static void add_entry(struct api_text *text, const struct pe_output *output, size_t index, uint64_t offset)
{
    api_text_format(text, "%s%s;dtype=\"%s\";shape=\"", index ? ", " : "", output->name, pe_dtype_name(output->dtype));
    for (unsigned i = 0; i < output->rank; i++)
        api_text_format(text, i ? ",%" PRIu64 : "%" PRIu64, output->shape[i]);
    api_text_format(text, "\";offset=%" PRIu64, offset);
}

static bool open(struct api_request *request)
{
    struct api_text text;
    if (api_source_count(&request->opening.source) == 0)
        return api_fail(&request->problem, 406, "",
                        "raw is the bytes of tensors, and this answer has none; take the format json");
    api_text_init(&text, API_TEXT_MAX);
    uint64_t offset = 0;
    for (size_t i = 0; i < api_source_count(&request->opening.source); i++) {
        const struct pe_output *output = api_source_output(&request->opening.source, i);
        add_entry(&text, output, i, offset);
        api_body_output(request->opening.stream, i);
        offset += output->n_rows * output->row_len * pe_dtype_size(output->dtype);
    }
    request->opening.header = "Posenc-Tensors";
    request->opening.header_value = text.state ? NULL : api_arena_string(&request->arena, text.bytes, text.n);
    api_text_drop(&text);
    return request->opening.header_value || api_fail_memory(&request->problem);
}

const struct api_format api_format_raw;
const struct api_format api_format_raw = {
    .name = "raw",
    .media_type = "application/octet-stream",
    .open = open,
    .width = api_bytes_width,
    .print = api_bytes_print,
};
