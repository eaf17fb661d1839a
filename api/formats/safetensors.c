/* All tensors as a safetensors file: the length of a JSON header, the header, the tensors without gaps. */
#include "api/formats/format.h"
#include "api/numbers/numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const struct pe_output *output;
    size_t index;
};

/* The tensors in the order in which they are sent. */
struct entries {
    struct entry at[API_TENSORS_MAX];
    size_t n;
};

/* The order of the reference writer: larger rank first, so that every tensor is aligned to its elements. */
static int compare(const void *left, const void *right)
{
    const struct pe_output *a = ((const struct entry *)left)->output, *b = ((const struct entry *)right)->output;
    int ranks = api_safetensors_rank(b->dtype) - api_safetensors_rank(a->dtype);
    return ranks ? ranks : strcmp(a->name, b->name);
}

static void add_plan(struct api_text *text, const struct api_request *request)
{
    api_text_member(text, "scheme", pe_plan_scheme(request->opening.source.plan)->name);
    api_text_name(text, "config");
    api_text_string_n(text, request->opening.config, request->opening.config_bytes);
    uint64_t empty_rows;
    if (pe_plan_empty_rows(request->opening.source.plan, &empty_rows))
        api_text_format(text, ",\"empty_rows\":\"%" PRIu64 "\"", empty_rows);
    const char *names[PE_TERMS_MAX];
    size_t n = pe_plan_terms(request->opening.source.plan, names);
    for (size_t i = 0; i < n; i++)
        api_text_format(text, "%s%s%s", i ? "," : ",\"terms\":\"", names[i], i + 1 < n ? "" : "\"");
}

static void sort(const struct api_request *request, struct entries *entries)
{
    entries->n = api_source_count(&request->opening.source);
    for (size_t i = 0; i < entries->n; i++)
        entries->at[i] = (struct entry){.output = api_source_output(&request->opening.source, i), .index = i};
    if (!request->opening.keeps_order)
        qsort(entries->at, entries->n, sizeof entries->at[0], compare);
}

/* Writes the header; returns the bytes of the tensors after it. */
static uint64_t add_header(struct api_text *text, const struct api_request *request, const struct entries *entries)
{
    api_text_add(text, "\0\0\0\0\0\0\0", 8);
    /* All values are strings, as the format wants them; "pt" tells the usual loaders that the tensors are plain
     * row-major ones. */
    api_text_put(text, "{\"__metadata__\":{\"format\":\"pt\"");
    if (request->opening.source.plan)
        add_plan(text, request);
    for (size_t i = 0; i < request->opening.n_members; i++) {
        /* A member that is a string is that text, any other its JSON. */
        api_text_name(text, request->opening.members[i].name);
        if (*request->opening.members[i].json == '"')
            api_text_add(text, request->opening.members[i].json, request->opening.members[i].n);
        else
            api_text_string_n(text, request->opening.members[i].json, request->opening.members[i].n);
    }
    api_text_put(text, "}");
    uint64_t end = 0;
    for (size_t i = 0; i < entries->n; i++) {
        const struct pe_output *output = entries->at[i].output;
        uint64_t begin = end;
        end += output->n_rows * output->row_len * pe_dtype_size(output->dtype);
        api_text_open(text, output->name, '{');
        api_text_member(text, "dtype", api_dtype_name(API_SAFETENSORS, output->dtype));
        api_text_name(text, "shape");
        api_text_shape(text, output->shape, output->rank);
        api_text_format(text, ",\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
    }
    /* Closes the header, pads it with spaces to a multiple of 8 and writes its length in front. */
    enum { PREFIX = 8 };
    api_text_put(text, "}");
    while (!text->state && text->n % 8)
        api_text_put(text, " ");
    for (unsigned i = 0; i < PREFIX && !text->state; i++)
        text->bytes[i] = (char)((text->n - PREFIX) >> 8 * i & 0xff);
    return end;
}

bool api_safetensors_size(struct api_request *request, uint64_t *n_bytes)
{
    struct entries entries;
    struct api_text text;
    sort(request, &entries);
    api_text_init(&text, API_TEXT_MAX);
    uint64_t n = add_header(&text, request, &entries);
    bool fine = !text.state || api_fail_text(&request->problem, &text);
    *n_bytes = text.n + n;
    api_text_drop(&text);
    return fine;
}

static bool open(struct api_request *request)
{
    struct entries entries;
    struct api_text text;
    sort(request, &entries);
    api_text_init(&text, API_TEXT_MAX);
    add_header(&text, request, &entries);
    if (!api_body_take(request, &text))
        return false;
    for (size_t i = 0; i < entries.n; i++)
        api_body_output(request->opening.stream, entries.at[i].index);
    return true;
}

const struct api_format api_format_safetensors;
const struct api_format api_format_safetensors = {
    .name = "safetensors",
    .media_type = "application/vnd.safetensors",
    .open = open,
    .width = api_bytes_width,
    .print = api_bytes_print,
};
