/* {"model_name":…,"model_version":"1"[,"id":…][,"parameters":{…}],"outputs":[{"name","datatype","shape","data"}]}, and
 * behind it the bytes of the outputs that are requested as bytes. */
#include "api/numbers/numbers.h"
#include "api/oip/oip.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t count_of(const struct pe_output *output) { return output->n_rows * output->row_len; }

static bool is_binary(const struct api_oip_request *request, size_t i)
{
    enum api_oip_wish wish = request->n_outputs ? request->wishes[i] : API_OIP_UNSAID;
    return (wish == API_OIP_UNSAID ? request->wish : wish) == API_OIP_BINARY;
}

const struct api_format *api_oip_format(const struct api_oip_request *request, bool *is_mixed)
{
    size_t n = request->n_outputs ? request->n_outputs : 1,
           n_binary = 0; /* without names all outputs have the same setting */
    for (size_t i = 0; i < n; i++)
        n_binary += is_binary(request, i);
    *is_mixed = n_binary > 0 && n_binary < n;
    return n_binary ? &api_oip_binary : &api_oip_json;
}

/* ---- The JSON ---- */

/* The protocol has no datatype of eight bits but integers. */
static bool check_datatypes(struct api_request *request)
{
    for (size_t i = 0; i < pe_plan_n_outputs(request->opening.source.plan); i++) {
        const struct pe_output *output = pe_plan_output(request->opening.source.plan, i);
        if (!api_dtype_name(API_OIP, output->dtype))
            return api_fail(&request->problem, 422, "/parameters/dtype",
                            "the Open Inference Protocol has no datatype for %s, the dtype of output %s; take f16 or "
                            "bf16, or the format safetensors of /encode",
                            pe_dtype_name(output->dtype), output->name);
    }
    return true;
}

static void begin_answer(const struct api_request *request, struct api_text *text)
{
    const struct api_oip_answer *answer = request->about;
    char name[API_OIP_NAME_MAX];
    uint64_t empty_rows;
    api_oip_name_print(answer->model, name);
    api_text_named(text, "{\"model_name\":", name);
    api_text_put(text, ",\"model_version\":\"" API_OIP_VERSION "\"");
    if (answer->request->id)
        api_text_member(text, "id", answer->request->id);
    if (pe_plan_empty_rows(request->opening.source.plan, &empty_rows))
        api_text_format(text, ",\"parameters\":{\"empty_rows\":%" PRIu64 "}", empty_rows);
    api_text_open(text, "outputs", '[');
}

/* Only rotated tensors have the name of an input. */
static void begin_output(struct api_text *text, const struct pe_output *output)
{
    char name[64];
    bool is_rotated = strcmp(output->name, "q") == 0 || strcmp(output->name, "k") == 0;
    snprintf(name, sizeof name, "%s%s", output->name, is_rotated ? "_out" : "");
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", name);
    api_text_member(text, "datatype", api_dtype_name(API_OIP, output->dtype));
    api_text_name(text, "shape");
    api_text_shape(text, output->shape, output->rank);
}

/* ---- All in JSON: data is flat, whatever the shape ---- */

static struct api_elements elements_of(const struct pe_output *output)
{
    struct api_elements elements;
    uint64_t count = count_of(output);
    api_elements_init(&elements, output->dtype, &count, 1, API_DIGITS_SHORTEST);
    return elements;
}

static bool open_json(struct api_request *request)
{
    struct api_text text;
    if (!check_datatypes(request))
        return false;
    api_text_init(&text, API_TEXT_MAX);
    begin_answer(request, &text);
    for (size_t i = 0; i < pe_plan_n_outputs(request->opening.source.plan); i++) {
        const struct pe_output *output = pe_plan_output(request->opening.source.plan, i);
        begin_output(&text, output);
        api_text_put(&text, count_of(output) ? ",\"data\":" : ",\"data\":[]");
        if (count_of(output)) {
            if (!api_body_take(request, &text))
                return false;
            api_body_output(request->opening.stream, i);
        }
        api_text_put(&text, "}");
    }
    api_text_put(&text, "]}");
    return api_body_take(request, &text);
}

/* The values of a piece are stored behind its text until they are printed. */
static size_t width_json(const struct api_plan_body *stream, const struct pe_output *output)
{
    (void)stream;
    return elements_of(output).width + pe_dtype_size(output->dtype);
}

static void *aligned(char *p) { return p + (-(uintptr_t)p & 63); }

static size_t print_json(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first,
                         size_t n, char *dst)
{
    struct api_elements elements = elements_of(segment->output);
    void *values = aligned(dst + n * elements.width);
    pe_fill(stream->source.plan, segment->index, first, n, values);
    return api_elements_print(&elements, values, first, n, dst);
}

/* ---- JSON and bytes ---- */

/* The thread that computes the numbers serves no other client meanwhile. So a request that takes long, or gives a large
 * text, is refused. */
