/* Shared by the targets that request whole answers: a host, and the laws of every answer. */
#ifndef TESTS_FUZZ_ANSWERS_H
#define TESTS_FUZZ_ANSWERS_H

#include "tests/fuzz/laws.h"
#include "tests/support/answer.h"

#include <jansson.h>

static char *print_metrics(size_t *n_bytes)
{
    *n_bytes = 1;
    return strdup("m");
}

/* Small limits, so that no input costs more than about a millisecond. */
static inline struct api_host small_host(void)
{
    return (struct api_host){.max_body = 1 << 20,
                             .max_answer = 1 << 12,
                             .max_pictures = 1 << 20,
                             .max_work = 1 << 18,
                             .max_analysis = 1 << 16,
                             .commit = "",
                             .cors_origins = "https://example.org",
                             .frame_origins = "https://example.org",
                             .metrics_print = print_metrics};
}

/* Pieces computed in the opposite order are the same: they depend only on their number. */
static inline void make_backwards(const struct answer *a)
{
    char *piece = aligned_alloc(64, (a->reply->body->piece_max + 64) / 64 * 64);
    size_t at = a->n;
    for (uint64_t i = a->reply->body->n_pieces; i-- > 0;) {
        size_t n = api_reply_piece(a->reply, i, piece);
        REQUIRE(n <= at && memcmp(a->body + (at -= n), piece, n) == 0);
    }
    REQUIRE(at == 0);
    free(piece);
}

static inline const char *string_of(const json_t *object, const char *name)
{
    const char *string = json_string_value(json_object_get(object, name));
    return string ? string : "";
}

/* RFC 9457 with our own members: the status again, a sentence, and the pointer. */
static inline void check_problem(const struct answer *a)
{
    json_t *problem = json_loadb(a->body, a->n, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(problem && strcmp(a->reply->content_type, "application/problem+json") == 0);
    REQUIRE(json_integer_value(json_object_get(problem, "status")) == a->reply->status);
    REQUIRE(*string_of(problem, "title") && *string_of(problem, "detail"));
    REQUIRE(strcmp(string_of(problem, "detail"), string_of(problem, "error")) == 0);
    const char *pointer = string_of(problem, "pointer");
    REQUIRE(!*pointer || *pointer == '/');
    json_decref(problem);
}

/* No byte from a client may end a header and begin another (header injection). */
static inline void check_headers(const struct api_reply *reply)
{
    REQUIRE(reply->n_headers <= API_HEADERS_MAX);
    for (size_t i = 0; i < reply->n_headers; i++) {
        REQUIRE(*reply->headers[i].name && reply->headers[i].value);
        for (const char *c = reply->headers[i].value; *c; c++)
            REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
}

/* An answer is either the requested data or a problem with the reason; no 5xx occurs unless the server itself fails. */
static inline void check_answer(const struct answer *a)
{
    int status = a->reply->status;
    check_headers(a->reply);
    REQUIRE((status >= 200 && status <= 206) || status == 304 || (status >= 400 && status < 500) || status == 501);
    REQUIRE((status != 204 && status != 304) || a->n == 0);
    bool is_protocol = strncmp(a->reply->route, "/v2", 3) == 0; /* /v2 has its own error format */
    if (status >= 400 && !is_protocol && is_one_of(16))
        check_problem(a);
    if (status == 200 && a->n < 4096 && is_one_of(32) && strcmp(a->reply->content_type, "application/json") == 0) {
        json_t *json = json_loadb(a->body, a->n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        REQUIRE(json);
        json_decref(json);
    }
}

/* The same bytes, under the same name. */
static inline void check_same(const struct answer *a, const struct answer *b)
{
    REQUIRE(a->reply->status == b->reply->status);
    REQUIRE(a->n == b->n && memcmp(a->body, b->body, a->n) == 0);
    const char *left = header_of(a, "ETag"), *right = header_of(b, "ETag");
    REQUIRE(left ? right && strcmp(left, right) == 0 : !right);
}

/* Sends the request and checks the answer. False: there is no answer, because must_not_block is set and the answer
 * would take long. */
static inline bool ask_once(const struct api_host *host, const struct api_call *call, struct answer *a)
{
    struct api_reply *reply = api_answer(host, call);
    REQUIRE(reply || call->must_not_block);
    if (!reply)
        return false;
    *a = gather(reply);
    if (reply->body->n_pieces > 1 && is_one_of(8))
        make_backwards(a);
    check_answer(a);
    return true;
}

/* The same request has the same answer twice; checked for one input in 16. */
static inline bool ask(const struct api_host *host, const struct api_call *call, struct answer *a)
{
    struct answer again;
    if (!ask_once(host, call, a))
        return false;
    if (!is_one_of(16))
        return true;
    REQUIRE(ask_once(host, call, &again));
    check_same(a, &again);
    answer_drop(&again);
    return true;
}

#endif
