/* Chooses the reader of a body, and reads JSON to values: the scan extracts the lists of numbers, jansson reads the
 * rest, and its tree becomes pe_values. */
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/operations.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The state of one document's conversion. */
struct reader {
    struct api_request *request;
    const struct api_scan *scan;
    const double *numbers; /* owned by the request's arena by now */
    const char *text;      /* the document */
    const char *where;
    bool is_plain;         /* objects with data are no tensors */
    struct pe_value *into; /* NULL: the members are the request's fields */
    struct api_problem *problem;
    const char *name;             /* of the field being converted */
    char pointer[PE_POINTER_MAX]; /* of the value being converted */
};

/* ---- jansson's errors ---- */

/* The spelling of a number that JSON cannot express; many writers omit its quotes. */
static const char *number_hint(const char *words)
{
    bool is_bare = strstr(words, "'NaN") || strstr(words, "'Inf") || strstr(words, "'-'");
    return is_bare ? pe_text("; numbers that are not finite are written \"NaN\", \"Infinity\", \"-Infinity\"") : "";
}

static bool fail_json(const struct api_json_error *error, struct api_place place, const char *where,
                      struct api_problem *problem)
{
    if (error->no_memory)
        return api_fail_memory(problem);
    return api_fail(problem, error->status, "", "%s%s at line %zu, column %zu: %s%s", where,
                    pe_text(error->status == 400 ? "not JSON" : "JSON that cannot be read"), place.line, place.column,
                    error->text, number_hint(error->text));
}

bool api_json_check(struct api_arena *arena, const char *text, size_t n, const char *where, struct api_problem *problem)
{
    struct api_json_error error;
    bool is_json = api_json_load(arena, text, n, JSON_DECODE_ANY, &error);
    return is_json || fail_json(&error, api_place_of(text, n, error.at), where, problem);
}

/* ---- Values ---- */

static bool convert(struct reader *r, const json_t *json, struct pe_value *value);

/* A list of exactly one integer is a stand-in (json_scan.c). */
static const struct api_lifted *lifted_of(const struct reader *r, const json_t *list)
{
    const json_t *only = json_array_size(list) == 1 ? json_array_get(list, 0) : NULL;
    if (!json_is_integer(only))
        return NULL;
    size_t k = (size_t)json_integer_value(only);
    assert(k < r->scan->n_lifted);
    return &r->scan->lifted[k];
}

static bool has_parts(const json_t *json) { return json_is_object(json) || json_is_array(json); }

/* The place of the value with this name. A scalar's place is never needed. */
static bool convert_at(struct reader *r, const char *name, const json_t *json, struct pe_value *value)
{
    if (!has_parts(json))
        return convert(r, json, value);
    size_t depth = strlen(r->pointer);
    api_pointer_push(r->pointer, name, strlen(name));
    r->name = name;
    bool fine = convert(r, json, value);
    r->pointer[depth] = '\0';
    return fine;
}

static bool convert_list(struct reader *r, const json_t *list, struct pe_value *value)
{
    const struct api_lifted *lifted = lifted_of(r, list);
    if (lifted) {
        *value = (struct pe_value){.kind = PE_ARRAY, .from_text = true};
        value->array = (struct pe_tensor){.dtype = PE_F64, .rank = lifted->rank, .data = r->numbers + lifted->first};
        memcpy(value->array.shape, lifted->shape, sizeof value->array.shape);
        return !api_takes_prints(r->request) ||
               api_print_of_json(&r->request->arena, r->text + lifted->text_at, lifted->text_bytes, &value->print) ||
               api_fail_memory(r->problem);
    }
    size_t n = json_array_size(list);
    struct pe_value *items = api_arena_array(&r->request->arena, n, sizeof *items);
    if (!items)
        return api_fail_memory(r->problem);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        char number[24] = "";
        if (has_parts(item))
            snprintf(number, sizeof number, "%zu", i);
        if (!convert_at(r, number, item, &items[i]))
            return false;
    }
    *value = (struct pe_value){.kind = PE_LIST, .list = {.items = items, .n = n}};
    return true;
}

static bool is_inside(const struct reader *r, const char *name)
{
    const char *at = strstr(r->pointer, name);
    return at && (at[strlen(name)] == '\0' || at[strlen(name)] == '/');
}

/* A model's config.json states by null that a class's default does not hold, and the tensors of a GGUF file that one
 * was not sent, also in a list of configs; everywhere else null means absent. */
