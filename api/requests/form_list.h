/* The fields of an answer's form: FORM(type, name, the rest of its row). form.h makes the field of struct api_form from
 * the row, so the two cannot differ in type; form.c builds the parameter row that reads it. From that row follow the
 * names for guesses, the entity tag, the meaning in a query, the OpenAPI document, and which formats refuse the field
 * (all but those that name it, if any does: api_format.fields). */
FORM(WORD, dtype, .fallback = NOT_GIVEN, .words = pe_answer_dtypes,
     .about = {"element type", "元素类型", "element type of real outputs; default that of the tensor sent, else f32",
               "实数输出的元素类型；默认与发送的张量相同，否则为 f32"},
     .group = PE_G_ANSWER)
FORM(WORD, format, .fallback = NOT_GIVEN, .words = api_format_names,
     .about = {"format", "格式", "how the answer is written; default from the Accept header, else json",
               "回答的书写格式；默认取自 Accept 头，否则为 json"},
     .group = PE_G_ANSWER)
FORM(INT, digits, .fallback = (double)NAN, .min = 0, .max = API_DIGITS_MAX,
     .about = {"digits", "小数位数",
               "digits after the point in JSON; default the shortest text that reads back the same",
               "JSON 中小数点后的位数；默认取能读回原值的最短写法"},
     .group = PE_G_ANSWER)
FORM(WORD, reduce, .fallback = 0, .words = api_reduce_names,
     .about = {"reduction", "归约方式",
               "what the step of slice does with its block: its first number, or one of its finite numbers",
               "slice 的步长如何处理一块：取第一个数，或由其中的有限数算出一个"},
     .group = PE_G_ANSWER)
FORM(BOOL, data, .fallback = true,
     .about = {"data", "数据", "false leaves the numbers out of JSON: configuration and shapes at once",
               "false：JSON 中不含数值，立即返回配置和形状"},
     .group = PE_G_ANSWER)
FORM(WORD, cmap, .fallback = NOT_GIVEN, .words = api_cmap_names,
     .about = {"colours", "配色", "colours of a picture; default viridis", "图片的配色；默认 viridis"},
     .group = PE_G_PICTURE)
FORM(REAL, vmin, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .about = {"lowest value", "最小值", "value of a picture's first colour; default the least finite one",
               "图片第一种颜色对应的值；默认最小的有限值"},
     .group = PE_G_PICTURE, .usual = {-1, 1})
FORM(REAL, vmax, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
     .about = {"highest value", "最大值", "value of a picture's last colour; default the greatest finite one",
               "图片最后一种颜色对应的值；默认最大的有限值"},
     .group = PE_G_PICTURE, .usual = {-1, 1})
FORM(INT, zoom, .fallback = (double)NAN, .min = 1, .max = API_PICTURE_SIDE_MAX,
     .about = {"zoom", "放大倍数",
               "pixels of an element along each side of it in png; default a longer side of about 512",
               "png 中每个元素的边长，以像素计；默认使长边约为 512"},
     .group = PE_G_PICTURE, .usual = {1, 16})
FORM(BOOL, legend, .fallback = false,
     .about = {"legend", "图例", "true adds the colours below a png, with the values at their ends",
               "true：在 png 下方加上色条和两端的值"},
     .group = PE_G_PICTURE)
FORM(BOOL, ascii, .fallback = false,
     .about = {"plain characters", "纯字符", "true draws text with plain characters instead of colours",
               "true：文本图用普通字符而不用颜色"},
     .group = PE_G_PICTURE)
FORM(INT, columns, .fallback = (double)NAN, .min = 1, .max = API_COLUMNS_MAX,
     .about = {"columns", "列数", "most columns of a picture as text; default 80", "文本图最多的列数；默认 80"},
     .group = PE_G_PICTURE, .usual = {40, 200})
