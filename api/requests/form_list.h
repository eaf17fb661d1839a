/* The fields of an answer's form: FORM(type, name, the rest of its row). inputs.h makes the field of struct api_form
 * from the row, so the two cannot differ in type; form.c builds the parameter row that reads it. From that row follow
 * the names for guesses, the entity tag, the meaning in a query, the OpenAPI document, and which formats refuse the
 * field (all but those that name it, if any does: api_format.fields). */
FORM(WORD, dtype, .fallback = NOT_GIVEN, .words = pe_answer_dtypes,
     .about = {"element type", "element type of real outputs; default that of the tensor sent, else f32"},
     .group = PE_G_ANSWER)
FORM(WORD, format, .fallback = NOT_GIVEN, .words = api_format_names,
     .about = {"format", "how the answer is written; default from the Accept header, else json"}, .group = PE_G_ANSWER)
FORM(INT, digits, .fallback = (double)NAN, .min = 0, .max = API_DIGITS_MAX,
     .about = {"digits", "digits after the point in JSON; default the shortest text that reads back the same"},
     .group = PE_G_ANSWER)
FORM(WORD, reduce, .fallback = 0, .words = api_reduce_names,
     .about = {"reduction",
               "what the step of slice does with its block: its first number, or one of its finite numbers"},
     .group = PE_G_ANSWER)
FORM(BOOL, data, .fallback = true,
     .about = {"data", "false leaves the numbers out of JSON: configuration and shapes at once"}, .group = PE_G_ANSWER)
FORM(WORD, cmap, .fallback = NOT_GIVEN, .words = api_cmap_names,
     .about = {"colours", "colours of a picture; default viridis"}, .group = PE_G_PICTURE)
FORM(REAL, vmin, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .about = {"lowest value", "value of a picture's first colour; default the least finite one"},
     .group = PE_G_PICTURE, .usual = {-1, 1})
FORM(REAL, vmax, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .about = {"highest value", "value of a picture's last colour; default the greatest finite one"},
     .group = PE_G_PICTURE, .usual = {-1, 1})
FORM(INT, zoom, .fallback = (double)NAN, .min = 1, .max = API_PICTURE_SIDE_MAX,
     .about = {"zoom", "pixels of an element along each side of it in png; default a longer side of about 512"},
     .group = PE_G_PICTURE, .usual = {1, 16})
FORM(BOOL, legend, .fallback = false,
     .about = {"legend", "true adds the colours below a png, with the values at their ends"}, .group = PE_G_PICTURE)
FORM(BOOL, ascii, .fallback = false,
     .about = {"plain characters", "true draws text with plain characters instead of colours"}, .group = PE_G_PICTURE)
FORM(INT, columns, .fallback = (double)NAN, .min = 1, .max = API_COLUMNS_MAX,
     .about = {"columns of text", "most columns of a picture as text; default 80"}, .group = PE_G_PICTURE,
     .usual = {40, 200})
