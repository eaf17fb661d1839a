/* The texts of a Zarr store, versions 2 and 3 of the format: what describes its arrays. */
#ifndef API_ZARR_TEXTS_H
#define API_ZARR_TEXTS_H

#include "api/text.h"

/* The store of a plan's outputs. */
struct zarr_store {
    const struct pe_plan *plan;
    uint64_t chunk_bytes;
};

/* The element that a chunk has where it has no data: NaN, or the least integer. dst has room for 8 bytes. */
void zarr_fill_value(enum pe_dtype dtype, void *dst);

/* Writes the text of a key of the whole store (".zgroup", ".zattrs", ".zmetadata", "zarr.json"), or of output number i
 * (".zarray", ".zattrs", "zarr.json"). False: there is no such key. */
bool zarr_text_of_store(struct api_text *text, const struct zarr_store *store, const char *key);
bool zarr_text_of_output(struct api_text *text, const struct zarr_store *store, size_t i, const char *key);

#endif
