/* Stored weights, and likewise stored presets: files in memory, found by name, and also in a folder or a bucket that
 * other servers may change (server/store/). api/ reaches them through struct api_store (api/api.h) and parses the
 * contents of the files; here they are plain bytes. */
#ifndef SERVER_STORE_WEIGHTS_WEIGHTS_H
#define SERVER_STORE_WEIGHTS_WEIGHTS_H

#include "api/api.h"
#include "server/store/store.h"

struct weights;

/* The nearest name is found by comparing with every name: half a millisecond for this many. */
enum { WEIGHTS_ERROR_BYTES = 512, WEIGHTS_FILES_MAX = 4096 };

struct weights_settings {
    const struct api_contents *contents; /* what the files are */
    struct store *store;                 /* taken, also on failure; NULL: memory only */
    uint64_t bytes_max;                  /* of all files together */
    const char *limit;                   /* the flag that sets it; NULL: none does */
    size_t files_max;                    /* at most WEIGHTS_FILES_MAX */
    bool is_beside;                      /* other weights_new of the same store log whether it answers */
    uint64_t refresh_ms; /* how often the store is compared with the memory; 0: only by weights_reread */
};

/* Reads the files of the store, or, if it may be away, those that this machine has kept of it. NULL: error[] of
 * WEIGHTS_ERROR_BYTES gives the reason. */
struct weights *weights_new(const struct weights_settings *settings, char *error);
/* Begins to refresh. False: no thread. */
bool weights_start(struct weights *weights);
/* Operations on the store that are in progress and later ones fail at once, and refreshing ends. NULL is accepted. */
void weights_drain(struct weights *weights); /* requests wait for a second at most from here on */
void weights_stop(struct weights *weights);
void weights_free(struct weights *weights); /* call it when no file is held any more; NULL is accepted */

const struct api_store *weights_store(const struct weights *weights); /* borrowed until weights_free */

/* Brings the memory in line with the store; a file that cannot be read keeps its old contents. Logs the result. May
 * take as long as reading the whole store. Any thread. */
void weights_reread(struct weights *weights);

#endif
