/* Positions of rows on one axis: which position row i of a table has.
 *
 * A sequence may be a run of a million positions, a list, or the axes of a grid on which every index is repeated for
 * the rows and columns of the others. Lists would need 8 bytes for each row and axis, so runs and grids are computed
 * from the row's number when they are needed (struct pe_positions in waves.h has the formula): no memory, and any row
 * can be the first one of a block.
 *
 * Whoever fills a table wants more than single positions: that the next thousand rows are one apart lets a recurrence
 * compute them (wave_run.c), and that they are the same lets one row be copied. pe_positions_stretch finds that out, in
 * constant time where the formula shows it and else by reading the positions. "One apart" means exactly: the positions
 * are integers. 0.1 + 1 need not be the double 1.1, so a run that starts at a fraction counts as single rows.
 *
 * Invariant: the position of a row depends on its number alone, never on the block in which it is asked for, so any
 * split of a table gives the same bytes. */
#include "core/waves/waves.h"
#include "core/inside.h"

#include <math.h>

static uint64_t index_at(const struct pe_positions *p, uint64_t i)
{
    if (!p->size)
        return i;
    uint64_t k = i / p->inner % p->size;
    return p->merge ? k * p->merge + i / p->step % p->merge : k;
}

double pe_position_at(const struct pe_positions *positions, uint64_t i)
{
    uint64_t k = index_at(positions, i);
    return positions->list ? positions->list[k] : positions->start + (double)k;
}

uint64_t pe_positions_count(const struct pe_positions *p) { return p->n * (p->n_batches ? p->n_batches : 1); }

uint64_t pe_positions_indices(const struct pe_positions *p)
{
    return p->size ? p->size * (p->merge ? p->merge : 1) : pe_positions_count(p);
}

static size_t least(uint64_t a, size_t b) { return a < b ? (size_t)a : b; }

size_t pe_positions_stretch(const struct pe_positions *p, uint64_t i, size_t most, int *step)
{
    bool plain = !p->list && !p->merge && p->start == floor(p->start);
    if (plain && (!p->size || p->inner == 1)) {
        *step = 1;
        return p->size ? least(p->size - i % p->size, most) : most;
    }
    if (p->size && !p->merge && p->inner > 1) {
        *step = 0;
        return least(p->inner - i % p->inner, most);
    }
    /* Steps of exactly 0, or of exactly 1 between integers (0.1 + 1 need not be the double 1.1). */
    double first = pe_position_at(p, i), d = most > 1 ? pe_position_at(p, i + 1) - first : 0;
    size_t n = 1;
    *step = d == 1 && first == floor(first);
    if (d != 0 && !*step)
        return 1;
    while (n < most && pe_position_at(p, i + n) == first + (double)n * *step)
        n++;
    return n;
}

enum {
    ASK = 1 << 20
}; /* after this many positions, a millisecond, planning checks whether the request was cancelled */

bool pe_positions_are_integers(const struct pe_positions *p)
{
    if (!p->list)
        return p->start == floor(p->start);
    for (uint64_t i = 0; i < pe_positions_indices(p); i++)
        if (p->list[i] != floor(p->list[i]))
            return false;
    return true;
}

double pe_positions_largest(const struct pe_positions *p)
{
    uint64_t n = pe_positions_indices(p);
    if (!p->list)
        return fmax(fabs(p->start), fabs(p->start + (double)(n - 1)));
    double largest = 0;
    for (uint64_t i = 0; i < n && !(i % ASK == ASK - 1 && pe_is_cancelled()); i++)
        largest = fabs(p->list[i]) > largest ? fabs(p->list[i]) : largest;
    return largest;
}

double pe_positions_last(const struct pe_positions *p)
{
    uint64_t n = pe_positions_indices(p);
    if (!p->list)
        return p->start + (double)(n - 1);
    double last = p->list[0];
    for (uint64_t i = 1; i < n && !(i % ASK == ASK - 1 && pe_is_cancelled()); i++)
        last = p->list[i] > last ? p->list[i] : last;
    return last;
}

bool pe_positions_same(const struct pe_positions *a, const struct pe_positions *b)
{
    return a->n == b->n && a->list == b->list && a->start == b->start && a->inner == b->inner && a->size == b->size &&
           a->step == b->step && a->merge == b->merge && a->n_batches == b->n_batches;
}
