/* Owns SHA-256. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "server/auth/auth.h"

#include "server/loop/loop.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

void digest_make(const void *bytes, size_t n, uint8_t *digest)
{
    enum {
        TURN_BYTES = 1 << 20
    }; /* a file of weights may be gigabytes long: other jobs get a turn after so many bytes */
    struct sha256_ctx context;
    const uint8_t *from = bytes;
    sha256_init(&context);
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < TURN_BYTES ? n - at : TURN_BYTES;
        sha256_update(&context, part, from + at);
        job_yield();
    }
    sha256_digest(&context, DIGEST_BYTES, digest);
    explicit_bzero(&context, sizeof context); /* it contains the last block of a token */
}

void digest_print(const uint8_t *digest, char *text)
{
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static int value_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool digest_parse(const char *text, size_t n, uint8_t *digest)
{
    for (size_t i = 0; i < DIGEST_BYTES && n == 2 * DIGEST_BYTES; i++) {
        int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high * 16 + low);
    }
    return n == 2 * DIGEST_BYTES;
}

bool digest_is_same(const uint8_t *a, const uint8_t *b) { return memeql_sec(a, b, DIGEST_BYTES); }
