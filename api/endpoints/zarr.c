/* GET /zarr/{query}/{key}: an answer of /encode as a Zarr store, which many readers read in parallel. {query} is the
 * query of GET /encode; {key} is a text that describes the arrays, or a chunk of one of them. A chunk is the answer to
 * a request with a slice; an edge chunk is filled up, since all chunks of an array have one size. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/numbers/numbers.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CHUNK_USUAL (UINT64_C(4) << 20)
#define CHUNK_MAX (UINT64_C(1) << 40)

/* ---- Chunks: their shape, their keys, and what of the tensor is in them ---- */

/* A part of one array's grid: the shape of the array and of its chunks, each of rank axes. */
struct grid {
    unsigned rank;
    uint64_t shape[PE_RANK_MAX], chunk[PE_RANK_MAX]; /* a chunk has at least one element along each axis */
    uint64_t chunk_bytes;
};

/* Trailing axes that fit chunk_bytes together are whole, the axis before them is cut, those before it are 1. This rule
 * must never change: the chunks of two releases would not fit together. */
static struct grid grid_of(const struct pe_output *output, uint64_t chunk_bytes)
{
    struct grid grid = {.rank = output->rank, .chunk_bytes = pe_dtype_size(output->dtype)};
    bool is_cut = false;
    for (unsigned axis = output->rank; axis-- > 0;) {
        uint64_t n = output->shape[axis] ? output->shape[axis] : 1, room = chunk_bytes / grid.chunk_bytes;
        grid.shape[axis] = output->shape[axis];
        grid.chunk[axis] = is_cut || room == 0 ? 1 : n < room ? n : room;
        is_cut |= grid.chunk[axis] < n;
        grid.chunk_bytes *= grid.chunk[axis];
    }
    return grid;
}

/* A number below limit without leading zeros; returns what follows it, NULL if there is none. */
static const char *number_parse(const char *text, uint64_t limit, uint64_t *value)
{
    *value = 0;
    if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (*value > limit / 10)
            return NULL;
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return *value < limit ? text : NULL;
}

/* Reads a chunk's key, one number for each axis as in "1.0.3"; "0" for a tensor without axes. False: it is no key of a
 * chunk in the grid. */
static bool chunk_parse(const struct grid *grid, const char *key, uint64_t *place)
{
    uint64_t zero;
    if (grid->rank == 0)
        return (key = number_parse(key, 1, &zero)) && !*key;
    for (unsigned axis = 0; axis < grid->rank; axis++) {
        if (axis > 0 && *key++ != '.')
            return false;
        uint64_t n = grid->shape[axis] / grid->chunk[axis] + (grid->shape[axis] % grid->chunk[axis] != 0);
        key = number_parse(key, n, &place[axis]);
        if (!key)
            return false;
    }
    return !*key;
}

/* The elements of the chunk that exist; n_missing: those that an edge chunk has beyond the array's end. All of them
 * follow the others, since only the first axis that is cut can be short. */
static struct pe_slice chunk_slice(const struct grid *grid, const uint64_t *place, uint64_t *n_missing)
{
    struct pe_slice slice = {.n_cuts = grid->rank};
    uint64_t n_whole = 1, n_here = 1;
    for (unsigned axis = 0; axis < grid->rank; axis++) {
        uint64_t start = place[axis] * grid->chunk[axis], left = grid->shape[axis] - start;
        uint64_t n = left < grid->chunk[axis] ? left : grid->chunk[axis];
        slice.cuts[axis] = (struct pe_cut){.start = (int64_t)start, .stop = (int64_t)(start + n), .step = 1};
        n_whole *= grid->chunk[axis];
        n_here *= n;
    }
    *n_missing = n_whole - n_here;
    return slice;
}

/* ---- The texts about the arrays, versions 2 and 3 of the format ---- */

/* The store of a plan's outputs. */
struct store {
    const struct pe_plan *plan;
    uint64_t chunk_bytes;
};

/* The element that a chunk has where it has no data: NaN, the least integer, or false. dst has room for 8 bytes. */
static void fill_value(enum pe_dtype dtype, void *dst)
{
    double value = pe_dtype_is_real(dtype) ? (double)NAN : dtype == PE_BOOL ? 0 : -(double)INFINITY;
    pe_convert(dtype, dst, PE_F64, &value, 1);
}

static size_t own_name(const struct store *store, const struct pe_output *output, unsigned axis, const char **name)
{
    const struct pe_output_row *row = pe_plan_scheme(store->plan)->outputs;
    for (; row && row->name; row++)
        if (strcmp(row->name, output->name) == 0)
            return pe_output_axis(row, axis, name);
    return 0;
}

/* Whether an earlier axis has the name: of this array, or of another one with another length. Readers such as xarray
 * allow neither. */
