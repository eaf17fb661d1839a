/* Lists of ranges with weights, "a;q=0.5, b": the values of Accept and Accept-Language (RFC 9110 §12.4.2). */
#ifndef API_WEIGHTED_H
#define API_WEIGHTED_H

#include <stdbool.h>
#include <stddef.h>

/* An element of the list: a range as bytes, with its weight in thousandths. */
struct api_weighted {
    const char *name; /* borrowed from the list */
    size_t n;         /* 0: an empty element */
    int weight;       /* 1000 if none is stated; -1: not a number from 0 to 1 with at most three decimals */
};

/* Reads the next element of the list that ends at end, and moves *list behind it; false if there is none. */
bool api_weighted_next(const char **list, const char *end, struct api_weighted *range);

#endif
