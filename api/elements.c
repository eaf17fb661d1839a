/* Elements of a tensor as nested JSON lists. Which brackets stand around element i follows from i alone, so that any
 * range can be printed without the ones before it. */
#include "api/elements.h"
#include "api/numbers.h"

void api_elements_init(struct api_elements *elements, enum pe_dtype dtype, const uint64_t *shape, unsigned rank,
                       int digits)
{
    *elements = (struct api_elements){.dtype = dtype, .digits = digits, .rank = rank, .count = 1};
    for (unsigned axis = rank; axis-- > 0;) {
        elements->count *= shape[axis];
        elements->blocks[axis] = elements->count;
    }
    elements->width = api_number_width(dtype, digits) + 1 + 2 * (size_t)rank;
}

/* Lists that begin with element i are those that end before it: i is a multiple of their size. Sizes divide one
 * another, from the row outwards, so the first that does not fit ends the search. */
static unsigned n_lists_at(const struct api_elements *elements, uint64_t i)
{
    unsigned n = 0;
    while (n < elements->rank && i % elements->blocks[elements->rank - 1 - n] == 0)
        n++;
    return n;
}

static char *put(char *dst, char c, unsigned n)
{
    while (n-- > 0)
        *dst++ = c;
    return dst;
}

size_t api_elements_print(const struct api_elements *elements, const void *src, uint64_t first, size_t n, char *dst)
{
    const char *from = src;
    char *start = dst;
    uint64_t row = elements->rank ? elements->blocks[elements->rank - 1] : 1;
    for (uint64_t i = first, end = first + n; i < end;) {
        uint64_t row_end = i - i % row + row;
        size_t run = (size_t)((row_end < end ? row_end : end) - i);
        dst = put(dst, ',', i > 0);
        dst = put(dst, '[', n_lists_at(elements, i));
        dst = api_numbers_print(dst, elements->dtype, from, run, elements->digits);
        i += run;
        dst = put(dst, ']', i == row_end ? n_lists_at(elements, i) : 0);
        from += run * pe_dtype_size(elements->dtype);
    }
    return (size_t)(dst - start);
}
