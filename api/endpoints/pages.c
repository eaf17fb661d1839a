/* GET /, GET /docs and GET /ui/{build}/{file}: the web page, files that the server supplies, with the headers for
 * browsers and caches. GET /clients/{file}: the client libraries, files of the same kind. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- Files for clients that do not decompress ---- */

enum { GZIP_WINDOW = 16 + MAX_WBITS }; /* 16: with the header and the checksum of gzip */

static bool inflate_all(const struct api_page_file *file, char *plain)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)file->gzip,
                  .avail_in = (uInt)file->n_gzip,
                  .next_out = (Bytef *)plain,
                  .avail_out = (uInt)file->n_bytes};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return false;
    bool is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == file->n_bytes;
    inflateEnd(&z);
    return is_whole;
}

/* The file's n_bytes bytes; NULL: no memory. They are decompressed once and kept for the life of the process, so that
 * all readers share one copy. If two threads decompress it at the same time, the bytes of only one are stored. */
static const char *page_plain(const struct api_page_file *file)
{
    char *there = atomic_load(file->plain);
    if (there)
        return there;
    char *made = malloc(file->n_bytes + 1); /* one more, as a file may be empty */
    if (made && inflate_all(file, made) && atomic_compare_exchange_strong(file->plain, &there, made))
        return made;
    free(made);
    return there;
}

/* ---- The answers ---- */

static const char html_type[] = "text/html; charset=utf-8";

