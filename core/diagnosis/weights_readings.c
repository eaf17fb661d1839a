/* What became of the rows between two checkpoints: rules that state where each row came from, tried one by one. */
#include "core/diagnosis/weights.h"

#include <math.h>
#include <string.h>

/* The row that row i was before it was moved once. */
static uint64_t moved_once(const struct pe_row_moves *m, uint64_t i)
{
    uint64_t j = i % m->heads.rows, half = m->heads.rotated / 2;
    if (j >= m->heads.rotated)
        return i;
    uint64_t from_interleaved = j < half ? 2 * j : 2 * (j - half) + 1;
    return i - j + (m->conversion == PE_TO_HALF ? from_interleaved : j % 2 * half + j / 2);
}

uint64_t pe_matrices_row_before(const struct pe_row_moves *m, uint64_t i)
{
    for (unsigned k = 0; m->conversion && k < m->times; k++)
        i = moved_once(m, i);
    return i;
}

/* The faults of a reading, in the order of the table; returns their number. */
size_t pe_matrices_faults(const struct pe_row_reading *r, const struct pe_fault *out[PE_READING_FAULTS_MAX])
{
    const struct pe_fault *const all[PE_READING_FAULTS_MAX] = {r->of_rows,
                                                               r->are_heads_moved ? &pe_fault_heads_order : NULL,
                                                               r->block ? &pe_fault_rows_fused : NULL,
                                                               r->factor < 0 ? &pe_fault_negated : NULL,
                                                               r->is_turned ? &pe_fault_transposed : NULL,
                                                               fabs(r->factor) != 1 ? &pe_fault_scaled : NULL};
    size_t n = 0;
    for (size_t i = 0; i < PE_READING_FAULTS_MAX; i++)
        if (all[i])
            out[n++] = all[i];
    return n;
}

static void keep(struct pe_row_readings *r, struct pe_row_reading one)
{
    const struct pe_fault *faults[PE_READING_FAULTS_MAX];
    size_t n = pe_matrices_faults(&one, faults);
    for (size_t i = 0; i < n; i++) {
        one.cost += faults[i] == &pe_fault_rows_other ? 3 : 1;
        one.surprise += faults[i]->plausibility;
    }
    size_t at = r->n;
    while (at > 0 && (r->best[at - 1].cost > one.cost ||
                      (r->best[at - 1].cost == one.cost && r->best[at - 1].surprise > one.surprise)))
        at--;
    if (at == PE_READINGS_MAX)
        return;
    r->n += r->n < PE_READINGS_MAX;
    memmove(&r->best[at + 1], &r->best[at], (r->n - 1 - at) * sizeof *r->best);
    r->best[at] = one;
}

/* Are the found rows from `first` on those of a list, as they were moved? */
static bool agree(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m, uint64_t first,
                  uint64_t row0, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (w->of_found[first + i] != from[pe_matrices_row_before(m, row0 + i)])
            return false;
    return true;
}

/* Heads by the class of their first row: of each class the first head, of each head the next one. */
struct by_first_row {
    uint32_t *first, *next;
};

static struct by_first_row list_heads(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m)
{
    struct by_first_row list = {(uint32_t *)(void *)w->keys, (uint32_t *)(void *)w->keys + w->believed.n_rows};
    memset(list.first, 0xff, w->believed.n_rows * sizeof *list.first);
    for (uint64_t j = w->heads.n; j-- > 0;) {
        uint32_t class = from[pe_matrices_row_before(m, j * w->heads.rows)];
        list.next[j] = list.first[class];
        list.first[class] = (uint32_t)j;
    }
    return list;
}

/* Are whole heads in another order? order: [heads], NULL: not wanted; equal heads are taken in their order. */
bool pe_matrices_are_heads_moved(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m,
                                 int64_t *order)
{
    struct by_first_row list = list_heads(w, from, m);
    uint64_t n = w->heads.rows;
    for (uint64_t i = 0; i < w->heads.n; i++) {
        uint32_t class = w->of_found[i * n];
        if (class == PE_NOWHERE || (i % 64 == 0 && pe_is_cancelled()))
            return false;
        uint32_t *link = &list.first[class];
        while (*link != PE_NOWHERE && !agree(w, from, m, i * n, *link * n, n))
            link = &list.next[*link];
        if (*link == PE_NOWHERE)
            return false;
        if (order)
            order[i] = *link;
        *link = list.next[*link];
    }
    return true;
}

