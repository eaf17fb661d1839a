/* GET, PUT, DELETE /weights/{name} and GET /weights: stored files, their digests as entity tags (RFC 9110 §8.8.3, §13).
 */
#include "api/inputs/tensor_table.h"
#include "api/replies/caching.h"
#include "api/requests/memory.h"
#include "api/routes.h"
#include "api/replies/weights_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Entity tags ---- */

/* The next of a comma-separated list of tags, between its quotes; false at the end, or if the text is not a list of
 * tags. */
static bool next_tag(const char **at, const char **tag, size_t *n, bool *is_weak)
{
    const char *p = *at + strspn(*at, " \t,");
    *is_weak = strncmp(p, "W/", 2) == 0;
    p += *is_weak ? 2 : 0;
    const char *end = *p == '"' ? strchr(p + 1, '"') : NULL;
    if (!end)
        return false;
    *tag = p + 1;
    *n = (size_t)(end - *tag);
    *at = end + 1;
    return true;
}

/* Whether the header contains the digest, or "*", which matches any. A weak tag does not match, because the comparison
 * is strong (RFC 9110, 13.1.1). */
static bool names(const char *header, const char *sha256, bool weak_counts)
{
    const char *at = header + strspn(header, " \t"), *tag;
    size_t n;
    bool is_weak;
    if (*at == '*')
        return true;
    while (next_tag(&at, &tag, &n, &is_weak))
        if ((!is_weak || weak_counts) && n == API_SHA256_CHARS && memcmp(tag, sha256, n) == 0)
            return true;
    return false;
}

bool api_guard_allows(const struct api_guard *guard, const char *sha256)
{
    if (guard->if_match && !(sha256 && names(guard->if_match, sha256, false)))
        return false;
    return !(guard->if_none_match && sha256 && names(guard->if_none_match, sha256, true));
}

/* ---- Headers and texts ---- */

static struct api_guard guard_of(const struct api_call *call)
{
    return (struct api_guard){.if_match = call->if_match, .if_none_match = call->if_none_match};
}

/* Adds the digest as entity tag, and no-cache: caches must revalidate, because a PUT may have changed the file. */
static struct api_reply *with_headers(struct api_reply *reply, const char *sha256)
{
    char tag[API_SHA256_CHARS + 3];
    snprintf(tag, sizeof tag, "\"%s\"", sha256 ? sha256 : "");
    if ((!sha256 || api_reply_header(reply, "ETag", tag)) &&
        api_reply_header(reply, "Cache-Control", "private, no-cache"))
        return reply;
    return api_reply_without_memory(reply);
}

/* ---- Refusals ---- */

static struct api_reply *absent(const struct api_store *store, const char *name)
{
    struct api_problem problem;
    char nearest[API_WEIGHT_NAME_MAX + 1];
    if (store && store->nearest(store->self, name, nearest))
        api_fail(&problem, 404, "", "no weights \"%.140s\" are stored; nearest: \"%s\"", name, nearest);
    else
        api_fail(&problem, 404, "", "no weights \"%.140s\" are stored; GET /weights lists them", name);
    return api_reply_problem(&problem);
}

static struct api_reply *guarded(const struct api_store *store, const char *name)
{
    struct api_wanted wanted = {.name = name, .must_not_block = true};
    const struct api_weights *weights = NULL;
    struct api_problem problem;
    if (store->find(store->self, &wanted, &weights) == API_FOUND)
        api_fail(&problem, 412, "", "If-Match or If-None-Match does not hold: \"%s\" is stored, its ETag is \"%s\"",
                 name, weights->sha256);
    else
        api_fail(&problem, 412, "", "If-Match does not hold: no weights \"%s\" are stored", name);
    if (weights)
        store->release(store->self, weights);
    return api_reply_problem(&problem);
}

static struct api_reply *refused(const struct api_store *store, enum api_stored stored, size_t n)
{
    struct api_problem problem;
    if (stored == API_STORED_FULL)
        api_fail(&problem, 413, "",
                 "with these %zu bytes the stored weights would have more than the %" PRIu64
                 " bytes that are allowed for all together (the limit --max-weights of this server)",
                 n, store->bytes_max);
    else if (stored == API_STORED_TOO_MANY)
        api_fail(&problem, 413, "", "%zu files are stored, which is the maximum; delete one first", store->files_max);
    else if (stored == API_STORED_FAILED)
        api_fail(&problem, 503, "",
                 "the place of stored weights (%s of this server) could not be written; its log says why",
                 store->place);
    else if (stored == API_STORED_UNGUARDED)
        api_fail(&problem, 501, "",
                 "the place of stored weights (%s of this server) has no conditional writes, so If-Match and "
                 "If-None-Match cannot be kept against other servers; without them the change is made",
                 store->place);
    else
        api_fail_memory(&problem);
    return api_reply_problem(&problem);
}

static struct api_reply *no_store(void) { return api_refusal(503, "this server stores no weights"); }

/* ---- The endpoints ---- */

struct api_reply *api_weights_list(const struct api_asked *asked)
{
    if (asked->call->must_not_block)
        return NULL; /* it looks at thousands of files */
    return with_headers(api_reply_listing(200, api_listing_all(asked->host->store)), NULL);
}

