/* Tables of waves on several axes.
 *
 * The problem: a table mixes columns of different kinds. A sequence of image patches has columns for the time, the
 * height and the width, in groups or interleaved, and DINOv3 and Fourier features add columns that are linear in the
 * position. The machinery below this file knows one axis and sines alone.
 *
 * The idea: when the table is prepared, its columns are sorted into parts, one for each axis and kind, and each part is
 * a dense table of its own (wave_table.c). A request for a rectangle of the whole is then a request for a range of
 * columns of each part. A part whose wanted columns are neighbours in the whole is filled in place; one whose columns
 * are scattered is filled through a scratch block of 32 rows and distributed from there.
 *
 * Invariant: an element depends on its column's constants and its position, never on the part, the rectangle or the
 * neighbours that are computed with it. So any split of a table gives the same bytes. tests/core/waves/test_waves.c
 * compares rectangles with the whole. */
#include "core/waves/waves.h"
#include "core/numeric/numeric.h"

#include <stdlib.h>
#include <string.h>

/* Columns of one axis and one kind. */
struct part {
    unsigned axis;
    size_t n;
    size_t *place; /* [n], ascending: the place of each in the whole table; NULL: column j of the table is column j of
                      the part */
    struct pe_wave_table *table; /* NULL: linear columns … */
    struct pe_wave *columns;     /* … which are these */
};

enum { PARTS_MAX = 2 * PE_AXES_MAX };

struct pe_waves {
    struct part parts[PARTS_MAX];
    size_t n_parts;
};

/* ---- Making ---- */

/* Which part a column belongs to, of PARTS_MAX: two for each axis. */
static size_t part_of(const struct pe_wave *column) { return 2 * column->axis + (column->quarter == PE_LINEAR); }

/* Allocates the columns of part k and copies them. */
static enum pe_status gather(struct part *part, const struct pe_wave *columns, size_t n, size_t k, size_t room)
{
    part->place = malloc(room * sizeof *part->place);
    part->columns = malloc(room * sizeof *part->columns);
    if (!part->place || !part->columns)
        return PE_NO_MEMORY;
    for (size_t j = 0; j < n; j++)
        if (part_of(&columns[j]) == k) {
            part->columns[part->n] = columns[j];
            part->place[part->n++] = j;
        }
    return PE_OK;
}

static enum pe_status part_init(struct part *part, const struct pe_wave *columns, size_t n, size_t k, size_t room,
                                enum pe_dtype dtype, uint64_t n_rows)
{
    bool linear = k % 2;
    part->axis = (unsigned)(k / 2);
    if (room == n && !linear) { /* the table has only this part, like most tables */
        part->n = n;
        return pe_wave_table_new(columns, n, dtype, n_rows, &part->table);
    }
    enum pe_status status = gather(part, columns, n, k, room);
    return status || linear ? status : pe_wave_table_new(part->columns, room, dtype, n_rows, &part->table);
}

enum pe_status pe_waves_new_for(const struct pe_wave *columns, size_t n, enum pe_dtype dtype, uint64_t n_rows,
                                struct pe_waves **out)
{
    size_t sizes[PARTS_MAX] = {0};
    struct pe_waves *w = calloc(1, sizeof *w);
    enum pe_status status = w ? PE_OK : PE_NO_MEMORY;
    for (size_t j = 0; j < n; j++)
        sizes[part_of(&columns[j])]++;
    for (size_t k = 0; !status && k < PARTS_MAX; k++)
        if (sizes[k])
            status = part_init(&w->parts[w->n_parts++], columns, n, k, sizes[k], dtype, n_rows);
    if (status)
        pe_waves_free(w);
    else
        *out = w;
    return status;
}

enum pe_status pe_waves_new(const struct pe_wave *columns, size_t n, struct pe_waves **out)
{
    return pe_waves_new_for(columns, n, PE_F64, UINT64_MAX, out);
}

void pe_waves_free(struct pe_waves *waves)
{
    for (size_t i = 0; waves && i < waves->n_parts; i++) {
        free(waves->parts[i].place);
        free(waves->parts[i].columns);
        pe_wave_table_free(waves->parts[i].table);
    }
    free(waves);
}

/* ---- Filling ---- */

static void fill_columns(const struct part *part, enum pe_dtype dtype, const struct pe_positions *positions,
                         uint64_t row0, size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride)
{
    if (part->table)
        pe_wave_table_fill(part->table, dtype, positions, row0, n_rows, col0, n_cols, dst, stride);
    else {
        /* A dense block of one part: columns col0 … of the part. */
        for (size_t i = 0; i < n_rows; i++) {
            double p = pe_position_at(positions, row0 + i);
            for (size_t j = 0; j < n_cols; j++) {
                const struct pe_wave *w = &part->columns[col0 + j];
                struct pe_dd v = dd_mul(dd_mul_d((struct pe_dd){w->fh, w->fl}, p), (struct pe_dd){w->ah, w->al});
                pe_store(dtype, dst, i * stride + j, dtype == PE_F64 ? v.hi : dd_round_odd(v));
            }
        }
    }
}

/* dst[place[j]] = src[j] for elements of the given size. */
static void scatter(const size_t *place, size_t origin, size_t n, size_t size, const char *src, char *dst)
{
    for (size_t j = 0; j < n; j++)
        memcpy(dst + (place[j] - origin) * size, src + j * size, size);
}

enum { SCRATCH_ROWS = 32, SCRATCH_COLS = 128 };

static void fill_scattered(const struct part *part, enum pe_dtype dtype, const struct pe_positions *positions,
                           uint64_t row0, size_t n_rows, size_t first, size_t last, size_t origin, char *dst,
                           size_t stride)
{
    _Alignas(64) double scratch[SCRATCH_ROWS * SCRATCH_COLS];
    size_t size = pe_dtype_size(dtype);
    for (size_t at = first; at < last; at += SCRATCH_COLS)
        for (size_t i = 0; i < n_rows; i += SCRATCH_ROWS) {
            size_t n = last - at < SCRATCH_COLS ? last - at : SCRATCH_COLS;
            size_t m = n_rows - i < SCRATCH_ROWS ? n_rows - i : SCRATCH_ROWS;
            fill_columns(part, dtype, positions, row0 + i, m, at, n, scratch, n);
            for (size_t k = 0; k < m; k++)
                scatter(part->place + at, origin, n, size, (char *)scratch + k * n * size,
                        dst + (i + k) * stride * size);
        }
}

/* The first of the part's columns at `place` or after it. */
static size_t lower_bound(const struct part *part, size_t place)
{
    size_t low = 0, high = part->n;
    if (!part->place)
        return place;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (part->place[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t place_of(const struct part *part, size_t j) { return part->place ? part->place[j] : j; }

void pe_waves_fill(const struct pe_waves *waves, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                   size_t n_rows, size_t col0, size_t n_cols, void *dst, size_t stride)
{
    for (size_t k = 0; k < waves->n_parts; k++) {
        const struct part *part = &waves->parts[k];
        const struct pe_positions *positions = &axes[part->axis];
        size_t first = lower_bound(part, col0), last = lower_bound(part, col0 + n_cols);
        if (first == last)
            continue;
        size_t place = place_of(part, first);
        bool side_by_side = place_of(part, last - 1) - place == last - 1 - first;
        if (side_by_side)
            fill_columns(part, dtype, positions, row0, n_rows, first, last - first,
                         (char *)dst + (place - col0) * pe_dtype_size(dtype), stride);
        else
            fill_scattered(part, dtype, positions, row0, n_rows, first, last, col0, dst, stride);
    }
}
