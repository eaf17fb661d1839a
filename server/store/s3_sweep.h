/* A bucket swept: a name that is replaced or deleted leaves its blob, because another name, or a server that reads just
 * now, may need it. */
#ifndef SERVER_STORE_S3_SWEEP_H
#define SERVER_STORE_S3_SWEEP_H

#include "server/store/s3.h"

enum { S3_SWEEP_AGE_S = 86400 }; /* a blob younger than this may belong to a name that is being written */

struct s3_swept {
    size_t n_blobs, n_removed, n_young; /* all; removed; without a name, but too young */
    uint64_t n_bytes;                   /* removed */
};

/* Removes the blobs that no name stands for and that are a day old by the store's clock. Servers may use the bucket
 * meanwhile: a server that stores a blob again which is half a day old writes it anew (s3.c). What is not certain (a
 * name that cannot be read, a list that is not whole) ends the sweep before it removes anything. False: error[] of
 * S3_ERROR_BYTES gives the reason, *swept what was done until then. */
bool s3_sweep(const struct s3_settings *settings, struct s3_swept *swept, char *error);

#endif