static bool is_taken(const struct store *store, size_t i, unsigned axis, const char *name, size_t n_name)
{
    uint64_t length = pe_plan_output(store->plan, i)->shape[axis];
    for (size_t k = 0; k <= i; k++) {
        const struct pe_output *output = pe_plan_output(store->plan, k);
        const char *other;
        for (unsigned a = 0; a < (k < i ? output->rank : axis); a++)
            if (own_name(store, output, a, &other) == n_name && memcmp(other, name, n_name) == 0 &&
                (k == i || output->shape[a] != length))
                return true;
    }
    return false;
}

static void add_axes(struct api_text *text, const char *member, const struct store *store, size_t i)
{
    const struct pe_output *output = pe_plan_output(store->plan, i);
    api_text_open(text, member, '[');
    for (unsigned axis = 0; axis < output->rank; axis++) {
        const char *name = "";
        size_t n = own_name(store, output, axis, &name);
        api_text_name(text, NULL);
        if (n > 0 && !is_taken(store, i, axis, name, n))
            api_text_string_n(text, name, n);
        else
            api_text_format(text, "\"%s_%u\"", output->name, axis);
    }
    api_text_close(text, ']');
}

static void add_array(struct api_text *text, const struct store *store, size_t i, unsigned version)
{
    const struct pe_output *output = pe_plan_output(store->plan, i);
    struct grid grid = grid_of(output, store->chunk_bytes);
    char descr[API_DESCR_BYTES], value[sizeof(double)], printed[API_NUMBER_MAX];
    api_text_open(text, NULL, '{');
    api_text_count(text, "zarr_format", version);
    if (version == 3)
        api_text_member(text, "node_type", "array");
    api_text_name(text, "shape");
    api_text_shape(text, grid.shape, grid.rank);
    if (version == 2) {
        api_text_name(text, "chunks");
        api_text_shape(text, grid.chunk, grid.rank);
        api_text_member(text, "dtype", api_numpy_descr(output->dtype, descr));
        api_text_put(text, ",\"compressor\":null,\"filters\":null,\"order\":\"C\"");
    } else {
        api_text_member(text, "data_type", api_dtype_name(API_ZARR, output->dtype));
        api_text_put(text, ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":");
        api_text_shape(text, grid.chunk, grid.rank);
        api_text_put(text, "}},\"chunk_key_encoding\":{\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}}");
    }
    fill_value(output->dtype, value);
    api_text_name(text, "fill_value");
    api_text_add(text, printed,
                 (size_t)(api_numbers_print(printed, output->dtype, value, 1, API_DIGITS_SHORTEST) - printed));
    if (version == 3) {
        api_text_put(text,
                     ",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"attributes\":{}");
        add_axes(text, "dimension_names", store, i);
    }
    api_text_close(text, '}');
}

static void add_attributes(struct api_text *text, const struct store *store, size_t i)
{
    api_text_open(text, NULL, '{');
    add_axes(text, "_ARRAY_DIMENSIONS", store, i);
    api_text_close(text, '}');
}

/* Writes the text of a key of output number i. False: there is no such key. */
static bool put_text_of_output(struct api_text *text, const struct store *store, size_t i, const char *key)
{
    if (strcmp(key, ".zattrs") == 0)
        add_attributes(text, store, i);
    else if (strcmp(key, ".zarray") == 0 || strcmp(key, "zarr.json") == 0)
        add_array(text, store, i, *key == '.' ? 2 : 3);
    else
        return false;
    return true;
}

static void add_config(struct api_text *text, const struct store *store)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "scheme", pe_plan_scheme(store->plan)->name);
    api_text_name(text, "config");
    api_text_value(text, pe_plan_config(store->plan));
    api_text_close(text, '}');
}

/* The same of a key of the whole store. */
static bool put_text_of_store(struct api_text *text, const struct store *store, const char *key)
{
    size_t n = pe_plan_n_outputs(store->plan);
    if (strcmp(key, ".zgroup") == 0) {
        api_text_put(text, "{\"zarr_format\":2}");
    } else if (strcmp(key, ".zattrs") == 0) {
        add_config(text, store);
    } else if (strcmp(key, ".zmetadata") == 0) {
        api_text_put(text,
                     "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":{\"zarr_format\":2},\".zattrs\":");
        add_config(text, store);
        for (size_t i = 0; i < n; i++) {
            const char *name = pe_plan_output(store->plan, i)->name;
            api_text_format(text, ",\"%s/.zarray\":", name);
            add_array(text, store, i, 2);
            api_text_format(text, ",\"%s/.zattrs\":", name);
            add_attributes(text, store, i);
        }
        api_text_put(text, "}}");
    } else if (strcmp(key, "zarr.json") == 0) {
        api_text_put(text, "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":");
        add_config(text, store);
        api_text_put(text, ",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{");
        for (size_t i = 0; i < n; i++) {
            api_text_name(text, pe_plan_output(store->plan, i)->name);
            add_array(text, store, i, 3);
        }
        api_text_put(text, "}}}");
    } else {
        return false;
    }
    return true;
}

static const struct api_format chunk_format;

struct reading {
    struct api_request *request;
    struct api_call call; /* as received, with the store's query */
    struct store store;
};

/* ---- The path ---- */

static const char prefix[] = "/zarr/";

/* A path has been decoded once, a query has not: what it would decode is encoded again. */
static char *add_encoded(char *dst, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '%' || text[i] == '+') {
            memcpy(dst, text[i] == '%' ? "%25" : "%2B", 3);
            dst += 3;
        } else {
            *dst++ = text[i];
        }
    }
    return dst;
}

