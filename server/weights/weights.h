/* The store of weights: files in memory, found by name, and also on disk as NAME.safetensors if there is a folder. api/
 * reaches it through struct api_store (api/api.h) and parses the contents of the files; here they are plain bytes. */
#ifndef SERVER_KEPT_WEIGHTS_H
#define SERVER_KEPT_WEIGHTS_H

#include "api/api.h"

struct weights;

enum { WEIGHTS_ERROR_BYTES = 512 };

/* A store of at most bytes_max bytes. folder "": memory only; otherwise the files in the folder are read. NULL: error[]
 * of WEIGHTS_ERROR_BYTES gives the reason. */
struct weights *weights_new(const char *folder, uint64_t bytes_max, char *error);
void weights_free(struct weights *weights); /* call it when no file is held any more; NULL is accepted */

const struct api_store *weights_store(const struct weights *weights); /* borrowed until weights_free */

/* Brings the store in line with the folder; a file that cannot be read keeps its old contents. Logs the result. May
 * take as long as reading the whole folder. Any thread. */
void weights_reread(struct weights *weights);

#endif
