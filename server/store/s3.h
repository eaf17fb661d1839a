/* A bucket of an S3-compatible store, below a prefix: blobs/<sha256> are files, which never change; names/<name> states
 * which of them a name denotes, {"sha256":"…","bytes":N}; and likewise presets/<name>. Several servers may use it at
 * the same time. */
#ifndef SERVER_STORE_S3_H
#define SERVER_STORE_S3_H

#include "server/store/store.h"

#include <stdio.h>

enum { S3_ERROR_BYTES = 512 };

/* The kinds of names that a bucket has: names/<name> of weights, presets/<name>. A blob is used if any of them denotes
 * it. */
enum s3_kind { S3_NAMES, S3_PRESETS, S3_N_KINDS };

struct s3_settings {
    const char *place;       /* "s3://bucket/prefix" */
    const char *endpoint;    /* "http://host:port"; "": AWS_ENDPOINT_URL_S3, else Amazon's of the region */
    const char *cache;       /* folder; "": none */
    const char *credentials; /* file; "": the environment */
    uint64_t cache_bytes;
    size_t files_max;
};

/* The texts of the settings are copied. Asks the store nothing. NULL: error[] of S3_ERROR_BYTES gives the reason. Call
 * it before any other thread runs. */
struct store *s3_store_new(const struct s3_settings *settings, char *error);

/* The same bucket again, with names of another kind. It shares connections and
 * figures with store, which must be freed later. NULL: no memory. Call it before any other thread runs. */
struct s3_beside {
    enum s3_kind kind;
    const char *cache; /* the folder of store; its own is in there. "": none */
    uint64_t cache_bytes;
    size_t files_max;
};
struct store *s3_store_beside(struct store *store, const struct s3_beside *beside);

/* Its figures as Prometheus text. */
void s3_print_metrics(void *store, FILE *out);

#endif
