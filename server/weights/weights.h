/* The store of weights: files in memory by name and, if there is a folder, on disk as NAME.safetensors. api/ reaches it
 * through struct api_store (api/api.h) and reads the contents of the files; here they are bytes. */
#ifndef SERVER_KEPT_WEIGHTS_H
#define SERVER_KEPT_WEIGHTS_H

#include "api/api.h"

struct weights;

enum { WEIGHTS_ERROR_BYTES = 512 };

/* A store of at most bytes_max bytes. folder "": memory only; else what is in it is read. NULL: error[] of
 * WEIGHTS_ERROR_BYTES says why. */
struct weights *weights_new(const char *folder, uint64_t bytes_max, char *error);
void weights_free(struct weights *weights); /* when nobody holds a file any more; NULL is accepted */

const struct api_store *weights_store(const struct weights *weights); /* borrowed until weights_free */

/* Makes the store what the folder is now; a file that cannot be read stays as it was. The log says what was found. May
 * take as long as reading all of it. Any thread. */
void weights_reread(struct weights *weights);

#endif
