/* Replies: a status, headers, and a body; freed by one call. */
#include "api/replies/replies.h"

#include <assert.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

const char api_json_type[] = "application/json";
static const char problem_type[] = "application/problem+json";

/* Finished bytes, in one piece. */
struct bytes_body {
    struct api_body body; /* must be first */
    char *owned;          /* freed with it; NULL: the bytes last longer */
};

static size_t bytes_piece(struct api_body *body, uint64_t i, char *dst)
{
    (void)i;
    memcpy(dst, body->bytes, body->piece_max);
    return body->piece_max;
}

static void bytes_drop(struct api_body *body) { free(((struct bytes_body *)body)->owned); }

static struct bytes_body bytes_body_of(const char *bytes, size_t n, char *owned)
{
    return (struct bytes_body){
        .body =
            {.length = n, .n_pieces = n > 0, .piece_max = n, .bytes = bytes, .piece = bytes_piece, .drop = bytes_drop},
        .owned = owned};
}

struct reply {
    struct api_reply base;    /* must be first: the server holds its address */
    atomic_int n_more_owners; /* owners besides the first; they may be in several threads */
    struct bytes_body bytes;  /* its body, once that is finished */
};

/* ---- Without memory ---- */

/* The reply when there is no memory for any other. */
static const char no_memory_body[] = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
                                     "\"detail\":\"not enough memory for this request; try again later\","
                                     "\"error\":\"not enough memory for this request; try again later\"}";
static char one_second[] = "1", no_store[] = "no-store";

static struct reply no_memory; /* which names itself */
static struct reply no_memory = {
    .base = {.status = 503,
             .content_type = problem_type,
             .headers = {{"Retry-After", one_second}, {"Cache-Control", no_store}},
             .n_headers = 2,
             .body = &no_memory.bytes.body,
             .pace = API_PACE_READY,
             .route = "",
             .scheme = "",
             .format = "problem"},
    .bytes = {.body = {.length = sizeof no_memory_body - 1,
                       .n_pieces = 1,
                       .piece_max = sizeof no_memory_body - 1,
                       .bytes = no_memory_body,
                       .piece = bytes_piece}},
};

/* Its body is empty. */
static struct reply *reply_new(int status, const char *content_type)
{
    struct reply *reply = calloc(1, sizeof *reply);
    if (!reply)
        return NULL;
    reply->bytes = bytes_body_of(NULL, 0, NULL);
    reply->base = (struct api_reply){.status = status,
                                     .content_type = content_type,
                                     .body = &reply->bytes.body,
                                     .pace = API_PACE_READY,
                                     .route = "",
                                     .scheme = "",
                                     .format = "json",
                                     .lang = pe_spoken()};
    return reply;
}

/* ---- Whole replies ---- */

struct api_reply *api_reply_bytes(int status, const char *content_type, char *bytes, size_t n)
{
    struct reply *reply = bytes ? reply_new(status, content_type) : NULL;
    if (!reply) {
        free(bytes);
        return &no_memory.base;
    }
    reply->bytes = bytes_body_of(bytes, n, bytes);
    return &reply->base;
}

struct api_reply *api_reply_lasting(int status, const char *content_type, const char *bytes, size_t n)
{
    struct reply *reply = reply_new(status, content_type);
    if (!reply)
        return &no_memory.base;
    reply->bytes = bytes_body_of(bytes, n, NULL);
    return &reply->base;
}

struct api_lasting {
    size_t n;
    char etag[API_ETAG_MAX];
    char bytes[];
};

/* If two threads print it at the same time, the text of only one is stored. */
static const struct api_lasting *lasting_store(struct api_lasting *_Atomic *place, struct api_lasting *made)
{
    struct api_lasting *there = NULL;
    if (made)
        api_etag_of_bytes(made->bytes, made->n, made->etag);
    if (!made || atomic_compare_exchange_strong(place, &there, made))
        return made;
    free(made);
    return there;
}

static const struct api_lasting *document_print(struct api_document *document, const void *about)
{
    struct api_text text;
    struct api_lasting *made = NULL;
    api_text_init(&text, API_TEXT_MAX);
    document->print(&text, about);
    if (!text.state)
        made = malloc(sizeof *made + text.n);
    if (made) {
        made->n = text.n;
        memcpy(made->bytes, text.bytes, text.n);
    }
    api_text_drop(&text);
    return lasting_store(&document->lasting, made);
}

