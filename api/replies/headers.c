/* Computes entity tags from everything that determines an answer's bytes, and reads conditions and ranges from headers.
 *
 * An answer is a function of its plan and format, so its tag can be computed before a number is: If-None-Match costs a
 * hash of the request. The tag has everything that may change a byte: fields, tensors, the digests of stored files,
 * presets by their contents, the form and the format. Fields count in any order: their hashes are added.
 *
 * The hash is not cryptographic: a client that forges a collision could only spoil its own cache. Conditions and ranges
 * follow RFC 9110, §13 and §14; with If-Range a part is sent only of the same bytes. The headers that let pages of
 * other origins read an answer are here too. */
#include "api/replies/replies.h"
#include "api/api.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- A name for the bytes ---- */

/* Two hashes over words of eight bytes, similar to FNV, except that each step folds the upper half, which the product
 * mixes best, onto the lower half. They differ in their initial value and factor. Together they have 128 bits, so two
 * answers will not get the same tag. */
struct hash {
    uint64_t a, b;
};

static void add_word(struct hash *h, uint64_t word)
{
    h->a = (h->a ^ word) * 0x9e3779b97f4a7c15;
    h->a ^= h->a >> 32;
    h->b = (h->b ^ word) * 0xbf58476d1ce4e5b9;
    h->b ^= h->b >> 29;
}

/* The last word holds the remaining bytes, padded with zeros; then the number of bytes is added. */
static void add_bytes(struct hash *h, const void *bytes, size_t n)
{
    enum {
        ASK_BYTES = 1 << 22
    }; /* a millisecond of hashing, after which it checks whether the client is still connected */
    const char *p = bytes;
    uint64_t word;
    for (size_t left = n; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        if (left % ASK_BYTES < sizeof word && pe_is_cancelled())
            return; /* the tag's value does not matter then, because it is not read */
        memcpy(&word, p, sizeof word);
        add_word(h, word);
    }
    size_t rest = n % sizeof word;
    word = 0;
    if (rest)
        memcpy(&word, p, rest);
    add_word(h, word ^ (uint64_t)n << 56);
}

static void add_number(struct hash *h, int64_t x) { add_word(h, (uint64_t)x); }

/* Includes the terminating NUL, so that "ab","c" differs from "a","bc". */
static void add_string(struct hash *h, const char *s) { add_bytes(h, s, strlen(s) + 1); }

static void add_type(struct hash *h, const struct pe_tensor *t)
{
    add_number(h, (int64_t)t->dtype);
    add_number(h, (int64_t)t->rank);
    add_bytes(h, t->shape, t->rank * sizeof *t->shape);
}

static void add_tensor(struct hash *h, const struct pe_tensor *t)
{
    uint64_t n = 0;
    pe_shape_count(t->shape, t->rank, &n);
    add_type(h, t);
    add_bytes(h, t->data, (size_t)n * pe_dtype_size(t->dtype));
}

static void add_value(struct hash *h, const struct pe_value *v);

static void add_field(struct hash *h, const struct pe_field *field)
{
    add_string(h, field->name);
    add_value(h, &field->value);
}

static void add_value(struct hash *h, const struct pe_value *v)
{
    add_number(h, (int64_t)v->kind);
    switch (v->kind) {
    case PE_NULL: break;
    case PE_BOOLEAN: add_number(h, v->boolean); break;
    case PE_INTEGER: add_number(h, v->integer); break;
    case PE_REAL: add_bytes(h, &v->real, sizeof v->real); break;
    case PE_STRING: add_string(h, v->string); break;
    case PE_ARRAY: add_tensor(h, &v->array); break;
    case PE_LIST:
        for (size_t i = 0; i < v->list.n; i++)
            add_value(h, &v->list.items[i]);
        break;
    case PE_OBJECT:
        for (size_t i = 0; i < v->object.n; i++)
            add_field(h, &v->object.fields[i]);
        break;
    case PE_PRESET: /* A preset that is not built in may change while it keeps its name. */
        add_string(h, v->preset->name);
        add_string(h, v->preset->source ? v->preset->source : "");
        add_string(h, v->preset->note ? v->preset->note : "");
        for (size_t i = 0; i < v->preset->layers->n_fields; i++)
            add_field(h, &v->preset->layers->fields[i]);
        break;
    }
}

static bool is_within(const struct pe_value *value, const struct api_stored_file *stored)
{
    const char *data = value->kind == PE_ARRAY ? value->array.data : NULL;
    return stored && data && data >= stored->bytes && data < stored->bytes + stored->n_bytes;
}

/* A stored tensor is identified by its file's digest and its place in the file, so that a gigabyte need not be read
 * again. */
static void add_stored(struct hash *h, const struct pe_field *field, const struct api_stored_file *stored)
{
    add_string(h, field->name);
    add_type(h, &field->value.array);
    add_string(h, stored->sha256);
    add_number(h, (const char *)field->value.array.data - stored->bytes);
}

