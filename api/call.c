/* Requests that arrive by a call in this process instead of over a socket: pe_call of posenc.h, which is the service
 * without its machine.
 *
 * A call takes the steps that the server takes, with a host of its own: its limits, the memory that it has reserved,
 * and neither stored files nor a clock. Pieces are computed when they are read: into the caller's memory if they fit
 * there, else into a buffer of one piece, which is allocated with the reply, so that reading cannot fail. */
#include "api/routes.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct api_reply *api_ask(const struct api_host *host, struct api_call *call)
{
    api_speak(call);
    struct api_reply *reply = api_head(host, call, call->body_bytes);
    reply = reply ? reply : api_answer(host, call);
    api_speak(NULL);
    return reply;
}

/* ---- The target -------------------------------------------------------------------------------------------------- */

/* Decodes in place. False at a bad escape or a zero byte: a zero byte would end the C string early, and the checks
 * would see another path than the client requested. */
static bool path_decode(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        char c = *from;
        if (c == '%') {
            int high = api_hex_digit(from[1]), low = high < 0 ? -1 : api_hex_digit(from[2]);
            c = (char)(high * 16 + low);
            if (low < 0 || c == '\0')
                return false;
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

/* Of the absolute form, which every server must accept (RFC 9112, 3.2.2); 0 if the target has another form. */
static size_t scheme_length(const char *target)
{
    return strncasecmp(target, "http://", 7) == 0 ? 7 : strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

const char *api_target_split(char *target, const char **host, const char **path, const char **query)
{
    size_t n_scheme = scheme_length(target), n_host = n_scheme ? strcspn(target + n_scheme, "/?") : 0;
    char *rest = target + n_scheme + n_host, *mark = strchr(rest, '?');
    *host = n_scheme ? target : NULL;
    *query = mark ? mark + 1 : NULL;
    if (mark)
        *mark = '\0';
    if (n_scheme) { /* moved over the scheme, which gives room for the zero at its end */
        memmove(target, target + n_scheme, n_host);
        target[n_host] = '\0';
    }
    *path = n_scheme && !*rest ? "/" : rest; /* "http://host" without a path means the root */
    if (**path != '/')
        return "the request's target is not a path that starts with /";
    return path_decode(rest) ? NULL : "the path has a % that is not followed by two hexadecimal digits, or %00";
}

/* ---- A reply ----------------------------------------------------------------------------------------------------- */

/* More than any request has, and a number of which sums do not overflow. */
#define NO_LIMIT (UINT64_C(1) << 62)

struct pe_reply {
    struct api_host host;
    struct api_call call;
    struct api_reply *answer;
    uint64_t n_reserved; /* of host.max_memory */
    char length[24];     /* Content-Length; "": unknown */
    /* The piece that is being read: n bytes, of which the first `at` have been. */
    uint64_t n_pieces;
    const char *piece;
    size_t at, n;
    char *buffer;      /* of piece_max bytes; NULL: the body is finished */
    bool is_cancelled; /* bytes are missing from now on */
    char texts[];
};

static bool reserve(const struct api_host *host, uint64_t n)
{
    struct pe_reply *reply = (struct pe_reply *)(void *)host; /* its first member */
    if (n > host->max_memory - reply->n_reserved)
        return false;
    reply->n_reserved += n;
    return true;
}

static void release(const struct api_host *host, uint64_t n) { ((struct pe_reply *)(void *)host)->n_reserved -= n; }

static uint64_t limit(double x) { return x > 0 && x < (double)NO_LIMIT ? (uint64_t)x : NO_LIMIT; }

/* The program may have set a locale, whose comma would be in every number. That of C is part of the C library, which
 * neither reads a file nor allocates for it. */
static locale_t speak_plainly(void) { return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); }

static struct pe_reply *reply_new(const char *method, const char *target, const char *content_type)
{
    size_t n_method = strlen(method) + 1, n_target = strlen(target) + 1;
    size_t n_type = content_type ? strlen(content_type) + 1 : 0;
    struct pe_reply *reply = calloc(1, sizeof *reply + n_method + n_target + n_type);
    if (!reply)
        return NULL;
    reply->call.method = memcpy(reply->texts, method, n_method);
    reply->call.path = memcpy(reply->texts + n_method, target, n_target);
    if (content_type)
        reply->call.content_type = memcpy(reply->texts + n_method + n_target, content_type, n_type);
    return reply;
}

static struct api_reply *answer(struct pe_reply *reply)
{
    const char *host = NULL, *wrong = api_target_split((char *)(uintptr_t)reply->call.path, &host, &reply->call.path,
                                                       &reply->call.query);
    return wrong ? api_refuse(&reply->host, &reply->call, 400, wrong) : api_ask(&reply->host, &reply->call);
}

struct pe_reply *pe_call(const char *method, const char *target, const char *content_type, const void *body,
                         size_t n_body, double max_bytes, double max_work)
{
    struct pe_reply *reply = reply_new(method ? method : "NULL", target ? target : "NULL", content_type);
    if (!reply)
        return NULL;
    reply->host = (struct api_host){.max_body = NO_LIMIT,
                                    .max_answer = NO_LIMIT,
                                    .max_pictures = NO_LIMIT,
                                    .max_work = limit(max_work),
                                    .max_analysis = limit(max_work),
                                    .max_memory = limit(max_bytes),
                                    .take_memory = reserve,
                                    .give_memory = release,
                                    .has_mcp = true,
                                    .is_in_process = true};
    reply->call.access = API_ACCESS_OPEN;
    reply->call.body = n_body ? body : NULL;
    reply->call.body_bytes = body ? n_body : 0;
    locale_t of_program = speak_plainly();
    reply->answer = answer(reply);
    uselocale(of_program);
    const struct api_body *content = reply->answer->body;
    if (content->bytes) {
        reply->piece = content->bytes;
        reply->n = (size_t)content->length;
    } else if (content->n_pieces) {
        reply->buffer = aligned_alloc(64, (content->piece_max + 63) / 64 * 64);
        if (!reply->buffer) {
            pe_reply_free(reply);
            return NULL;
        }
    }
    if (content->length != API_LENGTH_UNKNOWN)
        snprintf(reply->length, sizeof reply->length, "%" PRIu64, content->length);
    return reply;
}

int pe_reply_status(const struct pe_reply *reply) { return reply->answer->status; }

const char *pe_reply_type(const struct pe_reply *reply)
{
    return api_reply_media_type(reply->answer, reply->call.path);
}

const char *pe_reply_header(const struct pe_reply *reply, const char *name)
{
    if (!name)
        return NULL;
    if (strcasecmp(name, "Content-Type") == 0)
        return pe_reply_type(reply);
    if (strcasecmp(name, "Content-Length") == 0)
        return *reply->length ? reply->length : NULL;
    return api_reply_find(reply->answer, name);
}

/* Computes the next piece at place, which has room for it. Returns its length; 0: there is none. */
static size_t next_piece(struct pe_reply *reply, char *place)
{
    const struct api_body *body = reply->answer->body;
    if (reply->n_pieces == body->n_pieces)
        return 0;
    size_t n = api_reply_piece(reply->answer, reply->n_pieces++, place);
    reply->is_cancelled = pe_is_cancelled(); /* filling a short piece does not ask */
    if (n == 0)
        reply->n_pieces = body->n_pieces; /* the end of one whose length was unknown */
    return n;
}

/* Moves the next bytes to dst, at most n. Returns how many; 0: the end. */
static size_t move(struct pe_reply *reply, char *dst, size_t n)
{
    if (reply->at == reply->n) {
        if (!reply->buffer)
            return 0;
        if (n >= reply->answer->body->piece_max && (uintptr_t)dst % 8 == 0)
            return next_piece(reply, dst);
        reply->piece = reply->buffer;
        reply->at = 0;
        reply->n = next_piece(reply, reply->buffer);
    }
    n = n < reply->n - reply->at ? n : reply->n - reply->at;
    memcpy(dst, reply->piece + reply->at, n);
    reply->at += n;
    return n;
}

ptrdiff_t pe_reply_read(struct pe_reply *reply, void *dst, size_t n)
{
    size_t used = 0, moved = 1;
    n = n < PTRDIFF_MAX ? n : PTRDIFF_MAX;
    locale_t of_program = speak_plainly();
    pe_speak_in(reply->answer->lang);
    while (used < n && moved && !reply->is_cancelled)
        used += moved = move(reply, (char *)dst + used, n - used);
    pe_speak_in(PE_EN);
    uselocale(of_program);
    return reply->is_cancelled ? -1 : (ptrdiff_t)used;
}

void pe_reply_free(struct pe_reply *reply)
{
    if (!reply)
        return;
    api_reply_free(reply->answer);
    free(reply->buffer);
    free(reply);
}
