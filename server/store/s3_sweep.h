/* A bucket swept: a name that is replaced or deleted leaves its blob, because another name, or a server that reads just
 * now, may need it. */
#ifndef SERVER_STORE_S3_SWEEP_H
#define SERVER_STORE_S3_SWEEP_H

#include "server/store/bucket.h"

enum { S3_SWEEP_AGE_S = 86400 }; /* a blob younger than this may belong to a name that is being written */

struct s3_swept {
    size_t n_blobs, n_removed, n_young; /* all; removed; without a name, but too young */
    uint64_t n_bytes;                   /* removed */
};

/* Removes the blobs that no name refers to and that are a day old by the store's clock, but none if they would be more
 * than max_percent of all that are a day old, and more than a few. Servers may use the bucket meanwhile: a server that
 * stores a blob again which is half a day old writes it anew (s3.c) and then calls s3_sweep_wait. What is not certain
 * (a name that cannot be read, a list that is not whole) ends the sweep before it removes anything. False: error[] of
 * S3_ERROR_BYTES gives the reason, *swept what was done until then. */
bool s3_sweep(const struct s3_settings *settings, unsigned max_percent, struct s3_swept *swept, char *error);

/* Waits while a sweep is removing this blob; afterwards it has been removed or stays. Called after a name was written
 * that denotes it. False: it takes too long, or cannot be known; why[STORE_WHY_BYTES] gives the reason. */
bool s3_sweep_wait(struct bucket *bucket, const char *sha256, char *why);

#endif
