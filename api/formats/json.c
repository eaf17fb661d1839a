/* {"scheme":…,"config":{…}[,"preset":{…}],"tensors":{name:{"dtype":…,"shape":[…],"data":[…]},…}[,"empty_rows":n][,"terms":[name,…]]}:
 * text around the numbers of each output. An answer that comes of no plan begins with its own members instead. */
#include "api/numbers/numbers.h"
#include "api/formats/format.h"

/* Opens the tensor's object up to its numbers. */
static void begin_tensor(struct api_text *text, const struct pe_output *output)
{
    api_text_open(text, output->name, '{');
    api_text_member(text, "dtype", pe_dtype_name(output->dtype));
    api_text_name(text, "shape");
    api_text_shape(text, output->shape, output->rank);
}

static int digits_of(const struct api_plan_body *stream, const struct pe_output *output)
{
    return pe_dtype_is_real(output->dtype) ? stream->digits : API_DIGITS_SHORTEST;
}

/* Stored lines pay off only for outputs of several pieces: within one piece each number is converted to digits only
 * once anyway. */
static bool add_lines(struct api_request *request, size_t index)
{
    struct api_plan_body *stream = request->opening.stream;
    struct api_segment *segment = &stream->segments[stream->n_segments - 1];
    if (segment->n_pieces == 1 || !stream->source.plan)
        return true;
    return api_lines_new(&request->arena, stream->source.plan, index, digits_of(stream, segment->output),
                         &segment->lines);
}

/* The numbers are printed on demand, so the text collected so far becomes a segment before them. */
static bool add_numbers(struct api_request *request, struct api_text *text, size_t index)
{
    const struct pe_output *output = api_source_output(&request->opening.source, index);
    api_text_put(text, ",\"data\":");
    if (output->n_rows == 0 || output->row_len == 0) {
        api_text_put(text, "[]");
        return true;
    }
    if (!api_body_take(request, text))
        return false;
    api_body_output(request->opening.stream, index);
    return add_lines(request, index) || api_fail_memory(&request->problem);
}

/* Which layers are answered, of a preset whose layers differ. */
static void add_layer_type(struct api_text *text, const struct pe_preset *preset, const struct api_request *request)
{
    const struct pe_value *asked = request ? api_request_find(request, "layer_type") : NULL;
    bool is_asked = asked && asked->kind == PE_STRING;
    if (preset->n_layers > 1)
        api_text_member(text, "layer_type", is_asked ? asked->string : preset->layers[0].layer_type);
}

void api_json_plan(struct api_text *text, const struct api_request *request)
{
    const struct pe_plan *plan = request->opening.source.plan;
    api_text_member(text, "scheme", pe_plan_scheme(plan)->name);
    api_text_name(text, "config");
    api_text_add(text, request->opening.config, request->opening.config_bytes);
    if (pe_plan_preset(plan)) {
        api_text_open(text, "preset", '{');
        api_preset_about(text, pe_plan_preset(plan));
        add_layer_type(text, pe_plan_preset(plan), request);
        /* By which name the preset was asked for. */
        const struct pe_value *asked = request ? api_request_find(request, "preset") : NULL;
        api_preset_asked(text, asked && asked->kind == PE_STRING ? asked->string : NULL);
        api_text_put(text, "}");
    }
}

void api_json_rest(struct api_text *text, const struct pe_plan *plan)
{
    const char *names[PE_TERMS_MAX];
    size_t n = plan ? pe_plan_terms(plan, names) : 0;
    uint64_t empty_rows;
    if (plan && pe_plan_empty_rows(plan, &empty_rows))
        api_text_count(text, "empty_rows", (int64_t)empty_rows);
    if (n == 0)
        return;
    api_text_open(text, "terms", '[');
    for (size_t i = 0; i < n; i++)
        api_text_member(text, NULL, names[i]);
    api_text_close(text, ']');
}

static bool open(struct api_request *request)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_text_put(&text, "{");
    if (request->opening.source.plan)
        api_json_plan(&text, request);
    for (size_t i = 0; i < request->opening.n_members; i++) {
        api_text_name(&text, request->opening.members[i].name);
        api_text_add(&text, request->opening.members[i].json, request->opening.members[i].n);
    }
    api_text_open(&text, "tensors", '{');
    for (size_t i = 0; i < api_source_count(&request->opening.source); i++) {
        begin_tensor(&text, api_source_output(&request->opening.source, i));
        if (request->form.data && !add_numbers(request, &text, i))
            return false; /* on failure the text has been freed */
        api_text_put(&text, "}");
    }
    api_text_put(&text, "}");
    api_json_rest(&text, request->opening.source.plan);
    api_text_put(&text, "}");
    return api_body_take(request, &text);
}

static struct api_elements elements_of(const struct api_plan_body *stream, const struct pe_output *output)
{
    struct api_elements elements;
    api_elements_init(&elements, output->dtype, output->shape, output->rank, digits_of(stream, output));
    return elements;
}

/* The values of a piece are stored behind its text until they are printed. */
static size_t width(const struct api_plan_body *stream, const struct pe_output *output)
{
    return elements_of(stream, output).width + pe_dtype_size(output->dtype);
}

static void *aligned(char *p) { return p + (-(uintptr_t)p & 63); }

static size_t print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                    char *dst)
{
    struct api_elements elements = elements_of(stream, segment->output);
    size_t copied = segment->lines ? api_elements_copy(&elements, segment->lines, first, n, dst) : 0;
    if (copied)
        return copied;
    void *values = aligned(dst + n * elements.width);
    api_source_fill(&stream->source, segment->index, first, n, values);
    return api_elements_print(&elements, values, first, n, dst);
}

static const char *const fields[] = {"digits", "data", NULL};

const struct api_format api_format_json;
const struct api_format api_format_json = {
    .name = "json",
    .media_type = "application/json",
    .fields = fields,
    .is_text = true,
    .open = open,
    .width = width,
    .print = print,
};
