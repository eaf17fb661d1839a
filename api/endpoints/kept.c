/* What endpoints of stored files share: their digests as entity tags (RFC 9110 §8.8.3, §13), guarded changes, refusals.
 */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"

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

/* ---- Headers ---- */

struct api_guard api_kept_guard(const struct api_call *call)
{
    return (struct api_guard){.if_match = call->if_match, .if_none_match = call->if_none_match};
}

struct api_reply *api_kept_headers(struct api_reply *reply, const char *sha256)
{
    char tag[API_SHA256_CHARS + 3];
    snprintf(tag, sizeof tag, "\"%s\"", sha256 ? sha256 : "");
    if ((!sha256 || api_reply_header(reply, "ETag", tag)) &&
        api_reply_header(reply, "Cache-Control", "private, no-cache"))
        return reply;
    return api_reply_without_memory(reply);
}

/* ---- Refusals ---- */

/* A file that is stored but not found is broken, or there is no room for it. */
struct api_reply *api_kept_guarded(struct api_request *request, const struct api_store *store)
{
    const char *name = request->path.name, *what = pe_text(store->contents->what);
    struct api_problem *problem = &request->problem;
    struct api_wanted wanted = {.name = name, .must_not_block = true};
    const struct api_weights *weights = NULL;
    if (store->find(store->self, &wanted, &weights) == API_FOUND)
        api_fail(problem, 412, "", "If-Match or If-None-Match does not hold: \"%s\" is stored, its ETag is \"%s\"",
                 name, weights->sha256);
    else if (request->call->if_match)
        api_fail(problem, 412, "", "If-Match does not hold: no %s \"%s\" are stored", what, name);
    else
        api_fail(problem, 412, "",
                 "If-None-Match does not hold: \"%s\" is among the stored %s, but this server cannot read it; its log "
                 "says why",
                 name, what);
    if (weights)
        store->release(store->self, weights);
    return NULL;
}

struct api_reply *api_kept_refused(struct api_request *request, const struct api_store *store, enum api_stored stored,
                                   size_t n)
{
    const char *what = pe_text(store->contents->what);
    struct api_problem *problem = &request->problem;
    char limit[API_LIMIT_BYTES];
    api_kept_limit(store, limit, sizeof limit);
    if (stored == API_STORED_FULL)
        api_fail(problem, 413, "",
                 "with these %zu bytes the stored %s would have more than the %" PRIu64
                 " bytes that are allowed for all together (%s)",
                 n, what, store->bytes_max, limit);
    else if (stored == API_STORED_TOO_MANY)
        api_fail(problem, 413, "", "%zu files are stored, which is the maximum; delete one first", store->files_max);
    else if (stored == API_STORED_NO_FILE)
        api_fail(problem, 422, "",
                 "the place of stored %s (%s of this server) has a folder where the file of this name would be; use "
                 "another name",
                 what, store->place);
    else if (stored == API_STORED_NO_ROOM)
        api_fail(problem, 503, "",
                 "there is no room for these %zu bytes now (%s): files that were replaced or removed are still being "
                 "read, or others are being stored; try again later",
                 n, limit);
    else if (stored == API_STORED_BUSY)
        api_fail(problem, 503, "",
                 "other requests change this name, or read it from the place of stored %s, and that takes long or has "
                 "many requests waiting; try again later",
                 what);
    else if (stored == API_STORED_FAILED)
        api_fail(problem, 503, "", "the place of stored %s (%s of this server) could not be written; its log says why",
                 what, store->place);
    else if (stored == API_STORED_UNGUARDED)
        api_fail(problem, 501, "",
                 "the place of stored %s (%s of this server) has no conditional writes, so If-Match and "
                 "If-None-Match cannot be kept against other servers; without them the change is made",
                 what, store->place);
    else
        api_fail_memory(problem);
    return NULL;
}

/* ---- Removing ---- */

struct api_reply *api_kept_remove(struct api_request *request, const struct api_store *store, api_kept_absent *absent)
{
    struct api_guard guard = api_kept_guard(request->call);
    enum api_stored stored = store->remove(store->self, request->path.name, &guard);
    switch (stored) {
    case API_STORED_ABSENT: absent(store, request->path.name, &request->problem); return NULL;
    case API_STORED_GUARDED: return api_kept_guarded(request, store);
    case API_STORED_NEW:
    case API_STORED_REPLACED: return api_reply_empty(204);
    default: return api_kept_refused(request, store, stored, 0);
    }
}
