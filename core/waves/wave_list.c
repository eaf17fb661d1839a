/* Rows of waves at positions in no order, in f32: the columns as the kernel for lists wants them (kernels/list.c).
 *
 * Most tables hold a sine and a cosine of every frequency, side by side (sinusoidal) or half the columns apart
 * (rotary's cos|cos and sin|sin). One reduction of the phase serves both, and whichever way round the quarter puts
 * them, each of the two polynomials is used once: a pair costs little more than one column. So the arrangement is
 * recognised once, when the table is prepared, and the columns become units, each a column or a pair.
 *
 * The kernel returns how many rows are right and stops after the first that is not; the caller computes that row with
 * the kernel that is right to 2^-50, and goes on behind it. A table in which most rows end that way is better off
 * without this file: wave_table.c counts.
 *
 * Which columns qualify: amplitudes from 2^-60 to 2^60 and frequencies that are not 0, so that no float is subnormal
 * and a relative bound holds. A requested range of columns that cuts a pair is computed with its partner in a scratch
 * row. */
#include "core/waves/waves.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum arrangement { ALONE, NEIGHBOURS, HALVES };

/* A unit is a column, or two columns that are computed together. Arrays are padded by a group that repeats the last
 * unit. */
struct pe_wave_list {
    enum arrangement arrangement;
    size_t n; /* columns */
    double fastest;
    bool scaled;
    double *fh, *fl, *centre, *sizes, *next_sizes; /* of units; they follow the struct in the same allocation */
};

enum { N_ARRAYS = 5 };

/* ---- Making ---- */

/* Amplitudes within this and its inverse: with phases above 2^-60 no float is subnormal. */
#define SIZE_LEAST 0x1p-60

static bool suits(const struct pe_wave *c)
{
    return c->fh != 0 && fabs(c->ah) >= SIZE_LEAST && fabs(c->ah) <= 1 / SIZE_LEAST;
}

static bool are_pair(const struct pe_wave *a, const struct pe_wave *b)
{
    return a->fh == b->fh && a->fl == b->fl && (a->quarter - b->quarter) % 2 != 0;
}

/* Does each column of the first half, or every second column, form a pair with the column `apart` places after it? */
static bool all_pairs(const struct pe_wave *columns, size_t n, size_t step, size_t apart)
{
    for (size_t i = 0; i < n / 2; i++)
        if (!are_pair(&columns[i * step], &columns[i * step + apart]))
            return false;
    return n % 2 == 0;
}

static enum arrangement arrangement_of(const struct pe_wave *columns, size_t n)
{
    return all_pairs(columns, n, 2, 1) ? NEIGHBOURS : all_pairs(columns, n, 1, n / 2) ? HALVES : ALONE;
}

/* The amplitude's lower part is omitted, because the kernel's bound covers it. The second column of a pair is a
 * quarter ahead of the first, or the negative of that. */
static void set_unit(struct pe_wave_list *l, size_t u, const struct pe_wave *first, const struct pe_wave *second)
{
    l->fh[u] = first->fh;
    l->fl[u] = first->fl;
    l->centre[u] = PE_LIST_CENTRE + first->quarter;
    l->sizes[u] = first->ah;
    l->next_sizes[u] = (second->quarter - first->quarter) & 2 ? -second->ah : second->ah;
    l->scaled |= l->sizes[u] != 1 || l->next_sizes[u] != 1;
    l->fastest = fmax(l->fastest, fabs(first->fh));
}

_Static_assert(sizeof(struct pe_wave_list) % _Alignof(double) == 0, "the arrays stand behind the struct");

enum pe_status pe_wave_list_new(const struct pe_wave *columns, size_t n, struct pe_wave_list **out)
{
    *out = NULL;
    for (size_t j = 0; j < n; j++)
        if (!suits(&columns[j]))
            return PE_OK;
    enum arrangement arrangement = arrangement_of(columns, n);
    size_t n_units = arrangement == ALONE ? n : n / 2, room = n_units + PE_WAVES_LANES;
    struct pe_wave_list *l = malloc(sizeof *l + room * N_ARRAYS * sizeof(double));
    if (!l)
        return PE_NO_MEMORY;
    *l = (struct pe_wave_list){.arrangement = arrangement, .n = n};
    double **const arrays[N_ARRAYS] = {&l->fh, &l->fl, &l->centre, &l->sizes, &l->next_sizes};
    for (size_t i = 0; i < N_ARRAYS; i++)
        *arrays[i] = (double *)(void *)(l + 1) + i * room;
    size_t step = l->arrangement == NEIGHBOURS ? 2 : 1;
    size_t apart = l->arrangement == HALVES ? l->n / 2 : step - 1;
    for (size_t u = 0; u < n_units; u++) {
        const struct pe_wave *first = &columns[u * step];
        set_unit(l, u, first, l->arrangement == ALONE ? first : first + apart);
    }
    for (size_t i = 0; i < N_ARRAYS; i++) {
        double *array = *arrays[i];
        for (size_t u = n_units; u < room; u++)
            array[u] = array[n_units - 1];
    }
    *out = l;
    return PE_OK;
}

