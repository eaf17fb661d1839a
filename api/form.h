/* The form of an answer: dtype, format, digits, outputs, slice, reduce, data. What a request says beside what to
 * compute. */
#ifndef API_FORM_H
#define API_FORM_H

#include "api/request.h"

struct api_format;

struct api_form {
    const struct api_format *format; /* NULL: not named in the request; Accept decides */
    enum pe_dtype dtype;             /* PE_DTYPE_NONE: not given */
    int digits;                      /* API_DIGITS_SHORTEST: not given */
    bool data;                       /* false: no numbers, only configuration and shapes */
    const char *outputs[API_OUTPUTS_MAX];
    size_t n_outputs;        /* 0: the scheme's own */
    struct pe_slice *slices; /* in the request's arena */
    size_t n_slices;
    enum pe_reduce reduce;
};

/* Reads the fields that concern the form out of request, and removes them from it. */
bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem);

/* Does the form fit the format that was decided on? */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem);

const struct pe_param *api_form_params(void); /* its rows, for the catalogue and the query */
const char *const *api_form_names(void);      /* its field names, NULL-terminated: for guesses at misspelt ones */

#endif
