/* Parameter rows: how a scheme's table of parameters is written, and the functions that read and print it. */
#ifndef PE_PARAMS_H
#define PE_PARAMS_H

#include "core/inside.h"

#include <math.h>
#include <string.h>

/* A row names a field of a config struct: the JSON key is the field's name and the row does not compile if the field
 * has another type. Then come the texts of struct pe_about: label, summary; with fewer of
 * them it does not compile. Last comes what the row states about its control: .level, .group, .usual; a text there does
 * not compile either. PE_OFFSET is the field's offset, and a negative array size if the field has another type. */
#define PE_OFFSET(S, field, T)                                                                                         \
    (offsetof(struct S, field) + 0 * sizeof(char[_Generic(((struct S *)0)->field, T : 1, default : -1)]))

#define PE_ABOUT(label_, summary_)                                                                                     \
    {                                                                                                                  \
        label_, summary_                                                                                               \
    }
#define PE_TEXTS(label_, summary_, ...) .about = {label_, summary_}, __VA_ARGS__
#define PE_P_INT(S, field, fallback_, min_, max_, ...)                                                                 \
    {                                                                                                                  \
        .name = #field, .type = PE_T_INT, .offset = PE_OFFSET(S, field, int64_t), .fallback = (fallback_),             \
        .min = (min_), .max = (max_), PE_TEXTS(__VA_ARGS__)                                                            \
    }
#define PE_P_REAL(S, field, fallback_, min_, max_, ...)                                                                \
    {                                                                                                                  \
        .name = #field, .type = PE_T_REAL, .offset = PE_OFFSET(S, field, double), .fallback = (fallback_),             \
        .min = (min_), .max = (max_), PE_TEXTS(__VA_ARGS__)                                                            \
    }
#define PE_P_BOOL(S, field, fallback_, ...)                                                                            \
    {                                                                                                                  \
        .name = #field, .type = PE_T_BOOL, .offset = PE_OFFSET(S, field, bool), .fallback = (fallback_), .max = 1,     \
        PE_TEXTS(__VA_ARGS__)                                                                                          \
    }
#define PE_P_WORD(S, field, words_, ...)                                                                               \
    {                                                                                                                  \
        .name = #field, .type = PE_T_WORD, .offset = PE_OFFSET(S, field, int), .words = (words_),                      \
        PE_TEXTS(__VA_ARGS__)                                                                                          \
    }
#define PE_P_WORD_AT(S, path, name_, words_, ...) /* a field of an object inside the config */                         \
    {                                                                                                                  \
        .name = name_, .type = PE_T_WORD, .offset = PE_OFFSET(S, path, int), .words = (words_), PE_TEXTS(__VA_ARGS__)  \
    }
#define PE_P_OBJECT(name_, rows_, ...)                                                                                 \
    {                                                                                                                  \
        .name = name_, .type = PE_T_OBJECT, .fields = (rows_), PE_TEXTS(__VA_ARGS__)                                   \
    }
#define PE_P_REALS(S, field, min_, max_, ...)                                                                          \
    {                                                                                                                  \
        .name = #field, .type = PE_T_REALS, .offset = PE_OFFSET(S, field, struct pe_reals), .min = (min_),             \
        .max = (max_), PE_TEXTS(__VA_ARGS__)                                                                           \
    }
#define PE_P_VALUE(S, field, ...) /* any value; the plan checks it */                                                  \
    {                                                                                                                  \
        .name = #field, .type = PE_T_VALUE, .offset = PE_OFFSET(S, field, const struct pe_value *),                    \
        PE_TEXTS(__VA_ARGS__)                                                                                          \
    }
#define PE_OUTPUT(name_, shape_, row_axes_, dtype_, on_request_, when_, ...) /* a row of struct pe_output_row */       \
    {                                                                                                                  \
        name_, shape_, row_axes_, dtype_, on_request_, when_, PE_TEXTS(__VA_ARGS__)                                    \
    }
#define PE_INPUT(name_, shape_, operation_, is_operand_, ...) /* a row of struct pe_input_row */                       \
    {                                                                                                                  \
        name_, shape_, operation_, is_operand_, PE_ABOUT(__VA_ARGS__)                                                  \
    }
#define PE_P_END                                                                                                       \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

#define PE_UNSET ((double)NAN) /* the default of a parameter that the plan derives or leaves unset */
#define PE_UNSET_WORD (-1)     /* the same for a word: its field holds an index into words */

/* Ends an error's sentence with the advice to leave its field out, which pe_inherit_blame drops where the request does
 * not have the field. Returns the error's status. */
enum pe_status pe_leave_out(struct pe_failure *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Both of a text that is put together of others before main; borrowed for good. In core/texts.c. */
void pe_text_add(const char *english, const char *chinese);

/* out = prefix/name as a JSON pointer (RFC 6901: "~" is written ~0 and "/" ~1), cut to room. */
void pe_pointer_join(char *out, size_t room, const char *prefix, const char *name);

/* Are two names equal? A request needs hundreds of comparisons, and most names differ in their first letter. */
static inline bool pe_same(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

/* The value of the field of that name; NULL if there is none. */
/* The first element of a list, and of lists in it, that is no number, and its index: "1", "1, 0". */
bool pe_value_find_odd(const struct pe_value *v, char *index, size_t n_index, const struct pe_value **odd);

const struct pe_value *pe_field_find(const struct pe_field *fields, size_t n, const char *name);

/* Is word one of the alternatives "a|b|c"? */
bool pe_is_among(const char *alternatives, const char *word); /* alternatives may be NULL: false */

/* Does a condition such as "form=asymmetric|key" hold in config? NULL always holds. */
bool pe_when_holds(const char *when, const struct pe_param *rows, const void *config);

/* The value of the integer parameter called name; false if rows have none or it is unset. */
bool pe_param_integer(const struct pe_param *rows, const void *config, const char *name, size_t n, int64_t *value);

/* Writes the config as fields, in the order of rows, without fields that are unset or not in use. Returns their
 * number. fields has room for all rows, and nested for the fields of nested objects. */
size_t pe_params_print(const struct pe_param *rows, const void *config, struct pe_field *fields,
                       struct pe_field **nested);
size_t pe_params_count(const struct pe_param *rows); /* number of rows, including those of nested objects */

/* Fails unless the list has one dimension and exactly n numbers. The error states both lengths and why n is
 * expected. */
enum pe_status pe_reals_expect(const struct pe_reals *list, uint64_t n, const char *name, const char *why,
                               struct pe_failure *err);
/* The same for n integers, which it reads. */
enum pe_status pe_reals_whole(const struct pe_reals *list, uint64_t n, const char *name, const char *why,
                              int64_t *numbers, struct pe_failure *err);
/* Lets the list be these numbers, which the config owns: so the resolved config has them. */
void pe_reals_set(struct pe_reals *list, const int64_t *numbers, uint64_t n);

#endif
