/* Chunks of a Zarr array: their shape, their keys, and what of the tensor is in them. */
#include "api/endpoints/zarr/zarr.h"

struct zarr_grid zarr_grid_of(const struct pe_output *output, uint64_t chunk_bytes)
{
    struct zarr_grid grid = {.rank = output->rank, .chunk_bytes = pe_dtype_size(output->dtype)};
    bool is_cut = false;
    for (unsigned axis = output->rank; axis-- > 0;) {
        uint64_t n = output->shape[axis] ? output->shape[axis] : 1, room = chunk_bytes / grid.chunk_bytes;
        grid.shape[axis] = output->shape[axis];
        grid.chunk[axis] = is_cut || room == 0 ? 1 : n < room ? n : room;
        is_cut |= grid.chunk[axis] < n;
        grid.chunk_bytes *= grid.chunk[axis];
    }
    return grid;
}

static uint64_t n_along(const struct zarr_grid *grid, unsigned axis)
{
    return grid->shape[axis] / grid->chunk[axis] + (grid->shape[axis] % grid->chunk[axis] != 0);
}

/* A number below limit without leading zeros; returns what follows it, NULL if there is none. */
static const char *number_parse(const char *text, uint64_t limit, uint64_t *value)
{
    *value = 0;
    if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (*value > limit / 10)
            return NULL;
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return *value < limit ? text : NULL;
}

bool zarr_chunk_parse(const struct zarr_grid *grid, const char *key, uint64_t *place)
{
    uint64_t zero;
    if (grid->rank == 0)
        return (key = number_parse(key, 1, &zero)) && !*key;
    for (unsigned axis = 0; axis < grid->rank; axis++) {
        if (axis > 0 && *key++ != '.')
            return false;
        key = number_parse(key, n_along(grid, axis), &place[axis]);
        if (!key)
            return false;
    }
    return !*key;
}

struct pe_slice zarr_chunk_slice(const struct zarr_grid *grid, const uint64_t *place, uint64_t *n_missing)
{
    struct pe_slice slice = {.n_cuts = grid->rank};
    uint64_t n_whole = 1, n_here = 1;
    for (unsigned axis = 0; axis < grid->rank; axis++) {
        uint64_t start = place[axis] * grid->chunk[axis], left = grid->shape[axis] - start;
        uint64_t n = left < grid->chunk[axis] ? left : grid->chunk[axis];
        slice.cuts[axis] = (struct pe_cut){.start = (int64_t)start, .stop = (int64_t)(start + n), .step = 1};
        n_whole *= grid->chunk[axis];
        n_here *= n;
    }
    *n_missing = n_whole - n_here;
    return slice;
}
