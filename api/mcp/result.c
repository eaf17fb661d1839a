/* What a tool answers: its structured content, the same as text, a link to all numbers or a picture. The tensors of an
 * answer are a format (formats/format.h) of its own: the endpoint checks, plans and limits as for JSON, and this file
 * prints the first numbers of each instead of all. */
#include "api/formats/format.h"
#include "api/mcp/mcp.h"
#include "api/numbers/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { URL_MAX = 8 * 1024 };

/* ---- The first numbers of a tensor ---- */

/* From the last axis to the first, as many as there is room for. Returns how many numbers that is. */
static size_t choose(const struct pe_output *output, int64_t values, uint64_t stops[PE_RANK_MAX])
{
    uint64_t left = (uint64_t)values, n = 1;
    for (unsigned axis = output->rank; axis-- > 0;) {
        uint64_t length = output->shape[axis], stop = length < left ? length : left;
        stop = stop ? stop : 1;
        stop = stop < length ? stop : length;
        stops[axis] = stop;
        left = stop ? left / stop : 0;
        n *= stop;
    }
    return (size_t)n;
}

/* Element at the given index of each leading axis, where index counts within the stops. */
static uint64_t place_of(const struct pe_output *output, const uint64_t *stops, uint64_t row)
{
    uint64_t index[PE_RANK_MAX] = {0}, place = 0;
    for (unsigned axis = output->rank - 1; axis-- > 0;) {
        index[axis] = row % stops[axis];
        row /= stops[axis];
    }
    for (unsigned axis = 0; axis < output->rank; axis++)
        place = place * output->shape[axis] + index[axis];
    return place;
}

/* Fills row by row of what is shown, so the rest of the tensor is never computed. */
static bool print_shown(struct api_text *text, const struct api_source *source, size_t i, const uint64_t *stops,
                        size_t n, int digits)
{
    const struct pe_output *output = api_source_output(source, i);
    size_t size = pe_dtype_size(output->dtype), last = output->rank ? (size_t)stops[output->rank - 1] : 1;
    struct api_elements elements;
    api_elements_init(&elements, output->dtype, stops, output->rank,
                      pe_dtype_is_real(output->dtype) ? digits : API_DIGITS_SHORTEST);
    char *numbers = aligned_alloc(64, (n * size + 64) / 64 * 64), *place = api_text_room(text, n * elements.width);
    for (size_t row = 0; numbers && place && row * last < n; row++)
        api_source_fill(source, i, output->rank ? place_of(output, stops, row) : 0, last, numbers + row * last * size);
    if (numbers && place)
        text->n += api_elements_print(&elements, numbers, 0, n, place);
    free(numbers);
    return numbers && place;
}

void api_mcp_put_tensors(struct api_text *text, const struct api_source *source, int64_t values, int digits,
                         bool *complete, uint64_t *bytes)
{
    *complete = true;
    *bytes = 0;
    api_text_open(text, "tensors", '{');
    for (size_t i = 0; i < api_source_count(source); i++) {
        const struct pe_output *output = api_source_output(source, i);
        uint64_t stops[PE_RANK_MAX], count = output->n_rows * output->row_len,
                                     n_bytes = count * pe_dtype_size(output->dtype);
        size_t n = values && count ? choose(output, values, stops) : 0;
        *bytes += n_bytes;
        *complete = *complete && n == count;
        api_text_open(text, output->name, '{');
        api_text_member(text, "dtype", pe_dtype_name(output->dtype));
        api_text_name(text, "shape");
        api_text_shape(text, output->shape, output->rank);
        api_text_format(text, ",\"bytes\":%" PRIu64, n_bytes);
        if (n) {
            api_text_put(text, ",\"shown\":[");
            for (unsigned axis = 0; axis < output->rank; axis++)
                api_text_format(text, "%s[0,%" PRIu64 "]", axis ? "," : "", stops[axis]);
            api_text_put(text, "]");
            api_text_put(text, ",\"data\":");
            if (!print_shown(text, source, i, stops, n, digits))
                text->state = API_TEXT_NO_MEMORY;
        }
        api_text_put(text, "}");
    }
    api_text_put(text, "}");
}

/* ---- The link ---- */