/* The whole file, or the part that Range requests. Takes the hold on weights. */
static struct api_reply *send(const struct api_asked *asked, const struct api_weights *weights)
{
    const struct api_store *store = asked->host->store;
    uint64_t length = weights->n_bytes;
    struct api_range range = {0, length - 1};
    char etag[API_SHA256_CHARS + 3], sha256[API_SHA256_CHARS + 1];
    snprintf(etag, sizeof etag, "\"%s\"", weights->sha256);
    memcpy(sha256, weights->sha256,
           sizeof sha256); /* a copy: if memory runs out, the file may be freed before its reply */
    enum api_range_kind kind = api_range_asked(asked->call, etag, length, &range);
    if (kind == API_RANGE_UNSATISFIABLE) {
        store->release(store->self, weights);
        return api_range_refusal(length);
    }
    struct api_reply *reply =
        api_reply_weights(store, weights, (size_t)range.first, (size_t)(range.last - range.first + 1));
    return api_range_add(reply, kind, &range, length) ? with_headers(reply, sha256) : api_reply_without_memory(reply);
}

/* NULL: ask again from a worker. */
static struct api_reply *not_found(const struct api_store *store, enum api_found found, const char *name)
{
    struct api_problem problem;
    if (found == API_FOUND_LATER)
        return NULL;
    if (found == API_FOUND_NOTHING)
        return absent(store, name);
    api_fail_unknown_weights(&problem, "", store, found, name);
    return api_reply_problem(&problem);
}

static struct api_reply *get(const struct api_asked *asked)
{
    const struct api_store *store = asked->host->store;
    const struct api_call *call = asked->call;
    const struct api_weights *weights = NULL;
    struct api_wanted wanted = {.name = asked->name, .must_not_block = call->must_not_block};
    enum api_found found = store ? store->find(store->self, &wanted, &weights) : API_FOUND_NOTHING;
    if (found != API_FOUND)
        return not_found(store, found, asked->name);
    struct api_guard match = {.if_match = call->if_match}, none = {.if_none_match = call->if_none_match};
    bool has_failed = !api_guard_allows(&match, weights->sha256);
    bool is_known = !api_guard_allows(&none, weights->sha256);
    if (!has_failed && !is_known)
        return send(asked, weights);
    struct api_reply *reply =
        has_failed ? guarded(store, asked->name) : with_headers(api_reply_empty(304), weights->sha256);
    store->release(store->self, weights);
    return reply;
}

static struct api_reply *stored_reply(const struct api_store *store, enum api_stored stored,
                                      const struct api_weights *weights)
{
    int status = stored == API_STORED_NEW ? 201 : 200;
    struct api_reply *reply = api_reply_listing(status, api_listing_one(store, weights));
    reply = with_headers(reply, weights->sha256);
    store->release(store->self, weights);
    return reply;
}

static struct api_reply *put(const struct api_asked *asked, struct api_tensors *tensors)
{
    const struct api_store *store = asked->host->store;
    const struct api_call *call = asked->call;
    const struct api_weights *weights = NULL;
    struct api_guard guard = guard_of(call);
    enum api_stored stored =
        store->put(store->self, asked->name, call->body, call->body_bytes, tensors, &guard, &weights);
    if (weights)
        return stored_reply(store, stored, weights);
    return stored == API_STORED_GUARDED ? guarded(store, asked->name) : refused(store, stored, call->body_bytes);
}

static struct api_reply *put_named(const struct api_asked *asked)
{
    struct api_problem problem;
    const struct api_call *call = asked->call;
    if (!asked->host->store)
        return no_store();
    if (!api_weight_name_is_valid(asked->name)) {
        api_fail_weight_name(&problem, "", asked->name);
        return api_reply_problem(&problem);
    }
    if (call->must_not_block)
        return NULL; /* this call may wait for a disk */
    uint64_t n_taken = api_memory_for_head(asked->host, call, &problem);
    struct api_tensors *tensors = n_taken ? api_tensors_parse(call->body, call->body_bytes, &problem) : NULL;
    if (n_taken && asked->host->take_memory)
        asked->host->give_memory(n_taken);
    return tensors ? put(asked, tensors) : api_reply_problem(&problem);
}

static struct api_reply *delete_named(const struct api_asked *asked)
{
    const struct api_store *store = asked->host->store;
    if (!store)
        return no_store();
    if (asked->call->must_not_block)
        return NULL;
    struct api_guard guard = guard_of(asked->call);
    enum api_stored stored = store->remove(store->self, asked->name, &guard);
    switch (stored) {
    case API_STORED_ABSENT: return absent(store, asked->name);
    case API_STORED_GUARDED: return guarded(store, asked->name);
    case API_STORED_NEW:
    case API_STORED_REPLACED: return api_reply_empty(204);
    default: return refused(store, stored, 0);
    }
}

struct api_reply *api_weights_one(const struct api_asked *asked)
{
    const char *method = asked->call->method;
    if (strcmp(method, "PUT") == 0)
        return put_named(asked);
    return strcmp(method, "DELETE") == 0 ? delete_named(asked) : get(asked);
}
