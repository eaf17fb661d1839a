/* What endpoints of stored files share: their digests as entity tags (RFC 9110 §8.8.3, §13), guarded changes, refusals.
 */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

struct api_guard api_stored_guard(const struct api_call *call)
{
    return (struct api_guard){.if_match = call->if_match, .if_none_match = call->if_none_match};
}

struct api_reply *api_stored_headers(struct api_reply *reply, const char *sha256)
{
    char tag[API_SHA256_CHARS + 3];
    snprintf(tag, sizeof tag, "\"%s\"", sha256 ? sha256 : "");
    if (sha256)
        reply = api_reply_header(reply, "ETag", tag);
    return api_reply_header(reply, "Cache-Control", "private, no-cache");
}

/* ---- Refusals ---- */

/* A file that is stored but not found is broken, or there is no room for it. */
struct api_reply *api_stored_guarded(struct api_request *request, const struct api_store *store)
{
    const char *name = request->path.name, *what = pe_text(store->contents->what);
    struct api_problem *problem = &request->problem;
    struct api_wanted wanted = {.name = name, .must_not_block = true};
    const struct api_stored_file *weights = NULL;
    if (store->find(store->self, &wanted, &weights) == API_FOUND)
        api_fail(problem, 412, "", "If-Match or If-None-Match does not hold: \"%s\" is stored, its ETag is \"%s\"",
                 name, weights->sha256);
    else if (request->call->if_match)
        api_fail(problem, 412, "", "If-Match does not hold: no %s \"%s\" are stored", what, name);
    else
        api_fail(
            problem, 412, "",
            "If-None-Match does not hold: \"%s\" is among the stored %s, but this server cannot read it; see its log",
            name, what);
    if (weights)
        store->release(store->self, weights);
    return NULL;
}

