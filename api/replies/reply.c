/* Replies: complete at once, or streamed from a plan; freed by one call. */
#include "api/replies/reply.h"
#include "api/replies/weights_list.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char api_json_type[] = "application/json";
static const char problem_type[] = "application/problem+json";

struct reply {
    struct api_reply face;    /* must be first: the server holds its address */
    atomic_int n_more_owners; /* owners besides the first; they may be in several threads */
    char *bytes;              /* the body of a complete reply, unless that body is constant */
    struct api_work *work;    /* or the request and plan that it is streamed from */
    const struct api_store *store;
    const struct api_weights *weights; /* or the stored file that it sends, held */
    size_t first;                      /* offset in the file of its first byte */
    struct api_listing *listing;       /* or the list that it prints */
    struct api_live *live;             /* or what computes it now */
};

/* ---- Without memory ---- */

/* The reply when there is no memory for any other. */
static const char no_memory_body[] = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
                                     "\"detail\":\"not enough memory for this request; try again later\","
                                     "\"error\":\"not enough memory for this request; try again later\"}";
static char one_second[] = "1", no_store[] = "no-store";

static struct reply no_memory = {
    .face = {.status = 503,
             .content_type = problem_type,
             .headers = {{"Retry-After", one_second}, {"Cache-Control", no_store}},
             .n_headers = 2,
             .length = sizeof no_memory_body - 1,
             .n_pieces = 1,
             .piece_max = sizeof no_memory_body - 1,
             .is_light = true,
             .body = no_memory_body,
             .route = "",
             .scheme = "",
             .format = "problem"},
};

static struct reply *reply_new(int status, const char *content_type)
{
    struct reply *reply = calloc(1, sizeof *reply);
    if (!reply)
        return NULL;
    reply->face = (struct api_reply){
        .status = status, .content_type = content_type, .is_light = true, .route = "", .scheme = "", .format = "json"};
    return reply;
}

/* ---- Whole replies ---- */

struct api_reply *api_reply_bytes(int status, const char *content_type, char *bytes, size_t n)
{
    struct reply *reply = bytes ? reply_new(status, content_type) : NULL;
    if (!reply) {
        free(bytes);
        return &no_memory.face;
    }
    reply->bytes = bytes;
    reply->face.body = bytes;
    reply->face.length = n;
    reply->face.n_pieces = n > 0;
    reply->face.piece_max = n;
    return &reply->face;
}

struct api_reply *api_reply_lasting(int status, const char *content_type, const char *bytes, size_t n)
{
    struct reply *reply = reply_new(status, content_type);
    if (!reply)
        return &no_memory.face;
    reply->face.body = bytes;
    reply->face.length = n;
    reply->face.n_pieces = n > 0;
    reply->face.piece_max = n;
    return &reply->face;
}

struct api_lasting {
    size_t n;
    char bytes[];
};

/* If two threads print it at the same time, the text of only one is stored. */
static struct api_lasting *document_print(struct api_document *document, const void *about)
{
    struct api_text text;
    struct api_lasting *there = NULL, *made = NULL;
    api_text_init(&text, API_TEXT_MAX);
    document->print(&text, about);
    if (!text.state)
        made = malloc(sizeof *made + text.n);
    if (made) {
        made->n = text.n;
        memcpy(made->bytes, text.bytes, text.n);
    }
    api_text_drop(&text);
    if (!made || atomic_compare_exchange_strong(&document->lasting, &there, made))
        return made;
    free(made);
    return there;
}

struct api_reply *api_reply_document(struct api_document *document, const void *about)
{
    const struct api_lasting *lasting = atomic_load(&document->lasting);
    lasting = lasting ? lasting : document_print(document, about);
    return lasting ? api_reply_lasting(200, api_json_type, lasting->bytes, lasting->n) : &no_memory.face;
}

struct api_reply *api_reply_empty(int status)
{
    struct reply *reply = reply_new(status, NULL);
    return reply ? &reply->face : &no_memory.face;
}

const char *api_reply_media_type(const struct api_reply *reply, const char *path)
{
    bool is_protocol = path && strncmp(path, "/v2", 3) == 0 && (path[3] == '/' || !path[3]);
    return is_protocol && reply->content_type == problem_type ? api_json_type : reply->content_type;
}

