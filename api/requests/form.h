/* The fields of struct api_form: how to answer, not what to compute. */
#ifndef API_FORM_H
#define API_FORM_H

#include "api/inputs/request.h"

/* An integer of the form, or its default if it is absent. */
static inline int64_t api_form_integer(int64_t given, int64_t usual) { return given == PE_UNSET_INT ? usual : given; }

/* The index of the colours in api_cmap_names. */
static inline int api_form_cmap(const struct api_form *form) { return form->cmap < 0 ? 0 : form->cmap; }

/* Reads the form's fields from request and removes them from it. */
bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem);

/* Checks that the form suits the chosen format and is consistent in itself. */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem);

/* The format that the request names; NULL: none, Accept decides. */
const struct api_format *api_form_format(const struct api_form *form);

const struct pe_param *api_form_params(void);     /* the form's rows, for the catalogue, the query and the entity tag */
const struct pe_param *api_form_lists(void);      /* the same of `outputs` and `slice`, which no row reads */
size_t api_form_size(const struct pe_param *row); /* bytes of a row's field */
const char *const *api_form_names(void);          /* its field names, NULL-terminated: for guesses at misspelt ones */

#endif
