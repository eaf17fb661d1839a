/* Matrix products of attention: a few rows of queries with many rows of keys, which are laid out in panels. A
 * template, included after attend_rows.h for floats and for doubles.
 *
 *     c[i, j] = scale · (… ((a_i0·b_j0) + a_i1·b_j1) + …)
 *
 * Each product is fused with its sum where the machine can, and each sum runs through k in order, so an element
 * depends on its own two rows only, whatever its place and whichever elements are computed with it. Its error is at
 * most (k + 1)·u/(1 - (k + 1)·u) of scale · sum of |a·b|, u half an ulp of 1: the bound that holds for any order of
 * summation.
 *
 * A general product lays out both matrices again in each call and passes over c before adding to it; with k = 64
 * that takes as long as half of the multiplications. Here keys are laid out once for a head and c is written once.
 *
 * Sizes. A tile is TALL rows by two registers of columns. Its 2·TALL sums stay in registers for all of k, beside two
 * registers of the panel and one of the row: 12 + 3 of 16, or 24 + 3 of 32. Two multiply-adds start in a cycle and
 * take four, so eight sums or more are needed, also in the SHORT tiles of the remaining rows. A panel is 128 bytes
 * wide, two registers of the widest kind: with k = 64 its 8 KiB stay in the first-level cache while all rows go past
 * it. While a tile is summed, the next panel and the tile's place in c are prefetched from outer caches. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TALL = 12, SHORT = 8 };
#else
enum { TALL = 6, SHORT = 4 };
#endif
enum { PANEL = 128 / sizeof(real), TILE = 2 * WIDTH };

/* b [n, k] to panels [n/PANEL, k, PANEL], zeros after its last row. */
void KERNEL(pack)(const real *b, size_t b_stride, size_t n, size_t k, real *panels)
{
    for (size_t j = 0; j < n; j += PANEL, b += PANEL * b_stride)
        for (size_t x = 0; x < k; x++, panels += PANEL)
            for (size_t i = 0; i < PANEL; i++)
                panels[i] = i < n - j ? b[i * b_stride + x] : 0;
}

/* A register at any address. Not load_wide: with so few registers left, GCC moves the bytes of a memcpy by way of the
 * stack, and each step waits for them. */
typedef real anywhere __attribute__((vector_size(WIDTH * sizeof(real)), aligned(sizeof(real)), may_alias));

/* rows must be a compile-time constant at each call. */
PE_INLINED void tile(size_t rows, size_t k, real scale, const real *a, size_t a_stride, const real *b, real *c,
                     size_t c_stride)
{
    vr sum[TALL][2];
    for (size_t r = 0; r < rows; r++) {
        __builtin_prefetch(c + r * c_stride, 1);
        sum[r][0] = sum[r][1] = everywhere(0);
    }
    for (size_t x = 0; x < k; x++, b += PANEL) {
        vr left = *(const anywhere *)b, right = *(const anywhere *)(b + WIDTH);
        for (size_t r = 0; r < rows; r++) {
            vr all = everywhere(a[r * a_stride + x]);
            sum[r][0] = plus(all, left, sum[r][0]);
            sum[r][1] = plus(all, right, sum[r][1]);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        store_wide(c + r * c_stride, sum[r][0] * scale);
        store_wide(c + r * c_stride + WIDTH, sum[r][1] * scale);
    }
}

/* Separate functions: inside a loop over tiles, GCC would keep the scale in a register, which is then one register
 * too many. */
#define TILE_OF(name, rows)                                                                                            \
    static __attribute__((noinline)) void name(size_t k, real scale, const real *a, size_t a_stride, const real *b,    \
                                               real *c, size_t c_stride)                                               \
    {                                                                                                                  \
        tile(rows, k, scale, a, a_stride, b, c, c_stride);                                                             \
    }
TILE_OF(tall_tile, TALL)
TILE_OF(short_tile, SHORT)
TILE_OF(single_tile, 1)

/* Prefetches n lines of the next panel's columns, one panel length ahead. */
static inline void bring_nearer(const real *b, size_t n)
{
    for (size_t x = 0; x < n; x++)
        __builtin_prefetch(b + x * PANEL);
}

/* One tile's columns of m rows. Two short tiles are better than a tall one and single rows. Tiles share the lines of
 * the next panel. */
static void strip(size_t m, size_t k, real scale, const real *a, size_t a_stride, const real *b, real *c,
                  size_t c_stride)
{
    size_t i = 0, share = k * TALL / (m < TALL ? TALL : m) + 1;
    const real *next = b + k * PANEL;
    for (; m - i >= TALL && m - i != 2 * SHORT; i += TALL, next += share * PANEL) {
        bring_nearer(next, share);
        tall_tile(k, scale, a + i * a_stride, a_stride, b, c + i * c_stride, c_stride);
    }
    for (; m - i >= SHORT; i += SHORT)
        short_tile(k, scale, a + i * a_stride, a_stride, b, c + i * c_stride, c_stride);
    for (; i < m; i++)
        single_tile(k, scale, a + i * a_stride, a_stride, b, c + i * c_stride, c_stride);
}

/* The same, if only columns skip … skip+n-1 are wanted. */
static void part_of_strip(size_t m, size_t k, real scale, const real *a, size_t a_stride, const real *b, size_t skip,
                          size_t n, real *c, size_t c_stride)
{
    real some[TALL * TILE];
    for (size_t i = 0, rows; i < m; i += rows) {
        rows = m - i < TALL ? m - i : TALL;
        strip(rows, k, scale, a + i * a_stride, a_stride, b, some, TILE);
        for (size_t r = 0; r < rows; r++)
            memcpy(c + (i + r) * c_stride, some + r * TILE + skip, n * sizeof *c);
    }
}

void KERNEL(products)(size_t m, size_t first, size_t n, size_t k, real scale, const real *a, size_t a_stride,
                      const real *panels, real *c, size_t c_stride)
{
    size_t end = first + n;
    for (size_t j = first / TILE * TILE; j < end; j += TILE) {
        const real *b = panels + j / PANEL * PANEL * k + j % PANEL;
        size_t skip = j < first ? first - j : 0, until = end - j < TILE ? end - j : TILE;
        real *to = c + (j + skip - first);
        if (skip == 0 && until == TILE)
            strip(m, k, scale, a, a_stride, b, to, c_stride);
        else
            part_of_strip(m, k, scale, a, a_stride, b, skip, until - skip, to, c_stride);
    }
}