struct api_reply *api_reply_text(int status, const char *content_type, struct api_text *text)
{
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
        return &no_memory.face;
    }
    struct api_reply *reply =
        api_reply_set_format(api_reply_bytes(problem->status, problem_type, text.bytes, text.n), "problem");
    bool fine = api_reply_header(reply, "Cache-Control", "no-store");
    if (problem->header)
        fine = fine && api_reply_header(reply, problem->header, problem->header_value);
    bool has_time = problem->header && strcmp(problem->header, "Retry-After") == 0;
    if ((problem->status == 503 || problem->status == 429) && !has_time)
        fine = fine && api_reply_header(reply, "Retry-After", "1");
    if (fine)
        return reply;
    api_reply_free(reply);
    return &no_memory.face;
}

struct api_reply *api_refusal(int status, const char *detail)
{
    struct api_problem problem;
    api_fail(&problem, status, "", "%s", detail);
    return api_reply_problem(&problem);
}

/* ---- Streams ---- */

struct api_work *api_work_new(enum pe_operation_id operation)
{
    struct api_work *work = malloc(sizeof *work);
    if (!work)
        return NULL;
    api_request_init(&work->request, operation);
    work->plan = NULL;
    work->stream = (struct api_body){0};
    work->host = NULL;
    work->n_taken = work->n_read = work->body_bytes = 0;
    work->refusal.status = 0;
    return work;
}

/* The plan borrows from the request, so it goes first. */
void api_work_free(struct api_work *work)
{
    if (!work)
        return;
    pe_plan_free(work->plan);
    api_request_drop(&work->request);
    if (work->n_taken)
        work->host->give_memory(work->n_taken);
    free(work);
}

/* A short body may need much memory, e.g. when blocks are reduced or a network runs for each element; that memory is
 * freed with the reply. */
static bool is_quickly_made(const struct api_work *work)
{
    return work->n_taken <= API_LIGHT_MEMORY && api_source_work(&work->stream.source) <= API_LIGHT_WORK;
}

struct api_reply *api_reply_stream(struct api_work *work, const char *header, const char *header_value)
{
    const struct api_format *format = work->stream.format;
    struct reply *reply = reply_new(200, format->content_type ? format->content_type : format->media_type);
    if (!reply) {
        api_work_free(work);
        return &no_memory.face;
    }
    const struct api_body *stream = &work->stream;
    bool is_quick = api_source_pace(&stream->source) == PE_QUICK;
    reply->work = work;
    reply->face.length = stream->length;
    reply->face.n_pieces = stream->n_pieces;
    reply->face.piece_max = stream->piece_max;
    reply->face.is_light = stream->is_light && is_quickly_made(work);
    reply->face.memory = work->n_taken;
    reply->face.n_finished = format->is_picture ? stream->length : 0;
    reply->face.is_quick = !stream->format->is_text && is_quick;
    reply->face.is_repeatable = api_request_is_lasting(&work->request);
    reply->face.computes = !stream->format->is_text || !is_quick;
    reply->face.scheme = work->plan ? pe_plan_scheme(work->plan)->name : "";
    reply->face.format = stream->format->name;
    if (!header || api_reply_header(&reply->face, header, header_value))
        return &reply->face;
    api_reply_free(&reply->face);
    return &no_memory.face;
}

/* ---- Stored files ---- */

struct api_reply *api_reply_weights(const struct api_store *store, const struct api_weights *weights, size_t first,
                                    size_t n)
{
    struct reply *reply = reply_new(200, "application/vnd.safetensors");
    if (!reply) {
        store->release(store->self, weights);
        return &no_memory.face;
    }
    reply->store = store;
    reply->weights = weights;
    reply->first = first;
    reply->face.format = "safetensors";
    reply->face.length = n;
    reply->face.n_pieces = (n + API_PIECE_BYTES - 1) / API_PIECE_BYTES;
    reply->face.piece_max = n < API_PIECE_BYTES ? n : API_PIECE_BYTES;
    reply->face.is_light = n <= API_LIGHT_BYTES;
    return &reply->face;
}

static size_t weights_piece(const struct reply *reply, uint64_t i, char *dst)
{
    size_t begin = (size_t)i * API_PIECE_BYTES, rest = (size_t)reply->face.length - begin;
    size_t n = rest < API_PIECE_BYTES ? rest : API_PIECE_BYTES;
    memcpy(dst, reply->weights->bytes + reply->first + begin, n);
    return n;
}

/* Pieces are small, because a client may leave many such replies unread. */
struct api_reply *api_reply_listing(int status, struct api_listing *listing)
{
    struct reply *reply = listing ? reply_new(status, api_json_type) : NULL;
    if (!reply) {
        api_listing_free(listing);
        return &no_memory.face;
    }
    uint64_t n = api_listing_bytes(listing);
    reply->listing = listing;
    reply->face.length = n;
    reply->face.n_pieces = (n + API_LIGHT_BYTES - 1) / API_LIGHT_BYTES;
    reply->face.piece_max = n < API_LIGHT_BYTES ? (size_t)n : API_LIGHT_BYTES;
    reply->face.is_light = n <= API_LIGHT_BYTES;
    return &reply->face;
}