/* Blocks of so many rows, each `every` rows after the one before. */
static bool are_blocks(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m,
                       const struct pe_row_reading *r)
{
    uint64_t n = w->believed.n_rows;
    for (uint64_t at = 0; at < n; at += r->block)
        if (!agree(w, from, m, r->first + at / r->block * r->every, at, r->block))
            return false;
    return true;
}

/* Where the second block begins, and that the last one ends within the matrix; false: there are no such blocks. */
static bool place_blocks(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m,
                         uint64_t n_found, struct pe_row_reading *r)
{
    uint64_t n = w->believed.n_rows, n_blocks = n / r->block;
    r->every = n_found;
    if (n_blocks == 1)
        return r->first + n <= n_found && are_blocks(w, from, m, r);
    uint32_t next = from[pe_matrices_row_before(m, r->block)];
    for (uint64_t every = r->block + 1; r->first + (n_blocks - 1) * every + r->block <= n_found; every++) {
        r->every = every;
        if (w->of_found[r->first + every] == next && are_blocks(w, from, m, r))
            return true;
    }
    return false;
}

/* The believed rows among more: one block, or as many as divide them. */
static bool is_fused(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m, uint64_t n_found,
                     struct pe_row_reading *r)
{
    enum { FIRSTS = 8 }; /* equal rows may be the first one */
    uint64_t n = w->believed.n_rows;
    unsigned tried = 0;
    for (r->first = 0; r->first < n_found && tried < FIRSTS; r->first++) {
        if (w->of_found[r->first] != from[pe_matrices_row_before(m, 0)])
            continue;
        uint64_t run = 0;
        while (run < n && r->first + run < n_found && agree(w, from, m, r->first + run, run, 1))
            run++;
        for (uint64_t n_blocks = 1; n_blocks <= n; n_blocks++) {
            r->block = n / n_blocks;
            if (n % n_blocks == 0 && r->block <= run && place_blocks(w, from, m, n_found, r))
                return true;
        }
        tried++;
    }
    return false;
}

/* One way of moving rows: everywhere, with whole heads moved, or in a fused matrix. */
static void try_moves(const struct pe_matrices *w, const uint32_t *from, uint64_t n_found, struct pe_row_reading one,
                      struct pe_row_readings *r)
{
    uint64_t n = w->believed.n_rows;
    r->searched++;
    if (pe_is_cancelled())
        return;
    if (n_found == n && agree(w, from, &one.moves, 0, 0, n)) {
        keep(r, one);
    } else if (n_found == n && w->heads.n > 1 && !one.replaces &&
               pe_matrices_are_heads_moved(w, from, &one.moves, NULL)) {
        one.are_heads_moved = true;
        keep(r, one);
    } else if (n_found > n && is_fused(w, from, &one.moves, n_found, &one)) {
        keep(r, one);
    }
}

/* Other numbers of heads that a conversion may have used. */
size_t pe_matrices_other_heads(const struct pe_matrices *w, uint64_t *out)
{
    uint64_t first[] = {pe_matrices_has(w->fields.num_heads) ? (uint64_t)w->fields.num_heads : 0,
                        pe_matrices_has(w->fields.num_kv_heads) ? (uint64_t)w->fields.num_kv_heads : 0, 1};
    uint64_t n_rows = w->believed.n_rows;
    size_t n = 0;
    for (uint64_t k = 0; k < 3 + n_rows / 2; k++) {
        uint64_t heads = k < 3 ? first[k] : k - 2;
        bool is_new = heads > 0 && heads != w->heads.n && n_rows % heads == 0 && n_rows / heads % 2 == 0;
        for (size_t i = 0; is_new && i < n; i++)
            is_new = out[i] != heads;
        if (is_new)
            out[n++] = heads;
    }
    return n;
}

