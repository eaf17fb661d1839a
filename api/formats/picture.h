/* A picture: the last two axes of an answer's first output as indices of colours, row by row. Shared by png and text.
 */
#ifndef API_FORMATS_PICTURE_H
#define API_FORMATS_PICTURE_H

#include "api/formats/format.h"

/* Its values are needed twice, for their range and for the pixels, and computed twice: never more than a chunk of the
 * tensor is in memory. */
struct api_picture {
    struct api_source source;
    const struct pe_output *output;
    uint64_t height, width;      /* of the matrix: the last two axes, with leading indices 0; a single axis is a row */
    uint64_t row_step, col_step; /* the picture shows the first element of each step */
    size_t n_rows, n_cols;       /* of the picture; n_cols after shrinking */
    bool has_range;              /* false: no visible value is finite */
    double low, high;            /* the values of the first and the last colour; low <= high */
    double *values;              /* one row of the picture; owned */
    char *chunk;                 /* consecutive elements of the output; owned */
    uint64_t chunk_first, chunk_n;
    uint64_t step, within; /* elements of a chunk; a new chunk begins at each multiple of within */
    bool is_left;          /* the client has disconnected: nothing more is computed, and the rows have no meaning */
};

/* Starts with the first tensor of the answer; no rows are in memory yet. Fails if that output has no picture. */
bool api_picture_init(struct api_picture *picture, const struct api_opening *opening, struct api_problem *problem);
void api_picture_drop(struct api_picture *picture);

/* Decides the steps and allocates. Call it before the functions below. */
bool api_picture_shrink(struct api_picture *picture, uint64_t row_step, uint64_t col_step, struct api_problem *problem);

/* Finds the range: vmin and vmax of the form, else the least and the greatest finite visible value. */
void api_picture_measure(struct api_picture *picture, const struct api_form *form);

/* Row i as n_cols indices: 0 for a value that is not finite, 1 … 255 for the colours. Reading the rows in order is
 * fastest. */
void api_picture_row(struct api_picture *picture, size_t i, uint8_t *indices);

/* Whether the picture is complete. If not, the client has disconnected, and the answer is a refusal that is never
 * read. */
bool api_picture_check(const struct api_picture *picture, struct api_problem *problem);

#endif
