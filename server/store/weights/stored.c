/* Owns the choice of where weights and presets are stored: in a folder (--weights-dir), in a bucket (--store), or in
 * memory only. The options refuse both at once (options.c).
 *
 * Both are struct weights over the same place, and differ in what their files are, and in limits: api/ parses the
 * contents, a suffix (folder) or a prefix of the keys (bucket) keeps their names apart. In a bucket they share one
 * store below: connection, credentials, pauses after errors. s3_store_beside makes the second one, which uses the
 * first.
 *
 * So presets are opened after weights, and are stopped and freed before them. stored_open may fail halfway: stored_stop
 * and stored_free accept what it has left.
 *
 * The order at the end (main.c): drain shortens the patience of requests that wait; stop ends operations on the store,
 * before the loops wait for their jobs; free comes when no answer holds a stored file any more. */
#include "server/store/weights/weights.h"

#include "server/process/process.h"
#include "server/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct s3_settings settings_of(const struct options *options)
{
    return (struct s3_settings){.place = options->store,
                                .endpoint = options->store_endpoint,
                                .credentials = options->store_credentials,
                                .cache = options->store_cache,
                                .cache_bytes = options->max_weights,
                                .files_max = WEIGHTS_FILES_MAX};
}

/* False: the log gives the reason. */
static bool open_bucket(const struct options *options, struct store **store)
{
    char error[S3_ERROR_BYTES];
    struct s3_settings settings = settings_of(options);
    *store = s3_store_new(&settings, error);
    if (!*store)
        log_error("%s", error);
    else
        metrics_append(s3_print_metrics, *store);
    return *store;
}

/* NULL without a store; false: it cannot be used, and the log gives the reason. */
static bool open_folder(const struct options *options, const char *suffix, struct store **store)
{
    *store = *options->weights_dir ? folder_store_new(options->weights_dir, suffix) : NULL;
    if (*store || !*options->weights_dir)
        return true;
    log_error("--weights-dir %s: %s", options->weights_dir, strerror(errno));
    return false;
}

static uint64_t refresh_ms(const struct options *options)
{
    return 1000 * (*options->store ? options->store_refresh : options->weights_refresh);
}

static bool open_weights(struct stored *stored, const struct options *options)
{
    char error[WEIGHTS_ERROR_BYTES];
    struct weights_settings settings = {.contents = &api_contents_weights,
                                        .bytes_max = options->max_weights,
                                        .limit = "--max-weights",
                                        .files_max = WEIGHTS_FILES_MAX,
                                        .refresh_ms = refresh_ms(options)};
    if (!(*options->store ? open_bucket(options, &settings.store)
                          : open_folder(options, ".safetensors", &settings.store)))
        return false;
    stored->bucket = *options->store ? settings.store : NULL;
    stored->weights = weights_new(&settings, error);
    if (!stored->weights)
        log_error("%s", error);
    return stored->weights;
}

bool stored_open(struct stored *stored, const struct options *options)
{
    if (!open_weights(stored, options))
        return false;
    /* In the same place as the weights, under names of their own. */
    char error[WEIGHTS_ERROR_BYTES] = "stored presets: no memory";
    struct s3_beside beside = {.kind = S3_PRESETS,
                               .cache = options->store_cache,
                               .cache_bytes = API_PRESETS_BYTES_MAX,
                               .files_max = API_PRESETS_MAX};
    struct weights_settings settings = {.contents = &api_contents_presets,
                                        .bytes_max = API_PRESETS_BYTES_MAX,
                                        .files_max = API_PRESETS_MAX,
                                        .is_beside = true,
                                        .refresh_ms = refresh_ms(options)};
    if (stored->bucket)
        settings.store = s3_store_beside(stored->bucket, &beside);
    else if (!open_folder(options, ".preset.json", &settings.store))
        return false;
    if (settings.store || !stored->bucket)
        stored->presets = weights_new(&settings, error);
    if (!stored->presets)
        log_error("%s", error);
    return stored->presets;
}

bool stored_start(struct stored *stored) { return weights_start(stored->weights) && weights_start(stored->presets); }

void stored_drain(struct stored *stored)
{
    weights_drain(stored->presets);
    weights_drain(stored->weights);
}

void stored_stop(struct stored *stored)
{
    weights_stop(stored->presets);
    weights_stop(stored->weights);
}

void stored_free(struct stored *stored)
{
    weights_free(stored->presets); /* its store uses that of the weights */
    weights_free(stored->weights);
}

bool stored_sweep(const struct options *options)
{
    char error[S3_ERROR_BYTES];
    struct s3_settings settings = settings_of(options);
    struct s3_swept swept;
    bool fine = s3_sweep(&settings, (unsigned)options->store_sweep_max, &swept, error);
    printf("%s: %zu of %zu blobs removed, %" PRIu64 " bytes; %zu have no name and are not a day old\n", options->store,
           swept.n_removed, swept.n_blobs, swept.n_bytes, swept.n_young);
    if (!fine)
        fprintf(stderr, "posencd: %s\n", error);
    return fine;
}