enum { GZIP_WINDOW = 16 + MAX_WBITS, GZIP_MEMORY = 9 }; /* 16: with the header and the checksum of gzip */

/* NULL: no memory. */
static struct api_lasting *gzip(const char *bytes, size_t n, int level)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
    if (deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    size_t room = deflateBound(&z, (uLong)n);
    struct api_lasting *made = malloc(sizeof *made + room);
    if (made) {
        z.next_out = (Bytef *)made->bytes;
        z.avail_out = (uInt)room;
        bool is_whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
        assert(is_whole); /* room is an upper bound */
        (void)is_whole;
        made->n = z.total_out;
    }
    deflateEnd(&z);
    return made;
}

static const struct api_lasting *document_gzip(struct api_document *document, const struct api_lasting *plain)
{
    const struct api_lasting *there = atomic_load(&document->gzip);
    return there ? there : lasting_store(&document->gzip, gzip(plain->bytes, plain->n, Z_BEST_COMPRESSION));
}

/* Catalogues are hundreds of kilobytes of words, a tenth of that when compressed. */
struct api_reply *api_reply_document(struct api_document *document, const void *about, const struct api_call *call,
                                     const char *cache_control)
{
    const struct api_lasting *plain = atomic_load(&document->lasting);
    plain = plain ? plain : document_print(document, about);
    if (!plain)
        return &no_memory.base;
    bool is_asked = call && api_coding_choose(call->accept_encoding) == API_GZIP;
    const struct api_lasting *packed = is_asked ? document_gzip(document, plain) : NULL;
    const struct api_lasting *sent = packed ? packed : plain;
    bool is_there = call && api_etag_is_among(call->if_none_match, sent->etag);
    struct api_reply *reply =
        is_there ? api_reply_empty(304) : api_reply_lasting(200, api_json_type, sent->bytes, sent->n);
    if (!call || reply->status >= 400)
        return reply;
    if (packed && !is_there)
        reply = api_reply_header(reply, "Content-Encoding", "gzip");
    return api_reply_tagged(reply, sent->etag, cache_control);
}

/* A list that is longer is not compressed, because it would be in memory as a whole. */
enum { PACKED_BYTES_MAX = 1 << 20 };

/* The pieces of a body, compressed. NULL: no memory. */
static struct api_lasting *pack(struct api_body *body)
{
    char *whole = malloc((size_t)body->length);
    size_t n = 0;
    for (uint64_t i = 0; whole && i < body->n_pieces; i++)
        n += body->piece(body, i, whole + n);
    struct api_lasting *made = whole ? gzip(whole, n, Z_BEST_SPEED) : NULL;
    free(whole);
    return made;
}

struct api_reply *api_reply_packed(struct api_body *body, const struct api_call *call)
{
    bool is_asked = body && body->length > 0 && body->length <= PACKED_BYTES_MAX &&
                    api_coding_choose(call->accept_encoding) == API_GZIP;
    struct api_lasting *packed = is_asked ? pack(body) : NULL;
    struct reply *made = packed ? reply_new(200, api_json_type) : NULL;
    struct api_reply *reply = made ? &made->base : api_reply_of(200, api_json_type, body, 0);
    if (made) {
        made->bytes = bytes_body_of(packed->bytes, packed->n, (char *)packed);
        body->drop(body);
    } else {
        free(packed);
    }
    if (reply->status >= 400)
        return reply;
    if (made)
        reply = api_reply_header(reply, "Content-Encoding", "gzip");
    return api_reply_vary(reply, "Accept-Encoding");
}

struct api_reply *api_reply_empty(int status)
{
    struct reply *reply = reply_new(status, NULL);
    return reply ? &reply->base : &no_memory.base;
}

const char *api_reply_media_type(const struct api_reply *reply, const char *path)
{
    bool is_protocol = path && strncmp(path, "/v2", 3) == 0 && (path[3] == '/' || !path[3]);
    return is_protocol && reply->content_type == problem_type ? api_json_type : reply->content_type;
}