/* The order of fields does not matter: their hashes are added. */
static struct hash fields_of(const struct api_request *request)
{
    struct hash sum = {0, 0};
    for (size_t i = 0; i < request->n_fields; i++) {
        struct hash h = {0xcbf29ce484222325, 0x84222325cbf29ce4};
        if (is_within(&request->fields[i].value, request->stored))
            add_stored(&h, &request->fields[i], request->stored);
        else
            add_field(&h, &request->fields[i]);
        sum.a += h.a;
        sum.b += h.b;
    }
    return sum;
}

/* All sixteen digits; returns their end. printf would take half of the time of a tag. */
static char *put_hex(char *to, uint64_t x)
{
    for (int i = 0; i < 16; i++, x <<= 4)
        *to++ = "0123456789abcdef"[x >> 60];
    return to;
}

static void print(struct hash h, char *etag)
{
    *etag++ = '"';
    etag = put_hex(put_hex(etag, h.a), h.b);
    memcpy(etag, "\"", 2);
}

void api_etag_of_bytes(const char *bytes, size_t n, char *etag)
{
    struct hash h = {0xcbf29ce484222325, 0x84222325cbf29ce4};
    add_bytes(&h, bytes, n);
    print(h, etag);
}

/* A release may correct a value. Parts are added one by one, so that their order counts. */
void api_etag_print(struct api_request *request, const char *config, size_t n)
{
    struct hash h = {0xcbf29ce484222325, 0x84222325cbf29ce4}, fields = fields_of(request);
    const char *commit = request->host->commit, *endpoint = request->key ? request->key : request->tagged_as;
    add_string(&h, PE_VERSION);
    add_string(&h, commit ? commit : "");
    add_number(&h, (int64_t)request->operation);
    add_string(&h, request->format->name);
    add_string(&h, request->format->maker ? request->format->maker() : "");
    add_bytes(&h, config, n);
    add_bytes(&h, &fields, sizeof fields);
    if (request->pasted)
        add_string(&h, request->pasted);
    /* Every field of the form except the format; the tag contains the name of the chosen format instead. */
    for (const struct pe_param *row = api_form_params(); row->name; row++)
        if (row->offset != offsetof(struct api_form, format))
            add_bytes(&h, (const char *)&request->form + row->offset, api_form_size(row));
    for (size_t i = 0; i < request->form.n_outputs; i++)
        add_string(&h, request->form.outputs[i]);
    if (request->form.has_no_outputs)
        add_string(&h, "");
    for (size_t i = 0; i < request->form.n_slices; i++) {
        const struct pe_slice *slice = &request->form.slices[i];
        add_string(&h, slice->output ? slice->output : "");
        for (unsigned axis = 0; axis < slice->n_cuts; axis++) {
            const struct pe_cut *cut = &slice->cuts[axis];
            const int64_t numbers[] = {axis, cut->is_index, cut->start, cut->stop, cut->step};
            add_bytes(&h, numbers, sizeof numbers);
        }
    }
    if (endpoint) {
        add_string(&h, endpoint);
        add_string(&h, request->parts ? api_lang_words[request->lang] : "");
    }
    for (size_t i = 0; i < request->n_parts; i++) {
        fields = fields_of(request->parts[i]);
        add_bytes(&h, &fields, sizeof fields);
    }
    if (request->is_of_machine)
        add_string(&h, pe_machine_fuses() ? "fused" : "");
    if (request->is_of_kernels)
        add_string(&h, pe_isa_name(pe_isa()));
    print(h, request->etag);
}

bool api_etag_is_among(const char *list, const char *etag)
{
    size_t n = strlen(etag);
    if (!list)
        return false;
    for (const char *p = list; *p;) {
        p += strspn(p, " \t,");
        if (*p == '*')
            return true;
        p += strncmp(p, "W/", 2) == 0 ? 2 : 0;
        if (strncmp(p, etag, n) == 0 && strchr(" \t,", p[n])) /* includes the NUL */
            return true;
        const char *end = *p == '"' ? strchr(p + 1, '"') : NULL;
        p = end ? end + 1 : p + strcspn(p, ",");
    }
    return false;
}

const char *api_cache_control(const struct api_request *request, enum api_access access)
{
    bool is_public =
        access == API_ACCESS_OPEN && !api_request_find(request, "tokens") && api_request_is_lasting(request);
    return !is_public ? "private, no-cache" : "public, max-age=86400";
}

/* ---- Ranges ---- */

/* Reads digits as a number; false if there are none, or if the number exceeds 2^63. */
static bool read_number(const char **p, uint64_t *x)
{
    const char *start = *p;
    for (*x = 0; **p >= '0' && **p <= '9'; (*p)++) {
        if (*x > (UINT64_C(1) << 59))
            return false;
        *x = *x * 10 + (uint64_t)(**p - '0');
    }
    return *p > start;
}