/* Conversions in other heads, in place of the one believed; without one, in any direction. */
static void try_other_heads(const struct pe_matrices *w, uint64_t n_found, struct pe_row_reading one,
                            struct pe_row_readings *r)
{
    uint64_t others[PE_HEAD_COUNTS_MAX];
    size_t n = pe_matrices_other_heads(w, others);
    one.of_rows = &pe_fault_rows_heads_other;
    one.replaces = true;
    one.moves.times = 1;
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++)
        for (int conversion = PE_TO_HALF; conversion <= PE_TO_INTERLEAVED; conversion++) {
            uint64_t width = w->believed.n_rows / others[i], rotated = w->heads.rotated;
            bool is_whole = rotated == w->heads.rows || rotated > width;
            if (w->fields.conversion && conversion != w->fields.conversion)
                continue;
            one.moves.conversion = conversion;
            one.moves.heads = (struct pe_row_heads){others[i], width, is_whole ? width : rotated};
            try_moves(w, w->of_believed, n_found, one, r);
        }
}

/* The smallest number of times first; in heads of four rows both directions are the same. */
static void try_conversions(const struct pe_matrices *w, uint64_t n_found, struct pe_row_reading one,
                            struct pe_row_readings *r)
{
    try_moves(w, w->expected, n_found, one, r);
    for (unsigned times = 1; times <= 2; times++)
        for (int conversion = PE_TO_HALF; conversion <= PE_TO_INTERLEAVED; conversion++) {
            one.of_rows = times == 1 ? &pe_fault_rows_permuted : &pe_fault_rows_permuted_twice;
            one.moves = (struct pe_row_moves){conversion, times, w->heads};
            try_moves(w, w->expected, n_found, one, r);
        }
}

/* Every reading of one variant. missing: believed rows that are nowhere. */
static void read_variant(struct pe_matrices *w, const struct pe_matrix *found, bool is_turned,
                         struct pe_row_readings *r, uint64_t *missing)
{
    struct pe_row_reading one = {.is_turned = is_turned, .factor = w->factor};
    size_t before = r->n;
    *missing = pe_matrices_missing(w, found->n_rows);
    if (*missing)
        return;
    try_conversions(w, found->n_rows, one, r);
    try_other_heads(w, found->n_rows, one, r);
    if (r->n == before && found->n_rows == w->believed.n_rows) {
        one.of_rows = &pe_fault_rows_other;
        keep(r, one);
    }
}

/* As sent, with the opposite sign, with another size; then the same transposed. What has every row is read no other
 * way. */
enum pe_status pe_matrices_read_all(struct pe_matrices *w, struct pe_row_readings *r, uint64_t *missing)
{
    *missing = w->believed.n_rows;
    for (int is_turned = 0; is_turned < 2 && r->n == 0; is_turned++) {
        const struct pe_matrix found = is_turned ? pe_matrices_turned(&w->found) : w->found;
        const double signs[] = {1, -1};
        uint64_t left = w->believed.n_rows;
        if (!pe_matrices_is_like(w, &found))
            continue;
        for (size_t i = 0; i < 2 && r->n == 0; i++) {
            w->factor = signs[i];
            if (!pe_matrices_class_found(w, &found, w->factor))
                return w->err->status;
            read_variant(w, &found, is_turned, r, &left);
            *missing = left < *missing ? left : *missing;
        }
        double size = r->n == 0 && found.n_rows == w->believed.n_rows ? pe_matrices_factor(w, &found) : 0;
        for (size_t i = 0; i < 2 && r->n == 0 && size != 0 && size != 1; i++) {
            w->factor = signs[i] * size;
            if (!pe_matrices_class_scaled(w, &found, w->factor))
                return w->err->status;
            read_variant(w, &found, is_turned, r, &left);
            *missing = left < *missing ? left : *missing;
        }
    }
    return pe_matrices_gives_up(w) ? w->err->status : PE_OK;
}
