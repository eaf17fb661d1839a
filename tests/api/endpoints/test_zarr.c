/* Zarr stores: the chunks of a grid, their keys and slices; every allocation fails once. What readers see is tested
 * over a socket. */
#include "tests/api/ask.h"

#include "api/endpoints/zarr/zarr.h"
#include "tests/support/alloc.h"

#include <stdio.h>

static struct zarr_grid grid_of(uint64_t chunk_bytes, unsigned rank, const uint64_t *shape)
{
    struct pe_output output = {.name = "x", .dtype = PE_F32, .rank = rank};
    memcpy(output.shape, shape, rank * sizeof *shape);
    return zarr_grid_of(&output, chunk_bytes);
}

TEST(test_shapes)
{
    static const struct {
        uint64_t bytes, shape[3], chunk[3];
    } cases[] = {
        {4 << 20, {8, 4096, 4096}, {1, 256, 4096}},
        {4 << 20, {1, 2, 3}, {1, 2, 3}},
        {24, {1, 2, 3}, {1, 2, 3}},
        {23, {5, 2, 3}, {1, 1, 3}},
        {11, {5, 2, 3}, {1, 1, 2}},
        {3, {5, 2, 3}, {1, 1, 1}},
        {48, {5, 2, 3}, {2, 2, 3}},
        {1, {1, 1, 1}, {1, 1, 1}},
        {4 << 20, {7, 1, 1}, {7, 1, 1}},
        {1 << 20, {2, UINT64_C(1) << 40, 1024}, {1, 256, 1024}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zarr_grid grid = grid_of(cases[i].bytes, 3, cases[i].shape);
        assert_memory_equal(grid.chunk, cases[i].chunk, sizeof cases[i].chunk);
        assert_int_equal(grid.chunk_bytes, 4 * grid.chunk[0] * grid.chunk[1] * grid.chunk[2]);
    }
}

TEST(test_keys)
{
    static const char *const wrong[] = {"",       "0",      "0.0",    "0.0.0.0", "3.0.0",  "0.3.0",
                                        "0.0.2",  "0.0.0.", ".0.0.0", "0..0",    "00.0.0", "0.01.0",
                                        "-1.0.0", "0.0.0x", "0,0,0",  " 0.0.0",  "0.0. 0", "18446744073709551616.0.0",
                                        "0x0.0.0"};
    struct zarr_grid grid = grid_of(16, 3, (const uint64_t[]){3, 3, 5}), scalar = grid_of(16, 0, (const uint64_t[]){0});
    uint64_t place[PE_RANK_MAX];
    assert_true(zarr_chunk_parse(&grid, "2.1.1", place));
    assert_true(place[0] == 2 && place[1] == 1 && place[2] == 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (zarr_chunk_parse(&grid, wrong[i], place))
            fail_msg("%s", wrong[i]);
    assert_true(zarr_chunk_parse(&scalar, "0", place));
    assert_false(zarr_chunk_parse(&scalar, "1", place));
    assert_false(zarr_chunk_parse(&scalar, "", place));
}

/* Together, the slices of all chunks have each element once. */
TEST(test_slices)
{
    struct zarr_grid grid = grid_of(40, 2, (const uint64_t[]){7, 4}); /* chunks of 2 × 4 */
    uint64_t n_all = 0;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t n_missing;
        struct pe_slice slice = zarr_chunk_slice(&grid, (const uint64_t[]){i, 0}, &n_missing);
        assert_int_equal(slice.n_cuts, 2);
        assert_int_equal(slice.cuts[0].start, 2 * i);
        assert_int_equal(n_missing, i == 3 ? 4 : 0);
        n_all += (uint64_t)(slice.cuts[0].stop - slice.cuts[0].start) * 4;
    }
    assert_int_equal(n_all, 28);
}

TEST(test_every_allocation_fails_once)
{
    static const char *const keys[] = {".zmetadata", "zarr.json", "bias/.zarray", "bias/1.3.0", "bias/9.9.9"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char path[128];
        snprintf(path, sizeof path, "/zarr/scheme=alibi&num_heads=2&len=10&outputs=bias&chunk=120/%s", keys[i]);
        struct api_call call = {.method = "GET", .path = path};
        int usual = i + 1 < sizeof keys / sizeof *keys ? 200 : 404, status = 0;
        for (long n = 0; n < 500 && status != usual; n++) {
            alloc_fail_at(n);
            struct api_reply *reply = api_answer(&host, &call);
            alloc_fail_at(-1);
            status = reply->status;
            assert_true(status == 503 || status == usual);
            api_reply_free(reply);
        }
        assert_int_equal(status, usual);
    }
}

void tests_begin(void) { api_setup(); }