static void put_encoded(struct api_text *text, const char *bytes, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~,:";
    for (size_t i = 0; i < n; i++)
        if (bytes[i] && strchr(plain, bytes[i]))
            api_text_add(text, &bytes[i], 1);
        else
            api_text_format(text, "%%%02X", (unsigned char)bytes[i]);
}

/* A string without its quotes, everything else as the JSON that it is. */
static void put_value(struct api_arena *arena, struct api_text *text, const struct api_json_member *member)
{
    if (*member->value != '"') {
        put_encoded(text, member->value, member->value_bytes);
        return;
    }
    struct api_json_error error;
    json_t *value = api_json_load(arena, member->value, member->value_bytes, JSON_DECODE_ANY, &error);
    if (value)
        put_encoded(text, json_string_value(value), json_string_length(value));
    else
        text->state = API_TEXT_NO_MEMORY; /* it has been read before, so nothing else fails */
}

static bool is_named(const struct api_json_member *member, const char *name)
{
    return strlen(name) == member->name_bytes && memcmp(name, member->name, member->name_bytes) == 0;
}

/* What has no meaning in a file. */
static bool is_for_json(const struct api_json_member *member)
{
    bool is_its_own = false;
    for (const char *const *field = api_mcp_tensors.fields; *field; field++)
        is_its_own = is_its_own || is_named(member, *field);
    return is_its_own || is_named(member, "format");
}

/* Of several proxies, the one nearest to the client is named first. */
static bool has_https(const char *protocol)
{
    return protocol && strncasecmp(protocol, "https", 5) == 0 && (!protocol[5] || protocol[5] == ',');
}

char *api_mcp_url(const struct api_mcp_call *call, const char *format, struct api_text *answer)
{
    const struct api_call *outer = call->inner.route ? &call->inner : NULL;
    const struct api_host *host = call->request->host;
    struct api_json_members at = api_json_members(call->inner.body, call->inner.body_bytes);
    struct api_json_member member;
    struct api_text text;
    char *url = NULL;
    bool fine = (call->tool.route->methods & API_BY_GET) && outer && (host->public_url || outer->host);
    api_text_init(&text, URL_MAX);
    if (fine && host->public_url)
        api_text_put(&text, host->public_url);
    else if (fine)
        api_text_format(&text, "%s://%s", host->is_tls || has_https(outer->protocol) ? "https" : "http", outer->host);
    api_text_format(&text, "%s?", call->inner.path);
    while (fine && !text.state && api_json_next(&at, &member)) {
        if (is_for_json(&member) || (member.value_bytes == 4 && memcmp(member.value, "null", 4) == 0))
            continue;
        if (member.value_bytes > URL_MAX) {
            text.state = API_TEXT_FULL;
            break;
        }
        put_encoded(&text, member.name, member.name_bytes);
        api_text_put(&text, "=");
        put_value(&call->request->arena, &text, &member);
        api_text_put(&text, "&");
    }
    api_text_format(&text, "format=%s", format);
    if (fine && !text.state)
        url = api_arena_string(&call->request->arena, text.bytes, text.n);
    if (text.state == API_TEXT_NO_MEMORY || (fine && !text.state && !url))
        answer->state = API_TEXT_NO_MEMORY;
    api_text_drop(&text);
    return url;
}

