/* The beginning of an output's .npy file, for the formats that contain such files. */
#ifndef API_FORMATS_NPY_H
#define API_FORMATS_NPY_H

#include "api/formats/format.h"

/* 406 if NumPy has no dtype for the output; format is the name of the requested format. */
bool api_npy_check(const struct pe_output *output, const char *format, struct api_problem *problem);
/* Adds magic, length and dict; a multiple of 64 bytes. output has passed api_npy_check. */
void api_npy_head(struct api_text *text, const struct pe_output *output);

#endif
