/* What an S3-compatible store answers, read: lists and errors in XML, and our own names/NAME. Every text ends with a
 * NUL. */
#ifndef SERVER_STORE_ANSWERS_H
#define SERVER_STORE_ANSWERS_H

#include "server/store/store.h"

enum { ANSWERS_TOKEN_BYTES = 1024, ANSWERS_CODE_BYTES = 64 };

/* Adds the names below `prefix` ("a/names/") of one ListObjectsV2 answer, with their ETags as versions; keys that are
 * no names of weights are passed over. next: the token of the next part, "" if this was the last. False: it is no such
 * answer, is not whole (to its closing tag, and it states whether it goes on), has more than n_max names, or memory
 * runs out. */
bool answers_list(const char *xml, const char *prefix, size_t n_max, struct store_list *list,
                  char next[ANSWERS_TOKEN_BYTES]);

/* The Code of an error, "NoSuchBucket"; "" if there is none. text may be NULL. */
void answers_code(const char *text, char code[ANSWERS_CODE_BYTES]);

/* {"sha256":"…","bytes":N}, as answers_print_name makes it; what follows the number is left alone. */
bool answers_name(const char *text, char sha256[STORE_DIGEST_BYTES], uint64_t *n_bytes);
enum { ANSWERS_NAME_BYTES = 160 };
size_t answers_print_name(char text[ANSWERS_NAME_BYTES], const char *sha256, uint64_t n_bytes);

#endif
