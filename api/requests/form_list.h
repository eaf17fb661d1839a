/* The fields of an answer's form: FORM(type, name, the rest of its row). form.h makes the field of struct api_form from
 * the row, so the two cannot differ in type; form.c builds the parameter row that reads it. From that row follow the
 * names for guesses, the entity tag, the meaning in a query, the OpenAPI document, and which formats refuse the field
 * (all but those that name it, if any does: api_format.fields). */
FORM(WORD, dtype, .fallback = NOT_GIVEN, .words = dtypes,
     .text = "element type of real outputs; default that of the tensor sent, else f32")
FORM(WORD, format, .fallback = NOT_GIVEN, .words = api_format_names,
     .text = "how the answer is written; default from the Accept header, else json")
FORM(INT, digits, .fallback = (double)NAN, .min = 0, .max = API_DIGITS_MAX,
     .text = "digits after the point in JSON; default the shortest text that reads back the same")
FORM(WORD, reduce, .fallback = 0, .words = api_reduce_names,
     .text = "what the step of slice does with its block: its first number, or one of its finite numbers")
FORM(BOOL, data, .fallback = true, .text = "false leaves the numbers out of JSON: configuration and shapes at once")
FORM(WORD, cmap, .fallback = NOT_GIVEN, .words = api_cmap_names, .text = "colours of a picture; default viridis")
FORM(REAL, vmin, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .text = "value of a picture's first colour; default the least finite one")
FORM(REAL, vmax, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .text = "value of a picture's last colour; default the greatest finite one")
FORM(INT, zoom, .fallback = (double)NAN, .min = 1, .max = API_PICTURE_SIDE_MAX,
     .text = "pixels of an element along each side of it in png; default a longer side of about 512")
FORM(BOOL, legend, .fallback = false, .text = "true adds the colours below a png, with the values at their ends")
FORM(BOOL, ascii, .fallback = false, .text = "true draws text with plain characters instead of colours")
FORM(INT, columns, .fallback = (double)NAN, .min = 1, .max = API_COLUMNS_MAX,
     .text = "most columns of a picture as text; default 80")