static const struct {
    const char *ending, *media_type;
} media_types[] = {
    {".html", html_type},      {".css", "text/css; charset=utf-8"},     {".js", "text/javascript; charset=utf-8"},
    {".json", api_json_type},  {".md", "text/markdown; charset=utf-8"}, {".py", "text/x-python; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static const char *media_type_of(const char *name)
{
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof media_types / sizeof *media_types; i++)
        if (strcmp(ending, media_types[i].ending) == 0)
            return media_types[i].media_type;
    return "application/octet-stream";
}

/* Only the page's own files run, and it can reach only this server. It never turns text into markup or script, which
 * the last two rules make browsers enforce. No page has it in a frame, but for the one of a single figure, which the
 * host may allow to some origins. */
static const char policy[] =
    "default-src 'none'; base-uri 'none'; frame-ancestors %s; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; form-action 'self'; img-src 'self' blob: data:; require-trusted-types-for 'script'; "
    "trusted-types 'none'";

static bool is_embedded(const char *query)
{
    return query && strncmp(query, "embed", 5) == 0 && strchr("=&", query[5]);
}

static struct api_reply *with_policy(struct api_reply *reply, const char *ancestors)
{
    size_t n = sizeof policy + strlen(ancestors);
    char *text = malloc(n);
    if (!text)
        return api_reply_without_memory(reply);
    snprintf(text, n, policy, ancestors);
    reply = api_reply_header(reply, "Content-Security-Policy", text);
    free(text);
    return api_reply_header(reply, "Referrer-Policy", "no-referrer");
}

/* How long caches may use a file without asking. The address of the page stays the same when the program changes; that
 * of its files contains the build. */
static const char always_asked[] = "no-cache", for_ever[] = "public, max-age=31536000, immutable";

/* ---- Files in the program ---- */

/* A client that decompresses gets other bytes, so they have another tag. */
enum { TAG_BYTES = 96 };

static struct api_reply *bytes_reply(const struct api_page_file *file, enum api_coding coding)
{
    const char *bytes = coding == API_GZIP ? file->gzip : page_plain(file);
    if (!bytes)
        return api_reply_without_memory(NULL);
    struct api_reply *reply =
        api_reply_lasting(200, media_type_of(file->name), bytes, coding == API_GZIP ? file->n_gzip : file->n_bytes);
    if (coding == API_GZIP)
        reply = api_reply_header(reply, "Content-Encoding", "gzip");
    return api_reply_set_format(reply, "page");
}

static const struct api_page_file *file_find(const struct api_page *page, const char *name)
{
    for (size_t i = 0; i < page->n_files; i++)
        if (strcmp(page->files[i].name, name) == 0)
            return &page->files[i];
    return NULL;
}

static struct api_reply *built_in(const struct api_page_file *file, const struct api_call *call,
                                  const char *cache_control)
{
    char tag[TAG_BYTES];
    enum api_coding coding = api_coding_choose(call->accept_encoding);
    if (coding == API_NO_CODING)
        return api_refusal(406, "Accept-Encoding excludes both codings of this file, gzip and identity");
    snprintf(tag, TAG_BYTES, "\"%.64s%s\"", file->digest, coding == API_GZIP ? "-gzip" : "");
    bool is_there = api_etag_is_among(call->if_none_match, tag);
    struct api_reply *reply = is_there ? api_reply_empty(304) : bytes_reply(file, coding);
    return reply->status >= 400 ? reply : api_reply_tagged(reply, tag, cache_control);
}

const char *api_page_text(const struct api_page *page, const char *name, char **owned, size_t *n)
{
    *owned = NULL;
    if (page->read)
        return page->read(page->self, name, owned, n) ? *owned : NULL;
    const struct api_page_file *file = file_find(page, name);
    *n = file ? file->n_bytes : 0;
    return file ? page_plain(file) : NULL;
}

/* ---- Files of a folder ---- */

static struct api_reply *no_such_file(const char *name)
{
    struct api_problem problem;
    api_fail(&problem, 404, "", "the page has no file \"%.128s\"", name);
    return api_reply_problem(&problem);
}

static struct api_reply *of_folder(const struct api_page *page, const char *name)
{
    char *bytes;
    size_t n;
    if (!page->read(page->self, name, &bytes, &n))
        return no_such_file(name);
    return api_reply_uncached(api_reply_set_format(api_reply_bytes(200, media_type_of(name), bytes, n), "page"));
}

/* ---- The endpoints ---- */

/* Which pages may have the answer in a frame, in the words of the policy. */
static const char *ancestors_of(const struct api_request *request)
{
    const char *origins = request->host->frame_origins;
    return origins && *origins && is_embedded(request->call->query) ? origins : "'none'";
}

/* NULL: a worker must read the file. */
static struct api_reply *file_reply(struct api_request *request, const char *name, const char *cache_control)
{
    const struct api_page *page = request->host->page;
    if (page->read && api_is_late(request))
        return NULL;
    if (page->read)
        return with_policy(of_folder(page, name), ancestors_of(request));
    const struct api_page_file *file = file_find(page, name);
    return with_policy(file ? built_in(file, request->call, cache_control) : no_such_file(name), ancestors_of(request));
}

/* index.html begins with a picture of this server, so that there is one before the scripts run. An <img> sends no
 * token, and /docs does not show it. A folder has no other. */
static const char *front_of(const struct api_request *request)
{
    const struct api_call *call = request->call;
    bool is_start = call->access == API_ACCESS_OPEN && strcmp(call->path, "/") == 0;
    return is_start || request->host->page->read ? "index.html" : "plain.html";
}

struct api_reply *api_front(struct api_request *request)
{
    if (!request->host->page)
        return api_refusal(404, "this program was built without its page");
    return file_reply(request, front_of(request), always_asked);
}

struct api_reply *api_page_file(struct api_request *request)
{
    const struct api_page *page = request->host->page;
    struct api_problem problem;
    if (page && strcmp(request->path.build, page->build) == 0)
        return file_reply(request, request->path.file, for_ever);
    api_fail(&problem, 404, "", "this program has no page of the build \"%.32s\"; it has %s: load / again",
             request->path.build, page ? page->build : pe_text("none"));
    return with_policy(api_reply_problem(&problem), "'none'");
}

/* Of the same address after each release, so it is asked for again. */
struct api_reply *api_client_file(struct api_request *request)
{
    const struct api_page *clients = request->host->clients;
    const struct api_page_file *file = clients ? file_find(clients, request->path.file) : NULL;
    if (file)
        return built_in(file, request->call, always_asked);
    api_fail(&request->problem, 404, "", "there is no client library \"%.128s\"; there are: posenc.py, posenc.js",
             request->path.file);
    return NULL;
}
