/* Toeplitz outputs as text: the numbers of a matrix's line are printed once, and every row is a part of their
 * text. */
#ifndef API_LINES_H
#define API_LINES_H

#include "api/arena.h"
#include "core/posenc.h"

#include <stdatomic.h>

/* The lines of one output: immutable but for the texts, which whoever needs one first makes; for any number of threads.
 */
struct api_lines {
    const struct pe_plan *plan;
    const struct pe_output *output;
    size_t index; /* of the output */
    int digits;
    uint64_t n_rows;      /* of a matrix */
    size_t n, room;       /* numbers of a line, bytes kept for one */
    atomic_uchar *states; /* [n_matrices] */
    char *kept;           /* [n_matrices, room]: values, then text, then where each number's text begins */
};

/* Lines for an output of the plan, in the arena; *lines is NULL if it is not Toeplitz, or the lines would be too large.
 * False without memory. */
bool api_lines_new(struct api_arena *arena, const struct pe_plan *plan, size_t index, int digits,
                   struct api_lines **lines);

/* The text between the brackets of n elements of one row, with commas. */
struct api_span {
    const char *text; /* NULL: not known; print the numbers */
    size_t bytes;
};

/* The text of elements first … first+n-1, which are of one row. None while another thread makes the line. */
struct api_span api_lines_span(struct api_lines *lines, uint64_t first, size_t n);

#endif