static bool keeps_null(const struct reader *r) { return is_inside(r, "/hf_config") || is_inside(r, "/gguf/tensors"); }

/* Members that are null are skipped, but for keeps_null(). */
static bool convert_members(struct reader *r, const json_t *object, struct pe_field *fields, size_t *n)
{
    *n = 0;
    /* The iterator's calls take a mutable object, which they do not change. */
    json_t *mutable = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
        if (json_is_null(json_object_iter_value(at)) && !keeps_null(r))
            continue;
        fields[*n].name = json_object_iter_key(at);
        if (!convert_at(r, fields[*n].name, json_object_iter_value(at), &fields[*n].value))
            return false;
        ++*n;
    }
    return true;
}

static bool pointer_ends(const struct reader *r, const char *name)
{
    size_t length = strlen(r->pointer), n = strlen(name);
    return length >= n && strcmp(r->pointer + length - n, name) == 0;
}

/* Each member is looked up among the keys. */
static bool check_keys(const struct reader *r, const json_t *object)
{
    size_t n = json_object_size(object);
    if (!pointer_ends(r, "/gguf") || n <= API_GGUF_MEMBERS_MAX)
        return true;
    return api_fail(r->problem, 422, r->pointer, "gguf has %zu members; allowed: at most %d", n, API_GGUF_MEMBERS_MAX);
}

static bool read_document(struct reader *r, const char *text, size_t n);

static bool convert_object(struct reader *r, const json_t *object, struct pe_value *value)
{
    if (!check_keys(r, object))
        return false;
    struct pe_field *fields = api_arena_array(&r->request->arena, json_object_size(object), sizeof *fields);
    const char *name = r->name;
    if (!fields)
        return api_fail_memory(r->problem);
    size_t n;
    if (!convert_members(r, object, fields, &n))
        return false;
    *value = (struct pe_value){.kind = PE_OBJECT, .object = {.fields = fields, .n = n}};
    /* A tensor's data may be null, which is no field: only the text shows it. */
    if (!r->is_plain && (json_object_get(object, "data") || api_tensor_is(value, r->pointer)))
        return api_tensor_read(r->request, name, value, r->pointer, r->problem);
    return true;
}

struct pe_value api_json_scalar(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT: return (struct pe_value){.kind = PE_OBJECT};
    case JSON_ARRAY: return (struct pe_value){.kind = PE_LIST, .list = {.n = json_array_size(json)}};
    case JSON_STRING: return (struct pe_value){.kind = PE_STRING, .string = json_string_value(json)};
    case JSON_INTEGER: return (struct pe_value){.kind = PE_INTEGER, .integer = json_integer_value(json)};
    case JSON_REAL: return (struct pe_value){.kind = PE_REAL, .real = json_real_value(json)};
    case JSON_TRUE:
    case JSON_FALSE: return (struct pe_value){.kind = PE_BOOLEAN, .boolean = json_is_true(json)};
    case JSON_NULL: break;
    }
    return (struct pe_value){.kind = PE_NULL};
}

/* Recursion is bounded by the scan's check of depth. */
static bool convert(struct reader *r, const json_t *json, struct pe_value *value)
{
    if (json_is_object(json))
        return convert_object(r, json, value);
    if (json_is_array(json))
        return convert_list(r, json, value);
    *value = api_json_scalar(json);
    return true;
}

/* ---- The document ---- */

static bool fail_kind(const struct reader *r)
{
    return api_fail(r->problem, 422, "", "%sthe request is JSON but not an object, which looks like %s", r->where,
                    r->is_plain ? "{\"inputs\":[…]}" : "{\"scheme\":\"rope\",\"len\":8}");
}

/* A document that is a string or number alone is JSON, though jansson reads such a document only with a flag. */
static bool is_scalar(struct api_arena *arena, const char *text, size_t n)
{
    struct api_json_error error;
    size_t begin = 0;
    while (begin < n && strchr(" \t\r\n", text[begin]))
        begin++;
    if (begin < n && (text[begin] == '{' || text[begin] == '[')) /* in these cases the first tree still exists */
        return false;
    json_t *json = api_json_load(arena, text, n, JSON_DECODE_ANY, &error);
    return json && !json_is_object(json) && !json_is_array(json);
}

