/* Numbers of a dtype of at most 32 bits as their bits, so that a zero's sign counts. */
#ifndef TESTS_SUPPORT_DTYPE_WORDS_H
#define TESTS_SUPPORT_DTYPE_WORDS_H

#include "core/numeric/numeric.h"

#include <string.h>

/* Number i of values. */
static inline uint32_t word_at(enum pe_dtype dtype, const void *values, size_t i)
{
    uint32_t word = 0;
    memcpy(&word, (const char *)values + i * pe_dtype_size(dtype), pe_dtype_size(dtype));
    return word;
}

/* The number nearest to x. */
static inline uint32_t word_of(enum pe_dtype dtype, double x)
{
    uint32_t word = 0;
    pe_store(dtype, &word, 0, x);
    return word;
}

#endif