static size_t listing_piece(const struct reply *reply, uint64_t i, char *dst)
{
    uint64_t begin = i * API_LIGHT_BYTES, rest = reply->face.length - begin;
    size_t n = rest < API_LIGHT_BYTES ? (size_t)rest : API_LIGHT_BYTES;
    api_listing_print(reply->listing, begin, n, dst);
    return n;
}

struct api_reply *api_reply_live(const char *content_type, struct api_live *live, uint64_t memory)
{
    struct reply *reply = reply_new(200, content_type);
    if (!reply) {
        live->drop(live);
        return &no_memory.face;
    }
    reply->live = live;
    reply->face.is_live = true;
    reply->face.is_light = false;
    reply->face.computes = true;
    reply->face.length = API_LENGTH_UNKNOWN;
    reply->face.n_pieces = UINT64_MAX;
    reply->face.piece_max = API_LIVE_PIECE;
    reply->face.memory = memory;
    return &reply->face;
}

/* ---- All replies ---- */

bool api_reply_header(struct api_reply *reply, const char *name, const char *value)
{
    if (reply == &no_memory.face)
        return true; /* the constant reply has all its headers, and never changes */
    assert(reply->n_headers < API_HEADERS_MAX);
    size_t n = strlen(value) + 1;
    char *copy = malloc(n);
    if (!copy)
        return false;
    memcpy(copy, value, n);
    reply->headers[reply->n_headers++] = (struct api_header){.name = name, .value = copy};
    return true;
}

struct api_reply *api_reply_set_route(struct api_reply *reply, const char *route)
{
    if (reply != &no_memory.face) /* because all threads share it */
        reply->route = route;
    return reply;
}

struct api_reply *api_reply_set_format(struct api_reply *reply, const char *format)
{
    if (reply != &no_memory.face)
        reply->format = format;
    return reply;
}

struct api_reply *api_reply_set_scheme(struct api_reply *reply, const char *scheme)
{
    if (reply != &no_memory.face)
        reply->scheme = scheme;
    return reply;
}

struct api_reply *api_reply_without_memory(struct api_reply *reply)
{
    api_reply_free(reply);
    return &no_memory.face;
}

size_t api_reply_piece(const struct api_reply *reply, uint64_t i, char *dst)
{
    assert(i < reply->n_pieces);
    const struct reply *r = (const struct reply *)reply;
    if (r->work)
        return api_body_piece(&r->work->stream, i, dst);
    if (r->weights)
        return weights_piece(r, i, dst);
    if (r->listing)
        return listing_piece(r, i, dst);
    if (r->live)
        return r->live->next(r->live, dst);
    memcpy(dst, reply->body, (size_t)reply->length);
    return (size_t)reply->length;
}

bool api_reply_waits(const struct api_reply *reply, uint64_t i)
{
    const struct reply *r = (const struct reply *)reply;
    return r->work && api_body_waits(&r->work->stream, i);
}

/* The request and plan that a reply is computed from. */
static void drop_source(struct reply *r)
{
    api_work_free(r->work);
    if (r->weights)
        r->store->release(r->store->self, r->weights);
    api_listing_free(r->listing);
    if (r->live)
        r->live->drop(r->live);
    free(r->bytes);
    r->work = NULL;
    r->weights = NULL;
    r->listing = NULL;
    r->live = NULL;
    r->bytes = NULL;
}

void api_reply_finish(struct api_reply *reply, char *body, size_t n)
{
    struct reply *r = (struct reply *)reply;
    assert(r != &no_memory && reply->is_light && n > 0);
    drop_source(r);
    r->bytes = body;
    reply->body = body;
    reply->length = reply->piece_max = n;
    reply->n_pieces = 1;
}

struct api_reply *api_reply_hold(struct api_reply *reply)
{
    if (reply != &no_memory.face)
        atomic_fetch_add_explicit(&((struct reply *)reply)->n_more_owners, 1, memory_order_relaxed);
    return reply;
}

void api_reply_free(struct api_reply *reply)
{
    if (!reply || reply == &no_memory.face)
        return;
    struct reply *r = (struct reply *)reply;
    if (atomic_fetch_sub_explicit(&r->n_more_owners, 1, memory_order_acq_rel) > 0)
        return;
    for (size_t i = 0; i < reply->n_headers; i++)
        free(reply->headers[i].value);
    drop_source(r);
    free(r);
}
