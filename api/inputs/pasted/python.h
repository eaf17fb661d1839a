/* Python as people paste it: values, and statements of a script (python.c); calls (call.c). */
#ifndef API_PASTED_PYTHON_H
#define API_PASTED_PYTHON_H

#include "api/inputs/pasted/pasted.h"

struct python {
    struct pasting *p;
    const char *whole; /* the script that sets variables; NULL: none, and what is not known is a text of itself */
    unsigned *n_left;  /* variables that may be looked up, each in the whole script */
};

/* Behind what is in quotes or a comment, else the next byte. */
const char *python_pass(const char *at);
const char *python_blanks(const char *at, const char *end); /* behind blanks and comments */
size_t python_word(const char *at, const char *end);        /* bytes of a name without points; 0: there is none */
/* The first of the stops, or the end of the bracket in which `at` is, outside of inner brackets and quotes. */
const char *python_end(const char *at, const char *end, const char *stops);
const char *python_equals(const char *at, const char *end); /* the = of an assignment; NULL: there is none */

void python_put(const struct python *py, struct api_text *json, const char *at, const char *end); /* a value */
/* What is between the parentheses of a call, as an object: the first without a name is "model". */
void python_put_call(const struct python *py, struct api_text *json, const char *at, const char *end);

struct python_statement {
    const char *begin, *end, *equals; /* of an assignment; NULL: it is none */
    size_t indent;
};
bool python_statement(const char **at, struct python_statement *s); /* the next one; false: there is none */
bool python_target(const struct python_statement *s, const char **name, size_t *n); /* NAME = …, NAME: type = … */
/* The value that the script gives a variable; false: none, or several. */
bool python_variable(const struct python *py, const char *name, size_t n, const char **first, const char **last);

#endif