static bool take_chunk(struct reading *r, const char *digits, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n && digits[i] >= '0' && digits[i] <= '9' && bytes <= CHUNK_MAX; i++)
        bytes = bytes * 10 + (uint64_t)(digits[i] - '0');
    bool is_number = n > 0 && strspn(digits, "0123456789") >= n;
    if (r->store.chunk_bytes)
        return api_fail(&r->request->problem, 400, "/chunk", "chunk is given twice");
    r->store.chunk_bytes = bytes;
    if (is_number && bytes >= 1 && bytes <= CHUNK_MAX)
        return true;
    return api_fail(&r->request->problem, 422, "/chunk", "chunk is the bytes of a chunk: an integer from 1 to %" PRIu64,
                    CHUNK_MAX);
}

/* Splits the path; the query goes to the arena without its chunk. */
static bool read_path(struct reading *r)
{
    const char *text = r->call.path + strlen(prefix), *end = strchr(text, '/');
    char *query = api_arena_alloc(&r->request->arena, 3 * (size_t)(end - text) + 1), *at = query;
    if (!query)
        return api_fail_memory(&r->request->problem);
    r->request->key = end + 1;
    while (text < end) {
        size_t n = strcspn(text, "&/");
        bool is_chunk = n >= 6 && strncmp(text, "chunk=", 6) == 0;
        if (is_chunk && !take_chunk(r, text + 6, n - 6))
            return false;
        if (!is_chunk) {
            if (at > query)
                *at++ = '&';
            at = add_encoded(at, text, n);
        }
        text += n + (text[n] == '&');
    }
    *at = '\0';
    r->call.query = query;
    if (!r->store.chunk_bytes)
        r->store.chunk_bytes = CHUNK_USUAL;
    return true;
}

/* ---- The request ---- */

static bool fail_form(struct reading *r, const char *pointer)
{
    return api_fail(
        &r->request->problem, 422, pointer,
        "%s does not belong to a Zarr store, which has its own form and is read in parts; GET /encode accepts it",
        pointer + 1);
}

static bool check_form(struct reading *r)
{
    const struct api_form *form = &r->request->form;
    if (api_form_format(form))
        return fail_form(r, "/format");
    if (form->digits != PE_UNSET_INT)
        return fail_form(r, "/digits");
    if (!form->data)
        return fail_form(r, "/data");
    if (form->n_slices)
        return fail_form(r, "/slice");
    if (form->reduce)
        return fail_form(r, "/reduce");
    return api_form_check(form, r->request->format, &r->request->problem);
}

static bool check_outputs(struct reading *r)
{
    for (size_t i = 0; i < pe_plan_n_outputs(r->request->plan); i++) {
        const struct pe_output *output = pe_plan_output(r->request->plan, i);
        struct grid grid = grid_of(output, r->store.chunk_bytes);
        if (!api_dtype_name(API_ZARR, output->dtype))
            return api_fail(&r->request->problem, 406, "/dtype",
                            "Zarr has no type for %s; take f16 or f32, or the format safetensors of /encode",
                            pe_dtype_name(output->dtype));
        if (grid.chunk_bytes > r->request->host->max_answer)
            return api_fail(&r->request->problem, 413, "/chunk",
                            "a chunk has %" PRIu64 " bytes; allowed: at most %" PRIu64
                            " (the limit --max-answer of this server)",
                            grid.chunk_bytes, r->request->host->max_answer);
    }
    return true;
}

static bool zarr_body(struct api_request *request)
{
    struct reading *r = request->own;
    *r = (struct reading){.request = request, .call = *request->call};
    if (r->call.query && *r->call.query)
        return api_fail(&request->problem, 400, "", "the query of a Zarr store is in the path: /zarr/{query}/{key}");
    request->call = &r->call;
    request->format = &chunk_format;
    request->is_cacheable = request->fills_later = true;
    return read_path(r) && api_take_body(request);
}

