/* The form of an answer: dtype, format, digits, outputs, slice, reduce, data, and how pictures look. What a request
 * says beside what to compute. */
#ifndef API_FORM_H
#define API_FORM_H

#include "api/inputs/request.h"

struct api_format;

struct api_form {
    const struct api_format *format; /* NULL: not named in the request; Accept decides */
    enum pe_dtype dtype;             /* PE_DTYPE_NONE: not given */
    int digits;                      /* API_DIGITS_SHORTEST: not given */
    bool data;                       /* false: no numbers, only configuration and shapes */
    int cmap;                        /* of pictures: index in api_cmap_names */
    bool has_cmap;                   /* it was given */
    double vmin, vmax;               /* values of the first and the last colour; NaN: not given */
    int64_t zoom, columns;           /* pixels of an element, columns of a terminal; 0: not given */
    bool ascii;                      /* characters instead of colours */
    bool legend;                     /* the colours below the picture, with values */
    const char *outputs[API_OUTPUTS_MAX];
    size_t n_outputs;        /* 0: the scheme's own */
    struct pe_slice *slices; /* in the request's arena */
    size_t n_slices;
    enum pe_reduce reduce;
};

/* Reads the fields that concern the form out of request, and removes them from it. */
bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem);

/* Does the form fit the format that was decided on, and itself? */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem);

const struct pe_param *api_form_params(void); /* its rows, for the catalogue and the query */
const char *const *api_form_names(void);      /* its field names, NULL-terminated: for guesses at misspelt ones */

#endif