struct api_reply *api_reply_text(int status, const char *content_type, struct api_text *text)
{
    if (!text->state && !text->bytes) /* nothing was added: no failed allocation */
        return api_reply_lasting(status, content_type, "", 0);
    if (!text->state)
        return api_reply_bytes(status, content_type, text->bytes, text->n);
    struct api_problem problem;
    api_fail_text(&problem, text);
    api_text_drop(text);
    return api_reply_problem(&problem);
}

struct api_reply *api_reply_problem(const struct api_problem *problem)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    api_problem_print(&text, problem);
    if (text.state) {
        api_text_drop(&text);
        return &no_memory.base;
    }
    struct api_reply *reply =
        api_reply_set_format(api_reply_bytes(problem->status, problem_type, text.bytes, text.n), "problem");
    reply = api_reply_uncached(reply);
    if (pe_spoken() != PE_EN) {
        reply = api_reply_header(reply, "Content-Language", api_lang_words[pe_spoken()]);
        reply = api_reply_header(reply, "Vary", "Accept-Language");
    }
    if (problem->header)
        reply = api_reply_header(reply, problem->header, problem->header_value);
    bool has_time = problem->header && strcmp(problem->header, "Retry-After") == 0;
    if ((problem->status == 503 || problem->status == 429) && !has_time)
        reply = api_reply_header(reply, "Retry-After", "1");
    return reply;
}

struct api_reply *api_refusal(int status, const char *detail)
{
    struct api_problem problem;
    api_fail(&problem, status, "", "%s", pe_text(detail));
    return api_reply_problem(&problem);
}

/* Our own JSON is read back: a refusal is rare, and every other would have to carry the sentence beside its body. */
void api_refusal_print(const struct api_reply *reply, char *sentence, size_t n_bytes)
{
    const char *bytes = reply->body->bytes;
    json_t *root = bytes ? json_loadb(bytes, (size_t)reply->body->length, 0, NULL) : NULL;
    const char *detail = json_string_value(json_object_get(root, "detail"));
    const char *pointer = json_string_value(json_object_get(root, "pointer"));
    snprintf(sentence, n_bytes, "%s%s%s%s", detail ? detail : "out of memory", pointer ? " (at " : "",
             pointer ? pointer : "", pointer ? ")" : "");
    json_decref(root);
}

/* ---- Replies in pieces ---- */

struct api_reply *api_reply_of(int status, const char *content_type, struct api_body *body, uint64_t memory)
{
    struct reply *reply = body ? reply_new(status, content_type) : NULL;
    if (!reply) {
        if (body)
            body->drop(body);
        return &no_memory.base;
    }
    reply->base.body = body;
    reply->base.memory = memory;
    reply->base.computes = body->n_pieces == UINT64_MAX;
    if (reply->base.computes)
        reply->base.pace = API_PACE_LIVE;
    else if (body->length > API_LIGHT_BYTES)
        reply->base.pace = API_PACE_WORKER;
    return &reply->base;
}

/* A short body may need much memory, e.g. when blocks are reduced or a network runs for each element; that memory is
 * freed with the reply. */
static bool is_quickly_made(const struct api_plan_body *stream)
{
    return stream->request->n_taken <= API_LIGHT_MEMORY && api_source_work(&stream->source) <= API_LIGHT_WORK;
}

struct api_reply *api_reply_stream(struct api_request *request)
{
    struct api_plan_body *stream = request->opening.stream;
    const struct api_format *format = stream->format;
    const char *header = request->opening.header;
    api_request_hold(request);
    struct api_reply *reply = api_reply_of(200, api_format_type(format), &stream->body, request->n_taken);
    if (reply->status != 200)
        return reply;
    bool is_quick = api_source_pace(&stream->source) == PE_QUICK;
    bool is_ready = stream->is_light && is_quickly_made(stream);
    reply->pace = is_ready ? API_PACE_READY : is_quick && !format->is_text ? API_PACE_QUICK : API_PACE_WORKER;
    reply->n_finished = format->is_picture ? stream->body.length : 0;
    reply->is_repeatable = api_request_is_lasting(request);
    reply->computes = !format->is_text || !is_quick;
    reply->scheme = request->plan ? pe_plan_scheme(request->plan)->name : "";
    reply->format = format->name;
    return header ? api_reply_header(reply, header, request->opening.header_value) : reply;
}

/* ---- All replies ---- */

