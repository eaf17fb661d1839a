/* Rows of a Toeplitz map: row i is the part of one vector that begins n_rows-1-i elements behind the vector's start, so
 * a map is copied, not computed.
 *
 * What limits such a copy is not the stores, which go to aligned places, but the loads: a window begins anywhere, and a
 * register's worth of it crosses a cache line and costs two accesses always (64 bytes), every second time (32) or every
 * fourth (16). Rows a register's worth of elements apart see the same registers, one register further along:
 *
 *     row i:                  r0 r1 r2 r3 …
 *     row i + REGISTER/size:  p0 r0 r1 r2 …
 *
 * so up to four such rows are written together, and one load feeds four stores. They have the same alignment too: a
 * row's bytes are a multiple of the element's, times REGISTER/size a multiple of the register's. Four streams, because
 * rows of 4 KiB fall on the same set of the first-level cache, which has eight places or more; the vector needs some.
 * On a Zen 3 (GB/s, blocks of 512 KiB, rows of 4 KiB): memset 57, one row at a time 48, two 56, four 60, memcpy 41. */
#include "core/kernels/kernels.h"

#include <string.h>

#if defined(__AVX512F__)
enum { REGISTER = 64 };
#elif defined(__AVX2__)
enum { REGISTER = 32 };
#else
enum { REGISTER = 16 };
#endif

enum { AT_ONCE = 4, STREAMS_MAX = 4 };

typedef uint8_t bytes __attribute__((vector_size(REGISTER)));

static inline bytes load_bytes(const char *from)
{
    bytes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store_bytes(char *to, bytes v) { memcpy(to, &v, sizeof v); }

/* Row p < n_streams is at dst + p·apart and reads from src - p·REGISTER; n bytes each, at least a register. What is
 * between the ends is written to aligned places, the ends as whole registers that overlap it. */
PE_INLINED void copy_rows(const char *src, size_t n, char *dst, size_t apart, int n_streams)
{
    bytes r[STREAMS_MAX - 1 + AT_ONCE]; /* the last few before x, then those from x on */
    size_t x = -(uintptr_t)dst % REGISTER;
    for (int p = 0; x && p < n_streams; p++)
        store_bytes(dst + (size_t)p * apart, load_bytes(src - p * REGISTER));
    for (int k = 1; k < n_streams; k++)
        r[STREAMS_MAX - 1 - k] = load_bytes(src + x - k * REGISTER);
    for (; x + AT_ONCE * REGISTER <= n; x += AT_ONCE * REGISTER) {
        for (int k = 0; k < AT_ONCE; k++)
            r[STREAMS_MAX - 1 + k] = load_bytes(src + x + k * REGISTER);
        for (int p = 0; p < n_streams; p++)
            for (int k = 0; k < AT_ONCE; k++)
                store_bytes(dst + (size_t)p * apart + x + k * REGISTER, r[STREAMS_MAX - 1 + k - p]);
        for (int k = 1; k < n_streams; k++)
            r[STREAMS_MAX - 1 - k] = r[STREAMS_MAX - 1 + AT_ONCE - k];
    }
    for (; x + REGISTER <= n; x += REGISTER)
        for (int p = 0; p < n_streams; p++)
            store_bytes(dst + (size_t)p * apart + x, load_bytes(src + x - p * REGISTER));
    for (int p = 0; x < n && p < n_streams; p++)
        store_bytes(dst + (size_t)p * apart + n - REGISTER, load_bytes(src + n - REGISTER - p * REGISTER));
}

/* As many groups of rows, n_streams registers' worth of them each, as there are from row i on; returns the next row. */
PE_INLINED size_t copy_groups(const char *vector, size_t size, size_t i, size_t n_rows, size_t n, char *dst,
                              size_t stride, int n_streams)
{
    size_t step = REGISTER / size, rows = step * (size_t)n_streams;
    for (; i + rows <= n_rows; i += rows)
        for (size_t k = i; k < i + step; k++)
            copy_rows(vector + (n_rows - 1 - k) * size, n, dst + k * stride, step * stride, n_streams);
    return i;
}

void PE_KERNEL(pe_windows)(const void *vector, size_t size, size_t n_rows, size_t n_cols, void *dst, size_t stride)
{
    size_t n = n_cols * size, i = 0;
    if (n >= REGISTER) {
        i = copy_groups(vector, size, i, n_rows, n, dst, stride, 4);
        i = copy_groups(vector, size, i, n_rows, n, dst, stride, 2);
    }
    for (; i < n_rows; i++)
        if (n >= REGISTER)
            copy_rows((const char *)vector + (n_rows - 1 - i) * size, n, (char *)dst + i * stride, 0, 1);
        else
            memcpy((char *)dst + i * stride, (const char *)vector + (n_rows - 1 - i) * size, n);
}

/* Lines are short (14 patches of a window: 56 bytes), so a call of memcpy for each would cost more than its bytes. Each
 * is written in whole registers, and what is too much is overwritten by the next line; only the last must fit. */
void PE_KERNEL(pe_lines)(const void *from, size_t step, size_t n_lines, size_t n, void *dst)
{
    _Static_assert((int)REGISTER <= (int)PE_LINES_SLACK, "a register may begin at a line's last byte");
    const char *line = from;
    char *to = dst;
    size_t written = (n + REGISTER - 1) / REGISTER * REGISTER;
    for (size_t left = n_lines * n; left > 0; left -= n, line += step, to += n) {
        if (written > left) {
            memcpy(to, line, n);
            continue;
        }
        for (size_t x = 0; x < n; x += REGISTER)
            store_bytes(to + x, load_bytes(line + x));
    }
}
