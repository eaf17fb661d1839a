/* For the tests of api/: a host, and answers as strings. Each test program is one file, so this is one header. */
#ifndef TESTS_API_ASK_H
#define TESTS_API_ASK_H

#include "api/api.h"
#include "tests/support/cmocka.h"

#define REQUIRE(law) assert_true(law)
#include "tests/support/answer.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char *metrics_print(size_t *n_bytes)
{
    char *text = malloc(8);
    if (text)
        memcpy(text, "m_sum 1\n", *n_bytes = 8);
    return text;
}

/* A page of three files: "<p>" twice, and one that is empty. */
static char *_Atomic plain_files[3];
static const struct api_page_file page_files[] = {
    {.name = "index.html",
     .gzip = "\37\213\10\0\0\0\0\0\2\3\263\51\260\3\0\273\241\156\74\3\0\0\0",
     .n_gzip = 23,
     .n_bytes = 3,
     .digest = "abc",
     .plain = &plain_files[0]},
    {.name = "views/table.js",
     .gzip = "\37\213\10\0\0\0\0\0\2\3\3\0\0\0\0\0\0\0\0\0",
     .n_gzip = 20,
     .n_bytes = 0,
     .digest = "def",
     .plain = &plain_files[1]},
    {.name = "plain.html",
     .gzip = "\37\213\10\0\0\0\0\0\2\3\263\51\260\3\0\273\241\156\74\3\0\0\0",
     .n_gzip = 23,
     .n_bytes = 3,
     .digest = "ghi",
     .plain = &plain_files[2]}};
static const struct api_page some_page = {.build = "0123456789abcdef", .files = page_files, .n_files = 3};

static const struct api_host host = {.max_body = 1 << 20,
                                     .max_answer = 1 << 26,
                                     .max_work = 1 << 30,
                                     .max_analysis = UINT64_C(1) << 40,
                                     .commit = "abc",
                                     .page = &some_page,
                                     .metrics_print = metrics_print};

/* The reply to a POST of a JSON body. */
static inline struct api_reply *post_to(const struct api_host *of, const char *path, const char *json)
{
    struct api_call call = {.method = "POST", .path = path, .body = json, .body_bytes = strlen(json)};
    return api_answer(of, &call);
}

static inline struct answer post(const char *path, const char *json) { return gather(post_to(&host, path, json)); }

static inline struct answer get(const char *path)
{
    struct api_call call = {.method = "GET", .path = path};
    return gather(api_answer(&host, &call));
}

/* Asserts status and that the body has each of the words (NULL ends them). */
static inline void assert_answer(struct answer a, int status, const char *const *words)
{
    if (a.status != status)
        fail_msg("status %d, not %d: %.300s", a.status, status, a.body);
    for (; words && *words; words++)
        if (!strstr(a.body, *words))
            fail_msg("no %s in %.600s", *words, a.body);
    answer_drop(&a);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
