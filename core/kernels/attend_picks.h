/* Terms looked up by distance: each key reads the entry of its relative position from a row of products. A template,
 * included after attend_rows.h; the type's own file defines neighbours().
 *
 * Along a row of logits, relative positions rise by one, and the rows of a table rise by one or stay, because long
 * distances share a row. So the entries of WIDTH neighbouring keys are within WIDTH numbers: one load and one
 * permutation find them, while a gather loads each one separately. Values are only selected and added, as in a plain
 * loop, so results are the same bytes with and without this.
 *
 * Across (keys that score queries, the second term of DeBERTa), the entries of a key are in its own row of the table,
 * so neighbouring logits come from different rows. Eight queries of eight keys are read as eight neighbourhoods and
 * transposed in registers; a strided walk over the table took one and a half times as long. */

/* s[j] += table[index[j]] */
void KERNEL(pick_add)(real *restrict s, const real *restrict table, const int32_t *restrict index, size_t n)
{
    size_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH)
        store_wide(s + j, load_wide(s + j) + neighbours(table, index + j));
    for (; j < n; j++)
        s[j] += table[index[j]];
}

/* Plain loop: rows first … of keys j … end. */
static void across_plainly(real *s, size_t s_stride, const real *table, size_t t_stride, const int32_t *index,
                           size_t first, size_t n_rows, size_t j, size_t end, real factor)
{
    for (size_t i = first; i < n_rows; i++)
        for (size_t k = j; k < end; k++)
            s[i * s_stride + k] += factor * table[k * t_stride + (size_t)index[(ptrdiff_t)k - (ptrdiff_t)i]];
}

#ifdef HAS_TILES
/* Eight rows of eight keys. A key's eight queries read neighbouring entries of its own row of the table, the last
 * query first; a transpose of the square puts them in place. */
static inline void square(real *s, size_t s_stride, const real *table, size_t t_stride, const int32_t *index,
                          real factor)
{
    octet x[8];
    for (ptrdiff_t k = 0; k < 8; k++)
        x[k] = eight_neighbours(table + (size_t)k * t_stride, index + k - 7);
    transpose(x);
    for (size_t l = 0; l < 8; l++)
        add_octet(s + (7 - l) * s_stride, x[l], factor);
}
#endif

/* Prefetches the entries that the next sixteen keys will read from their rows of the table, from the last query's to
 * the first query's. */
static inline void bring_row_nearer(const real *table, const int32_t *index, size_t n_rows)
{
    int32_t last = index[1 - (ptrdiff_t)n_rows], first = index[0];
    const real *end = table + (first > last ? first : last);
    for (const real *at = table + (first > last ? last : first); at < end + 64 / sizeof(real); at += 64 / sizeof(real))
        __builtin_prefetch(at);
}

/* s[i, j] += factor · table[j, index[j - i]]. Sixteen keys at a time: one cache line of each row. */
void KERNEL(pick_across_add)(real *restrict s, size_t s_stride, const real *restrict table, size_t t_stride,
                             const int32_t *restrict index, size_t n_rows, size_t n, real factor)
{
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        size_t i = 0;
        for (size_t k = j + 16; k < j + 32 && k < n; k++)
            bring_row_nearer(table + k * t_stride, index + k, n_rows);
#ifdef HAS_TILES
        for (; i + 8 <= n_rows; i += 8)
            for (size_t k = j; k < j + 16; k += 8)
                square(s + i * s_stride + k, s_stride, table + k * t_stride, t_stride,
                       index + ((ptrdiff_t)k - (ptrdiff_t)i), factor);
#endif
        across_plainly(s, s_stride, table, t_stride, index, i, n_rows, j, j + 16, factor);
    }
    across_plainly(s, s_stride, table, t_stride, index, 0, n_rows, j, n, factor);
}