struct api_reply *api_reply_header(struct api_reply *reply, const char *name, const char *value)
{
    if (reply == &no_memory.base)
        return reply; /* the constant reply has all its headers, and never changes */
    assert(reply->n_headers < API_HEADERS_MAX);
    char *copy = strdup(value);
    if (!copy)
        return api_reply_without_memory(reply);
    reply->headers[reply->n_headers++] = (struct api_header){.name = name, .value = copy};
    return reply;
}

static struct api_header *find_header(const struct api_reply *reply, const char *name)
{
    size_t i = 0;
    while (i < reply->n_headers && strcasecmp(reply->headers[i].name, name) != 0)
        i++;
    return i < reply->n_headers ? (struct api_header *)(uintptr_t)&reply->headers[i] : NULL;
}

const char *api_reply_find(const struct api_reply *reply, const char *name)
{
    const struct api_header *header = find_header(reply, name);
    return header ? header->value : NULL;
}

struct api_reply *api_reply_vary(struct api_reply *reply, const char *name)
{
    struct api_header *vary = find_header(reply, "Vary");
    if (!vary)
        return api_reply_header(reply, "Vary", name);
    size_t n = strlen(vary->value) + strlen(name) + sizeof ", ";
    char *joined = malloc(n);
    if (!joined)
        return api_reply_without_memory(reply);
    snprintf(joined, n, "%s, %s", vary->value, name);
    free(vary->value);
    vary->value = joined;
    return reply;
}

struct api_reply *api_reply_uncached(struct api_reply *reply)
{
    return api_reply_header(reply, "Cache-Control", "no-store");
}

struct api_reply *api_reply_unbuffered(struct api_reply *reply)
{
    return api_reply_header(api_reply_uncached(reply), "X-Accel-Buffering", "no");
}

struct api_reply *api_reply_tagged(struct api_reply *reply, const char *etag, const char *cache_control)
{
    reply = api_reply_header(reply, "ETag", etag);
    reply = api_reply_header(reply, "Cache-Control", cache_control);
    return api_reply_vary(reply, "Accept-Encoding");
}

struct api_reply *api_reply_set_language(struct api_reply *reply, enum pe_lang lang)
{
    if (reply->status >= 400)
        return reply;
    return api_reply_vary(api_reply_header(reply, "Content-Language", api_lang_words[lang]), "Accept-Language");
}

struct api_reply *api_reply_set_route(struct api_reply *reply, const char *route)
{
    if (reply != &no_memory.base) /* because all threads share it */
        reply->route = route;
    return reply;
}

struct api_reply *api_reply_set_format(struct api_reply *reply, const char *format)
{
    if (reply != &no_memory.base)
        reply->format = format;
    return reply;
}

struct api_reply *api_reply_set_scheme(struct api_reply *reply, const char *scheme)
{
    if (reply != &no_memory.base)
        reply->scheme = scheme;
    return reply;
}

struct api_reply *api_reply_set_method(struct api_reply *reply, const char *method, const char *tool)
{
    if (reply != &no_memory.base) {
        reply->method = method;
        reply->tool = tool;
    }
    return reply;
}

struct api_reply *api_reply_without_memory(struct api_reply *reply)
{
    api_reply_free(reply);
    return &no_memory.base;
}

void api_reply_finish(struct api_reply *reply, char *body, size_t n)
{
    struct reply *r = (struct reply *)reply;
    assert(r != &no_memory && reply->pace == API_PACE_READY && n > 0);
    reply->body->drop(reply->body);
    r->bytes = bytes_body_of(body, n, body);
    reply->body = &r->bytes.body;
}

struct api_reply *api_reply_hold(struct api_reply *reply)
{
    if (reply != &no_memory.base)
        atomic_fetch_add_explicit(&((struct reply *)reply)->n_more_owners, 1, memory_order_relaxed);
    return reply;
}

void api_reply_free(struct api_reply *reply)
{
    if (!reply || reply == &no_memory.base)
        return;
    struct reply *r = (struct reply *)reply;
    if (atomic_fetch_sub_explicit(&r->n_more_owners, 1, memory_order_acq_rel) > 0)
        return;
    for (size_t i = 0; i < reply->n_headers; i++)
        free(reply->headers[i].value);
    reply->body->drop(reply->body);
    free(r);
}
