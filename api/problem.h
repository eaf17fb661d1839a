/* The reason why a request is refused: status, pointer, detail. The body of every error answer is printed from it. */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "api/text.h"

struct api_problem {
    int status;              /* HTTP status */
    struct pe_failure error; /* its pointer and detail; the status in it is not used */
    const char *header;      /* one more header that the status calls for (Allow, Accept-Post …), NULL if none */
    char header_value[256];
};

/* Fills *problem and returns false: a failing function ends with `return api_fail(problem, …)`. The format is English,
 * and printed in the language of the call (api_speak), as are parts of it that go through pe_text. */
bool api_fail(struct api_problem *problem, int status, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* … about the member of this name of what pointer points to. */
bool api_fail_at(struct api_problem *problem, int status, const char *pointer, const char *name, const char *format,
                 ...) __attribute__((format(printf, 5, 6)));
/* The client has disconnected: a 503 that is not received. */
bool api_fail_left(struct api_problem *problem);
bool api_fail_memory(struct api_problem *problem);
bool api_fail_core(struct api_problem *problem, const struct pe_failure *err); /* the core's error */
bool api_fail_text(struct api_problem *problem,
                   const struct api_text *text); /* the failure of a text that is full or out of memory */

/* Adds the header that the status calls for. A value that does not fit is cut after a whole entry. */
void api_problem_header(struct api_problem *problem, const char *name, const char *value);

/* Appends name, escaped according to RFC 6901, to a pointer of PE_POINTER_MAX bytes; a name that does not fit is
 * cut. */
void api_pointer_push(char *pointer, const char *name, size_t n);

/* Writes the RFC 9457 body of an error. */
void api_problem_print(struct api_text *text, const struct api_problem *problem);

#endif
