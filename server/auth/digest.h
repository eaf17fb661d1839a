/* SHA-256 of stored files and of tokens. Only digest.c uses nettle. */
#ifndef SERVER_WHO_DIGEST_H
#define SERVER_WHO_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32 };

void digest_make(const void *bytes, size_t n, uint8_t *digest); /* [DIGEST_BYTES] */
void digest_print(const uint8_t *digest, char *text);           /* 64 digits in lower case and a NUL */
bool digest_parse(const char *text, size_t n, uint8_t *digest); /* 64 hexadecimal digits, nothing else */

/* Compares in constant time, so that timing reveals nothing about a secret. */
bool digest_is_same(const uint8_t *a, const uint8_t *b);

#endif