/* ---- A result ---- */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(struct api_text *text, const unsigned char *bytes, size_t n)
{
    char *p = api_text_room(text, (n + 2) / 3 * 4);
    if (!p)
        return;
    text->n += (n + 2) / 3 * 4;
    for (size_t i = 0; i < n; i += 3, p += 4) {
        unsigned long three = (unsigned long)bytes[i] << 16 | (i + 1 < n ? (unsigned long)bytes[i + 1] << 8 : 0) |
                              (i + 2 < n ? bytes[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            p[k] = base64[three >> (18 - 6 * k) & 63];
        if (i + 1 >= n)
            p[2] = '=';
        if (i + 2 >= n)
            p[3] = '=';
    }
}

void api_mcp_result(struct api_text *text, const struct api_mcp_message *message, const char *structured, size_t n,
                    const struct api_mcp_link *link, const char *png, size_t png_bytes)
{
    struct api_text whole; /* the object as text */
    api_text_init(&whole, API_TEXT_MAX);
    api_text_put(&whole, "{");
    api_text_add(&whole, structured, n);
    api_text_put(&whole, "}");
    api_mcp_begin(text, message);
    api_text_open(text, "content", '[');
    api_text_put(text, "{\"type\":\"text\",\"text\":");
    api_text_string_n(text, whole.bytes, whole.n);
    api_text_put(text, "}");
    if (png) {
        api_text_put(text, ",{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"");
        put_base64(text, (const unsigned char *)png, png_bytes);
        api_text_put(text, "\"}");
    }
    if (link && link->url) {
        api_text_named(text, ",{\"type\":\"resource_link\",\"uri\":", link->url);
        api_text_member(text, "name", link->name);
        api_text_member(text, "mimeType", link->media_type);
        if (link->bytes)
            api_text_format(text, ",\"size\":%" PRIu64, link->bytes);
        api_text_put(text, "}");
    }
    api_text_put(text, "],\"structuredContent\":");
    api_text_add(text, whole.bytes, whole.n);
    api_text_put(text, ",\"isError\":false");
    api_mcp_end(text, message, NULL, 0);
    if (whole.state)
        text->state = whole.state;
    api_text_drop(&whole);
}

void api_mcp_result_problem(struct api_text *text, const struct api_mcp_message *message,
                            const struct api_problem *problem)
{
    struct api_text meta, sentence;
    api_text_init(&meta, API_TEXT_MAX);
    api_text_init(&sentence, API_TEXT_MAX);
    api_text_put(&meta, "\"posenc/problem\":");
    api_problem_print(&meta, problem);
    api_text_put(&sentence, problem->error.detail);
    if (problem->error.pointer[0])
        api_text_format(&sentence, " (at %s)", problem->error.pointer);
    api_mcp_begin(text, message);
    api_text_open(text, "content", '[');
    api_text_put(text, "{\"type\":\"text\",\"text\":");
    api_text_string_n(text, sentence.bytes, sentence.n);
    api_text_put(text, "}],\"isError\":true");
    api_mcp_end(text, message, meta.bytes, meta.n);
    text->state = meta.state ? meta.state : sentence.state ? sentence.state : text->state;
    api_text_drop(&meta);
    api_text_drop(&sentence);
}

/* ---- Tensors ---- */

/* The sentences of an analysis, a line each. */
static bool put_details(struct api_text *text, struct api_request *request)
{
    struct api_json_error error;
    size_t begin = text->n;
    for (size_t i = 0; i < request->opening.n_members; i++) {
        const struct api_member *member = &request->opening.members[i];
        json_t *results = strcmp(member->name, "results") == 0
                              ? api_json_load(&request->arena, member->json, member->n, 0, &error)
                              : NULL;
        for (size_t k = 0; k < json_array_size(results); k++) {
            const char *metric;
            json_t *value;
            json_object_foreach(json_array_get(results, k), metric, value)
            {
                const char *detail = json_string_value(json_object_get(value, "detail"));
                if (detail)
                    api_text_format(text, "%s%s: %s", text->n > begin ? "\n" : "", metric, detail);
            }
        }
    }
    api_text_add(text, "\n", text->n > begin && api_source_count(&request->opening.source) > 0);
    return text->n > begin;
}

static void put_summary(struct api_text *text, const struct api_mcp_call *call, struct api_request *request,
                        const char *url, bool complete, uint64_t bytes)
{
    const struct api_source *source = &request->opening.source;
    size_t n = api_source_count(source);
    if (!call->request->plan && put_details(text, request) && !n)
        return;
    api_text_put(text, call->request->plan ? pe_plan_scheme(call->request->plan)->name : call->tool.name);
    api_text_put(text, ":");
    for (size_t i = 0; i < n && i < 8; i++) {
        const struct pe_output *output = api_source_output(source, i);
        api_text_format(text, "%s %s %s ", i ? "," : "", output->name, pe_dtype_name(output->dtype));
        api_text_shape(text, output->shape, output->rank);
    }
    api_text_format(text, pe_text("%s; %" PRIu64 " bytes in all"),
                    n > 8 ? ", …"
                    : n   ? ""
                          : pe_text(" no tensors"),
                    bytes);
    if (complete) {
        api_text_put(text, ".");
        return;
    }
    if (call->own.values && call->has_data)
        api_text_format(text, pe_text(", the first %" PRId64 " numbers of each are shown"), call->own.values);
    if (url)
        api_text_put(text, pe_text("; GET the url for the rest."));
    else
        api_text_format(text, pe_text(". POST %s with the same arguments gives all numbers."), call->inner.path);
}

static bool open_tensors(struct api_request *request)
{
    const struct api_mcp_call *call = request->about;
    /* npy holds one tensor, of a dtype that NumPy has. */
    bool is_one = api_source_count(&request->opening.source) == 1;
    const char *file = is_one && api_dtype_name(API_NUMPY, api_source_output(&request->opening.source, 0)->dtype)
                           ? "npy"
                           : "safetensors";
    int digits = (int)api_form_integer(request->form.digits, API_DIGITS_SHORTEST);
    struct api_text tensors, summary, whole, text;
    bool complete;
    uint64_t bytes;
    struct api_mcp_link link = {.name = call->tool.name,
                                .media_type = *file == 'n' ? "application/x-npy" : "application/vnd.safetensors"};
    struct api_text *all[] = {&tensors, &summary, &whole, &text};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        api_text_init(all[i], API_TEXT_MAX);
    link.url = api_source_count(&request->opening.source) ? api_mcp_url(call, file, &text) : NULL;
    api_mcp_put_tensors(&tensors, &request->opening.source, request->form.data ? call->own.values : 0, digits,
                        &complete, &bytes);
    put_summary(&summary, call, request, link.url, complete, bytes);
    api_text_put(&whole, "\"summary\":");
    api_text_string_n(&whole, summary.bytes, summary.n);
    /* The members beside the tensors, as JSON has them. */
    const struct pe_plan *plan = request->opening.source.plan;
    if (plan)
        api_json_plan(&whole, request);
    for (size_t i = 0; i < request->opening.n_members; i++) {
        api_text_name(&whole, request->opening.members[i].name);
        api_text_add(&whole, request->opening.members[i].json, request->opening.members[i].n);
    }
    api_json_rest(&whole, plan);
    api_text_put(&whole, ",");
    api_text_add(&whole, tensors.bytes, tensors.n);
    api_text_format(&whole, ",\"complete\":%s,\"url\":", complete ? "true" : "false");
    if (link.url)
        api_text_string(&whole, link.url);
    else
        api_text_put(&whole, "null");
    api_mcp_result(&text, &call->message, whole.bytes, whole.n, &link, NULL, 0);
    text.state = tensors.state ? tensors.state : whole.state ? whole.state : summary.state ? summary.state : text.state;
    for (size_t i = 0; i + 1 < sizeof all / sizeof *all; i++)
        api_text_drop(all[i]);
    return api_body_take(request, &text);
}

static const char *const fields[] = {"digits", "data", NULL};

const struct api_format api_mcp_tensors = {
    .name = "json",
    .media_type = "application/json",
    .fields = fields,
    .is_text = true,
    .open = open_tensors,
};

/* What the picture shows: the first tensor. */
void api_mcp_put_picture(struct api_text *text, const struct api_mcp_call *call, const struct api_reply *reply,
                         const char *url)
{
    const struct api_plan_body *body = (const struct api_plan_body *)reply->body;
    const struct pe_output *output = api_source_output(&body->source, 0);
    const struct pe_plan *plan = call->request->plan;
    struct api_text shape;
    api_text_init(&shape, API_TEXT_MAX);
    api_text_shape(&shape, output->shape, output->rank);
    api_text_format(text, "\"summary\":\"%s%s%s %.*s, %s\"", plan ? pe_plan_scheme(plan)->name : "", plan ? " " : "",
                    output->name, (int)shape.n, shape.bytes ? shape.bytes : "", pe_dtype_name(output->dtype));
    if (plan) {
        api_text_put(text, ",\"config\":");
        api_text_value(text, pe_plan_config(plan));
    }
    api_text_member(text, "output", output->name);
    api_text_format(text, ",\"shape\":%.*s,\"url\":", (int)shape.n, shape.bytes ? shape.bytes : "");
    if (url)
        api_text_string(text, url);
    else
        api_text_put(text, "null");
    if (shape.state)
        text->state = shape.state;
    api_text_drop(&shape);
}
