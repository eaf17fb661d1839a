/* An answer as a Zarr store: its arrays and chunks, and the texts about them. */
#ifndef API_ZARR_H
#define API_ZARR_H

#include "api/text.h"
#include "core/inside.h"

/* ---- zarr.c ------------------------------------------------------------------------------------------------------ */

/* How a tensor is cut into the chunks of a Zarr array. */

/* A part of one array's grid: the shape of the array and of its chunks, each of rank axes. */
struct zarr_grid {
    unsigned rank;
    uint64_t shape[PE_RANK_MAX], chunk[PE_RANK_MAX]; /* a chunk has at least one element along each axis */
    uint64_t chunk_bytes;
};

/* Trailing axes that fit chunk_bytes together are whole, the axis before them is cut, those before it are 1. This rule
 * must never change: the chunks of two releases would not fit together. */
struct zarr_grid zarr_grid_of(const struct pe_output *output, uint64_t chunk_bytes);

/* Reads a chunk's key, one number for each axis as in "1.0.3"; "0" for a tensor without axes. False: it is no key of a
 * chunk in the grid. */
bool zarr_chunk_parse(const struct zarr_grid *grid, const char *key, uint64_t *place);

/* The elements of the chunk that exist; n_missing: those that an edge chunk has beyond the array's end. All of them
 * follow the others, since only the first axis that is cut can be short. */
struct pe_slice zarr_chunk_slice(const struct zarr_grid *grid, const uint64_t *place, uint64_t *n_missing);

/* ---- texts.c ----------------------------------------------------------------------------------------------------- */

/* The texts of a Zarr store, versions 2 and 3 of the format: what describes its arrays. */

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