struct api_reply *api_stored_refused(struct api_request *request, const struct api_store *store, enum api_stored stored,
                                     size_t n)
{
    const char *what = pe_text(store->contents->what);
    struct api_problem *problem = &request->problem;
    char limit[API_LIMIT_BYTES];
    api_stored_limit(store, limit, sizeof limit);
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
        api_fail(problem, 503, "", "the place of stored %s (%s of this server) could not be written; see its log", what,
                 store->place);
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

struct api_reply *api_stored_remove(struct api_request *request, const struct api_store *store,
                                    api_stored_absent *absent)
{
    struct api_guard guard = api_stored_guard(request->call);
    enum api_stored stored = store->remove(store->self, request->path.name, &guard);
    switch (stored) {
    case API_STORED_ABSENT: absent(store, request->path.name, &request->problem); return NULL;
    case API_STORED_GUARDED: return api_stored_guarded(request, store);
    case API_STORED_NEW:
    case API_STORED_REPLACED: return api_reply_empty(204);
    default: return api_stored_refused(request, store, stored, 0);
    }
}

/* ---- Lists of stored files ---- */

/* The stored weights or presets as JSON: all files, or the one that a PUT has stored. The text may be many times as
 * long as any request, so it is never complete in memory: each piece is printed on demand, from cards of the files that
 * existed when the answer began. */

struct listed {
    const struct api_stored_file *card; /* held */
    uint64_t end;                       /* offset of its text in the listing */
};

struct list {
    struct api_body body; /* must be first */
    const struct api_store *store;
    void (*print)(struct api_window *window, const struct api_stored_file *card);
    const char *begin, *end; /* of the text, what is around the files */
    size_t n_begin;
    bool has_more; /* begin has entries of its own */
    size_t n;
    struct listed files[];
};

/* ---- Printing ---- */

static void print_file(struct api_window *window, const struct api_stored_file *card)
{
    char head[2 * API_WEIGHT_NAME_MAX + API_SHA256_CHARS + 128]; /* a name has no character that needs escaping */
    int n = snprintf(head, sizeof head, "{\"name\":\"%s\",\"bytes\":%zu,\"sha256\":\"%s\",\"tensors\":{", card->name,
                     card->n_bytes, card->sha256);
    api_window_add(window, head, (size_t)n);
    api_tensors_print(card->tensors, window);
    api_window_put(window, "}}");
}

static void print_preset(struct api_window *window, const struct api_stored_file *card)
{
    api_window_put(window, "{\"name\":\"");
    api_window_put(window, card->name);
    api_window_put(window, "\",");
    api_window_put(window, card->preset->members);
    api_window_put(window, "}");
}

static void print_entry(const struct list *list, size_t i, struct api_window *window)
{
    api_window_put(window, i > 0 || list->has_more ? "," : "");
    list->print(window, list->files[i].card);
}

void api_list_print(const struct api_body *body, uint64_t first, size_t n, char *dst)
{
    const struct list *list = (const struct list *)body;
    struct api_window window = {.first = first, .room = n, .dst = dst};
    /* The file whose text contains the byte `first`, or ends just before it. */
    size_t i = 0, end = list->n;
    while (i < end) {
        size_t middle = i + (end - i) / 2;
        if (list->files[middle].end <= first)
            i = middle + 1;
        else
            end = middle;
    }
    if (i > 0)
        window.at = list->files[i - 1].end;
    else
        api_window_add(&window, list->begin, list->n_begin);
    for (; i < list->n && !api_window_is_full(&window); i++)
        print_entry(list, i, &window);
    if (!api_window_is_full(&window))
        api_window_put(&window, list->end);
}

/* Pieces are small, because a client may leave many such answers unread. */
static size_t list_piece(struct api_body *body, uint64_t i, char *dst)
{
    uint64_t begin = i * API_LIGHT_BYTES, rest = body->length - begin;
    size_t n = rest < API_LIGHT_BYTES ? (size_t)rest : API_LIGHT_BYTES;
    api_list_print(body, begin, n, dst);
    return n;
}

/* ---- Lifetime ---- */

static void list_drop(struct api_body *body)
{
    struct list *list = (struct list *)body;
    for (size_t i = 0; i < list->n; i++)
        list->store->drop_card(list->store->self, list->files[i].card);
    free(list);
}

/* Takes the cards; about has everything but the files. */
static struct api_body *list_new(const struct list *about, const struct api_stored_file *const *cards, size_t n)
{
    struct list *list = malloc(sizeof *list + n * sizeof *list->files);
    for (size_t i = 0; i < n && !list; i++)
        about->store->drop_card(about->store->self, cards[i]);
    if (!list)
        return NULL;
    *list = *about;
    list->n = n;
    for (size_t i = 0; i < n; i++)
        list->files[i].card = cards[i];
    struct api_window window = api_window_of_length();
    api_window_add(&window, list->begin, list->n_begin);
    for (size_t i = 0; i < list->n; i++) {
        print_entry(list, i, &window);
        list->files[i].end = window.at;
    }
    api_window_put(&window, list->end);
    uint64_t length = window.at;
    list->body = (struct api_body){.length = length,
                                   .n_pieces = (length + API_LIGHT_BYTES - 1) / API_LIGHT_BYTES,
                                   .piece_max = length < API_LIGHT_BYTES ? (size_t)length : API_LIGHT_BYTES,
                                   .piece = list_piece,
                                   .drop = list_drop};
    return &list->body;
}

struct api_body *api_list_body_all(const struct api_store *store)
{
    static const char begin[] = "{\"weights\":[";
    const struct list about = {
        .store = store, .print = print_file, .begin = begin, .n_begin = sizeof begin - 1, .end = "]}"};
    const struct api_stored_file **cards = malloc((store ? store->files_max : 1) * sizeof *cards);
    if (!cards)
        return NULL;
    size_t n = store ? store->list(store->self, cards) : 0;
    struct api_body *body = list_new(&about, cards, n);
    free(cards);
    return body;
}

struct api_body *api_list_body_one(const struct api_store *store, const struct api_stored_file *weights)
{
    const struct list about = {.store = store, .print = print_file, .begin = "", .end = ""};
    store->hold_card(store->self, weights);
    return list_new(&about, &weights, 1);
}

struct api_body *api_list_body_presets(const struct api_store *store, const char *begin, size_t n_begin)
{
    const struct list about = {
        .store = store, .print = print_preset, .begin = begin, .n_begin = n_begin, .has_more = true, .end = "]}"};
    const struct api_stored_file **cards = malloc(store->files_max * sizeof *cards);
    if (!cards)
        return NULL;
    /* A release may bring a preset of the same name: the program's wins. */
    size_t n = store->list(store->self, cards), n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (pe_preset_find(cards[i]->name))
            store->drop_card(store->self, cards[i]);
        else
            cards[n_left++] = cards[i];
    struct api_body *body = list_new(&about, cards, n_left);
    free(cards);
    return body;
}