static enum api_range_kind read_range(const char *header, uint64_t length, struct api_range *range)
{
    uint64_t first = 0, last = 0;
    if (!header || strncasecmp(header, "bytes=", 6) != 0)
        return API_RANGE_NONE;
    const char *p = header + 6;
    p += strspn(p, " \t");
    bool has_first = read_number(&p, &first);
    if (*p++ != '-')
        return API_RANGE_NONE;
    bool has_last = read_number(&p, &last);
    p += strspn(p, " \t");
    if (*p || (!has_first && !has_last) || (has_first && has_last && last < first))
        return API_RANGE_NONE;
    if (has_first ? first >= length : last == 0 || length == 0)
        return API_RANGE_UNSATISFIABLE;
    range->first = has_first ? first : last < length ? length - last : 0;
    range->last = has_first && has_last && last < length ? last : length - 1;
    return API_RANGE_PART;
}

enum api_range_kind api_range_asked(const struct api_call *call, const char *etag, uint64_t length,
                                    struct api_range *range)
{
    bool is_same = !call->if_range || strcmp(call->if_range, etag) == 0;
    return is_same && strcmp(call->method, "GET") == 0 ? read_range(call->range, length, range) : API_RANGE_NONE;
}

struct api_reply *api_range_add(struct api_reply *reply, enum api_range_kind kind, const struct api_range *range,
                                uint64_t length)
{
    char text[96];
    reply = api_reply_header(reply, "Accept-Ranges", "bytes");
    if (kind != API_RANGE_PART || reply->status != 200)
        return reply;
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->first, range->last, length);
    reply->status = 206;
    return api_reply_header(reply, "Content-Range", text);
}

struct api_reply *api_range_refusal(uint64_t length)
{
    struct api_problem problem;
    char text[64];
    snprintf(text, sizeof text, "bytes */%" PRIu64, length);
    api_fail(&problem, 416, "", "the range begins after the end of the body, which has %" PRIu64 " bytes", length);
    api_problem_header(&problem, "Content-Range", text);
    return api_reply_problem(&problem);
}

/* ---- Cross-origin requests: none are allowed unless the host names origins (--cors-origin) ---- */

#define EXPOSED "ETag, Posenc-Tensors, Posenc-Fits, Content-Range, Server-Timing, X-Request-Id"
#define INFERENCE_HEADER ", Inference-Header-Content-Length" /* states where the JSON of an inference ends */

static bool is_inference(const struct api_call *call)
{
    return call->path && strncmp(call->path, "/v2", 3) == 0 && (!call->path[3] || call->path[3] == '/');
}

/* Whether text is one of the words of the list. */
static bool is_among(const char *list, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = list ? list : ""; *p;) {
        p += strspn(p, " ,");
        size_t m = strcspn(p, " ,");
        if (m == n && strncmp(p, text, n) == 0)
            return true;
        p += m;
    }
    return false;
}

/* A connection has 10 KiB for the request's head and the answer's head together: a request head of full size could not
 * be repeated in the answer, and the client would get none. */
enum { SAID_AGAIN_MAX = 1024 };

/* Whether text consists of header names with commas and spaces between them, and so may be copied into a header of the
 * answer. Browsers send nothing else. */
static bool are_names(const char *list)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~, ";
    size_t n = list ? strspn(list, alphabet) : 0;
    return n > 0 && n <= SAID_AGAIN_MAX && list[n] == '\0';
}

static bool is_preflight(const struct api_call *call)
{
    return call->origin && call->access_method && strcmp(call->method, "OPTIONS") == 0;
}

bool api_cors_allows(const struct api_host *host, const struct api_call *call)
{
    const char *list = host->cors_origins, *origin = call->origin;
    return origin && *origin && (is_among(list, "*") || (!strpbrk(origin, " ,") && is_among(list, origin)));
}

/* Caches serve an answer to pages of other origins than the one that asked for it first. So the origins that the
 * answer depends on must not show in whether it has these headers: with "*" every answer has them, otherwise every
 * answer has Vary, even to a request without Origin (Fetch standard, "CORS protocol and HTTP caches"). */
struct api_reply *api_cors(struct api_reply *reply, const struct api_host *host, const struct api_call *call)
{
    bool is_any = is_among(host->cors_origins, "*");
    if (!host->cors_origins || !*host->cors_origins)
        return reply;
    if (!is_any)
        reply = api_reply_vary(reply, "Origin");
    if (!is_any && !api_cors_allows(host, call))
        return reply;
    reply = api_reply_header(reply, "Access-Control-Allow-Origin", is_any ? "*" : call->origin);
    return is_preflight(call) ? reply
                              : api_reply_header(reply, "Access-Control-Expose-Headers",
                                                 is_inference(call) ? EXPOSED INFERENCE_HEADER : EXPOSED);
}

/* A preflight request always gets the headers that it asks for: they permit nothing that a client without a browser
 * could not do. */
struct api_reply *api_options(const struct api_call *call, const char *allowed)
{
    const char *headers = call->access_headers;
    struct api_reply *reply = api_reply_header(api_reply_empty(204), "Allow", allowed);
    if (!is_preflight(call))
        return reply;
    if (!are_names(headers))
        headers = is_inference(call) ? "Content-Type" INFERENCE_HEADER : "Content-Type";
    reply = api_reply_header(reply, "Access-Control-Allow-Methods", allowed);
    reply = api_reply_header(reply, "Access-Control-Allow-Headers", headers);
    return api_reply_header(reply, "Access-Control-Max-Age", "86400");
}
