/* A picture: the last two axes of an answer's first output as indices of colours, row by row. Shared by png and text.
 */
#ifndef API_FORMATS_PICTURE_H
#define API_FORMATS_PICTURE_H

#include "api/formats/format.h"

/* Its values are needed twice, for their range and for the pixels, and computed twice: never more than a chunk of the
 * tensor is in memory. */
struct api_picture {
    const struct pe_plan *plan;
    const struct pe_output *output;
    uint64_t height, width;      /* of the matrix: the last two axes, leading ones stand at 0; an axis alone is a row */
    uint64_t row_step, col_step; /* the picture is the first of each step */
    size_t n_rows, n_cols;       /* of the picture; n_cols only once shrunk */
    bool has_range;              /* false: nothing to be seen is finite */
    double low, high;            /* what the first and the last colour stand for; low <= high */
    double *values;              /* one row of the picture; owned */
    char *chunk;                 /* elements of the output as they come; owned */
    uint64_t chunk_first, chunk_n;
    uint64_t step, within; /* chunks: so many elements, beginning anew at each multiple of within */
    bool is_left;          /* the client has left: nothing more is computed, and the rows have no meaning */
};

/* Starts with the first output of the plan; no rows are in memory yet. Fails if that output has no picture. */
bool api_picture_init(struct api_picture *picture, const struct api_opening *opening, struct api_problem *problem);
void api_picture_drop(struct api_picture *picture);

/* Decides the steps and allocates: before what follows. */
bool api_picture_shrink(struct api_picture *picture, uint64_t row_step, uint64_t col_step, struct api_problem *problem);

/* Finds the range: vmin and vmax of the form, else the least and the greatest finite value to be seen. */
void api_picture_measure(struct api_picture *picture, const struct api_form *form);

/* Row i as n_cols indices: 0 for what is not finite, 1 … 255 for the colours. Rows in order are the fast case. */
void api_picture_row(struct api_picture *picture, size_t i, uint8_t *indices);

/* Is it drawn to the end? Otherwise the answer is a refusal that nobody reads. */
bool api_picture_check(const struct api_picture *picture, struct api_problem *problem);

#endif
