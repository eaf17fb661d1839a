/* Caching and ranges: ETag, If-None-Match, Range (RFC 9110 §8.8, §13, §14). */
#ifndef API_CACHING_H
#define API_CACHING_H

#include "api/requests/form.h"
#include "api/formats/format.h"
#include "api/replies/reply.h"

/* An entity tag is a strong validator: a name for the bytes of an answer, known before any byte is computed. */
struct api_named {
    const struct api_request *request; /* the planned request, without the fields of the form */
    const struct api_form *form;
    const struct api_format *format;
    bool is_of_machine; /* its bytes may differ between machines: pe_machine_fuses */
    bool is_of_kernels; /* … and between instruction sets of one machine */
    const char *commit; /* of the program, because a release may correct a value */
    const char *config; /* resolved, as JSON text */
    size_t config_bytes;
    /* Of answers that no operation gives: the endpoint, the language, and the requests of several configurations. */
    const char *route, *lang; /* NULL: none */
    struct api_request *const *parts;
    size_t n_parts;
};
void api_etag_print(const struct api_named *named, char *etag); /* "\"…\"" */

/* Whether a list of entity tags, e.g. the value of If-None-Match, contains this one. Weak tags are compared by their
 * text; * matches any tag. */
bool api_etag_is_among(const char *list, const char *etag);

/* Whether a shared cache may store the answer: not if the request contains a client's words or weights. */
const char *api_cache_control(const struct api_request *request, enum api_access access);

/* Bytes first … last of a body, both included. */
struct api_range {
    uint64_t first, last;
};

enum api_range_kind { API_RANGE_NONE, API_RANGE_PART, API_RANGE_UNSATISFIABLE };

/* The part of a body of `length` bytes that a call requests: none unless the call is a GET whose If-Range, if present,
 * names this tag. Several ranges, other units and bad syntax count as no range: then the whole body is sent, as the
 * standard allows. */
enum api_range_kind api_range_asked(const struct api_call *call, const char *etag, uint64_t length,
                                    struct api_range *range);

/* Turns the reply of a part into a 206, and adds Accept-Ranges. False: no memory. */
bool api_range_add(struct api_reply *reply, enum api_range_kind kind, const struct api_range *range, uint64_t length);

struct api_reply *api_range_refusal(uint64_t length); /* 416 */

#endif
