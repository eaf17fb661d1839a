/* One tensor as a NumPy .npy file, version 1.0: magic, the length of a Python dict, the dict, the elements. */
#include "api/formats/format.h"
#include "api/numbers/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool fail_several(const struct api_source *source, struct api_problem *problem)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < api_source_count(source) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 api_source_output(source, i)->name);
    return api_fail(
        problem, 406, "/outputs",
        "npy holds exactly one tensor and this answer has %zu: %s; choose one in outputs, or another format "
        "(npz and safetensors hold all)",
        api_source_count(source), list);
}

bool api_npy_check(const struct pe_output *output, const char *format, struct api_problem *problem)
{
    return api_dtype_name(API_NUMPY, output->dtype) ||
           api_fail(problem, 406, "/dtype", "NumPy has no dtype %s, so %s cannot hold %s; safetensors can",
                    pe_dtype_name(output->dtype), format, output->name);
}

/* At most 8 axes of 20 digits: the header always fits version 1.0's 16 bits. Padded so that the elements start at a
 * multiple of 64. */
void api_npy_head(struct api_text *text, const struct pe_output *output)
{
    enum { PREFIX = 10, MULTIPLE = 64 };
    size_t begin = text->n;
    api_text_add(text, "\x93NUMPY\x01\x00\x00\x00", PREFIX);
    char descr[API_DESCR_BYTES];
    api_text_format(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", api_numpy_descr(output->dtype, descr));
    for (unsigned i = 0; i < output->rank; i++)
        api_text_format(text, i ? ", %" PRIu64 : "%" PRIu64, output->shape[i]);
    api_text_put(text, output->rank == 1 ? ",), }" : "), }");
    while (!text->state && (text->n - begin + 1) % MULTIPLE)
        api_text_put(text, " ");
    api_text_put(text, "\n");
    if (!text->state) {
        text->bytes[begin + 8] = (char)((text->n - begin - PREFIX) & 0xff);
        text->bytes[begin + 9] = (char)((text->n - begin - PREFIX) >> 8);
    }
}

static bool open(struct api_request *request)
{
    if (api_source_count(&request->opening.source) != 1)
        return fail_several(&request->opening.source, &request->problem);
    const struct pe_output *output = api_source_output(&request->opening.source, 0);
    if (!api_npy_check(output, "npy", &request->problem))
        return false;
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_npy_head(&text, output);
    if (!api_body_take(request, &text))
        return false;
    api_body_output(request->opening.stream, 0);
    return true;
}

const struct api_format api_format_npy;
const struct api_format api_format_npy = {
    .name = "npy",
    .media_type = "application/x-npy",
    .open = open,
    .width = api_bytes_width,
    .print = api_bytes_print,
};
