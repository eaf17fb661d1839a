/* Elements of a tensor as JSON text with the brackets of its nesting, any range of them at a time. */
#ifndef API_ELEMENTS_H
#define API_ELEMENTS_H

#include "api/numbers/lines.h"

struct api_elements {
    enum pe_dtype dtype;
    int digits;
    unsigned rank;
    uint64_t blocks[PE_RANK_MAX]; /* elements within one list of each level: [0] the whole, [rank-1] a row */
    uint64_t count;
    size_t width; /* most bytes of one element with its comma and the brackets it may open and close */
};

/* digits as in api_numbers_print(). The shape's product must fit uint64_t. */
void api_elements_init(struct api_elements *elements, enum pe_dtype dtype, const uint64_t *shape, unsigned rank,
                       int digits);

/* Writes elements first … first+n-1 (n ≥ 1), whose values start at src, to dst (room for n × width) and returns the
 * bytes written. The texts of consecutive ranges, one after the other, are the text of the whole. */
size_t api_elements_print(const struct api_elements *elements, const void *src, uint64_t first, size_t n, char *dst);

/* The same of a Toeplitz output, from the texts of its lines and without values. 0 if a line is not ready. */
size_t api_elements_copy(const struct api_elements *elements, struct api_lines *lines, uint64_t first, size_t n,
                         char *dst);

#endif