static bool add_members(struct reader *r, const json_t *root)
{
    if (!json_is_object(root))
        return fail_kind(r);
    if (r->into)
        return convert_object(r, root, r->into);
    size_t n = json_object_size(root);
    if (n > API_FIELDS_MAX)
        return api_fail(r->problem, 422, "", "%sthe request has %zu names; allowed: at most %d", r->where, n,
                        API_FIELDS_MAX);
    struct pe_field *fields = api_arena_array(&r->request->arena, n, sizeof *fields);
    if (!fields)
        return api_fail_memory(r->problem);
    if (!convert_members(r, root, fields, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!api_request_add(r->request, fields[i].name, &fields[i].value, r->problem))
            return false;
    return true;
}

/* Names and strings stay in jansson's tree, which the request owns; the request also takes the scan's list of
 * numbers. */
static bool take_numbers(struct api_request *request, struct api_scan *scan)
{
    double *numbers = scan->numbers.values;
    request->arena.n_bytes += scan->numbers.n * sizeof *numbers;
    scan->numbers = (struct api_doubles){0};
    return !numbers || api_arena_own(&request->arena, numbers, free);
}

static bool read_skeleton(struct reader *r, struct api_scan *scan, const char *text, size_t n)
{
    struct api_json_error error;
    json_t *root = api_json_load(&r->request->arena, scan->skeleton, scan->skeleton_bytes, 0, &error);
    if (!root) {
        if (!error.no_memory && is_scalar(&r->request->arena, scan->skeleton, scan->skeleton_bytes))
            return fail_kind(r);
        return fail_json(&error, api_place_of(text, n, api_scan_origin(scan, error.at)), r->where, r->problem);
    }
    r->numbers = scan->numbers.values;
    if (!take_numbers(r->request, scan))
        return api_fail_memory(r->problem);
    if (scan->too_deep.status) {
        *r->problem = scan->too_deep;
        return false;
    }
    return add_members(r, root);
}

/* jansson 2.14 ignores a NUL byte after a number, so this function searches for one. JSON never contains a NUL. */
static bool check_nul(const char *text, size_t n, const char *where, struct api_problem *problem)
{
    const char *nul = memchr(text, '\0', n);
    if (!nul)
        return true;
    struct api_place place = api_place_of(text, n, (size_t)(nul - text));
    return api_fail(problem, 400, "", "%snot JSON at line %zu, column %zu: a NUL byte", where, place.line,
                    place.column);
}

bool api_json_check_size(uint64_t max, uint64_t n, const char *where, struct api_problem *problem)
{
    if (max == 0 || n <= max)
        return true;
    return api_fail(problem, 413, "",
                    "%sthe request's JSON has %" PRIu64 " bytes; allowed: at most %" PRIu64
                    " (the limit --max-json of this server); tensors sent as .npy, .npz or safetensors do not count",
                    where, n, max);
}

static bool read_document(struct reader *r, const char *text, size_t n)
{
    struct api_scan scan;
    size_t mark = api_json_mark(text, n);
    text += mark;
    n -= mark;
    if (!api_json_check_size(r->request->max_json, n, r->where, r->problem) ||
        !check_nul(text, n, r->where, r->problem))
        return false;
    api_scan_init(&scan);
    r->scan = &scan;
    r->text = text;
    bool fine = api_scan_text(&scan, text, n, r->where, r->problem) && read_skeleton(r, &scan, text, n);
    api_scan_drop(&scan);
    return fine;
}

bool api_json_read(struct api_request *request, const char *text, size_t n, const char *where,
                   struct api_problem *problem)
{
    struct reader r = {.request = request, .where = where, .problem = problem};
    return read_document(&r, text, n);
}

bool api_json_value_read(struct api_request *request, const char *text, size_t n, const char *at, const char *where,
                         struct pe_value *value, struct api_problem *problem)
{
    struct reader r = {.request = request, .where = where, .is_plain = true, .into = value, .problem = problem};
    snprintf(r.pointer, sizeof r.pointer, "%s", at);
    return read_document(&r, text, n);
}

bool api_json_read_plain(struct api_request *request, const char *text, size_t n, const char *where,
                         struct api_problem *problem)
{
    struct reader r = {.request = request, .where = where, .is_plain = true, .problem = problem};
    return read_document(&r, text, n);
}

/* ---- The reader of a body ---- */

static const struct api_input inputs[] = {
#define INPUT(media_type, name) {media_type, api_##name##_read},
#include "api/inputs/list.h"
#undef INPUT
};

enum { N_INPUTS = sizeof inputs / sizeof inputs[0] };

static bool fail_media_type(struct api_problem *problem, const char *pointer, const char *what)
{
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < N_INPUTS && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", inputs[i].media_type);
    api_fail(problem, 415, pointer, "%s; bodies are read as: %s", pe_text(what), list);
    api_problem_header(problem, "Accept-Post", list);
    return false;
}

static const struct api_input *input_find(const char *content_type)
{
    const char *start = content_type + strspn(content_type, " \t");
    size_t n = strcspn(start, "; \t");
    for (size_t i = 0; i < N_INPUTS; i++)
        if (strlen(inputs[i].media_type) == n && strncasecmp(inputs[i].media_type, start, n) == 0)
            return &inputs[i];
    return &inputs[0];
}

bool api_input_is_json(const char *content_type) { return !content_type || input_find(content_type) == &inputs[0]; }

bool api_input_read(struct api_request *request, const char *content_type, const char *bytes, size_t n,
                    struct api_problem *problem)
{
    const char *type = content_type ? content_type : "", *semicolon = strchr(type, ';');
    struct api_received body = {.bytes = bytes, .n = n, .parameters = semicolon ? semicolon + 1 : ""};
    return input_find(type)->read(request, &body, problem);
}

/* ---- What a body looks like ---- */

static bool npz_looks_like(const char *bytes, size_t n)
{
    enum { END_BYTES = 22 }; /* of the directory's end, which an empty archive has too */
    return n >= END_BYTES && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

/* A JSON text does not have '{' as its ninth byte after eight bytes that form a plausible length, except on purpose. */
static bool safetensors_looks_like(const char *bytes, size_t n)
{
    uint64_t length = 0;
    if (n <= 8 || bytes[8] != '{')
        return false;
    for (unsigned at = 8; at-- > 0;)
        length = length << 8 | (unsigned char)bytes[at];
    return length <= n - 8;
}

/* A body that is a text, of an endpoint that takes one as the field said: a config in place of a request, and what is
 * no JSON as curl sends a file, or with text/plain. */
static bool is_text(const struct api_request *request, const struct api_received *body)
{
    const char *type = request->call ? request->call->content_type : NULL;
    size_t begin = api_json_mark(body->bytes, body->n), n = type ? strcspn(type, "; ") : 0;
    while (begin < body->n && strchr(" \t\r\n", body->bytes[begin]))
        begin++;
    bool is_type = n && (strncasecmp(type, "text/plain", n) == 0 ||
                         strncasecmp(type, "application/x-www-form-urlencoded", n) == 0);
    if (!request->route || !request->route->takes_text || begin == body->n)
        return false;
    const char *text = body->bytes + begin;
    size_t length = body->n - begin;
    return *text == '{' ? api_pasted_is_config(text, length) || (is_type && api_pasted_is_dict(text, length)) : is_type;
}

/* Without this check, tensors sent with a meaningless type (curl's default is that of a form) would give unhelpful JSON
 * errors. */
bool api_json_body_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    if (api_npy_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a .npy file but its Content-Type is not application/x-npy");
    if (npz_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a .npz file but its Content-Type is not application/zip");
    if (safetensors_looks_like(body->bytes, body->n))
        return fail_media_type(
            problem, "", "the body is a safetensors file but its Content-Type is not application/vnd.safetensors");
    if (api_gguf_looks_like(body->bytes, body->n))
        return fail_media_type(problem, "", "the body is a GGUF file but its Content-Type is not application/x-gguf");
    if (is_text(request, body)) {
        struct pe_value value = {.kind = PE_STRING};
        if (memchr(body->bytes, '\0', body->n) || !api_gguf_is_text(body->bytes, body->n))
            return api_fail(problem, 400, "", "the body is no text in UTF-8");
        value.string = api_arena_string(&request->arena, body->bytes, body->n);
        if (!value.string)
            return api_fail_memory(problem);
        return api_request_add(request, "said", &value, problem);
    }
    return api_json_read(request, body->bytes, body->n, "", problem);
}

bool api_octets_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    if (api_npy_looks_like(body->bytes, body->n))
        return api_npy_read(request, body, problem);
    if (npz_looks_like(body->bytes, body->n))
        return api_npz_read(request, body, problem);
    if (safetensors_looks_like(body->bytes, body->n))
        return api_safetensors_read(request, body, problem);
    if (api_gguf_looks_like(body->bytes, body->n))
        return api_gguf_read(request, body, problem);
    return fail_media_type(problem, "",
                           "application/octet-stream must begin as a .npy, .npz, safetensors or GGUF file does");
}
