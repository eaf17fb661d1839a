/* Who a client is: digests, tokens, and the quotas of each token's name. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "api/api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- tokens.c: SHA-256 ------------------------------------------------------------------------------------------- */

/* SHA-256 of stored files and of tokens. Only tokens.c uses nettle. */

enum { DIGEST_BYTES = 32 };

void digest_make(const void *bytes, size_t n, uint8_t *digest); /* [DIGEST_BYTES] */
void digest_print(const uint8_t *digest, char *text);           /* 64 digits in lower case and a NUL */
bool digest_parse(const char *text, size_t n, uint8_t *digest); /* 64 hexadecimal digits, nothing else */

/* Compares in constant time, so that timing reveals nothing about a secret. */
bool digest_is_same(const uint8_t *a, const uint8_t *b);

/* ---- tokens.c ---------------------------------------------------------------------------------------------------- */

/* Rights: the file of --token-file, and the quotas that each of its names has used.
 *
 *   # NAME TOKEN read|write [requests=N/s] [work=SECONDS/s] [streams=N]      (also /m and /h)
 *   alice  Vn3kQ8r0YxJ2mB7tLw5z                                    write
 *   batch  sha256:a6c2b1e0f3d44c5b8f7e9d0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789  read requests=100/s streams=4
 *
 * A token itself is never kept, only its SHA-256, and never printed. Every function may be called from any thread. */

struct tokens;
struct account; /* of one name; lives as long as struct tokens, even after the name has left the file */

/* Reads the file. NULL: error[] (of TOKENS_ERROR_BYTES) names the wrong line and states what is allowed. */
enum { TOKENS_ERROR_BYTES = 512, TOKENS_MAX = 1024, TOKENS_NAME_MAX = 64 };
struct tokens *tokens_new(const char *path, char *error);
/* The same for the contents of a file. text[n + 1], terminated by a NUL, is cut into words. path, borrowed, is used for
 * errors and by tokens_reread. */
struct tokens *tokens_parse(const char *path, char *text, size_t n, char *error);
void tokens_free(struct tokens *tokens); /* NULL is accepted */

/* Reads the file again; an invalid file changes nothing. Logs one line either way. */
void tokens_reread(struct tokens *tokens);

/* Returns the rights that the Authorization header (NULL: absent) grants, and the client's account in *account (NULL if
 * there is none). */
enum api_access tokens_find(struct tokens *tokens, const char *authorization, struct account **account);

const char *account_name(const struct account *account);
uint64_t account_client(const struct account *account); /* the client number for struct job */

/* Counts a request that begins. False: a quota is used up; detail[] of n_detail bytes names it and the amount left, and
 * *retry_s is the time after which to try again. */
bool account_admit(struct account *account, char *detail, size_t n_detail, uint64_t *retry_s);
/* The same for an answer that will be streamed. After true, account_end_stream must follow. */
bool account_begin_stream(struct account *account, char *detail, size_t n_detail, uint64_t *retry_s);
void account_end_stream(struct account *account);
void account_charge(struct account *account, uint64_t work_ns); /* call it as the computing is done */

/* Prints the figures by name, for /metrics. */
void tokens_print(struct tokens *tokens, FILE *out);

/* ---- accounts.c -------------------------------------------------------------------------------------------------- */

/* The quotas of each name of the token file, and their use so far. Other folders use tokens.c. */

/* An amount per period, refilled evenly: a client that has made no request for a period may use all of it at once. */
struct rate {
    double most; /* 0: no limit */
    double period_s;
};

struct quotas {
    struct rate requests, work; /* work: seconds of computing */
    uint64_t streams;           /* at the same time; 0: no limit */
};

/* Parses "requests=100/s", "work=30/m" or "streams=4" into quotas. False: the word is none of these, or is given
 * twice. */
bool quotas_parse(const char *word, struct quotas *quotas);

/* The account of a name, created at the head of the list if it does not exist. NULL: no memory, or there are n_max
 * already. */
struct account *accounts_open(struct account **list, size_t n_max, const char *name);
void account_set_quotas(struct account *account, const struct quotas *quotas);
void accounts_print(struct account *list, FILE *out);
void accounts_free(struct account *list); /* NULL is accepted */

#endif