void pe_wave_list_free(struct pe_wave_list *list) { free(list); }

/* ---- Rows ---- */

/* The rows to compute. */
struct rows {
    const struct pe_wave_list *list;
    const double *positions;
    size_t n;
};

/* Fills n units from u on of each row. next: as in the kernel. */
static size_t fill_units(const struct rows *rows, size_t u, size_t n, float *out, float *next, size_t stride)
{
    const struct pe_wave_list *l = rows->list;
    const double *sizes = l->scaled ? l->sizes + u : NULL, unsure = l->fastest * 0x1p-53;
    if (l->arrangement == ALONE)
        return pe_kernels()->list_f32(rows->positions, rows->n, unsure, l->fh + u, l->fl + u, l->centre + u, sizes, n,
                                      out, stride);
    return pe_kernels()->list_pairs_f32(rows->positions, rows->n, unsure, l->fh + u, l->fl + u, l->centre + u, sizes,
                                        l->next_sizes + u, n, out, next, stride);
}

/* Neighbouring pairs, where the first or last column is wanted without its partner; one row, with a scratch buffer. */
static bool fill_uneven(const struct rows *rows, size_t col0, size_t n_cols, float *dst)
{
    enum { PIECE = 256 };
    float scratch[PIECE];
    bool right = true;
    for (size_t done = 0, m; done < n_cols && right; done += m) {
        size_t skip = (col0 + done) % 2, left = n_cols - done;
        m = left < PIECE - skip ? left : PIECE - skip;
        right = fill_units(rows, (col0 + done) / 2, (skip + m + 1) / 2, scratch, NULL, PIECE);
        memcpy(dst + done, scratch + skip, m * sizeof *dst);
    }
    return right;
}

/* Fills columns of one half without the other half; one row. */
static bool fill_half(const struct rows *rows, size_t col0, size_t n_cols, float *dst)
{
    enum { PIECE = 128 };
    float scratch[PIECE];
    bool right = true, second = col0 >= rows->list->n / 2;
    size_t u = second ? col0 - rows->list->n / 2 : col0;
    for (size_t done = 0, m; done < n_cols && right; done += m) {
        m = n_cols - done < PIECE ? n_cols - done : PIECE;
        float *to = dst + done;
        right = fill_units(rows, u + done, m, second ? scratch : to, second ? to : scratch, PIECE);
    }
    return right;
}

/* Fills a part of a row that does not consist of whole units. */
static bool fill_part(const struct rows *rows, size_t col0, size_t n_cols, float *dst)
{
    size_t half = rows->list->n / 2, n_first = col0 < half ? half - col0 : 0;
    if (rows->list->arrangement == NEIGHBOURS)
        return fill_uneven(rows, col0, n_cols, dst);
    n_first = n_cols < n_first ? n_cols : n_first;
    return fill_half(rows, col0, n_first, dst) && fill_half(rows, col0 + n_first, n_cols - n_first, dst + n_first);
}

size_t pe_wave_list_rows(const struct pe_wave_list *list, const double *positions, size_t n_rows, size_t col0,
                         size_t n_cols, float *dst, size_t stride)
{
    struct rows rows = {list, positions, 0};
    while (list && rows.n < n_rows && fabs(positions[rows.n]) * list->fastest < PE_LIST_PHASE)
        rows.n++;
    if (rows.n == 0)
        return 0;
    if (list->arrangement == HALVES && n_cols == list->n)
        return fill_units(&rows, 0, n_cols / 2, dst, dst + n_cols / 2, stride);
    if (list->arrangement == NEIGHBOURS && col0 % 2 == 0 && n_cols % 2 == 0)
        return fill_units(&rows, col0 / 2, n_cols / 2, dst, NULL, stride);
    if (list->arrangement == ALONE)
        return fill_units(&rows, col0, n_cols, dst, NULL, stride);
    for (size_t i = 0; i < rows.n; i++)
        if (!fill_part(&(struct rows){rows.list, rows.positions + i, 1}, col0, n_cols, dst + i * stride))
            return i;
    return rows.n;
}
