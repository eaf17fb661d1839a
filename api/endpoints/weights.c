/* GET, PUT, DELETE /weights/{name} and GET /weights: stored files of tensors. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/limits.h"
#include "api/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Refusals ---- */

static bool absent(const struct api_store *store, const char *name, struct api_problem *problem)
{
    char nearest[API_WEIGHT_NAME_MAX + 1];
    if (store && store->nearest(store->self, name, nearest))
        return api_fail(problem, 404, "", "no weights \"%.140s\" are stored; nearest: \"%s\"", name, nearest);
    return api_fail(problem, 404, "", "no weights \"%.140s\" are stored; GET /weights lists them", name);
}

static struct api_reply *no_store(void) { return api_refusal(503, "this server stores no weights"); }

/* ---- The bytes of a stored file ---- */

/* A part of a file, which it holds: a PUT or DELETE meanwhile does not change the answer. */
struct file_body {
    struct api_body body; /* must be first */
    const struct api_store *store;
    const struct api_stored_file *file;
    const char *bytes; /* of the part */
};

static size_t file_piece(struct api_body *body, uint64_t i, char *dst)
{
    size_t begin = (size_t)i * API_PIECE_BYTES, rest = (size_t)body->length - begin;
    size_t n = rest < API_PIECE_BYTES ? rest : API_PIECE_BYTES;
    memcpy(dst, ((struct file_body *)body)->bytes + begin, n);
    return n;
}

static void file_drop(struct api_body *body)
{
    struct file_body *file = (struct file_body *)body;
    file->store->release(file->store->self, file->file);
    free(file);
}

/* n bytes from `first` on; takes the hold on the file. NULL: no memory. */
static struct api_body *file_body_new(const struct api_store *store, const struct api_stored_file *file, size_t first,
                                      size_t n)
{
    struct file_body *body = malloc(sizeof *body);
    if (!body) {
        store->release(store->self, file);
        return NULL;
    }
    *body = (struct file_body){.body = {.length = n,
                                        .n_pieces = (n + API_PIECE_BYTES - 1) / API_PIECE_BYTES,
                                        .piece_max = n < API_PIECE_BYTES ? n : API_PIECE_BYTES,
                                        .piece = file_piece,
                                        .drop = file_drop},
                               .store = store,
                               .file = file,
                               .bytes = file->bytes + first};
    return &body->body;
}

/* ---- The endpoints ---- */

struct api_reply *api_weights_list(struct api_request *request)
{
    return api_stored_headers(api_reply_of(200, api_json_type, api_list_body_all(request->host->store), 0), NULL);
}

/* The whole file, or the part that Range requests. Takes the hold on weights. */
static struct api_reply *send(struct api_request *request, const struct api_stored_file *weights)
{
    const struct api_store *store = request->host->store;
    uint64_t length = weights->n_bytes;
    struct api_range range = {0, length - 1};
    char etag[API_SHA256_CHARS + 3], sha256[API_SHA256_CHARS + 1];
    snprintf(etag, sizeof etag, "\"%s\"", weights->sha256);
    memcpy(sha256, weights->sha256,
           sizeof sha256); /* a copy: if memory runs out, the file may be freed before its reply */
    enum api_range_kind kind = api_range_asked(request->call, etag, length, &range);
    if (kind == API_RANGE_UNSATISFIABLE) {
        store->release(store->self, weights);
        return api_range_refusal(length);
    }
    struct api_body *body = file_body_new(store, weights, (size_t)range.first, range.last - range.first + 1);
    struct api_reply *reply =
        api_reply_set_format(api_reply_of(200, "application/vnd.safetensors", body, 0), "safetensors");
    return api_stored_headers(api_range_add(reply, kind, &range, length), sha256);
}

static struct api_reply *not_found(struct api_request *request, enum api_found found)
{
    const struct api_store *store = request->host->store;
    if (found == API_FOUND_LATER && api_is_late(request))
        return NULL;
    if (found == API_FOUND_NOTHING)
        absent(store, request->path.name, &request->problem);
    else
        api_fail_stored_unknown(&request->problem, "", store, found, request->path.name);
    return NULL;
}

static struct api_reply *get(struct api_request *request)
{
    const struct api_store *store = request->host->store;
    const struct api_call *call = request->call;
    const struct api_stored_file *weights = NULL;
    struct api_wanted wanted = {.name = request->path.name, .must_not_block = request->must_not_block};
    enum api_found found = store ? store->find(store->self, &wanted, &weights) : API_FOUND_NOTHING;
    if (found != API_FOUND)
        return not_found(request, found);
    struct api_guard match = {.if_match = call->if_match}, none = {.if_none_match = call->if_none_match};
    bool has_failed = !api_guard_allows(&match, weights->sha256);
    bool is_known = !api_guard_allows(&none, weights->sha256);
    if (!has_failed && !is_known)
        return send(request, weights);
    struct api_reply *reply =
        has_failed ? api_stored_guarded(request, store) : api_stored_headers(api_reply_empty(304), weights->sha256);
    store->release(store->self, weights);
    return reply;
}

static struct api_reply *put_weights(struct api_request *request, struct api_tensors *tensors)
{
    const struct api_store *store = request->host->store;
    const struct api_call *call = request->call;
    const struct api_stored_file *weights = NULL;
    struct api_guard guard = api_stored_guard(call);
    enum api_stored stored =
        store->put(store->self, request->path.name, call->body, call->body_bytes, tensors, &guard, &weights);
    if (weights) {
        int status = stored == API_STORED_NEW ? 201 : 200;
        struct api_reply *reply = api_reply_of(status, api_json_type, api_list_body_one(store, weights), 0);
        reply = api_stored_headers(reply, weights->sha256);
        store->release(store->self, weights);
        return reply;
    }
    return stored == API_STORED_GUARDED ? api_stored_guarded(request, store)
                                        : api_stored_refused(request, store, stored, call->body_bytes);
}

static struct api_reply *put_named(struct api_request *request)
{
    const struct api_call *call = request->call;
    struct api_problem *problem = &request->problem;
    if (!request->host->store)
        return no_store();
    if (!api_weight_name_is_valid(request->path.name)) {
        api_fail_stored_name(problem, "", &api_contents_weights, request->path.name);
        return NULL;
    }
    uint64_t n_taken = api_memory_for_head(request->host, call, problem);
    struct api_tensors *tensors = n_taken ? api_tensors_parse(call->body, call->body_bytes, problem) : NULL;
    if (n_taken && request->host->take_memory)
        request->host->give_memory(request->host, n_taken);
    return tensors ? put_weights(request, tensors) : NULL;
}

static struct api_reply *delete_named(struct api_request *request)
{
    const struct api_store *store = request->host->store;
    if (!store)
        return no_store();
    return api_stored_remove(request, store, absent);
}

struct api_reply *api_weights_one(struct api_request *request)
{
    const char *method = request->call->method;
    if (strcmp(method, "PUT") == 0)
        return put_named(request);
    return strcmp(method, "DELETE") == 0 ? delete_named(request) : get(request);
}