static bool check_numbers(struct api_request *request, const struct pe_output *output, size_t width)
{
    uint64_t count = count_of(output);
    size_t max = pe_plan_pace(request->opening.source.plan) == PE_QUICK ? API_TEXT_MAX : API_BESIDE_SLOW_BYTES;
    if (count <= max / width && pe_plan_work(request->opening.source.plan) <= API_BESIDE_WORK_MAX)
        return true;
    return api_fail(&request->problem, 413, "/outputs",
                    "output %s (%" PRIu64 " elements) takes too long or is too large to be JSON beside others as "
                    "bytes; set binary_data for it too, or for none",
                    output->name, count);
}

/* The count of numbers computed at a time; then the client's connection is checked. It is whole units if the output has
 * units, else some rows. */
static uint64_t step_of(const struct pe_output *output)
{
    uint64_t count = count_of(output), most = API_PIECE_BYTES / sizeof(double);
    uint64_t rows = output->row_len < most ? API_ROWS_UNIT * output->row_len : most;
    uint64_t step = output->unit ? output->unit : rows;
    return step < count ? step : count;
}

/* The header states the length of the JSON, so its numbers must be printed before the first byte is sent. */
static bool add_numbers(struct api_request *request, struct api_text *text, size_t i)
{
    const struct pe_output *output = pe_plan_output(request->opening.source.plan, i);
    struct api_elements elements = elements_of(output);
    uint64_t count = count_of(output);
    if (!check_numbers(request, output, elements.width))
        return false;
    api_text_put(text, count ? ",\"data\":" : ",\"data\":[]");
    size_t room = (size_t)count * elements.width + (size_t)step_of(output) * pe_dtype_size(output->dtype);
    if (!api_arena_reserve(&request->arena, text->n + room))
        return api_fail_memory(&request->problem);
    char *dst = count ? api_text_room(text, (size_t)count * elements.width) : NULL;
    if (!count || text->state)
        return true; /* a failure of the text is noticed when it is taken */
    void *values = malloc((size_t)step_of(output) * pe_dtype_size(output->dtype));
    if (!values)
        return api_fail_memory(&request->problem);
    for (uint64_t at = 0, n; at < count && !pe_is_cancelled(); at += n) {
        uint64_t step = step_of(output), period = output->unit ? output->period : count_of(output);
        uint64_t left = period - at % period;
        n = left < step ? left : step;
        pe_fill(request->opening.source.plan, i, at, (size_t)n, values);
        size_t n_bytes = api_elements_print(&elements, values, at, (size_t)n, dst);
        text->n += n_bytes;
        dst += n_bytes;
    }
    free(values);
    return !pe_was_cancelled() || api_fail_left(&request->problem);
}

static bool add_outputs(struct api_request *request, struct api_text *text)
{
    const struct api_oip_answer *answer = request->about;
    for (size_t i = 0; i < pe_plan_n_outputs(request->opening.source.plan); i++) {
        const struct pe_output *output = pe_plan_output(request->opening.source.plan, i);
        begin_output(text, output);
        if (is_binary(answer->request, i))
            api_text_format(text, ",\"parameters\":{\"binary_data_size\":%" PRIu64 "}",
                            count_of(output) * pe_dtype_size(output->dtype));
        else if (!add_numbers(request, text, i))
            return false;
        api_text_put(text, "}");
    }
    api_text_put(text, "]}");
    return true;
}

static bool open_binary(struct api_request *request)
{
    struct api_text text;
    char length[24];
    if (!check_datatypes(request))
        return false;
    api_text_init(&text, API_TEXT_MAX);
    begin_answer(request, &text);
    if (!add_outputs(request, &text)) {
        api_text_drop(&text);
        return false;
    }
    int n = snprintf(length, sizeof length, "%zu", text.n);
    if (!api_body_take(request, &text))
        return false;
    struct api_oip_answer *answer = request->about;
    for (size_t i = 0; i < pe_plan_n_outputs(request->opening.source.plan); i++)
        if (is_binary(answer->request, i) && count_of(pe_plan_output(request->opening.source.plan, i))) {
            api_body_output(request->opening.stream, i);
            answer->has_tail = true;
        }
    if (!((const struct api_oip_answer *)request->about)->has_tail)
        return true;
    request->opening.header = "Inference-Header-Content-Length";
    request->opening.header_value = api_arena_string(&request->arena, length, (size_t)n);
    return request->opening.header_value || api_fail_memory(&request->problem);
}

const struct api_format api_oip_json = {
    .name = "oip-json",
    .media_type = "application/json",
    .is_text = true,
    .open = open_json,
    .width = width_json,
    .print = print_json,
};

const struct api_format api_oip_binary = {
    .name = "oip-binary",
    .media_type = "application/octet-stream",
    .open = open_binary,
    .width = api_bytes_width,
    .print = api_bytes_print,
};
