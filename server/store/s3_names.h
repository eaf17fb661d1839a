/* What names/<name> of a bucket states: which blob the name denotes. Changed under the condition that it still states
 * what was read. */
#ifndef SERVER_STORE_S3_NAMES_H
#define SERVER_STORE_S3_NAMES_H

#include "server/store/bucket.h"

/* Names below kind/, of a bucket. */
struct s3_names {
    struct bucket *bucket;
    const char *kind; /* one of s3_kinds, a constant string */
};
extern const char *const s3_kinds[S3_N_KINDS];

struct s3_said {
    char etag[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
    uint64_t n_bytes;
};

/* All of them, sorted, with their tags as versions; more than n_max: STORE_REFUSED. *list is dropped by the caller if
 * the result is STORE_DONE; otherwise why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_list(const struct s3_names *names, size_t n_max, struct store_list *list, char *why);

/* STORE_ABSENT: there is none; STORE_FAILED: why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_get(const struct s3_names *names, const char *name, struct s3_said *said, char *why);

/* Whether the store obeys the condition of a guarded change, If-Match if there is a name (said) and else If-None-Match;
 * asked for once in a process, before its first such change. STORE_UNGUARDED: it does not, and the log states it;
 * another result than STORE_DONE: it cannot be known now, and why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_probe(const struct s3_names *names, const struct s3_said *said, char *why);

/* Writes or removes. said: what was read before, NULL if there was none; a guarded change holds only if it states that
 * still. STORE_SAME: another server came in between; *is_sure as of bucket_ask. */
enum store_result s3_names_put(const struct s3_names *names, const char *name, const struct s3_said *said,
                               struct store_writing *writing, bool *is_sure, char *why);
enum store_result s3_names_remove(const struct s3_names *names, const char *name, const struct s3_said *said,
                                  bool is_guarded, char *why);

#endif