static bool zarr_form(struct api_request *request)
{
    return api_form_read(request, &request->form, &request->problem) && check_form(request->own);
}

/* ---- Chunks ---- */

/* The elements beyond the array's end, at the end of the chunk. */
struct padding {
    uint64_t n_bytes;
    size_t element_bytes;
    char element[8];
};

static bool open_chunk(struct api_request *request)
{
    const struct padding *padding = request->about;
    request->opening.stream->own = api_arena_alloc(&request->arena, sizeof *padding);
    if (!request->opening.stream->own)
        return api_fail_memory(&request->problem);
    memcpy(request->opening.stream->own, padding, sizeof *padding);
    api_body_output(request->opening.stream, 0);
    api_body_filled(request->opening.stream, 1, (size_t)padding->n_bytes);
    return true;
}

static size_t print_chunk(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first,
                          size_t n, char *dst)
{
    const struct padding *padding = stream->own;
    if (segment->output)
        return api_bytes_print(stream, segment, first, n, dst);
    for (size_t i = 0; i < n; i += padding->element_bytes)
        memcpy(dst + i, padding->element, padding->element_bytes);
    return n;
}

static const struct api_format chunk_format = {
    .name = "zarr",
    .media_type = "application/octet-stream",
    .open = open_chunk,
    .width = api_bytes_width,
    .print = print_chunk,
};

static bool fail_key(struct reading *r)
{
    return api_fail(&r->request->problem, 404, "",
                    "this store has no key %.128s; its keys are .zgroup, .zattrs, .zmetadata and zarr.json, and of "
                    "each output .zarray, .zattrs, zarr.json and its chunks",
                    r->request->key);
}

/* Plans again, now only the chunk. */
static bool open_part(struct reading *r, const struct pe_output *output, const char *key)
{
    struct grid grid = grid_of(output, r->store.chunk_bytes);
    uint64_t place[PE_RANK_MAX], n_missing;
    if (!chunk_parse(&grid, key, place))
        return fail_key(r);
    struct padding padding = {.element_bytes = pe_dtype_size(output->dtype)};
    fill_value(output->dtype, padding.element);
    struct pe_slice slice = chunk_slice(&grid, place, &n_missing);
    padding.n_bytes = n_missing * padding.element_bytes;
    r->request->form.outputs[0] = api_arena_string(&r->request->arena, output->name, strlen(output->name));
    if (!r->request->form.outputs[0])
        return api_fail_memory(&r->request->problem);
    r->request->form.n_outputs = 1;
    r->request->form.slices = &slice;
    r->request->form.n_slices = grid.rank > 0;
    r->request->about = &padding;
    pe_plan_free(r->request->plan);
    r->request->plan = NULL;
    bool fine = api_compute_check(r->request) && api_compute(r->request);
    r->request->form.slices = NULL;
    r->request->about = NULL;
    return fine;
}

/* ---- The two kinds of keys ---- */

/* The output whose name is the key's first part; its number, and the rest of the key. */
static bool find_output(const struct reading *r, size_t *i, const char **rest)
{
    for (*i = 0; *i < pe_plan_n_outputs(r->store.plan); (*i)++) {
        const char *name = pe_plan_output(r->store.plan, *i)->name;
        size_t n = strlen(name);
        *rest = r->request->key + n + 1;
        if (strncmp(r->request->key, name, n) == 0 && r->request->key[n] == '/')
            return true;
    }
    return false;
}

/* The reply of a text in JSON about the plan; takes the text. */
static struct api_reply *answer_text(struct api_request *request, struct api_text *text)
{
    return api_reply_set_scheme(api_compute_document(request, api_json_type, text),
                                pe_plan_scheme(request->plan)->name);
}

static struct api_reply *zarr_build(struct api_request *request)
{
    struct reading *r = request->own;
    if (!api_compute_build(request) || !check_outputs(r))
        return NULL;
    r->store.plan = request->plan;
    /* NULL: the problem is set. */
    struct api_text text;
    const char *rest;
    size_t i;
    api_text_init(&text, API_TEXT_MAX);
    if (put_text_of_store(&text, &r->store, r->request->key))
        return answer_text(r->request, &text);
    bool is_found = find_output(r, &i, &rest);
    if (is_found && put_text_of_output(&text, &r->store, i, rest))
        return answer_text(r->request, &text);
    api_text_drop(&text);
    if (!is_found)
        fail_key(r);
    else if (open_part(r, pe_plan_output(r->store.plan, i), rest))
        return api_compute_reply(r->request);
    return NULL;
}

const struct api_steps api_zarr = {
    {zarr_body, api_take_preset, api_take_query_scheme, api_take_preset, api_take_query, api_take_weights, zarr_form},
    api_compute_check,
    zarr_build,
    sizeof(struct reading)};
